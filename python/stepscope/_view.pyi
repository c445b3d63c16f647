from os import PathLike
from types import TracebackType
from typing import Iterable, Optional, Type, Union

from stepscope._engine import Server

class View(str):
    def __new__(cls, server: Server) -> View: ...
    def close(self) -> None: ...
    def __enter__(self) -> View: ...
    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None: ...

def view(
    paths: Iterable[Union[str, PathLike[str]]],
    *,
    port: int,
    browser: bool,
    allow_hosts: Iterable[str],
    allow_frame: bool,
) -> View: ...
