"""What programs ask of ``prof.profiler.kineto_results``, answered from the recording."""

from types import SimpleNamespace

# How each method of an event is called there, and the attribute of ours that says it.
_SAME = (
    "activity_type concrete_inputs device_index device_resource_id device_type external_id flops flow_id flow_start "
    "flow_type is_async is_python_function is_user_annotation kwinputs linked_correlation_id metadata_json overload_name "
    "python_id python_module_id python_parent_id scope sequence_nr stack structured_input_shapes structured_input_strides"
).split()
_METHODS = {
    **{name: name for name in _SAME},
    "correlation_id": "id",
    "start_thread_id": "thread",
    "end_thread_id": "thread",
    "fwd_thread_id": "fwd_thread",
    "shapes": "input_shapes",
    "dtypes": "input_dtypes",
}


class KinetoEvent:
    """An event of ``prof.events()`` under the names that it has in PyTorch's C++: methods, times in nanoseconds."""

    def __init__(self, event, zero_ns):
        self._event = event
        self._zero_ns = zero_ns

    def name(self):
        """The name; that of a step with its number."""
        return self._event.trace_name or self._event.name

    def start_ns(self):
        """When it began: nanoseconds since 1970."""
        # Microseconds of whole nanoseconds are exact for months.
        return self._zero_ns + round(self._event.time_range.start * 1000)

    def duration_ns(self):
        """How long it took."""
        return self.end_ns() - self.start_ns()

    def end_ns(self):
        """When it ended."""
        return self._zero_ns + round(self._event.time_range.end * 1000)

    def nbytes(self):
        """Bytes of a row ``[memory]``."""
        is_memory = self._event.name == "[memory]"
        return self._event.cpu_memory_usage + self._event.device_memory_usage if is_memory else 0


def _said_by(attribute):
    return lambda self: getattr(self._event, attribute)


for _method, _attribute in _METHODS.items():
    setattr(KinetoEvent, _method, _said_by(_attribute))


class Node:
    """An event of the tree: its name, times, thread, and what it lies in."""

    def __init__(self, event, zero_ns):
        of_kineto = KinetoEvent(event, zero_ns)
        self.name, self.overload_name = of_kineto.name(), event.overload_name
        self.start_time_ns, self.end_time_ns = of_kineto.start_ns(), of_kineto.end_ns()
        self.duration_time_ns = of_kineto.duration_ns()
        self.start_tid, self.correlation_id, self.id = event.thread, event.id, event.id
        self.tag = _tag_of(event)
        self.extra_fields = SimpleNamespace(name=self.name, scope=event.scope, sequence_number=event.sequence_nr)
        self.typed = (self.tag, self.extra_fields)
        self.parent, self.children = None, []

    def __repr__(self):
        return f"<{self.name}, {len(self.children)} children>"


def _tag_of(event):
    from torch._C._profiler import _EventType
    from torch.autograd import DeviceType

    if event.is_python_function:
        return _EventType.PyCCall if event.name.startswith("<built-in ") else _EventType.PyCall
    if event.device_type != DeviceType.CPU or event.activity_type not in ("cpu_op", "user_annotation", None):
        return _EventType.Kineto
    return _EventType.Allocation if event.name in ("[memory]", "[OutOfMemory]") else _EventType.TorchOp


class KinetoResults:
    """The last cycle; times are of one clock.

    Parameters
    ----------
    events : list of FunctionEvent
    start_unix_ns : int
        The moment that the times of these count from.
    save : callable
        Writes the cycle as Chrome JSON to a path.
    """

    def __init__(self, events, start_unix_ns, save):
        self._events = events
        self._start_unix_ns = start_unix_ns
        self.save = save

    def trace_start_ns(self):
        """When recording began: nanoseconds since 1970."""
        return self._start_unix_ns

    def events(self):
        """All events."""
        return [KinetoEvent(event, self._start_unix_ns) for event in self._events]

    def experimental_event_tree(self):
        """The events that lie in no other, each with those in it."""
        nodes = [Node(event, self._start_unix_ns) for event in self._events]
        of_event = {id(event): node for event, node in zip(self._events, nodes)}
        for event, node in zip(self._events, nodes):
            node.parent = of_event.get(id(event.cpu_parent))
            if node.parent is not None:
                node.parent.children.append(node)
        return [node for node in nodes if node.parent is None]
