from os import PathLike
from typing import Union

from stepscope._run import Run as Run

__version__: str

def open(path: Union[str, PathLike[str]]) -> Run: ...
