"""Events and their averages, as ``torch.profiler`` has them."""

from collections import namedtuple

from torch.autograd import DeviceType, profiler_util

from stepscope.profiler import _exports
from stepscope.profiler._columns import ATTRIBUTES, Interval, attribute, no_inputs
from stepscope.profiler._table import format_time, table_of

Kernel = namedtuple("Kernel", ["name", "device", "duration"])


def _formatted(name):
    return property(lambda self: format_time(getattr(self, name)), doc=f"``{name}`` with its unit.")


class FormattedTimes:
    """Times as texts; for what has ``count`` and the totals."""

    cpu_time_str = _formatted("cpu_time")
    device_time_str = _formatted("device_time")
    cpu_time_total_str = _formatted("cpu_time_total")
    device_time_total_str = _formatted("device_time_total")
    self_cpu_time_total_str = _formatted("self_cpu_time_total")
    self_device_time_total_str = _formatted("self_device_time_total")

    @property
    def cpu_time(self):
        """Mean time of a call, in microseconds."""
        return 0.0 if self.count == 0 else 1.0 * self.cpu_time_total / self.count

    @property
    def device_time(self):
        """Mean time on the device of a call, in microseconds."""
        return 0.0 if self.count == 0 else 1.0 * self.device_time_total / self.count


class FunctionEvent(FormattedTimes, profiler_util.FunctionEvent):
    """One call of an operator, or one label.

    Attributes are those of ``torch.autograd.profiler_util.FunctionEvent``. Times are microseconds from the begin of the
    recorded window.
    """

    # The same for all events that are recorded.
    count = 1
    use_device = None
    is_remote = False
    is_legacy = False
    node_id = -1
    device_type = DeviceType.CPU
    self_cpu_percent = -1
    total_cpu_percent = -1
    total_device_percent = -1
    linked_correlation_id = 0
    event_metadata = None
    # Of a recorded event, where it looks itself up.
    _columns = None

    def __init__(self, id, name, thread, start_us, end_us, **known):
        self.__dict__.update(dict.fromkeys(ATTRIBUTES), **no_inputs())
        self.__dict__.update(
            cpu_memory_usage=0,
            device_memory_usage=0,
            device_index=0,
            is_async=False,
            device_resource_id=thread,
            external_id=0,
            is_user_annotation=False,
            scope=0,
            sequence_nr=-1,
            is_python_function=False,
            python_id=-1,
            python_parent_id=-1,
            python_module_id=-1,
        )
        self.__dict__.update(known)
        self.id, self.name, self.thread = id, name, thread
        self.time_range = Interval(start_us, end_us)
        self.kernels, self.cpu_children = [], []

    def __getattr__(self, name):
        columns = self._columns
        if columns is None or name not in ATTRIBUTES:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        value = attribute(columns, self._row, name)
        setattr(self, name, value)
        return value

    def __getstate__(self):
        # Its row means nothing elsewhere.
        known = {name: getattr(self, name) for name in ATTRIBUTES if self._columns is not None}
        return {name: value for name, value in {**known, **self.__dict__}.items() if name not in ("_columns", "_row")}

    def __dir__(self):
        return sorted({*super().__dir__(), *ATTRIBUTES})

    @property
    def key(self):
        """What events are grouped by: the name."""
        return self.name

    def append_kernel(self, name, device, duration):
        """Note a kernel that it launched."""
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child):
        """Note an event that it directly contains."""
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent):
        """Note the event that directly contains it."""
        self.cpu_parent = parent

    def _is_nested(self):
        return not self.is_async and self.device_type == DeviceType.CPU

    @property
    def cpu_time_total(self):
        """Its duration."""
        return self.time_range.elapsed_us() if self.device_type == DeviceType.CPU else 0

    @property
    def self_cpu_time_total(self):
        """Its duration less that of its children."""
        return self._less_children("cpu_time_total") if self._is_nested() else 0

    @property
    def self_cpu_memory_usage(self):
        """Bytes allocated in it, but not in its children."""
        return self._less_children("cpu_memory_usage") if self._is_nested() else 0

    @property
    def self_device_memory_usage(self):
        """Bytes of the device allocated in it, but not in its children."""
        return self._less_children("device_memory_usage") if self._is_nested() else 0

    @property
    def device_time_total(self):
        """Time of the kernels launched in it."""
        if self.is_async or not self.use_device:
            return 0
        if self.device_type != DeviceType.CPU:
            return self.time_range.elapsed_us()
        if self._is_as_recorded():
            return self._of_column("device_ns")
        own = sum(kernel.duration for kernel in self.kernels)
        return own if self.is_legacy else own + sum(child.device_time_total for child in self.cpu_children)

    @property
    def self_device_time_total(self):
        """Time of the kernels that it launched itself."""
        if self.is_async or not self.use_device:
            return 0
        if self.device_type != DeviceType.CPU:
            return self.device_time_total
        if self._is_as_recorded():
            return self._of_column("self_device_ns")
        return self._less_children("device_time_total")

    def _is_as_recorded(self):
        """True while nobody has its kernels and children, and so may have changed them."""
        return self._columns is not None and self.__dict__.keys().isdisjoint(("kernels", "cpu_children"))

    def _of_column(self, name):
        column = getattr(self._columns, name)
        return column[self._row] / 1000 if len(column) else 0

    def _less_children(self, name):
        return getattr(self, name) - sum(getattr(child, name) for child in self.cpu_children)

    def __repr__(self):
        device = self.use_device
        return (
            f"<FunctionEvent id={self.id} name={self.name} overload_name={self.overload_name} "
            f"device_type={self.device_type} node_id={self.node_id} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start} end_us={self.time_range.end} "
            f"cpu_children={[child.id for child in self.cpu_children]} {device}_time={self.device_time_str} "
            f"name={self.name} thread={self.thread} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} {device}_memory_usage={self.device_memory_usage} "
            f"is_async={self.is_async} is_remote={self.is_remote} seq_nr={self.sequence_nr} is_legacy={self.is_legacy}>"
        )


