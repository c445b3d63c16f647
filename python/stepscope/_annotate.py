"""Labels around the program's own code."""

import functools
import inspect
import sys

from stepscope import _imports, _listeners, _recorder


def _decorate(name, function):
    begin = functools.partial(annotate, name)
    return decorated(function, lambda args, kwargs: begin, lambda _, function: _around_function(name, function))


def decorated(function, begin_of, around_function):
    """A function, of whatever kind, with ranges around what it does. ``begin_of(args, kwargs)`` gives what makes the range
    of a call that has these arguments; ``around_function(begin_of, function)`` decorates a plain function."""
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(decorated(function.__func__, begin_of, around_function))
    kinds = (
        (inspect.iscoroutinefunction, _around_coroutine),
        (inspect.isasyncgenfunction, _around_stream),
        (inspect.isgeneratorfunction, _around_generator),
    )
    wrap = next((wrap for is_kind, wrap in kinds if is_kind(function)), around_function)
    labelled = wrap(begin_of, function)
    _recorder.hide(labelled.__code__)
    return functools.update_wrapper(labelled, function)


def _around_function(name, function):
    # Before PyTorch is imported nothing is compiled.
    is_compiling = sys.modules["torch"].compiler.is_dynamo_compiling if "torch" in sys.modules else bool

    def labelled(*args, **kwargs):
        if is_compiling() or not _recorder.are_labels_wanted():
            return function(*args, **kwargs)
        with annotate(name):
            return function(*args, **kwargs)

    return labelled


def _around_coroutine(begin_of, function):
    async def labelled(*args, **kwargs):
        with begin_of(args, kwargs)():
            return await function(*args, **kwargs)

    return labelled


def _around_stream(begin_of, function):
    async def labelled(*args, **kwargs):
        begin, values = begin_of(args, kwargs), function(*args, **kwargs)
        try:
            sent = None
            while True:
                with begin():
                    try:
                        value = await values.asend(sent)
                    except StopAsyncIteration:
                        return
                sent = yield value
        finally:
            await values.aclose()

    return labelled


def _around_generator(begin_of, function):
    def labelled(*args, **kwargs):
        return (yield from _labelled_generator(begin_of(args, kwargs), function(*args, **kwargs)))

    return labelled


def _labelled_generator(begin, generator):
    """The same values; each stretch that the generator runs is a range, and the pauses between them are not."""
    step, argument = generator.send, None
    while True:
        with begin():
            try:
                value = step(argument)
            except StopIteration as stop:
                return stop.value
        try:
            argument = yield value
            step = generator.send
        except GeneratorExit:
            generator.close()
            raise
        except BaseException as error:
            step, argument = generator.throw, error


_recorder.hide(_labelled_generator.__code__)
annotate = _recorder.make_annotate(_decorate)


def hide_label(label):
    """Leave out of Python's calls those that a label like this one makes: one that ends it would begin within it."""
    for name in ("__enter__", "__exit__"):
        # What is looked up by an object, and by its class.
        _recorder.hide(getattr(label, name))
        _recorder.hide(getattr(type(label), name))


_imports.when_loaded(_listeners.pass_labels_on, "torch")
for native in (annotate, _recorder.are_labels_wanted):
    _recorder.hide(native)
hide_label(annotate(""))


class Nothing:
    """What Dynamo puts in place of a label: its graphs have none."""

    def __enter__(self):
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        pass


def make_objects_traceable(kind):
    """Have Dynamo take labels of a class that were made outside of its graph for nothing."""
    from torch._dynamo.guards import GuardBuilder
    from torch._dynamo.variables.builder import VariableBuilder
    from torch._dynamo.variables.ctx_manager import NullContextVariable

    def nothing(builder, _):
        builder.install_guards(GuardBuilder.TYPE_MATCH)
        return NullContextVariable()

    VariableBuilder._type_dispatch()[kind] = nothing


def _make_traceable():
    import torch

    @torch.compiler.substitute_in_graph(annotate, skip_signature_check=True)
    def traceable(name):
        return Nothing()

    make_objects_traceable(type(annotate("")))


# Else compiled code runs such a call outside of its graph.
_imports.when_loaded(_make_traceable)
