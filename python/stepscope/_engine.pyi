from os import PathLike
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union, final

__all__ = [
    "Envelope",
    "Events",
    "Server",
    "Trace",
    "analyses",
    "main",
    "open",
    "read_averages",
    "read_events",
    "reference",
    "serve",
    "write_chrome",
    "write_memory_timeline",
]

# Spans in monotonic ns; the system's id of a thread, or all; whether operators, labels, steps and calls are asked for,
# and which activities of devices.
_Asked = Tuple[List[Tuple[int, int]], Optional[int], Tuple[bool, bool, bool, bool, Sequence[str]]]
_Average = Tuple[
    Tuple[str, str, str, List[str]],
    Tuple[int, int, int, int, int, int, int, int, int, int],
    Tuple[int, bool, bool, bool],
]

def main(arguments: List[str]) -> int:
    """Run the command line with these arguments, the first of which is the program's name; its exit code."""

def analyses() -> List[str]:
    """The names of all analyses."""

def reference(name: str) -> List[Tuple[str, str]]:
    """The reference of an analysis: the text under each of its headings."""

def open(path: Union[str, PathLike[str]]) -> Trace:
    """Open a run folder or a trace file; ValueError when it cannot be read."""

def read_events(capture: Union[str, PathLike[str]], asked: _Asked, wanted: Tuple[bool, bool, bool]) -> Events:
    """The events that a capture of this process holds of what is asked for; RuntimeError when it is gone.

    ``wanted``: whether memory, operations and overloads are.
    """

def read_averages(
    windows: List[Tuple[Union[str, PathLike[str]], _Asked]], by_shapes: bool
) -> List[_Average]:
    """The averages of what captures hold of what is asked of each: see ``Events.averages``."""

def write_chrome(
    path: Union[str, PathLike[str]],
    capture: Union[str, PathLike[str]],
    asked: _Asked,
    facts: List[Tuple[str, str]],
    first_id: int = 1,
    streams: bool = True,
    with_overloads: bool = False,
    verbose: bool = False,
) -> Tuple[bool, int]:
    """Write the same as Chrome JSON, packed when the name ends in ``.gz``, with ``facts`` as members of its own.

    Ids of operators begin at ``first_id``. Says whether that was possible without a whole trace in memory, which
    ``streams`` allows, and how many ids there are. With ``with_overloads``, which takes a whole trace, operators
    are called ``aten::add.Tensor``; with ``verbose`` rows have the functions around them.
    """

def write_memory_timeline(
    path: Union[str, PathLike[str]],
    capture: Union[str, PathLike[str]],
    asked: _Asked,
    device: Optional[int],
) -> None:
    """Write the memory that was in use, of the host or of a device by its number, in the form that the ending says."""

def serve(
    paths: List[Union[str, PathLike[str]]],
    port: int = 0,
    allowed_hosts: Sequence[str] = ...,
    allows_frames: bool = False,
    editor: Optional[str] = None,
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
    def averages(
        self, more: List[Events], by_shapes: bool, by_overloads: bool, stack_frames: int
    ) -> List[_Average]:
        """Averages in three parts, in order of first events.

        Name, shapes, overload and innermost functions; count, total and self ns, the same on devices, total and self bytes
        of the host and of devices, operations; scope, whether it is a label, ended on another thread, ran on a device.
        """
    def ids(self) -> Tuple[int, int]:
        """How many ids of operators there are, and of rows of memory."""
    def columns(self) -> Dict[str, Any]:
        """The columns: numbers as the bytes of an array, texts as lists."""
    def write_stacks(self, path: Union[str, PathLike[str]], more: List[Events], is_of_devices: bool) -> None:
        """Write the stacks of this list and of those in ``more``, folded, with their own times or those on devices.

        OSError when that fails.
        """
    def has_device_work(self) -> bool:
        """Whether any row ran on a device."""
    def self_ns(self) -> int:
        """Sum of the durations of all events less those of their children."""

@final
class Trace:
    """An opened run, in memory."""

    def analyze(
        self,
        name: str,
        rank: Optional[int] = None,
        step: Optional[int] = None,
        start_ns: Optional[int] = None,
        end_ns: Optional[int] = None,
        group_by: Optional[str] = None,
        compat: Optional[str] = None,
        bucket_ms: Optional[str] = None,
    ) -> Envelope:
        """Run one analysis. ValueError when there is no such analysis, rank or step."""

@final
class Envelope:
    """A result with what it means, in memory."""

    def to_json(self) -> str:
        """All of it as JSON."""
    def __arrow_c_stream__(self, requested_schema: Optional[object] = None) -> object:
        """The rows as a stream of Arrow batches."""
