"""Averages that the engine computed, as objects."""

import json

from stepscope.profiler._events import FunctionEventAvg


def averages_of(rows, by_shapes, by_overloads):
    """The averages that the engine's rows say."""
    return [_average(*row, by_shapes, by_overloads) for row in rows]


def _average(key, sums, first, by_shapes, by_overloads):
    name, shapes, overload, stack = key
    count, total_ns, self_ns, cpu_bytes, self_cpu_bytes, device_bytes, self_device_bytes, flops = sums
    scope, is_label, is_async = first
    average = FunctionEventAvg()
    average.__dict__.update(
        key=name,
        node_id=-1,
        count=count,
        cpu_time_total=total_ns / 1000,
        self_cpu_time_total=self_ns / 1000,
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
