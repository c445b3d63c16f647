"""The names of ``dftracer.logger``, 1.x."""

from stepscope.compat.dftracer import _events
from stepscope.compat.dftracer._events import get_default_args

__all__ = ["dft_fn", "dftracer", "get_default_args"]


class dftracer(_events.DFTracer):
    """``dftracer`` as 1.x has it."""

    _instance = None

    def log_event(self, name, cat, start_time, duration, string_args=None):
        """An event whose times the program has measured: a label that takes no time, with those as arguments."""
        super().log_event(name, cat, start_time, duration, string_args=string_args)


class dft_fn(_events.DftFn):
    """``dft_fn`` as 1.x has it."""

    def __init__(self, cat, name=None, epoch=None, step=None, image_idx=None, image_size=None):
        super().__init__(cat, name, epoch, step, image_idx, image_size, _depth=2)

    def iter(self, func, iter_name="step"):
        """The values of an iterable: each wait for one is an event, and each turn of the loop."""
        return _events.turns(self, func, f"{self._name}.iter", f"{self._name}.yield", iter_name)
