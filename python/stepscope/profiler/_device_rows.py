"""What is said of rows that a device's profiler reported: work on streams, and calls of the device's runtime."""

from torch.autograd import DeviceType

# What a row is, as the engine numbers it, and as `torch.profiler` names it; 0 is what the host did by itself.
_KERNEL, _ANNOTATION, _WAIT, _RUNTIME_CALL, _DRIVER_CALL, _OVERHEAD = 1, 4, 5, 6, 7, 8
_NAMES = {
    _KERNEL: "kernel",
    2: "gpu_memcpy",
    3: "gpu_memset",
    _ANNOTATION: "gpu_user_annotation",
    _WAIT: "cuda_sync",
    _RUNTIME_CALL: "cuda_runtime",
    _DRIVER_CALL: "cuda_driver",
    _OVERHEAD: "overhead",
}
# What is called by the name of the device's kind.
_RUNTIMES = {_RUNTIME_CALL: "runtime", _DRIVER_CALL: "driver"}
# Calls that enqueue work or wait for it: an arrow begins there.
_BEGIN_ARROWS = ("Launch", "Memcpy", "Memset", "Synchronize", "StreamWaitEvent")
# Arrows from calls to what they enqueued, as `torch.profiler` numbers kinds of arrows.
_TO_DEVICE = 2
# No row.
_NONE = 0xFFFF_FFFF


def is_reported(columns, row):
    """True for what a device's profiler reported, and for labels on devices."""
    return len(columns.activity) > 0 and columns.activity[row] != 0


def is_on_device(columns, row):
    """True for what ran on a device."""
    return is_reported(columns, row) and columns.activity[row] <= _WAIT


def is_annotation(columns, row):
    """True for a label on a device: the span of what it launched on a stream."""
    return len(columns.activity) > 0 and columns.activity[row] == _ANNOTATION


def note(columns, row, event):
    """Says of an event what it has only when there are devices."""
    event.use_device = columns.use_device
    if not is_reported(columns, row):
        return
    if is_on_device(columns, row):
        event.device_type = DeviceType(columns.device_type[row])
    if not is_annotation(columns, row):
        event.linked_correlation_id = _linked_id(columns, row)


def _linked_id(columns, row):
    number = columns.linked_number[row]
    return 0 if number == _NONE else columns.first_id + number


def _id(columns, row):
    return _linked_id(columns, row) if is_annotation(columns, row) else columns.correlation[row]


def _device_index(columns, row):
    activity = columns.activity[row]
    return columns.pid if activity in _RUNTIMES else columns.device[row]


def _resource(columns, row):
    activity = columns.activity[row]
    if activity in _RUNTIMES:
        return columns.threads[columns.thread[row]][1]
    return 0 if activity == _OVERHEAD else columns.stream[row]


def _activity_type(columns, row):
    activity = columns.activity[row]
    is_xpu = activity in _RUNTIMES and columns.device_type[row] == int(DeviceType.XPU)
    return f"xpu_{_RUNTIMES[activity]}" if is_xpu else _NAMES[activity]


def _is_flow_start(columns, row):
    name = columns.names[columns.name[row]]
    # Waiting for an event enqueues nothing.
    begins = any(part in name for part in _BEGIN_ARROWS) and "EventSynchronize" not in name
    return columns.activity[row] in _RUNTIMES and begins


# How attributes are looked up that differ from those of operators.
ATTRIBUTES = {
    "id": _id,
    "external_id": _linked_id,
    "device_index": _device_index,
    "device_resource_id": _resource,
    "activity_type": _activity_type,
    "is_user_annotation": is_annotation,
    "flow_id": lambda columns, row: columns.correlation[row],
    "flow_type": lambda columns, row: 0 if is_annotation(columns, row) else _TO_DEVICE,
    "flow_start": _is_flow_start,
}


def launched(columns):
    """By row the rows of what was launched in it, in order."""
    found = {}
    for row in range(len(columns.activity)):
        linked = columns.linked[row]
        if linked != _NONE and is_on_device(columns, row) and not is_annotation(columns, row):
            found.setdefault(linked, []).append(row)
    return found
