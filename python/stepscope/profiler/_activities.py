"""What is asked to be recorded, and which part of it is not."""

from stepscope import _device_libraries

# Groups of devices that are recorded, and how the recorder names their kind.
DEVICES = frozenset({"CUDA", "XPU"})
RECORDED = DEVICES | {"CPU"}
_KINDS = {"CUDA": ("cuda", "rocm"), "XPU": ("xpu",)}

# What belongs to the CPU's group, as torch.profiler names it.
_CPU_TYPES = frozenset(
    "CPU_OP USER_ANNOTATION EXTERNAL_CORRELATION CUDA_RUNTIME CUDA_DRIVER CPU_INSTANT_EVENT PYTHON_FUNCTION "
    "XPU_RUNTIME XPU_DRIVER PRIVATEUSE1_RUNTIME PRIVATEUSE1_DRIVER".split()
)
_CUDA_TYPES = frozenset(
    "GPU_MEMCPY GPU_MEMSET GPU_USER_ANNOTATION CONCURRENT_KERNEL CUDA_RUNTIME CUDA_DRIVER OVERHEAD".split()
)
_XPU_TYPES = frozenset(name.replace("CUDA_", "XPU_") for name in _CUDA_TYPES)
# By name of the group: groups of other devices have nothing that is recorded. What a group of XPU names beyond these are
# quantities to measure.
_TYPES = {"CPU": _CPU_TYPES, "CUDA": _CUDA_TYPES, "XPU": _XPU_TYPES}
# The kind of device whose times are shown, of the first of these groups that is asked for.
_SHOWN_DEVICES = {"CUDA": "cuda", "XPU": "xpu", "MTIA": "mtia", "HPU": "hpu"}

# The keywords of `_ExperimentalConfig` in the order of its pickled state, with their defaults; True marks those that
# Stepscope heeds.
_EXPERIMENTAL: tuple = (
    ("profiler_metrics", [], False),
    ("profiler_measure_per_kernel", False, False),
    ("verbose", False, True),
    ("performance_events", [], False),
    ("enable_cuda_sync_events", False, True),
    ("adjust_profiler_step", False, False),
    ("disable_external_correlation", False, True),
    ("profile_all_threads", False, True),
    ("capture_overload_names", False, True),
    ("record_python_gc_info", False, True),
    ("expose_kineto_event_metadata", False, False),
    ("custom_profiler_config", "", False),
    ("adjust_timestamps", False, False),
    ("trace_only", False, True),
)


def parse_activities(activities):
    """The groups that are asked for, and by group the names of the only types of it that are.

    Raises
    ------
    ValueError
        A group stands there twice.
    TypeError
        An item is neither an activity nor a dict.
    RuntimeError
        A type of the CPU's group has no such name.
    """
    from torch.profiler import ProfilerActivity

    groups, types = set(), {}
    for item in activities:
        if isinstance(item, dict):
            named = [(group, set(names)) for group, names in item.items()]
        elif isinstance(item, ProfilerActivity):
            named = [(item, None)]
        else:
            raise TypeError(f"Expected ProfilerActivity or dict, got {type(item)}")
        for group, names in named:
            if group in groups:
                raise ValueError(f"Activity {group} specified more than once")
            groups.add(group)
            if names is not None:
                types[group] = names
    for group, names in types.items():
        known = _TYPES.get(group.name, names) if group.name != "XPU" else names
        for name in sorted(names - known):
            raise RuntimeError(f"Unknown or non-member activity type name: '{name}'")
    return groups, types


def device_of(groups):
    """The kind of device whose times are shown: ``"cuda"`` …; ``None`` without one."""
    names = {group.name for group in groups}
    return next((device for name, device in _SHOWN_DEVICES.items() if name in names), None)


def device_kinds(groups, types, has_waits):
    """What is shown of what devices' profilers report, by the engine's names. Calls belong to the host's group too."""
    asked = set()
    for group in groups:
        asked |= _TYPES.get(group.name, frozenset()) & types.get(group, _TYPES.get(group.name, frozenset()))
    kinds = {name.partition("_")[2] if name.endswith(("_RUNTIME", "_DRIVER")) else name for name in asked}
    if has_waits and any(group.name == "CUDA" for group in groups):
        kinds.add("CUDA_SYNC")
    return tuple(sorted(kinds))


def gpu_of(activities, gpu="auto"):
    """The option ``gpu`` for what is asked for; None: everything. ``gpu`` says by what, as on the command line."""
    if gpu not in ("auto", "native", "torch", "off"):
        raise ValueError(f'gpu is "auto", "native", "torch" or "off", not {gpu!r}')
    # By name: those of torch.profiler have other numbers from release to release.
    is_wanted = activities is None or any(activity.name in DEVICES for activity in activities)
    return gpu if is_wanted else "off"


def devices_missing(activities):
    """The groups that are asked for and of which this machine has no driver."""
    names = sorted({activity.name for activity in activities} & DEVICES)
    return [name for name in names if not any(_device_libraries.has_driver(kind) for kind in _KINDS[name])]


def experimental_values(config):
    """The keywords of an ``_ExperimentalConfig`` that are set, by name."""
    if config is None:
        return {}
    # Its fields can be read in no other way. Older releases have fewer of them.
    state = config.__getstate__()
    if not isinstance(state, tuple) or len(state) > len(_EXPERIMENTAL):
        return {}
    return {name: value for (name, default, _), value in zip(_EXPERIMENTAL, state) if value != default}


def experimental_not_recorded(values):
    """Those of the set keywords that change nothing here."""
    heeded = {name for name, _, is_heeded in _EXPERIMENTAL if is_heeded}
    return [name for name in values if name not in heeded]
