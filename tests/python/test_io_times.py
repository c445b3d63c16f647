"""When calls on files were, beside what ``strace`` says of the same calls."""

import re
import sys
from collections import defaultdict

import pytest
from files_recorded import can_trace, record, rows_of, succeed, system_calls

PROGRAM = """
import os, threading, time

os.mkfifo("data/pipe")


def write_late():
    with open("data/pipe", "wb", buffering=0) as pipe:
        for size in (10, 20, 30):
            time.sleep(0.05)
            pipe.write(bytes(size))


for at in range(50):
    fd = os.open(f"data/{at}", os.O_RDWR | os.O_CREAT, 0o600)
    os.write(fd, bytes(1_000 * at))
    os.fsync(fd)
    os.pread(fd, 500, 0)
    os.close(fd)
writer = threading.Thread(target=write_late)
writer.start()
with open("data/pipe", "rb", buffering=0) as pipe:
    while pipe.read(100):
        pass
writer.join()
"""
# The functions that are compared, by what the system calls them.
NAMES = {"openat": "open", "write": "write", "fsync": "fsync", "pread64": "pread", "read": "read"}
# What two clocks differ by, and what a microsecond is rounded to.
CLOCKS_NS = 1_000_000
ROUNDED_NS = 2_000


def timed_calls(log):
    """Thread, beginning, name, arguments and duration of each call in a log of ``strace -ttt -T``."""
    began, unfinished = {}, {}
    for line in log.splitlines():
        thread, time, rest = line.split(maxsplit=2)
        if rest.startswith("<..."):
            rest = unfinished.pop(thread) + rest.split(" resumed>", 1)[1]
        else:
            began[thread] = time
        if rest.endswith("<unfinished ...>"):
            unfinished[thread] = rest.removesuffix("<unfinished ...>")
            continue
        for name, arguments, _, behind in system_calls(f"{thread} {rest}"):
            took = re.search(r"<([0-9.]+)>$", behind)
            yield int(thread), to_ns(began[thread]), name, arguments, to_ns(took[1])


def to_ns(seconds):
    """Of a text with six decimals."""
    return int(seconds.replace(".", "")) * 1_000


@pytest.mark.skipif(not can_trace(), reason="strace cannot trace here")
def test_each_call_surrounds_what_the_system_did(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "program.py").write_text(PROGRAM)
    strace = ["strace", "-f", "-qq", "-y", "-ttt", "-T", "-e", f"trace={','.join(NAMES)}", "-o", "strace.log"]
    succeed([*strace, *record("run", "--io-include", "data"), sys.executable, "program.py"], tmp_path)
    ours = defaultdict(list)
    for row in sorted(rows_of(tmp_path / "run"), key=lambda row: row["start_ns"]):
        ours[row["name"], row["file"].rsplit("/", 1)[1], row["tid"]].append((row["start_ns"], row["dur_ns"]))
    theirs = defaultdict(list)
    for thread, began, name, arguments, took in timed_calls((tmp_path / "strace.log").read_text()):
        if f"{tmp_path}/data/" in arguments or '"data/' in arguments:
            file = arguments.split("data/", 1)[1].split('"')[0].split(">")[0]
            theirs[NAMES[name], file, thread].append((began, took))
    calls = [(*key[:2], *pair) for key in theirs for pair in zip(ours[key], theirs[key])]
    assert {key: len(found) for key, found in theirs.items()} == {key: len(ours[key]) for key in theirs}
    assert len(calls) == 4 * 50 + 2 + 4 + 3
    for name, file, (start_ns, dur_ns), (began_ns, took_ns) in calls:
        what = f"{name} {file}: {start_ns} {dur_ns}, strace: {began_ns} {took_ns}"
        # The clock is read before the system is called, and after it has come back.
        assert dur_ns >= took_ns - ROUNDED_NS, what
        assert start_ns <= began_ns + CLOCKS_NS, what
        assert start_ns + dur_ns >= began_ns + took_ns - CLOCKS_NS, what
