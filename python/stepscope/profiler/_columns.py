"""The events of a recording, in columns: an event looks up in its row what it is asked for."""

import json

from stepscope.profiler import _device_rows, _stacks

# PyTorch's scope of a label.
_USER_SCOPE = 7


class Interval:
    """A time range in microseconds."""

    __slots__ = ("end", "start")

    def __init__(self, start, end):
        self.start = start
        self.end = end

    def elapsed_us(self):
        """The length of the range."""
        return self.end - self.start


def no_inputs():
    """What an operator is known to be called with when inputs are not recorded."""
    names = ("input_shapes concrete_inputs structured_input_shapes structured_input_strides input_dtypes stack").split()
    return {"kwinputs": {}, **{name: [] for name in names}}


class Columns:
    """What the engine read.

    Parameters
    ----------
    events : stepscope._engine.Events
    first_ids : tuple of int
        The ids that numbers of operators count from, and those of rows of memory.
    pid : int
        The process that recorded.
    use_device : str, optional
        The kind of device whose times are shown.
    """

    def __init__(self, events, first_ids, pid, use_device=None):
        columns = events.columns()
        self.names = columns["names"]
        self.traced_names = dict(columns["traced_names"])
        self.threads = columns["threads"]
        # Views of the engine's bytes: a number becomes an object only when it is asked for.
        for form, names in (
            ("q", ("start_ns", "dur_ns", "sequence_number", "cpu_bytes", "device_bytes", "flops")),
            ("q", ("stream", "device_ns", "self_device_ns")),
            ("I", ("name", "thread", "parent", "number", "flow", "inputs", "overload", "stack", "call", "caller")),
            ("I", ("correlation", "linked", "linked_number")),
            ("i", ("device",)),
            ("Q", ("forward_thread",)),
        ):
            for name in names:
                setattr(self, name, memoryview(columns[name]).cast(form))
        for name in ("scope", "input_texts", "overloads", "stacks", "is_flow_start", "is_async", "is_memory"):
            setattr(self, name, columns[name])
        self.activity, self.device_type = columns["activity"], columns["device_type"]
        self.use_device = use_device
        self.first_id, self.first_memory_id = first_ids
        self.pid = pid
        self.events = []
        self._children = None
        self._launched = None

    def make(self, kind, is_late):
        """All events, in order; fewer when ``is_late()`` becomes true meanwhile."""
        new = kind.__new__
        add = self.events.append
        has_device = self.use_device is not None or len(self.activity) > 0
        for row in range(len(self.name)):
            if row % 1024 == 0 and is_late():
                break
            event = new(kind)
            event._columns = self
            event._row = row
            if has_device:
                _device_rows.note(self, row, event)
            add(event)
        return self.events

    def event(self, row):
        """The event of a row, when there is one."""
        return self.events[row] if row < len(self.events) else None

    def children(self, row):
        """The events directly in that of a row."""
        if self._children is None:
            self._children = {}
            for child, parent in enumerate(self.parent):
                self._children.setdefault(parent, []).append(child)
        return [self.events[child] for child in self._children.get(row, ()) if child < len(self.events)]

    def launched(self, row):
        """The events on devices that that of a row launched."""
        if self._launched is None:
            self._launched = _device_rows.launched(self)
        return [self.events[at] for at in self._launched.get(row, ()) if at < len(self.events)]


def _time_range(columns, row):
    start_ns = columns.start_ns[row]
    return Interval(start_ns / 1000, (start_ns + columns.dur_ns[row]) / 1000)


def _name(columns, row):
    return columns.names[columns.name[row]]


def _id(columns, row):
    if columns.is_memory[row]:
        return columns.first_memory_id + columns.number[row]
    # Calls of Python have none.
    return 0 if _stacks.is_call(columns, row) else columns.first_id + columns.number[row]


def _activity(columns, row):
    if _is_label(columns, row):
        return "user_annotation"
    return "python_function" if _stacks.is_call(columns, row) else "cpu_op"


def _is_label(columns, row):
    return columns.scope[row] == _USER_SCOPE


