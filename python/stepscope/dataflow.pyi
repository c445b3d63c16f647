from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Callable, TypeVar, overload

__all__ = ["Range", "Stage", "checkpoint", "comm", "compute", "data", "dataloader", "epoch", "preprocess"]

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Value = TypeVar("_Value")

class Range:
    def __init__(self, stage: str, name: str | None, details: dict[str, Any]) -> None: ...
    def __enter__(self) -> Range: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
    def __call__(self, function: _Function) -> _Function: ...
    def update(
        self,
        *,
        step: int | None = None,
        epoch: int | None = None,
        sample: int | None = None,
        size: int | None = None,
    ) -> None: ...

class Stage:
    def __init__(self, name: str) -> None: ...
    @overload
    def __call__(
        self,
        name: str | None = None,
        /,
        *,
        step: int | str | None = None,
        epoch: int | str | None = None,
        sample: int | str | None = None,
        size: int | str | None = None,
    ) -> Range: ...
    @overload
    def __call__(self, name: _Function, /) -> _Function: ...

class _Waits(Stage):
    def iter(
        self, values: Iterable[_Value], name: str | None = None, /, *, step: int = 0, epoch: int | None = None
    ) -> Iterator[_Value]: ...

class _Turns(Stage):
    def iter(self, values: Iterable[_Value], name: str | None = None, /) -> Iterator[_Value]: ...

checkpoint: Stage
comm: Stage
compute: Stage
data: Stage
dataloader: _Waits
epoch: _Turns
preprocess: Stage
