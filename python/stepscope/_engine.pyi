from os import PathLike
from typing import List, Optional, Union

def main(arguments: List[str]) -> int:
    """Run the command line with these arguments, the first of which is the program's name; its exit code."""

def analyses() -> List[str]:
    """The names of all analyses."""

def open(path: Union[str, PathLike[str]]) -> Trace:
    """Open a run folder or a trace file; ValueError when it cannot be read."""

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
    ) -> str:
        """Run one analysis; the result envelope as JSON. ValueError when there is no such analysis, rank or step."""
