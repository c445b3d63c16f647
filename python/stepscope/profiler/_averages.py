"""Averages that the engine computed, as objects."""

import json

from torch.autograd import DeviceType

from stepscope.profiler._events import FunctionEventAvg

# What the kinds of devices are called whose times are shown.
_DEVICE_TYPES = {"cuda": DeviceType.CUDA, "xpu": DeviceType.XPU}


def averages_of(rows, by_shapes, by_overloads, use_device=None):
    """The averages that the engine's rows say; times on devices are those of ``use_device``."""
    return [_average(*row, by_shapes, by_overloads, use_device) for row in rows]


def _average(key, sums, first, by_shapes, by_overloads, use_device):
    name, shapes, overload, stack = key
    count, total_ns, self_ns, device_ns, self_device_ns, *of_memory, flops = sums
    cpu_bytes, self_cpu_bytes, device_bytes, self_device_bytes = of_memory
    scope, is_label, is_async, is_on_device = first
    average = FunctionEventAvg()
    average.__dict__.update(
        key=name,
        node_id=-1,
        count=count,
        cpu_time_total=total_ns / 1000,
        self_cpu_time_total=self_ns / 1000,
        device_time_total=device_ns / 1000 if use_device else 0,
        self_device_time_total=self_device_ns / 1000 if use_device else 0,
        device_type=_DEVICE_TYPES.get(use_device, DeviceType.CUDA) if is_on_device else DeviceType.CPU,
        use_device=use_device,
        cpu_memory_usage=cpu_bytes,
        self_cpu_memory_usage=self_cpu_bytes,
        device_memory_usage=device_bytes,
        self_device_memory_usage=self_device_bytes,
        flops=flops,
        scope=scope,
        is_user_annotation=is_label,
        is_async=is_async,
        overload_name=overload if by_overloads else "",
        input_shapes=json.loads(shapes or "[]") if by_shapes else "",
        stack=stack,
        cpu_children=[],
    )
    return average
