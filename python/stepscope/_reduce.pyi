from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import IO, Any, Literal, Protocol

from stepscope._run import Run

class _Executor(Protocol):
    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Any: ...

def summary_of(program: int, task: str) -> tuple[bytes | None, str | None]: ...
def reduced(
    paths: str | PathLike[str] | IO[Any] | Sequence[str | PathLike[str] | IO[Any]],
    executor: _Executor | None,
    *,
    align: Literal["auto", "base", "collectives", "none"],
    offsets: Mapping[int, int] | None,
    rank_from: str | None,
    join: bool,
    memory: int | None,
) -> Run: ...
