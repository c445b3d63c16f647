from collections.abc import Sequence
from os import PathLike
from typing import IO, Any, final

__all__ = [
    "ArrowBatches",
    "ArrowRows",
    "Envelope",
    "Events",
    "Reduction",
    "Run",
    "Server",
    "analyses",
    "is_remote",
    "main",
    "open",
    "program",
    "read_averages",
    "read_events",
    "reference",
    "serve",
    "summary_of",
    "write_chrome",
    "write_memory_timeline",
]

# Spans in monotonic ns; the system's id of a thread, or all; whether operators, labels, steps and calls are asked for,
# and which activities of devices.
_Asked = tuple[list[tuple[int, int]], int | None, tuple[bool, bool, bool, bool, Sequence[str]]]
_Average = tuple[
    tuple[str, str, str, list[str]],
    tuple[int, int, int, int, int, int, int, int, int, int],
    tuple[int, bool, bool, bool],
]

def main(arguments: list[str]) -> int:
    """Run the command line with these arguments, the first of which is the program's name; its exit code."""

def analyses() -> list[str]:
    """The names of all analyses."""

def is_remote(path: str | PathLike[str]) -> bool:
    """Whether this is an address in a store that can be opened."""

def reference(name: str) -> list[tuple[str, str]]:
    """The reference of an analysis: the text under each of its headings."""

def open(
    paths: Sequence[str | PathLike[str]],
    align: str | None = None,
    offsets: Sequence[tuple[int, int]] = ...,
    rank_from: str | None = None,
    join: bool = False,
    memory: int | None = None,
) -> Run:
    """Open a run folder or a trace file, or the ranks of a job, which may be several paths.

    ValueError when it cannot be read.
    """

def program() -> int:
    """The sum of what this program is, which tells programs apart."""

def summary_of(program: int, task: str) -> tuple[bytes | None, str | None]:
    """The summary of the part that a task tells, or why there is none, as text for ``Reduction.add``.

    The first argument is the ``program()`` of the process that made the task.
    """

def read_events(capture: str | PathLike[str], asked: _Asked, wanted: tuple[bool, bool, bool]) -> Events:
    """The events that a capture of this process holds of what is asked for; RuntimeError when it is gone.

    ``wanted``: whether memory, operations and overloads are.
    """

def read_averages(windows: list[tuple[str | PathLike[str], _Asked]], by_shapes: bool) -> list[_Average]:
    """The averages of what captures hold of what is asked of each: see ``Events.averages``."""

def write_chrome(
    path: str | PathLike[str],
    capture: str | PathLike[str],
    asked: _Asked,
    facts: list[tuple[str, str]],
    first_id: int = 1,
    streams: bool = True,
    with_overloads: bool = False,
    verbose: bool = False,
) -> tuple[bool, int]:
    """Write the same as Chrome JSON, packed when the name ends in ``.gz``, with ``facts`` as members of its own.

    Ids of operators begin at ``first_id``. Says whether that was possible without a whole trace in memory, which
    ``streams`` allows, and how many ids there are. With ``with_overloads``, which takes a whole trace, operators
    are called ``aten::add.Tensor``; with ``verbose`` rows have the functions around them.
    """

def write_memory_timeline(
    path: str | PathLike[str],
    capture: str | PathLike[str],
    asked: _Asked,
    device: int | None,
) -> None:
    """Write the memory that was in use, of the host or of a device by its number, in the form that the ending says."""

def serve(
    paths: list[str | PathLike[str]],
    port: int = 0,
    allowed_hosts: Sequence[str] = ...,
    allows_frames: bool = False,
    editor: str | None = None,
    align: str | None = None,
    offsets: Sequence[tuple[int, int]] = ...,
    rank_from: str | None = None,
    join: bool = False,
    memory: int | None = None,
) -> Server:
    """Serve runs and traces on this machine; OSError when nothing can listen there."""

@final
class Server:
    """A server at work; it ends when it is stopped, or with the process."""

    @property
    def url(self) -> str:
        """The address to open."""
    def stop(self) -> None:
        """End it."""

@final
class Events:
    """The events of a window, in memory."""

    def __len__(self) -> int: ...
    def averages(self, more: list[Events], by_shapes: bool, by_overloads: bool, stack_frames: int) -> list[_Average]:
        """Averages in three parts, in order of first events.

        Name, shapes, overload and innermost functions; count, total and self ns, the same on devices, total and self bytes
        of the host and of devices, operations; scope, whether it is a label, ended on another thread, ran on a device.
        """
    def ids(self) -> tuple[int, int]:
        """How many ids of operators there are, and of rows of memory."""
    def columns(self) -> dict[str, Any]:
        """The columns: numbers as the bytes of an array, texts as lists."""
    def write_stacks(self, path: str | PathLike[str], more: list[Events], is_of_devices: bool) -> None:
        """Write the stacks of this list and of those in ``more``, folded, with their own times or those on devices.

        OSError when that fails.
        """
    def has_device_work(self) -> bool:
        """Whether any row ran on a device."""
    def self_ns(self) -> int:
        """Sum of the durations of all events less those of their children."""

@final
class Run:
    """An opened run, in memory."""

    def analyze(
        self,
        name: str,
        rank: str | None = None,
        step: int | None = None,
        start_ns: int | None = None,
        end_ns: int | None = None,
        group_by: str | None = None,
        compat: str | None = None,
        bucket_ms: str | None = None,
        depth: str | None = None,
        top: str | None = None,
    ) -> Envelope:
        """Run one analysis. ValueError when there is no such analysis, rank or step. Ranks are as on the command
        line, as in 0-7."""
    def report(self, input: str, rank: str | None = None, step: int | None = None) -> str:
        """What ``stepscope report --json`` prints of the run that was opened as ``input``."""

@final
class Reduction:
    """A run before its summaries are put together."""

    def __new__(
        cls,
        paths: Sequence[str | PathLike[str]],
        align: str | None = None,
        offsets: Sequence[tuple[int, int]] = ...,
        rank_from: str | None = None,
        join: bool = False,
        memory: int | None = None,
    ) -> Reduction:
        """Find the parts of a run; ValueError when there is no run."""
    def tasks(self) -> list[tuple[int, str]]:
        """The places of the parts whose summaries are to be made, and what a process that makes one is told."""
    def path(self, at: int) -> str:
        """Where the part at a place is."""
    def add(self, at: int, summary: bytes | None, failure: str | None) -> None:
        """Take what ``summary_of`` gave for the part at a place.

        RuntimeError when the process that made it does not see the same file or is another program.
        """
    def open(self) -> Run:
        """Open the run, once. What there is no summary of is read here."""

@final
class ArrowBatches:
    """Batches of rows while another program writes them, as a stream of Arrow's IPC."""

    def __new__(cls, file: IO[bytes]) -> ArrowBatches:
        """Read such a stream from a file with ``read1``; ValueError when there is none."""
    def __iter__(self) -> ArrowBatches: ...
    def __next__(self) -> ArrowRows:
        """The next rows; ValueError where the stream breaks off."""

@final
class ArrowRows:
    """Rows as a program wrote them into a stream of Arrow's IPC."""

    def __new__(cls, bytes: bytes) -> ArrowRows:
        """Read such a stream; ValueError when it is none."""
    def __len__(self) -> int:
        """How many rows there are."""
    def columns(self) -> list[str]:
        """The names of the columns."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as a stream of Arrow batches."""

@final
class Envelope:
    """A result with what it means, in memory."""

    def to_json(self) -> str:
        """All of it as JSON."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as a stream of Arrow batches."""
