"""Calls of every kind, without PyTorch: counted by ``sys.setprofile``, then recorded; prints the counts as JSON.

Usage: stacks.py RUN WORK [ROUNDS]
"""

import collections
import json
import os
import re
import sys
import threading

from stepscope import _recorder, _stacks
from stepscope._options import Options

WORD = re.compile("[a-z]+")
HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def add(a, b):
    return max(a, b) + len("ab")


def recurse(depth):
    return depth if depth == 0 else recurse(depth - 1)


def fail(depth):
    if depth == 0:
        return [].index(1)
    return fail(depth - 1)


def values():
    try:
        while True:
            try:
                yield abs(-1)
            except KeyError:
                yield abs(-2)
    finally:
        add(1, 2)


async def inner():
    return add(3, 4)


async def outer():
    return await inner() + await inner()


class Thing:
    def __init__(self):
        self.items = [3, 1, 2]

    def key(self, item):
        return -item

    def work(self):
        return sorted(self.items, key=self.key)


def everything():
    add(1, 2)
    recurse(30)
    try:
        fail(5)
    except ValueError:
        pass
    stream = values()
    next(stream)
    stream.throw(KeyError())
    next(stream)
    stream.close()
    list(value for value in range(3))
    coroutine = outer()
    try:
        coroutine.send(None)
    except StopIteration:
        pass
    Thing().work()
    # A method that asks for the class that defines it.
    WORD.match("word")
    [add(i, i) for i in range(4)]
    sum(map(abs, (1, -2)))
    int("3")


def on_threads():
    threads = [threading.Thread(target=everything) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def deep():
    depth = 100_000 if sys.version_info >= (3, 11) else 900
    sys.setrecursionlimit(depth + 100)
    recurse(depth - 100)


def counted(work):
    """How often each function was called, as the interpreter itself tells."""
    counts = collections.Counter()

    def on_event(frame, event, arg):
        if event == "call":
            counts[f"{frame.f_code.co_filename}({frame.f_code.co_firstlineno}): {frame.f_code.co_name}"] += 1
        elif event == "c_call":
            counts[repr(arg).split(" at 0x")[0].rstrip(">") + ">"] += 1

    threading.setprofile(on_event)
    sys.setprofile(on_event)
    work()
    sys.setprofile(None)
    threading.setprofile(None)
    return {name.replace(HERE, ""): count for name, count in counts.items()}


def main():
    run, work = sys.argv[1], globals()[sys.argv[2]]
    work()
    counts = counted(work)
    os.makedirs(run)
    with open(os.path.join(run, "run.json"), "w", encoding="utf-8") as file:
        json.dump({"format": "stepscope-run", "version": 1, "created_unix_ns": 0, "command": []}, file)
    _recorder.open(run, {})
    for _ in range(int(sys.argv[3]) if len(sys.argv) > 3 else 1):
        _stacks.start(None, Options(stacks="calls"))
        work()
        _stacks.stop()
    _recorder.close()
    print(json.dumps(counts))


if __name__ == "__main__":
    main()
