from collections.abc import Iterable, Mapping
from os import PathLike
from types import TracebackType
from typing import Any

from stepscope._engine import Server

class View(str):
    def __new__(cls, server: Server) -> View: ...
    def close(self) -> None: ...
    def __enter__(self) -> View: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

def view(
    paths: Iterable[str | PathLike[str]],
    *,
    port: int,
    browser: bool,
    allow_hosts: Iterable[str],
    allow_frame: bool,
    joining: Mapping[str, Any] | None = None,
) -> View: ...
