from os import PathLike
from typing import Iterable, Optional, Protocol, Union

from stepscope._result import Result
from stepscope._view import View

class _Analysis(Protocol):
    def __call__(
        self,
        *,
        rank: Optional[int] = None,
        step: Optional[int] = None,
        start_ns: Optional[int] = None,
        end_ns: Optional[int] = None,
        group_by: Optional[str] = None,
        compat: Optional[str] = None,
        bucket_ms: Optional[float] = None,
    ) -> Result: ...

class Run:
    def __init__(self, path: Union[str, PathLike[str]]) -> None: ...
    def analyze(
        self,
        name: str,
        *,
        rank: Optional[int] = None,
        step: Optional[int] = None,
        start_ns: Optional[int] = None,
        end_ns: Optional[int] = None,
        group_by: Optional[str] = None,
        compat: Optional[str] = None,
        bucket_ms: Optional[float] = None,
    ) -> Result: ...
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
