"""What is measured, behind one face: ``start()`` and ``stop()`` around the work."""

import ctypes
import os
import subprocess
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
        _recording.open_capture(folder, torch, Options(**CONFIGURATIONS[configuration][0]))

    def start(self):
        self._recording.start_hook(torch)

    def stop(self):
        self._recording.stop_hook()

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
        library = Path(folder) / "empty_callback.so"
        source = Path(__file__).with_name("empty_callback.c")
        torch_libraries = Path(torch.__file__).parent / "lib"
        options = ["-O2", "-shared", "-fPIC", f"-L{torch_libraries}", "-ltorch_cpu", "-Wl,--allow-shlib-undefined"]
        subprocess.run(["cc", "-o", library, source, *options], check=True)
        self._library = ctypes.CDLL(str(library))
        self._library.add.restype = ctypes.c_uint64
        self._library.drop.argtypes = [ctypes.c_uint64]
        self._needs_inputs = CONFIGURATIONS[configuration][1].get("record_shapes", False)

    def start(self):
        self._handle = self._library.add(self._needs_inputs)

    def stop(self):
        self._library.drop(self._handle)
