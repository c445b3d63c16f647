"""What is measured, behind one face: ``start()`` and ``stop()`` around the work."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import torch

from record.configurations import CONFIGURATIONS


class Stepscope:
    """Records into a run folder; its capture stays open from one start to the next."""

    name = "stepscope"

    def __init__(self, folder, configuration):
        from stepscope import _recording
        from stepscope._options import Options

        os.makedirs(folder, exist_ok=True)
        self._recording = _recording
        self._options = Options(**CONFIGURATIONS[configuration][0])
        _recording.open_capture(folder, torch, self._options)

    def start(self):
        self._recording.want("bench", self._options)

    def stop(self):
        self._recording.leave("bench")

    def close(self):
        self._recording.close_capture()


class TorchProfiler:
    """Records the CPU; every start is a profile of its own."""

    name = "torch.profiler"

    def __init__(self, configuration):
        self._arguments = CONFIGURATIONS[configuration][1]

    def start(self):
        self.profile = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **self._arguments)
        self.profile.start()

    def stop(self):
        self.profile.stop()
        self.profile = None


class EmptyCallback:
    """Callbacks that do nothing: PyTorch's own part of what the others cost."""

    name = "empty callback"

    def __init__(self, folder, configuration):
        torch_libraries = Path(torch.__file__).parent / "lib"
        options = [f"-L{torch_libraries}", "-ltorch_cpu", "-Wl,--allow-shlib-undefined"]
        self._library = ctypes.CDLL(_compiled(folder, "empty_callback", options))
        self._library.add.restype = ctypes.c_uint64
        self._library.drop.argtypes = [ctypes.c_uint64]
        self._needs_inputs = CONFIGURATIONS[configuration][1].get("record_shapes", False)

    def start(self):
        self._handle = self._library.add(self._needs_inputs)

    def stop(self):
        self._library.drop(self._handle)


class EmptyProfile:
    """What the interpreter calls around calls, and does nothing: its own part of what recording them costs."""

    name = "empty profile function"
    _tool = 5
    _events = ("PY_START", "PY_RESUME", "PY_THROW", "PY_RETURN", "PY_YIELD", "PY_UNWIND", "CALL", "C_RETURN", "C_RAISE")

    def __init__(self, folder):
        self._library = ctypes.PyDLL(_compiled(folder, "empty_profile", []))
        self._monitoring = getattr(sys, "monitoring", None)
        self._library.callback.restype = ctypes.py_object

    def start(self):
        if self._monitoring is None:
            self._library.start()
            return
        self._monitoring.use_tool_id(self._tool, self.name)
        mask, callback = 0, self._library.callback()
        for event in self._events:
            event = getattr(self._monitoring.events, event)
            self._monitoring.register_callback(self._tool, event, callback)
            mask |= event
        self._monitoring.set_events(self._tool, mask)

    def stop(self):
        if self._monitoring is None:
            self._library.stop()
            return
        self._monitoring.set_events(self._tool, 0)
        self._monitoring.free_tool_id(self._tool)


def _compiled(folder, name, options):
    """The path of the library made of a file beside this one."""
    library = str(Path(folder) / f"{name}.so")
    source = Path(__file__).with_name(f"{name}.c")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source, *options], check=True)
    return library
