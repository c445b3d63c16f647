"""Does what programs seldom do, one case after another, and prints what comes of it: the same, recorded or not."""

import asyncio
import bdb
import gc
import signal
import sys
import threading

import torch

X = torch.ones(3)


class RaisesInBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        raise ValueError("in backward")


class RaisesInForward(torch.nn.Module):
    def forward(self, x):
        return torch.ones(3) + torch.ones(4)


class Endless(torch.nn.Module):
    def forward(self, x):
        return self(x + 1)


class Around(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)


def said(function, *arguments):
    """The exception that a call ends with."""
    try:
        function(*arguments)
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:40]}"


def exceptions_in_ops():
    for _ in range(20):
        x = torch.ones(3, requires_grad=True)
        print(said((RaisesInBackward.apply(x * 1) + 1).sum().backward))
        print(said(torch.nn.Sequential(torch.nn.Linear(3, 3), RaisesInForward()), x))
    y = x * 2
    y.register_hook(lambda gradient: 1 / 0)
    print(said(y.sum().backward))


def recursion():
    def endless(n):
        torch.add(X, 1)
        return endless(n + 1)

    class Shown:
        def __repr__(self):
            return repr(self)

    def depth(n=0):
        try:
            return depth(n + 1)
        except RecursionError:
            return n

    print(said(endless, 0), said(Endless(), X), said(repr, Shown()))
    # How deep Python may go is the same as without us.
    print(depth())


def deep_modules():
    model = torch.nn.Linear(3, 3)
    for _ in range(200):
        model = Around(model)
    model(X).sum().backward()
    model.__class__.__name__ = "ünï\n" + "x" * 10_000
    Around(model)(X)


def signals_in_ops():
    class Stop(BaseException):
        pass

    def work(signum, frame):
        handled.append(torch.nn.Linear(3, 3)(X))

    def stop(signum, frame):
        if is_stoppable:
            is_stoppable.clear()
            raise Stop

    handled, is_stoppable, stopped = [], [], 0
    with torch.profiler.record_function("imports what it needs"):
        pass
    model = torch.nn.Sequential(*[torch.nn.Linear(3, 3) for _ in range(10)])
    signal.signal(signal.SIGALRM, work)
    signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
    while len(handled) < 20:
        model(X).sum().backward()
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
    for _ in range(20):
        try:
            is_stoppable.append(True)
            while is_stoppable:
                with torch.profiler.record_function("stopped"):
                    model(X).sum().backward()
        except Stop:
            pass
        stopped += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(stopped)


def generators_closed_late():
    def numbers():
        try:
            with torch.profiler.record_function("in a generator"):
                for number in range(5):
                    torch.add(X, number)
                    yield number
        finally:
            torch.neg(X)

    def outer():
        yield from numbers()

    kept = [outer() for _ in range(300)]
    print(sum(next(generator) for generator in kept))
    for generator in reversed(kept[:100]):
        generator.close()
    print({said(generator.throw, ValueError("thrown")) for generator in kept[100:200]})

    def drop():
        kept.clear()
        gc.collect()

    thread = threading.Thread(target=drop)
    thread.start()
    thread.join()


def many_tasks():
    async def leaf(number):
        torch.add(X, number)
        await asyncio.sleep(0)
        return number

    async def task(number):
        return sum([await leaf(number) for _ in range(3)])

    async def main():
        print(sum(await asyncio.gather(*[task(number) for number in range(500)])))
        cancelled = asyncio.ensure_future(task(1))
        await asyncio.sleep(0)
        cancelled.cancel()
        print((await asyncio.gather(cancelled, return_exceptions=True))[0].__class__.__name__)

    asyncio.run(main())


def debuggers():
    class Debugger(bdb.Bdb):
        lines = 0

        def user_line(self, frame):
            self.lines += 1
            self.set_next(frame)

    def traced():
        y = torch.relu(X)
        return y

    def trace(frame, event, argument):
        if frame.f_code is traced.__code__:
            events.append(event)
        return trace

    events, debugger = [], Debugger()
    sys.settrace(trace)
    traced()
    sys.settrace(None)
    debugger.runcall(traced)
    print(events, debugger.lines, sys.gettrace())


def many_code_objects():
    total = 0
    for number in range(5_000):
        names = {}
        exec(f"def made_{number}(x):\n    return x.add(1)", names)
        total += float(names[f"made_{number}"](X)[0])
    print(total)


if __name__ == "__main__":
    for case in (
        exceptions_in_ops,
        recursion,
        deep_modules,
        signals_in_ops,
        generators_closed_late,
        many_tasks,
        debuggers,
        many_code_objects,
    ):
        print(case.__name__)
        case()
    torch.erfinv(X)
    sys.exit(3)