# Where the engine's texts of inputs have each attribute.
_INPUT_TEXTS = {
    "input_shapes": 0,
    "structured_input_shapes": 1,
    "structured_input_strides": 2,
    "input_dtypes": 3,
    "kwinputs": 4,
    "concrete_inputs": 5,
}


def _input(name):
    def look_up(columns, row):
        inputs = columns.inputs[row] if len(columns.inputs) else len(columns.input_texts)
        known = name in _INPUT_TEXTS and inputs < len(columns.input_texts)
        text = columns.input_texts[inputs][_INPUT_TEXTS[name]] if known else ""
        found = json.loads(text) if text else no_inputs()[name]
        return [value_of(item) for item in found] if name == "concrete_inputs" else found

    return look_up


def value_of(text):
    """What PyTorch printed as ``text``: a number, a truth value, a list of these; ``None`` for anything else."""
    if text.startswith("["):
        return [value_of(item) for item in text[1:-1].split(", ") if item]
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float, complex):
        try:
            return kind(text)
        except ValueError:
            pass
    return None


def _number(name):
    def look_up(columns, row):
        column = getattr(columns, name)
        return column[row] if len(column) else 0

    return look_up


def _kernels(columns, row):
    from stepscope.profiler._events import Kernel

    # A range that ends on another thread launches nothing, as there.
    found = () if columns.is_async[row] else columns.launched(row)
    return [Kernel(event.name, event.device_index, event.time_range.elapsed_us()) for event in found]


def _overload(columns, row):
    return columns.overloads[columns.overload[row]] if len(columns.overload) else ""


# How each attribute that is not the same for all is looked up.
ATTRIBUTES = {
    "id": _id,
    "external_id": _id,
    "python_id": _stacks.python_id,
    "python_parent_id": _stacks.python_parent_id,
    "python_module_id": _stacks.python_module_id,
    "is_python_function": _stacks.is_call,
    "name": _name,
    "trace_name": lambda columns, row: columns.traced_names.get(row) or _name(columns, row),
    "overload_name": _overload,
    "time_range": _time_range,
    "thread": lambda columns, row: columns.threads[columns.thread[row]][0],
    "device_resource_id": lambda columns, row: columns.threads[columns.thread[row]][1],
    "device_index": lambda columns, row: columns.pid,
    "fwd_thread": lambda columns, row: columns.forward_thread[row],
    "sequence_nr": lambda columns, row: columns.sequence_number[row],
    "scope": lambda columns, row: columns.scope[row],
    "is_user_annotation": _is_label,
    "activity_type": lambda columns, row: _activity(columns, row),
    "is_async": lambda columns, row: columns.is_async[row] == 1,
    "cpu_memory_usage": _number("cpu_bytes"),
    "device_memory_usage": _number("device_bytes"),
    "cpu_parent": lambda columns, row: columns.event(columns.parent[row]),
    "cpu_children": lambda columns, row: columns.children(row),
    "kernels": _kernels,
    "flops": _number("flops"),
    "metadata_json": lambda columns, row: "",
    "flow_id": lambda columns, row: columns.flow[row],
    # Forward to backward is the only kind that is recorded.
    "flow_type": lambda columns, row: 1 if columns.flow[row] else 0,
    "flow_start": lambda columns, row: columns.is_flow_start[row] == 1,
    **{name: _input(name) for name in no_inputs()},
    "stack": _stacks.stack,
}

# What is said of a row that is no event, but memory that no event covers.
_OF_MEMORY = {
    **dict.fromkeys(("trace_name", "activity_type", "metadata_json", "flow_id", "flow_type", "flow_start", "flops")),
    **dict.fromkeys(("concrete_inputs", "kwinputs", "input_dtypes")),
    **dict.fromkeys(("structured_input_shapes", "structured_input_strides")),
    "external_id": 0,
    "device_index": 0,
}


def attribute(columns, row, name):
    """The value of one of ``ATTRIBUTES``."""
    if columns.is_memory[row]:
        if name in _OF_MEMORY:
            return _OF_MEMORY[name]
        if name == "device_resource_id":
            name = "thread"
    elif name in _device_rows.ATTRIBUTES and _device_rows.is_reported(columns, row):
        return _device_rows.ATTRIBUTES[name](columns, row)
    return ATTRIBUTES[name](columns, row)
