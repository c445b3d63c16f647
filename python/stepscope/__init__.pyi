from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from os import PathLike
from typing import IO, Any, Callable, Literal, Protocol, TypeVar

from stepscope._reduce import _Executor
from stepscope._run import Run as Run
from stepscope._view import View

__all__ = ["Run", "annotate", "keep", "log_to", "open", "reduce", "step_end", "view"]
__version__: str

_Function = TypeVar("_Function", bound=Callable[..., Any])

class _Annotation(AbstractContextManager[Any], Protocol):
    def __call__(self, function: _Function) -> _Function: ...

def annotate(name: str) -> _Annotation: ...
def keep(because: str = ...) -> bool: ...
def open(
    path: str | PathLike[str] | IO[Any],
    *,
    align: Literal["auto", "base", "collectives", "none"] = "auto",
    offsets: Mapping[int, int] | None = None,
    rank_from: str | None = None,
    join: bool = False,
    memory: int | None = None,
) -> Run: ...
def reduce(
    paths: str | PathLike[str] | IO[Any] | Sequence[str | PathLike[str] | IO[Any]],
    executor: _Executor | None = None,
    *,
    align: Literal["auto", "base", "collectives", "none"] = "auto",
    offsets: Mapping[int, int] | None = None,
    rank_from: str | None = None,
    join: bool = False,
    memory: int | None = None,
) -> Run: ...
def log_to(run: Any = ..., tracker: Any = ..., name: str = ...) -> str | None: ...
def load_ipython_extension(ipython: Any) -> None: ...
def step_end(kind: str = ..., micro: bool = ...) -> None: ...
def view(
    *paths: str | PathLike[str],
    port: int = ...,
    browser: bool = ...,
    allow_hosts: Iterable[str] = ...,
    allow_frame: bool = ...,
) -> View: ...
