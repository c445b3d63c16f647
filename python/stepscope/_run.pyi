from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from typing import IO, Any, Literal, Protocol

from stepscope._result import Result
from stepscope._sql import Rows
from stepscope._view import View

class _Analysis(Protocol):
    def __call__(
        self,
        *,
        rank: int | str | Iterable[int] | None = None,
        step: int | None = None,
        start_ns: int | None = None,
        end_ns: int | None = None,
        group_by: str | None = None,
        compat: str | None = None,
        bucket_ms: float | None = None,
        depth: int | None = None,
        top: int | None = None,
    ) -> Result: ...

class Run:
    def __init__(
        self,
        path: str | PathLike[str] | IO[Any],
        *,
        align: Literal["auto", "base", "collectives", "none"] = "auto",
        offsets: Mapping[int, int] | None = None,
        rank_from: str | None = None,
        join: bool = False,
        memory: int | None = None,
    ) -> None: ...
    def analyze(
        self,
        name: str,
        *,
        rank: int | str | Iterable[int] | None = None,
        step: int | None = None,
        start_ns: int | None = None,
        end_ns: int | None = None,
        group_by: str | None = None,
        compat: str | None = None,
        bucket_ms: float | None = None,
        depth: int | None = None,
        top: int | None = None,
    ) -> Result: ...
    def report(self, *, rank: int | str | Iterable[int] | None = None, step: int | None = None) -> dict[str, Any]: ...
    def sql(self, query: str) -> Rows: ...
    def sql_batches(self, query: str) -> Iterator[Rows]: ...
    def view(
        self,
        *,
        port: int = ...,
        browser: bool = ...,
        allow_hosts: Iterable[str] = ...,
        allow_frame: bool = ...,
    ) -> View: ...
    def __getattr__(self, name: str) -> _Analysis: ...
    def __dir__(self) -> list[str]: ...
