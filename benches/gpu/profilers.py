"""Stepscope and torch.profiler behind one face: both are started, stopped and asked for a Chrome trace alike."""

import time

from gpu.workloads import Unavailable

TORCH, STEPSCOPE = "torch", "stepscope"


def make(name, torch, folder, all_threads, stand_in=None):
    """A profiler for one recording. With ``all_threads`` torch.profiler sees operators of other threads, too.

    ``stand_in`` takes the place of torch.profiler where there is no GPU.
    """
    if name == STEPSCOPE:
        made = _of_stepscope(torch, folder, all_threads)
    else:
        made = stand_in(torch) if stand_in else _of_torch(torch, all_threads)
    return Recording(made, folder / "trace.json")


def _of_torch(torch, all_threads):
    return torch.profiler.profile(activities=_activities(torch), experimental_config=_config(torch, all_threads))


def _of_stepscope(torch, folder, all_threads):
    import stepscope.profiler

    config, run = _config(torch, all_threads), str(folder / "run")
    # Not "auto": that would compare torch.profiler with itself where the device's own profiler is not proven.
    return stepscope.profiler.profile(activities=_activities(torch), experimental_config=config, gpu="native", run=run)


def _config(torch, all_threads):
    """The same for both: Stepscope's Chrome trace shows waits, and other threads, where torch.profiler's would."""
    wanted = {"enable_cuda_sync_events": True}
    if all_threads:
        wanted["profile_all_threads"] = True
    try:
        return torch.profiler._ExperimentalConfig(**wanted)
    except TypeError:
        raise Unavailable(f"torch.profiler of {torch.__version__} does not know {' and '.join(wanted)}") from None


def _activities(torch):
    activity = torch.profiler.ProfilerActivity
    return [activity.CPU, activity.CUDA] if torch.cuda.is_initialized() else [activity.CPU]


class Recording:
    """One recording: ``start``, ``stop``, and ``save``, which writes the Chrome trace."""

    def __init__(self, profile, path):
        self._profile = profile
        self.path = path
        self.seconds = {}

    def start(self):
        self._timed("start", self._profile.start)

    def stop(self):
        self._timed("stop", self._profile.stop)

    def save(self):
        self._timed("save", lambda: self._profile.export_chrome_trace(str(self.path)))

    def _timed(self, what, call):
        begin = time.perf_counter()
        call()
        self.seconds[what] = time.perf_counter() - begin
