"""What a program does with its data, said by the program: ranges with a stage, and with step, epoch, sample and size.

>>> from stepscope.dataflow import checkpoint, data, dataloader, epoch
>>> @data(sample="index")
... def read(index): ...
>>> for number in epoch.iter(range(epochs)):
...     for batch in dataloader.iter(loader, epoch=number):
...         ...
...     with checkpoint("save", epoch=number) as saving:
...         saving.update(size=save(model))

A range is a label: it is in every trace, table and timeline. Its stage and details are what ``stepscope analyze
io_samples`` and ``checkpoints`` go by. While nothing is recorded, a range costs one check.
"""

from __future__ import annotations

import inspect
import sys

from stepscope import _annotate, _imports, _recorder

__all__ = ["Range", "Stage", "checkpoint", "comm", "compute", "data", "dataloader", "epoch", "preprocess"]

# Whether Dynamo traces the code that asks: a graph has no labels.
_is_compiling = bool


def _use_torch():
    global _is_compiling
    _is_compiling = sys.modules["torch"].compiler.is_dynamo_compiling


class Range:
    """One range of a stage: a context manager, and a decorator. Made by calling a :class:`Stage`.

    One object is entered by one thread at a time; a decorated function makes one for each call.
    """

    __slots__ = ("_details", "_entered", "_name", "_stage")

    def __init__(self, stage, name, details):
        self._stage, self._name, self._details, self._entered = stage, name, details, []

    def __enter__(self):
        if _is_compiling() or not _recorder.are_labels_wanted():
            self._entered.append(None)
            return self
        outer = _recorder.innermost()
        label = _annotate.annotate(self._name or self._stage)
        label.__enter__()
        token = _recorder.innermost()
        # Where only others listen, no range of ours began.
        self._entered.append((label, token if token != outer else 0))
        self._describe()
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        entered = self._entered.pop()
        if entered is not None:
            entered[0].__exit__(exc_type, exc_value, traceback)

    def __call__(self, function):
        name = self._name or getattr(getattr(function, "__func__", function), "__qualname__", self._stage)
        begin_of = _begin_of(self._stage, name, self._details, function)
        return _annotate.decorated(function, begin_of, _around_function)

    def update(self, *, step=None, epoch=None, sample=None, size=None):
        """Say more of the range, or something else than before, while it is open."""
        self._details = {**self._details, **_given(step, epoch, sample, size)}
        if self._entered and self._entered[-1] is not None:
            self._describe()

    def _describe(self):
        token = self._entered[-1][1]
        if token:
            _recorder.describe(token, self._said())

    def _said(self):
        said = {"dataflow": self._stage}
        for key, value in self._details.items():
            said[key] = _number(value)
        return said


def _begin_of(stage, name, details, function):
    """For a call with these arguments: what makes its ranges. A detail that is a text is the name of an argument."""
    if not any(isinstance(detail, str) for detail in details.values()):
        return lambda args, kwargs: lambda: Range(stage, name, details)
    signature = inspect.signature(getattr(function, "__func__", function))
    missing = [detail for detail in details.values() if isinstance(detail, str) and detail not in signature.parameters]
    if missing:
        raise TypeError(f"{name} has no argument {missing[0]!r}")

    def begin_of(args, kwargs):
        try:
            call = signature.bind(*args, **kwargs)
            call.apply_defaults()
            arguments = call.arguments
        except TypeError:
            arguments = {}  # The call itself says what is wrong with it.
        of_call = {key: arguments.get(value) if isinstance(value, str) else value for key, value in details.items()}
        return lambda: Range(stage, name, of_call)

    return begin_of


def _around_function(begin_of, function):
    def in_range(*args, **kwargs):
        if _is_compiling() or not _recorder.are_labels_wanted():
            return function(*args, **kwargs)
        with begin_of(args, kwargs)():
            return function(*args, **kwargs)

    return in_range


def _number(value):
    """A whole number of Python's, NumPy's or anything that is one; None for all else."""
    if isinstance(value, int):
        return int(value)
    try:
        return int(value) if type(value).__module__ == "numpy" and value == int(value) else None
    except (TypeError, ValueError, OverflowError):
        return None


def _given(step, epoch, sample, size):
    details = {"step": step, "epoch": epoch, "sample": sample, "size": size}
    return {key: value for key, value in details.items() if value is not None}


class Stage:
    """What is done with data; calling it makes a :class:`Range`."""

    def __init__(self, name):
        self._name = name

    def __repr__(self):
        return f"<stepscope.dataflow.{self._name}>"

    def __call__(self, name=None, /, *, step=None, epoch=None, sample=None, size=None):
        """A range of this stage, for ``with`` or as a decorator; ``@stage`` without a call decorates, too.

        Parameters
        ----------
        name : str, optional
            The label; by default the name of the decorated function, else that of the stage.
        step, epoch, sample : int or str, optional
            Numbers of the step, the epoch and the sample. Of a decorator, a text is the name of the argument that has it.
        size : int or str, optional
            The size of what is worked on, in bytes.

        Returns
        -------
        Range
        """
        if name is not None and not isinstance(name, str):
            return Range(self._name, None, {})(name)
        return Range(self._name, name, _given(step, epoch, sample, size))


class _Waits(Stage):
    def iter(self, values, name=None, /, *, step=0, epoch=None):
        """The same values; each time that the loop waits for the next one is a range.

        Parameters
        ----------
        values : iterable
            Such as a loader.
        name : str, optional
            The label.
        step : int
            The number of the first value; those behind it count on.
        epoch : int, optional
            The number of the epoch.
        """
        iterator = iter(values)
        while True:
            with self(name, step=step, epoch=epoch):
                try:
                    value = next(iterator)
                except StopIteration:
                    return
            yield value
            step += 1


class _Turns(Stage):
    def iter(self, values, name=None, /):
        """The same values; each turn of the loop is a range, with the value as number of the epoch where it is one.

        A turn ends where the loop asks for the next value, breaks, or raises.
        """
        for count, value in enumerate(values):
            number = _number(value)
            with self(name, epoch=count if number is None else number):
                yield value


checkpoint = Stage("checkpoint")
comm = Stage("comm")
compute = Stage("compute")
data = Stage("data")
dataloader = _Waits("dataloader")
epoch = _Turns("epoch")
preprocess = Stage("preprocess")

for own in (
    Range.__enter__,
    Range.__exit__,
    Range.update,
    Range._describe,
    Range._said,
    Range.__init__,
    Stage.__call__,
):
    _recorder.hide(own.__code__)
for own in (_given, _number, _Waits.iter, _Turns.iter):
    _recorder.hide(own.__code__)
for native in (_recorder.innermost, _recorder.describe):
    _recorder.hide(native)
_imports.when_loaded(_use_torch, "torch")
