"""Ranges of NVTX: who is to hear of them is the library that a variable names when the program marks its first."""

import os

from stepscope import _device_libraries, _device_proof

_VARIABLE = "NVTX_INJECTION64_PATH"


def listen(torch, options):
    """Have the program's ranges told to CUPTI, when they are wanted and nobody else listens."""
    if options.nvtx and options.gpu != "off" and _VARIABLE not in os.environ and _device_libraries.has_driver("cuda"):
        libraries = _device_libraries.libraries("cuda", torch)
        library = next((path for path in libraries if os.path.isfile(path)), None)
        if library is not None and (options.gpu != "auto" or _is_proven(libraries, torch)):
            os.environ[_VARIABLE] = library


def _is_proven(libraries, torch):
    """The program's first range loads the library, whatever else is recorded."""
    return _device_proof.verdict("cuda", libraries, torch.__version__).is_proven
