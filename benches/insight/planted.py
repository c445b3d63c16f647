"""What a job with a planted fault declares: the right answer, and how the job is run."""

import dataclasses
import importlib
import inspect
import json
import os
import typing

FILES = (
    "host",
    "interference",
    "compiled",
    "compute",
    "input",
    "memory",
    "communication",
    "ranks",
    "hangs",
    "devices",
    "hardware",
    "launches",
    "convolutions",
    "gpu",
    "compound",
    "controls",
)
# A line of a job that ends with this is where its fault is.
MARK = "# planted"
# These columns have the same text whatever the job does.
CONSTANT_COLUMNS = ("rule", "fault", "to_do", "disproof", "evidence", "priority")


@dataclasses.dataclass(frozen=True)
class Planted:
    """A job, and what the advice on it must say."""

    name: str
    # The file it is in, which is the kind of its fault; of a healthy job `controls`.
    kind: str
    run: typing.Callable
    # Codes of the rules that name the fault; none of a healthy job.
    classes: tuple
    # One of these texts has to be in a row that names the place; none: the job as a whole is the place.
    places: tuple
    # The rank that a row has to name.
    rank: typing.Optional[int]
    # Number of processes of the job.
    ranks: int
    steps: int
    # How the time of a step is summed up for the true gain: `median`, `mean` where few steps are slow; `None`: the fault
    # costs no time that a step has.
    step_time: typing.Optional[str]
    # The job ends with an error, as its fault wants it.
    fails: bool
    # It is no program: what happens is said to a simulated host and device.
    is_simulated: bool = False
    # Codes and places of a second fault.
    second: typing.Optional[tuple] = None

    @property
    def needs_gpu(self):
        """It runs on a real GPU only."""
        return _file_of(self.run) == "gpu"

    def found(self, rows):
        """The numbers of the first row that names the fault with its place, and of the first with the right rule. With two
        faults, those of the one that comes later."""
        faults = [(self.classes, self.places), *([self.second] if self.second else [])]
        found = [self._found(rows, *fault) for fault in faults]
        return tuple(None if None in numbers else max(numbers) for numbers in zip(*found))

    def _found(self, rows, classes, places):
        by_class = [number for number, row in enumerate(rows, 1) if row["rule"] in classes]
        right = [number for number in by_class if self._names_place(rows[number - 1], places)]
        return next(iter(right), None), next(iter(by_class), None)

    def _names_place(self, row, places):
        text = json.dumps({name: value for name, value in row.items() if name not in CONSTANT_COLUMNS})
        is_rank = self.rank is None or row.get("rank") == self.rank or f"rank {self.rank}" in text
        return is_rank and (not places or any(place in text for place in places))


_planted = {}


def fault(*classes, names=(), anywhere=False, rank=None, ranks=1, steps=60, step_time="median", fails=False):
    """Declares a job with a fault. Its place is a line that is marked, or one of `names`; `anywhere` is for a fault that
    has none."""

    def declare(run):
        file = os.path.basename(inspect.getsourcefile(run))
        lines, first = inspect.getsourcelines(run)
        marked = [f"{file}({first + index})" for index, line in enumerate(lines) if line.rstrip().endswith(MARK)]
        places = () if anywhere else (*marked, *names)
        assert anywhere or places or rank is not None, f"{run.__name__} has no place"
        return _add(run, classes, places, rank, ranks, steps, step_time, fails)

    return declare


def control(*, ranks=1, steps=60):
    """Declares a healthy job."""
    return lambda run: _add(run, (), (), None, ranks, steps, None, False, kind="controls")


def simulated(*classes, names=(), anywhere=False, steps=24, step_time="median"):
    """Declares a job on a simulated machine; a healthy one without `classes`."""
    kind = None if classes else "controls"
    return lambda run: _add(run, classes, () if anywhere else names, None, 1, steps, step_time, False, True, kind)


def compound(first, second, steps=60, is_simulated=False):
    """Declares a job with two faults, each of which is the codes of its rules and the texts that name its place."""
    (classes, places), second = first, tuple(second)
    return lambda run: _add(run, classes, places, None, 1, steps, None, False, is_simulated, None, second)


def _add(run, classes, places, rank, ranks, steps, step_time, fails, is_simulated=False, kind=None, second=None):
    name, kind = run.__name__, kind or _file_of(run)
    assert name not in _planted, f"two jobs are called {name}"
    _planted[name] = Planted(
        name, kind, run, classes, places, rank, ranks, steps, step_time, fails, is_simulated, second
    )
    return run


def _file_of(run):
    return os.path.basename(inspect.getsourcefile(run)).removesuffix(".py")


def all_planted():
    """All jobs by name, in the order of their files."""
    for file in FILES:
        importlib.import_module(f"insight.{file}")
    return _planted
