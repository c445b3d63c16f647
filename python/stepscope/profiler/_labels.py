"""Labels around blocks of code."""

import functools
import sys

from stepscope import _recorder, _recording


class record_function:
    """Label a block of code, as a context manager or a decorator.

    Parameters
    ----------
    name : str
        The label.
    args : str, optional
        Recorded as the label's input, when inputs are recorded.
    """

    def __init__(self, name, args=None):
        self.name = name
        self.args = args
        self.run_callbacks_on_exit = True
        self._open = []

    def __enter__(self):
        if _is_compiling():
            return self
        # A stack, so that one object can be entered again inside itself.
        self._open.append(self._begin() if _recording.is_on() else None)
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        if _is_compiling():
            return
        if self.run_callbacks_on_exit:
            self._end(self._open.pop())

    def __call__(self, function):
        @functools.wraps(function)
        def labelled(*args, **kwargs):
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return labelled

    def _begin(self):
        if self.args is None:
            return _recorder.begin_label(self.name)
        # Inputs are only seen by the hook.
        from torch.autograd.profiler import record_function as with_inputs

        return with_inputs(self.name, self.args).__enter__()

    def _end(self, begun):
        if isinstance(begun, int):
            _recorder.end_label(begun, self.name)
        elif begun is not None:
            begun.__exit__(None, None, None)

    def _call_end_callbacks_on_future(self, fut):
        """Let the label end when ``fut`` is done, and not with the block; gives a future with the same value."""
        if not self.run_callbacks_on_exit:
            raise RuntimeError("_call_end_callbacks_on_future can only be called once.")
        self.run_callbacks_on_exit = False
        begun = self._open.pop() if self._open else None

        def end(done):
            self._end(begun)
            return done.value()

        return fut.then(end)


def _is_compiling():
    """True while torch.compile traces the caller: it cannot trace the recorder."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_compiling()
