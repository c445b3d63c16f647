from os import PathLike
from typing import Union

from stepscope._run import Run as Run

__all__ = ["Run", "keep", "open"]
__version__: str

def keep(because: str = ...) -> bool: ...
def open(path: Union[str, PathLike[str]]) -> Run: ...
