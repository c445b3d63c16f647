"""What Kineto would hand to ``torch.profiler`` for events that a test makes up; torch's own Python code does the rest."""

import torch
from torch.autograd import DeviceType, profiler, profiler_util

_DEFAULTS = {
    "overload_name": "",
    "fwd_thread_id": 0,
    "shapes": [],
    "concrete_inputs": [],
    "kwinputs": {},
    "stack": [],
    "scope": 0,
    "is_async": False,
    "sequence_nr": -1,
    "device_type": DeviceType.CPU,
    "flops": 0,
    "is_user_annotation": False,
    "is_python_function": False,
    "activity_type": "cpu_op",
    "metadata_json": "",
    "extra_meta": {},
    "flow_id": 0,
    "flow_type": 0,
    "flow_start": False,
    "external_id": 0,
    "linked_correlation_id": 0,
    "structured_input_shapes": [],
    "structured_input_strides": [],
    "dtypes": [],
    "python_id": -1,
    "python_parent_id": -1,
    "python_module_id": -1,
    "is_hidden_event": False,
    "cuda_elapsed_us": -1,
    "privateuse1_elapsed_us": -1,
    "nbytes": 0,
}


class KinetoEvent:
    """An event as ``torch._C._autograd._KinetoEvent``: each value is a method."""

    def __init__(self, name, start_ns, end_ns, thread, **values):
        known = {"name": name, "start_ns": start_ns, "end_ns": end_ns}
        known.update(start_thread_id=thread, end_thread_id=thread)
        self.values = {**_DEFAULTS, **known, **values}

    def __getattr__(self, name):
        if name == "values" or name not in self.values:
            raise AttributeError(name)
        return lambda: self.values[name]


class _Results:
    def __init__(self, events):
        self._events = events

    def events(self):
        return self._events

    def trace_start_ns(self):
        return 0


def event_list(events, use_device, **shown):
    """The list that torch's own code makes of ``events``."""
    prof = profiler.profile(use_kineto=True)
    prof.use_device = use_device
    ordered = sorted(events, key=lambda event: event.start_ns())
    found = profiler_util.EventList(prof._parse_kineto_results(_Results(ordered)), use_device=use_device, **shown)
    found._build_tree()
    return found


assert torch.autograd.kineto_available()
