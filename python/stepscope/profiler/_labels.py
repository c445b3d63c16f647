"""Labels around blocks of code."""

import functools
import sys

from stepscope import _annotate, _imports, _recorder


class _Rest:
    """Label a block of code, as a context manager or a decorator.

    Parameters
    ----------
    name : str
        The label.
    args : str, optional
        Recorded as the label's input, when inputs are recorded.
    """

    def __call__(self, function):
        label, args = self.name, self.args

        @functools.wraps(function)
        def labelled(*arguments, **keywords):
            if _is_compiling() or not _recorder.are_labels_wanted():
                return function(*arguments, **keywords)
            with record_function(label, args):
                return function(*arguments, **keywords)

        _recorder.hide(labelled.__code__)
        return labelled

    def _call_end_callbacks_on_future(self, fut):
        """Let the label end when ``fut`` is done, and not with the block; gives a future with the same value."""
        if not self.run_callbacks_on_exit:
            raise RuntimeError("_call_end_callbacks_on_future can only be called once.")
        self.run_callbacks_on_exit = False
        passed_on = self._passed_on()
        if passed_on is not None:
            fut = passed_on._call_end_callbacks_on_future(fut)
        token = self._let_go()

        def end(done):
            if token:
                _recorder.end_label(token, self.name)
            return done.value()

        return fut.then(end)

    def __getstate__(self):
        state = {name: getattr(self, name) for name in ("name", "args", "run_callbacks_on_exit")}
        return {**self.__dict__, **state}

    def __setstate__(self, state):
        for name, value in state.items():
            setattr(self, name, value)


# With what is native: entering and leaving, the attributes name, args and run_callbacks_on_exit.
_rest = {name: value for name, value in vars(_Rest).items() if name not in ("__dict__", "__weakref__")}
record_function = _recorder.make_record_function(_rest)
_annotate.hide_label(record_function(""))


def _is_compiling():
    """True while torch.compile traces the caller: it cannot trace the recorder."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_compiling()


def _make_traceable():
    """Labels are nothing in graphs, wherever they were made."""
    from torch._dynamo.guards import GuardBuilder
    from torch._dynamo.variables import UserFunctionVariable
    from torch._dynamo.variables.builder import VariableBuilder

    def nothing(*_, **__):
        return _annotate.Nothing()

    def function(builder, _):
        builder.install_guards(GuardBuilder.ID_MATCH)
        return UserFunctionVariable(nothing)

    VariableBuilder._id_dispatch()[id(record_function)] = function
    _annotate.make_objects_traceable(record_function)


_imports.when_loaded(_make_traceable)
