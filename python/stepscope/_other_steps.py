"""Steps that the program makes with an object of ``torch.profiler``: they count as those of our own objects do."""

import functools
import sys

from stepscope import _recorder, _recording, _steps

# The methods that mark and end steps are wrapped.
_is_watching = False


def watch():
    """Wrap, once a process, what marks and ends the steps of such objects."""
    global _is_watching
    profiler = getattr(sys.modules.get("torch.profiler.profiler"), "profile", None)
    if profiler is None or _is_watching:
        return
    _is_watching = True
    profiler.step = _counting(profiler.step)
    profiler.stop = _leaving(profiler.stop)


def _counting(step):
    @functools.wraps(step)
    def count_and_step(self, *args, **kwargs):
        try:
            if _recorder.is_open():
                # Its label of a step is recorded like any other; without a schedule it sets none.
                has_label = bool(getattr(self, "record_steps", False))
                if has_label and _steps.is_listened_to():
                    _end_label(self)
                _steps.other_profiler_stepped(_recording.is_on(), has_label)
        except Exception:
            pass  # A step of the program must go on whatever hangs on it.
        return step(self, *args, **kwargs)

    _recorder.hide(count_and_step.__code__)
    return count_and_step


def _end_label(profiler):
    """End the label of the step that ends, as ``step()`` does first: recording may begin or end between two labels."""
    label = getattr(profiler, "step_rec_fn", None)
    if label is not None:
        profiler.step_rec_fn = None
        label.__exit__(None, None, None)


def _leaving(stop):
    @functools.wraps(stop)
    def stop_and_leave(self, *args, **kwargs):
        _steps.other_profiler_stopped()
        return stop(self, *args, **kwargs)

    _recorder.hide(stop_and_leave.__code__)
    return stop_and_leave
