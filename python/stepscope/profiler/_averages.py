"""Averages that the engine computed, as objects."""

import json

from stepscope.profiler._events import FunctionEventAvg


def averages_of(events, more, by_shapes, stack_frames=0):
    """The averages of what the engine read, lists one after another, in order of first events."""
    return [_average(row, by_shapes) for row in events.averages(more, bool(by_shapes), stack_frames)]


def _average(row, by_shapes):
    name, shapes, count, total_ns, self_ns, cpu_bytes, self_cpu_bytes, scope, is_label, stack = row
    average = FunctionEventAvg()
    average.__dict__.update(
        key=name,
        node_id=-1,
        count=count,
        cpu_time_total=total_ns / 1000,
        self_cpu_time_total=self_ns / 1000,
        cpu_memory_usage=cpu_bytes,
        self_cpu_memory_usage=self_cpu_bytes,
        scope=scope,
        is_user_annotation=is_label,
        overload_name="",
        input_shapes=json.loads(shapes or "[]") if by_shapes else "",
        stack=stack,
        cpu_children=[],
    )
    return average
