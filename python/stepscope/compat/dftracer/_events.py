"""What both DFTracer 1.x and 2.x have: events, their arguments, and decorators of functions."""

from __future__ import annotations

import contextvars
import enum
import inspect
import sys
import time

from stepscope import _annotate, _recorder
from stepscope.dataflow import Range

# The arguments that DFTracer takes from calls and objects, and what they are called here.
KNOWN = {"epoch": "epoch", "step": "step", "image_idx": "sample", "image_size": "size"}
# What is open in this thread or task: pairs of the object that was entered and the range that it made.
_open: contextvars.ContextVar = contextvars.ContextVar("stepscope.compat.dftracer", default=())


class TagType(enum.Enum):
    """What a tag of DFTracer's is used as."""

    KEY = 0
    VALUE = 1
    IGNORE = 2

    def __int__(self):
        return self.value


class TagDType(enum.Enum):
    """The type of a tag."""

    INT = 0
    FLOAT = 1
    STRING = 2

    def __int__(self):
        return self.value


class TagValue:
    """A value with its type."""

    def __init__(self, value, dtype=TagDType.STRING, tag_type=TagType.KEY):
        self._dtype, self._tag_type = dtype, tag_type
        self._value = {TagDType.INT: int, TagDType.FLOAT: float}.get(dtype, str)(value)

    def value(self):
        return int(self._tag_type), self._value


class Event(Range):
    """A range with any arguments. It has a stage where its category is one."""

    __slots__ = ("_category",)

    def __init__(self, category, name, arguments):
        super().__init__(_stage_of(category, name), name, dict(arguments))
        self._category = str(category)

    def _said(self):
        said = {"cat": self._category}
        if self._stage:
            said["dataflow"] = self._stage
        for key, value in self._details.items():
            said[KNOWN.get(key, key)] = _plain(value, key in KNOWN)
        return said

    def add(self, arguments):
        """Say more of it, while it is open."""
        self._details.update(arguments)
        if self._entered and self._entered[-1] is not None:
            self._describe()


def _stage_of(category, name):
    category, last = str(category), str(name).rsplit(".", 1)[-1]
    if category in ("compute", "comm", "checkpoint"):
        return category
    if category == "data":
        return "preprocess" if last == "preprocess" else "data"
    if category in ("dataloader", "data_loader", "ai.dataloader"):
        # Its loop waits in these alone.
        return "dataloader" if last in ("fetch", "iter") else None
    return "epoch" if category == "pipeline" and str(name).startswith("epoch") and last != "iter" else None


def _plain(value, is_whole):
    """A number or a text. A size that DFTracer takes for a number with a fraction is a number of bytes."""
    if isinstance(value, TagValue):
        value = value._value
    if isinstance(value, (bool, int, str)):
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        return str(value)
    return int(number) if (is_whole or not isinstance(value, float)) and number.is_integer() else number


def given(epoch=None, step=None, image_idx=None, image_size=None, args=None):
    """The arguments that are there."""
    known = {"epoch": epoch, "step": step, "image_idx": image_idx, "image_size": image_size}
    return {**{key: value for key, value in known.items() if value is not None}, **(args or {})}


