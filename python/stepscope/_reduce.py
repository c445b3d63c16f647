"""A run whose files are read by the workers of an executor. They import this file: it loads nothing else."""

import functools
import os
import queue


def reduced(paths, executor, **joining):
    """See :func:`stepscope.reduce`."""
    from stepscope import _engine
    from stepscope._run import Run

    is_one = isinstance(paths, (str, bytes, os.PathLike)) or hasattr(paths, "read")
    run = Run.__new__(Run)
    engine = _engine.open if executor is None else functools.partial(_opened, executor)
    run._open(engine, [paths] if is_one else list(paths), **joining)
    return run


def summary_of(program, task):
    """What a worker does: makes the summary of one rank or file, or says why there is none."""
    from stepscope import _engine

    return _engine.summary_of(program, task)


def _opened(executor, paths, **joining):
    """The run at these paths, with the summaries that workers made."""
    from stepscope import _engine

    reduction = _engine.Reduction(paths, **joining)
    program, futures, refused = _engine.program(), {}, None
    try:
        for at, task in reduction.tasks():
            try:
                futures[at] = executor.submit(summary_of, program, task)
            except Exception as error:
                # A task that was lost before says more.
                refused = at, error
                break
        for at in _as_they_end(futures):
            reduction.add(at, *_result(futures.pop(at), reduction.path(at)))
        if refused:
            raise _no_summary(reduction.path(refused[0]), refused[1]) from refused[1]
    finally:
        # Nobody waits for these any more.
        for future in futures.values():
            future.cancel()
    return reduction.open()


def _as_they_end(futures):
    """The keys of futures in the order in which they end; in their own, where they do not say that they have ended."""
    if not all(hasattr(future, "add_done_callback") for future in futures.values()):
        yield from [*futures]
        return
    ended = queue.SimpleQueue()
    for at, future in futures.items():
        future.add_done_callback(lambda _, at=at: ended.put(at))
    left = len(futures)
    while left:
        try:
            at = ended.get(timeout=1)
        except queue.Empty:
            # A signal that comes just before a thread begins to wait does not wake it.
            continue
        left -= 1
        yield at


def _result(future, path):
    """What a worker gave for the file at ``path``."""
    try:
        return future.result()
    except ImportError as error:
        hint = "install stepscope, in the same version, wherever a worker runs"
        raise RuntimeError(f"a worker cannot load stepscope ({error}): {path}\nhint: {hint}") from error
    except Exception as error:
        raise _no_summary(path, error) from error


def _no_summary(path, error):
    hint = "the system ends workers when memory is short: fewer of them on a machine leave more to each"
    said = f"{type(error).__name__}: {error}".rstrip(": ")
    return RuntimeError(f"no summary came back from a worker ({said}): {path}\nhint: {hint}")