class _LookedUp:
    """An attribute that is looked up here, and is something else in the class of PyTorch's that ours inherits from."""

    def __init__(self, name):
        self._name = name

    def __get__(self, event, kind=None):
        return self if event is None else event.__getattr__(self._name)


for _name in ATTRIBUTES.keys() & vars(profiler_util.FunctionEvent).keys():
    setattr(FunctionEvent, _name, _LookedUp(_name))


class FunctionEventAvg(FormattedTimes, profiler_util.FunctionEventAvg):
    """All events of one key together. Attributes are those of ``torch.autograd.profiler_util.FunctionEventAvg``."""

    _SUMS = (
        "cpu_time_total",
        "device_time_total",
        "self_cpu_time_total",
        "self_device_time_total",
        "cpu_memory_usage",
        "device_memory_usage",
        "self_cpu_memory_usage",
        "self_device_memory_usage",
        "count",
    )
    _SHARED = (
        "key node_id is_async is_remote cpu_parent cpu_children overload_name input_shapes stack scope device_type "
        "is_legacy use_device is_user_annotation"
    ).split()

    def __init__(self):
        self.__dict__.update(dict.fromkeys(self._SHARED), **dict.fromkeys(self._SUMS, 0))
        self.node_id, self.flops, self.device_type = 0, 0, DeviceType.CPU
        self.is_async = self.is_remote = self.is_legacy = self.is_user_annotation = False

    def add(self, other):
        """Take in an event, or other averages, of the same key."""
        if not isinstance(other, (FunctionEvent, FunctionEventAvg)):
            raise AssertionError("Expected other to be a FunctionEvent or FunctionEventAvg")
        if self.key is None:
            for name in self._SHARED:
                setattr(self, name, getattr(other, name))
        if other.key != self.key:
            raise AssertionError(f"Expected keys to match, but got {other.key} vs {self.key}")
        for name in self._SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        if self.flops is None:
            self.flops = other.flops
        elif other.flops is not None:
            self.flops += other.flops
        return self

    __iadd__ = add

    def __repr__(self):
        device = self.use_device or "cuda"
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str} "
            f" self_{device}_time={self.self_device_time_total_str} {device}_time={self.device_time_str} "
            f"input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} {device}_memory_usage={self.device_memory_usage}>"
        )