class Traced:
    """What makes events: the common part of ``dft_fn`` and of the objects below ``ai``."""

    def __init__(self, cat, name, arguments, enable):
        self._cat, self._name, self._arguments, self._enable = cat, name, arguments, enable
        # What was entered elsewhere than where it is left.
        self._entered = []

    def _begin(self, event):
        event.__enter__()
        entry = (self, event)
        _open.set((*_open.get(), entry))
        self._entered.append(entry)

    def _end(self, exc=(None, None, None)):
        entries = _open.get()
        entry = next((entry for entry in reversed(entries) if entry[0] is self), None)
        if entry is None and self._entered:
            entry = self._entered[-1]
        if entry is None:
            return False
        _open.set(tuple(other for other in entries if other is not entry))
        if entry in self._entered:
            self._entered.remove(entry)
        entry[1].__exit__(*exc)
        return True

    def __enter__(self):
        if self._is_on():
            self._begin(self._event())
        return self

    def __exit__(self, exc_type, exc_val, exc_tb):
        self._end((exc_type, exc_val, exc_tb))

    def _add(self, arguments):
        """Arguments of the event that is open, else of those to come."""
        entry = next((entry for entry in reversed(_open.get()) if entry[0] is self), None)
        if entry is None:
            self._arguments = {**self._arguments, **arguments}
        else:
            entry[1].add(arguments)

    def _is_on(self):
        return self._enable and _recorder.are_labels_wanted()

    def _event(self, name=None, arguments=None):
        return Event(self._cat, name or self._name, {**self._arguments, **(arguments or {})})

    def _decorate(self, function, name, arguments_of):
        """A function, of whatever kind, each call of which is an event, also when it raises."""

        def begin_of(args, kwargs):
            arguments = arguments_of(args, kwargs)
            return lambda: _Call(self, self._event(name, arguments))

        def around_function(begin_of, function):
            def traced(*args, **kwargs):
                if not self._is_on():
                    return function(*args, **kwargs)
                with begin_of(args, kwargs)():
                    return function(*args, **kwargs)

            return traced

        return _annotate.decorated(function, begin_of, around_function)


class _Call:
    """One call of a decorated function: what it says with ``update`` is of this call alone."""

    def __init__(self, traced, event):
        self._traced, self._event = traced, event

    def __enter__(self):
        if self._traced._is_on():
            self._traced._begin(self._event)
        else:
            self._event = None
        return self

    def __exit__(self, *exc):
        if self._event is not None:
            self._traced._end(exc)


class DftFn(Traced):
    """``dft_fn`` as 2.x has it."""

    def __init__(
        self, cat, name=None, epoch=None, step=None, image_idx=None, image_size=None, enable=True, *, _depth=1
    ):
        name = name or sys._getframe(_depth).f_code.co_name
        super().__init__(cat, name, given(epoch, step, image_idx, image_size), enable)

    def update(self, epoch=None, step=None, image_idx=None, image_size=None, args=None):
        """Arguments of the event that is open here, else of those that follow."""
        self._add(given(epoch, step, image_idx, image_size, args))
        return self

    def reset(self):
        """An event begins, until ``flush``."""
        self._end()
        if self._is_on():
            self._begin(self._event())
        return self

    def flush(self):
        """The event ends. One that was never begun takes no time."""
        if not self._end() and self._is_on():
            with self._event():
                pass
        return self

    def log(self, func=None, name=None):
        """Each call of a function is an event, with its arguments of the names epoch, step, image_idx and image_size."""
        return self._decorator(func, name, _arguments_of_call)

    def log_init(self, init=None, name=None):
        """The same of a constructor."""
        return self._decorator(init, name, _arguments_of_call)

    def log_static(self, func=None, name=None):
        """The same of a static method, without arguments."""
        return self._decorator(func, name, lambda function: lambda args, kwargs: {})

    def _decorator(self, function, name, arguments_of):
        def decorate(function):
            plain = getattr(function, "__func__", function)
            return self._decorate(plain, name or plain.__qualname__, arguments_of(plain))

        return decorate(function) if function is not None else decorate

    def log_metadata(self, key, value):
        """A metadata entry of the process."""
        _recorder.set_fact(f"dftracer.{key}", str(value))

    def iter(self, func, name="loop", iter_name="step"):
        """The values of an iterable: each wait for one is an event, and each turn of the loop."""
        return turns(self, func, f"{name}.iter", f"{name}.yield", iter_name)

    def relate(self, relation, entity):
        """The event has to do with an entity."""
        if entity and int(relation) < 16:
            self._add(_related(relation, entity, self._arguments))
        return self

    def relate_entity(self, relation, type, key, store=0, uri=""):
        """The same, of an entity that is named here; its id."""
        entity = DFTracer.get_instance().declare_entity(type, key, store, uri)
        self.relate(relation, entity)
        return entity

    def uses(self, type, key, store=0, uri=""):
        """The event consumes an entity; its id."""
        return self.relate_entity(0, type, key, store, uri)

    def generates(self, type, key, store=0, uri=""):
        """The event makes an entity; its id."""
        return self.relate_entity(1, type, key, store, uri)


