"""Runs, as Python sees them: results come from the analysis engine, this file only hands them over."""

import functools
import json
import os

from stepscope import _engine


class Run:
    """A run folder or a trace file; what :func:`stepscope.open` returns.

    Every analysis is a method of the same name (``dir(run)`` lists them). Each takes the keywords of :meth:`analyze`.
    """

    def __init__(self, path):
        self._path = os.fspath(path)
        if not os.path.exists(self._path):
            raise FileNotFoundError(f"no such run or trace file: {self._path}")
        self._trace = _engine.open(self._path)

    def analyze(self, name, *, rank=None, step=None, group_by=None, compat=None, bucket_ms=None):
        """Run one analysis.

        Parameters
        ----------
        name : str
            Its name, as ``stepscope analyze`` lists it.
        rank : int, optional
            Only this rank; all by default.
        step : int, optional
            Only the steps with this number; all by default.
        group_by : str, optional
            What a row stands for: ``"name"``, ``"shapes"``, ``"stack"``, ``"module"``, ``"category"``,
            ``"call"``, ``"launch"`` or ``"properties"``, where the analysis accepts it.
        compat : str, optional
            Use the definition of ``"tb"`` or ``"hta"``, where the analysis knows it.
        bucket_ms : float, optional
            Width of a curve's buckets in milliseconds, where the analysis has a curve.

        Returns
        -------
        dict
            The result envelope: ``results`` holds one dict a row, with units at the end of its keys; ``coverage``
            and ``findings`` say what the result rests on.

        Raises
        ------
        ValueError
            There is no such analysis, rank or step, or it does not accept an option.
        """
        bucket = None if bucket_ms is None else format(bucket_ms, "f").rstrip("0").rstrip(".")
        options = {"group_by": group_by, "compat": compat, "bucket_ms": bucket}
        return json.loads(self._trace.analyze(name, rank=rank, step=step, **options))

    def __getattr__(self, name):
        if name in _engine.analyses():
            return functools.partial(self.analyze, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __dir__(self):
        return [*super().__dir__(), *_engine.analyses()]

    def __repr__(self):
        return f"stepscope.open({self._path!r})"
