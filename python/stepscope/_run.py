"""Runs, as Python sees them: results come from the analysis engine, this file only hands them over."""

import functools
import inspect
import json
import operator
import os
import shlex

from stepscope import _engine
from stepscope._result import Result
from stepscope._stores import opened


class Run:
    """A run folder or a trace file; what :func:`stepscope.open` and :func:`stepscope.reduce` return.

    Every analysis is a method of the same name (``dir(run)`` lists them, ``help(run.operators)`` says what it means).
    Each takes the keywords of :meth:`analyze`.
    """

    def __init__(self, path, *, align="auto", offsets=None, rank_from=None, join=False, memory=None):
        self._open(_engine.open, [path], align, offsets, rank_from, join, memory)

    def _open(self, engine, paths, align, offsets, rank_from, join, memory):
        """Be the run at these paths, which ``engine`` opens."""
        found = [opened(path) for path in paths]
        self._paths, self._kept = [path for path, _ in found], [kept for _, kept in found]
        for path in self._paths:
            if not _engine.is_remote(path) and not os.path.exists(path.removeprefix("file://")):
                raise FileNotFoundError(f"no such run or trace file: {path}")
        offsets = [*dict(offsets or {}).items()]
        self._joining = {"align": align, "offsets": offsets, "rank_from": rank_from, "join": join, "memory": memory}
        self._opened = engine(self._paths, **self._joining)

    def analyze(
        self,
        name,
        *,
        rank=None,
        step=None,
        start_ns=None,
        end_ns=None,
        group_by=None,
        compat=None,
        bucket_ms=None,
        depth=None,
        top=None,
    ):
        """Run one analysis.

        Parameters
        ----------
        name : str
            Its name, as ``stepscope analyze`` lists it.
        rank : int, iterable of int, or str, optional
            Only these ranks: ``3``, ``range(8)``, ``[0, 4]``, or as on the command line, ``"0-7"`` or ``"0,4,8-11"``. All
            by default. A number must be a rank of the run; of a range one rank must be.
        step : int, optional
            Only the steps with this number; all by default.
        start_ns, end_ns : int, optional
            Only what begins on the host from ``start_ns`` on and before ``end_ns``, what is launched in that
            window, and device work of unknown launch that starts in it: nanoseconds since the start of the trace, as in ``start_ns`` of results. One of both may be left
            out. With ``step``, what lies in both.
        group_by : str, optional
            What a row stands for: ``"name"``, ``"shapes"``, ``"stack"``, ``"module"``, ``"category"``,
            ``"call"``, ``"launch"``, ``"line"``, ``"file"``, ``"process"``, ``"class"`` or ``"properties"``, where the
            analysis accepts it.
        compat : str, optional
            Use the definition of ``"tb"`` or ``"hta"``, where the analysis knows it.
        bucket_ms : float, optional
            Width of a curve's buckets in milliseconds, where the analysis has a curve.
        depth : int, optional
            How deep a tree is shown, where rows are one: 0 for its roots alone.
        top : int, optional
            How many rows of each depth of a tree are shown, of those that are most of it by one of its measures.

        Returns
        -------
        Result
            The result envelope, read like a dict: ``results`` holds one dict a row, with units at the end of its
            keys; ``columns`` says what each key means; ``coverage`` and ``findings`` say what the result rests on.
            Its rows are a table, too: ``.to_pandas()``, ``.to_polars()``, ``.to_arrow()``, and Arrow's PyCapsule
            interface.

        Raises
        ------
        ValueError
            There is no such analysis, rank or step, it does not accept an option, or the window ends before it
            begins.
        TypeError
            A rank or a limit of the window is no whole number.
        """
        window = _window(start_ns, end_ns)
        bucket = None if bucket_ms is None else format(bucket_ms, "f").rstrip("0").rstrip(".")
        options = {"group_by": group_by, "compat": compat, "bucket_ms": bucket}
        options |= {name: str(value) for name, value in (("depth", depth), ("top", top)) if value is not None}
        return Result(self._opened.analyze(name, rank=_ranks(rank), step=step, **window, **options))

    def report(self, *, rank=None, step=None):
        """What stands out, as ``stepscope report --json`` prints it.

        Parameters
        ----------
        rank, step
            As of :meth:`analyze`.

        Returns
        -------
        dict
            ``verdict``: sentences with their numbers. ``advice``: what to change, what there is most to gain from first, each
            with its place, its gain and how that is known. ``coverage``: which rules were judged, and what the others lack.
            Steps, devices, ranks, memory and findings beside it.
        """
        words = " ".join(shlex.quote(path) for path in self._paths)
        return json.loads(self._opened.report(words, rank=_ranks(rank), step=step))

    def sql(self, query):
        """Ask any question in SQL; ``stepscope sql RUN --schema`` prints the tables.

        Parameters
        ----------
        query : str
            One or several statements with ``;`` between; the rows are those of the last one.

        Returns
        -------
        Rows
            A table: ``.to_pandas()``, ``.to_polars()``, ``.to_arrow()``, ``.to_dicts()``, and Arrow's PyCapsule interface.

        Raises
        ------
        ValueError
            The query is wrong; the message says where.
        RuntimeError
            The program that answers is not installed: ``pip install 'stepscope[sql]'``.
        """
        from stepscope._sql import ask

        return ask(self._paths, query, **self._joining)

    def sql_batches(self, query):
        """As :meth:`sql`, for results that do not fit into memory: an iterator of tables, each with some thousand rows, as they
        come. A query of which no more is wanted ends with its iterator.
        """
        from stepscope._sql import ask_in_batches

        return ask_in_batches(self._paths, query, **self._joining)

    def view(self, *, port=0, browser=False, allow_hosts=(), allow_frame=False):
        """Serve this run as pages for a browser: see :func:`stepscope.view`. The address is returned."""
        from stepscope._view import view

        if len(self._paths) > 1:
            raise ValueError("pages show what is at one path\nhint: put the files of this run into one folder")
        served = {"port": port, "browser": browser, "allow_hosts": allow_hosts, "allow_frame": allow_frame}
        return view(self._paths, **served, joining=self._joining)

    def __getattr__(self, name):
        if name in _engine.analyses():
            return _method(self, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __dir__(self):
        return [*super().__dir__(), *_engine.analyses()]

    def __repr__(self):
        if len(self._paths) > 1:
            return f"stepscope.reduce({self._paths!r})"
        return f"stepscope.open({self._paths[0]!r})"


def _ranks(rank):
    """Ranks as the command line takes them."""
    if rank is None or isinstance(rank, str):
        return rank
    if isinstance(rank, range) and rank.step == 1 and len(rank) > 1:
        return f"{rank.start}-{rank[-1]}"
    try:
        return str(operator.index(rank))
    except TypeError:
        pass
    try:
        return ",".join(str(operator.index(each)) for each in rank)
    except TypeError:
        said = f"rank is {rank!r}: give a number, several as in range(8) or [0, 4], or a text such as '0-7'"
        raise TypeError(said) from None


def _window(start_ns, end_ns):
    """The limits of a window of time, which must be whole numbers."""
    limits = {"start_ns": start_ns, "end_ns": end_ns}
    for limit, value in limits.items():
        if value is None:
            continue
        try:
            limits[limit] = operator.index(value)
        except TypeError:
            said = f"{limit} is {value!r}, which is no whole number of nanoseconds since the start of the trace"
            raise TypeError(said) from None
        if not -(2**63) <= limits[limit] < 2**63:
            raise ValueError(f"{limit} is {value}, which no trace reaches: it has at most 64 bits")
    return limits


def _method(run, name):
    """The method of an analysis, documented by the analysis itself."""

    def analysis(**options):
        return run.analyze(name, **options)

    signature = inspect.signature(run.analyze)
    keywords = [parameter for parameter in signature.parameters.values() if parameter.kind is parameter.KEYWORD_ONLY]
    analysis.__signature__ = signature.replace(parameters=keywords)
    analysis.__name__ = name
    analysis.__qualname__ = f"{type(run).__name__}.{name}"
    analysis.__module__ = __name__
    analysis.__doc__ = _documentation(name)
    return analysis


@functools.cache
def _documentation(name):
    """The headings of an analysis as sections of a docstring; the first sentence of its definition comes first."""
    sections = dict(_engine.reference(name))
    definition = sections.pop("Definition")
    rest = "".join(f"\n\n{heading}\n{'-' * len(heading)}\n{text}" for heading, text in sections.items())
    return f"{definition}{rest}\n\nParameters and the result are those of :meth:`Run.analyze`.\n"
