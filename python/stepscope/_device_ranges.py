"""Ranges of NVTX: who is to hear of them is the library that a variable names when the program marks its first."""

import os

from stepscope import _device_libraries

_VARIABLE = "NVTX_INJECTION64_PATH"


def listen(torch, options):
    """Have the program's ranges told to CUPTI, when they are wanted and nobody else listens."""
    if options.nvtx and options.gpu != "off" and _VARIABLE not in os.environ and _device_libraries.has_driver("cuda"):
        libraries = (path for path in _device_libraries.libraries("cuda", torch) if os.path.isfile(path))
        library = next(libraries, None)
        if library is not None:
            os.environ[_VARIABLE] = library
