"""Stepscope: where a deep-learning job spends its time.

Record a job from the command line with ``stepscope record -- python train.py``; read what was recorded with
:func:`stepscope.open`.

Importing this package loads neither torch nor pandas nor the analysis engine: a recorded process imports it too.
"""

__all__ = ["Run", "annotate", "keep", "open", "view"]


def open(path):
    """Open a run folder, or a trace file of another profiler.

    Parameters
    ----------
    path : str or os.PathLike
        Anything that ``stepscope report`` takes.

    Returns
    -------
    Run
        One method an analysis: ``run.operators()``, ``run.step_breakdown(rank=0)``.

    Raises
    ------
    FileNotFoundError
        Nothing is at ``path``.
    ValueError
        What is there is not a run or a trace.
    """
    from stepscope._run import Run

    return Run(path)


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
