from types import TracebackType
from typing import Optional, Type

class View(str):
    def close(self) -> None: ...
    def __enter__(self) -> View: ...
    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None: ...
