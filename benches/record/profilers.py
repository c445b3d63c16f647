"""Stepscope and torch.profiler behind one face: ``start()`` and ``stop()`` around what is measured."""

import os

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
