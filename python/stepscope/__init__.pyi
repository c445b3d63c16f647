from os import PathLike
from typing import Union

from stepscope._run import Run as Run

__all__ = ["Run", "open"]
__version__: str

def open(path: Union[str, PathLike[str]]) -> Run: ...
