"""Stepscope: where a deep-learning job spends its time.

Record a job from the command line with ``stepscope record -- python train.py``; read what was recorded with
:func:`stepscope.open`.

Importing this package loads neither torch nor pandas nor the analysis engine: a recorded process imports it too.
"""

__all__ = ["Run", "annotate", "keep", "log_to", "open", "reduce", "step_end", "view"]


def open(path, *, align="auto", offsets=None, rank_from=None, join=False, memory=None):
    """Open a run folder, or a trace file of another profiler.

    Parameters
    ----------
    path : str, os.PathLike, or a file that is open for reading
        Anything that ``stepscope report`` takes, such as a folder with the traces of a job's ranks, or an address such as
        ``s3://bucket/run``. Addresses that only fsspec knows, and files that are open, are copied first.
    align : {"auto", "base", "collectives", "none"}
        How the clocks of ranks are put together: as files state them (``"base"``), as the collectives show it that ranks
        leave together, or all beginning together (``"none"``). By default as collectives show it where files state no
        clock or collectives contradict it, and else as files state them.
    offsets : mapping of int to int, optional
        What is added to the clock of a rank, in nanoseconds, before clocks are put together.
    rank_from : str, optional
        A regular expression that finds the rank in the path of a file that does not say it: its group called ``rank``,
        else its first group.
    join : bool
        Take all files for ranks of one job, also those of another time or of another number of ranks.
    memory : int, optional
        How many bytes of memory events of a run of many files may take together. Without it, three quarters of what is
        free.

    Returns
    -------
    Run
        One method an analysis: ``run.operators()``, ``run.step_breakdown(rank=0)``.

    Raises
    ------
    FileNotFoundError
        Nothing is at ``path``.
    ValueError
        What is there is not a run or a trace, there is no rank to which an offset belongs, or ``align`` or
        ``rank_from`` means nothing.
    """
    from stepscope._run import Run

    return Run(path, align=align, offsets=offsets, rank_from=rank_from, join=join, memory=memory)


def reduce(paths, executor=None, *, align="auto", offsets=None, rank_from=None, join=False, memory=None):
    """Open a job of many ranks, whose files other processes read: on this machine, or on all of a cluster.

    Each rank, or each file, is one task. It gives the summary of the rank, a few 100 KB, in place of its trace. They are put
    together here, into what :func:`open` gives.

    Parameters
    ----------
    paths : str, os.PathLike, or a list of these
        What :func:`open` takes; several are the ranks of one job. Every worker needs the same files at the same paths, or
        addresses of a store.
    executor : concurrent.futures.Executor or the like, optional
        What runs tasks, by its ``submit``: a ``ProcessPoolExecutor``, Dask's ``client.get_executor()``, an
        ``MPIPoolExecutor``. Every worker needs the same version of Stepscope. Without one, this process reads all files.
    align, offsets, rank_from, join, memory
        As of :func:`open`.

    Returns
    -------
    Run
        What :func:`open` gives for the same files, row by row.

    Raises
    ------
    FileNotFoundError
        Nothing is at a path.
    ValueError
        As of :func:`open`.
    RuntimeError
        A worker does not see the same file as this process, runs another Stepscope, or was lost; the message names the file.
        Tasks that have not begun are cancelled.
    """
    from stepscope._reduce import reduced

    return reduced(paths, executor, align=align, offsets=offsets, rank_from=rank_from, join=join, memory=memory)


def view(*paths, port=0, browser=False, allow_hosts=(), allow_frame=False):
    """Serve runs and traces as pages for a browser, from this process.

    Parameters
    ----------
    *paths : str or os.PathLike
        Anything that ``stepscope view`` takes: runs, trace files, folders that hold several.
    port : int
        Where to listen on this machine; any that is free by default.
    browser : bool
        Open a browser, too.
    allow_hosts : iterable of str
        Names, such as a proxy's, under which requests may come in beside this machine's own.
    allow_frame : bool
        Let other pages, such as a notebook, show these in a frame.

    Returns
    -------
    View
        The address, a ``str``. It is served until its ``close()``, the end of a ``with`` block, or the end of the process.

    Raises
    ------
    FileNotFoundError
        Nothing is at a path.
    OSError
        Nothing can listen at that port.
    """
    from stepscope._view import view

    return view(paths, port=port, browser=browser, allow_hosts=allow_hosts, allow_frame=allow_frame)


def keep(because="asked"):
    """Keep what the flight recorder has now, in this process and all others of the run.

    A copy of the last seconds goes to a folder of its own below the run folder, ``kept/<UTC time>-<first word>``, which
    is read as any run. Another thread makes the copy: nothing is waited for.

    Parameters
    ----------
    because : str
        Why; its first word becomes part of the folder's name.

    Returns
    -------
    bool
        False when nothing is kept, since no flight recorder runs here.
    """
    from stepscope import _ring

    return _ring.keep(because)


def step_end(kind="train", micro=False):
    """Say that a step of the program's loop has ended, on the thread that runs the loop.

    From the first call on, steps are what these calls say: neither a framework, nor a profiler object, nor an optimizer
    makes any. The first call ends a step of which nobody knows where it began. While nothing is recorded, this does
    nothing.

    Parameters
    ----------
    kind : str
        What the step did: ``"train"``, or another word, such as ``"evaluate"``. Only steps of training are steps; what ran
        up to the end of another one is outside of steps.
    micro : bool
        It was only a part of a step, such as one of the batches whose gradients are added up: a mark in the timeline.
    """
    import sys

    # Whatever records has imported it.
    steps = sys.modules.get("stepscope._steps")
    if steps is not None:
        steps.step_ended(steps.PROGRAM, steps.PROGRAM, kind, micro)


def log_to(run=None, tracker=None, name="stepscope"):
    """Hand a run to a tracker of experiments: the report as a page, the trace, and about twenty numbers.

    Only rank 0 does, after its recording has ended. Nothing that goes wrong here fails in the program.

    Parameters
    ----------
    run : str, os.PathLike or profile, optional
        The run; by default the one that this process has recorded.
    tracker : optional
        ``"wandb"``, ``"mlflow"`` or ``"clearml"``; a run of W&B, a task of ClearML, or a ``SummaryWriter``; by default the
        one of the first three that the program has begun to log to.
    name : str
        What its entries are called.

    Returns
    -------
    str or None
        The tracker that has it; None where there is none.
    """
    from stepscope._trackers import log_to

    return log_to(run, tracker, name)


def load_ipython_extension(ipython):
    """``%load_ext stepscope``: a cell that begins with ``%%stepscope`` is recorded, and its report is shown."""
    from stepscope._notebook import load

    load(ipython)


def __getattr__(name):
    if name == "Run":
        from stepscope._run import Run

        return Run
    if name == "annotate":
        from stepscope._annotate import annotate

        globals()["annotate"] = annotate
        return annotate
    if name == "__version__":
        from importlib.metadata import version

        return version("stepscope")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