def turns(traced, values, wait_name, turn_name, count_name, has_waits=True, has_turns=True):
    """The same values, with an event around each wait for one and around what the loop does with it."""
    count, iterator = 1, iter(values)
    while True:
        said = {count_name: count}
        wait = traced._event(wait_name, said) if traced._enable and has_waits else None
        try:
            if wait is None:
                value = next(iterator)
            else:
                with wait:
                    value = next(iterator)
        except StopIteration:
            return
        if traced._enable and has_turns:
            with traced._event(turn_name, said):
                yield value
        else:
            yield value
        count += 1


def _arguments_of_call(function):
    """What gives the known arguments of a call: those that it is called with, then defaults, then attributes of self."""
    parameters = list(inspect.signature(function).parameters.items())
    is_method = bool(parameters) and parameters[0][0] == "self"
    places = {name: at for at, (name, _) in enumerate(parameters)}
    defaults = {name: parameter.default for name, parameter in parameters}

    def arguments_of(args, kwargs):
        found = {}
        for name in KNOWN:
            value = None
            if name in kwargs:
                value = kwargs[name]
            elif name in places and places[name] < len(args):
                value = args[places[name]]
            elif name in defaults:
                value = defaults[name]
            elif is_method and args:
                # What a class computes when it is asked is not asked for.
                value = getattr(args[0], "__dict__", {}).get(name)
            if value is not None and value is not inspect.Parameter.empty:
                found[name] = value
        return found

    return arguments_of


def _related(relation, entity, arguments):
    known = arguments.get("relations", [])
    return {"relations": f"{known} {relation!s} {entity}".strip() if known else f"{relation!s} {entity}"}


class DFTracer:
    """``dftracer``: recording begins and ends with ``stepscope record`` or ``stepscope.profiler``, and not with this."""

    _instance = None

    def __init__(self):
        self._entities = {}
        type(self)._instance = self

    @classmethod
    def get_instance(cls):
        """The one object."""
        return cls._instance or cls()

    @classmethod
    def initialize_log(cls, logfile=None, data_dir=None, process_id=-1):
        """The one object: no file is written."""
        return cls.get_instance()

    def get_time(self):
        """The time of day in microseconds."""
        return time.time_ns() // 1000

    def get_config(self, key):
        """Nothing is configured."""
        return ""

    def enter_event(self):
        """Nothing: events nest by their times."""

    def exit_event(self):
        """Nothing: events nest by their times."""

    def log_event(
        self, name, cat, start_time, duration, int_args=None, float_args=None, string_args=None, relations=None
    ):
        """An event whose times the program has measured: a label that takes no time, with those as arguments."""
        arguments = {"start_time": start_time, "duration": duration}
        for said in (int_args, float_args, string_args):
            for key, value in (said or {}).items():
                arguments[key] = value[1] if isinstance(value, tuple) and len(value) == 2 else value
        with Event(cat, name, arguments):
            pass

    def log_metadata_event(self, key, value):
        """A metadata entry of the process."""
        _recorder.set_fact(f"dftracer.{key}", str(value))

    def declare_entity(self, type, key, store=0, uri=""):
        """The id of an entity."""
        return self._entities.setdefault((str(type), str(key)), len(self._entities) + 1)

    def declare_entity_type(self, type, role=0, description=""):
        """Nothing: only events are recorded."""

    def relate_entities(self, relation, subject, object):
        """Nothing: only events are recorded."""

    def set_app_metadata_int(self, key, value):
        """A metadata entry of the process."""
        self.log_metadata_event(key, value)

    def set_app_metadata_string(self, key, value):
        """A metadata entry of the process."""
        self.log_metadata_event(key, value)

    def mark_used(self, name):
        """Nothing: it is of DFTracer's own parts."""

    def finalize(self):
        """Nothing: recording ends with the process, or where it was begun."""


def get_default_args(func):
    """The defaults of a function's parameters."""
    parameters = inspect.signature(func).parameters.items()
    return {name: each.default for name, each in parameters if each.default is not inspect.Parameter.empty}


for own in (Traced.__enter__, Traced.__exit__, _Call.__enter__, _Call.__exit__, Traced._begin, Traced._end, turns):
    _recorder.hide(own.__code__)