def _deprecated(old, new):
    """A name of the time when there was one kind of device."""
    import warnings

    def get(self):
        warnings.warn(f"`{old}` is deprecated, use `{new}`", FutureWarning, stacklevel=2)
        return getattr(self, new)

    return property(get, doc=f"Deprecated: ``{new}``.")


for _kind in (FunctionEvent, FunctionEventAvg):
    setattr(_kind, "cuda_time", _deprecated("cuda_time", "device_time"))  # noqa: B010  (mypy knows a method there)
for _old in ("cuda_time_total", "self_cuda_time_total", "self_cuda_memory_usage"):
    setattr(FunctionEvent, _old, _deprecated(_old, _exports.device_free(_old)))


class EventList(profiler_util.EventList):
    """Events, or averages of events.

    Parameters
    ----------
    events : iterable, optional
    use_device : str, optional
        The kind of device whose times are shown.
    profile_memory, with_flops : bool
        Show memory; show operations.
    """

    def __init__(self, *events, use_device=None, profile_memory=False, with_flops=False):
        list.__init__(self, *events)
        self._use_device = use_device
        self._profile_memory = profile_memory
        self._with_flops = with_flops
        self._tree_built = True

    def __str__(self):
        return self.table()

    @property
    def self_cpu_time_total(self):
        """Sum of all self times, in microseconds."""
        return sum(event.self_cpu_time_total for event in self)

    def table(
        self,
        sort_by=None,
        row_limit=100,
        max_src_column_width=75,
        max_name_column_width=55,
        max_shapes_column_width=80,
        header=None,
        top_level_events_only=False,
        time_unit=None,
    ):
        """The events as a text.

        Parameters
        ----------
        sort_by : str, optional
            An attribute to sort by, the largest first: ``self_cpu_time_total``, ``count`` … In the order of the list
            without one.
        row_limit : int
            Rows at most; all of them for -1.
        max_src_column_width, max_name_column_width, max_shapes_column_width : int or None
            Characters at most.
        header : str, optional
            A text above.
        top_level_events_only : bool
            Only what lies in no other event.
        time_unit : {"s", "ms", "us"}, optional
            The unit of all times; by default each has the one that fits.
        """
        return table_of(
            self,
            sort_by=sort_by,
            row_limit=row_limit,
            max_src_column_width=max_src_column_width,
            max_name_column_width=max_name_column_width,
            max_shapes_column_width=max_shapes_column_width,
            header=header,
            is_memory_shown=self._profile_memory,
            are_flops_shown=self._with_flops,
            top_level_events_only=top_level_events_only,
            time_unit=time_unit,
        )

    def key_averages(self, group_by_input_shapes=False, group_by_stack_n=0, group_by_overload_name=False):
        """Averages of all events of a name, and of one set of input shapes, innermost frames or overload if asked."""
        groups = {}
        for event in self:
            key = [event.key, event.node_id, event.device_type, event.is_legacy, event.is_user_annotation]
            if group_by_overload_name:
                key.append(event.overload_name)
            if group_by_input_shapes:
                key.append(str(event.input_shapes))
            if group_by_stack_n > 0:
                key += event.stack[:group_by_stack_n]
            groups.setdefault(tuple(key), FunctionEventAvg()).add(event)
        for average in groups.values():
            average.stack = (average.stack or [])[:group_by_stack_n]
            if not group_by_input_shapes:
                average.input_shapes = ""
            if not group_by_overload_name:
                average.overload_name = ""
        return self._like(groups.values())

    def total_average(self):
        """The sums of all events; its key is ``Total``."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
            total.key = None
        total.key = "Total"
        return total

    def supported_export_stacks_metrics(self):
        """What :meth:`export_stacks` takes."""
        return list(_exports.STACK_METRICS)

    def export_stacks(self, path, metric):
        """Write the stacks in the folded form that draws flame graphs, with a metric in microseconds."""
        _exports.write_stacks(self, path, metric)

    def export_chrome_trace(self, path):
        """Write names, times and threads of the events as Chrome JSON; ``profile.export_chrome_trace`` writes all."""
        _exports.write_chrome(self, path)

    def _like(self, events):
        return EventList(
            events,
            use_device=self._use_device,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
        )
