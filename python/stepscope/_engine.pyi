from os import PathLike
from typing import List, Optional, Tuple, Union, final

__all__ = ["Envelope", "Trace", "analyses", "main", "open", "reference"]

def main(arguments: List[str]) -> int:
    """Run the command line with these arguments, the first of which is the program's name; its exit code."""

def analyses() -> List[str]:
    """The names of all analyses."""

def reference(name: str) -> List[Tuple[str, str]]:
    """The reference of an analysis: the text under each of its headings."""

def open(path: Union[str, PathLike[str]]) -> Trace:
    """Open a run folder or a trace file; ValueError when it cannot be read."""

@final
class Trace:
    """An opened run, in memory."""

    def analyze(
        self,
        name: str,
        rank: Optional[int] = None,
        step: Optional[int] = None,
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
