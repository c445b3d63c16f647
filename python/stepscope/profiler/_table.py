"""Events as a table of text, laid out as ``torch.profiler`` does."""

import math
from collections import namedtuple

from stepscope.profiler._exports import device_free

_WIDTH = 12
_GAP = "  "
_OPERATIONS = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")
_UNITS = {"s": (1_000_000.0, "s"), "ms": (1_000.0, "ms"), "us": (1.0, "us")}

_Column = namedtuple("_Column", ["head", "width", "cell", "is_left"], defaults=[False])


def format_time(us, unit=None):
    """Microseconds as a text, in the unit that fits, or in the one that is asked for."""
    if unit not in _UNITS:
        unit = "s" if us >= 1_000_000.0 else "ms" if us >= 1_000.0 else "us"
    divisor, name = _UNITS[unit]
    return f"{us / divisor:.3f}{name}"


def format_share(us, total_us):
    """A part of a total in percent."""
    if total_us == 0:
        return "NaN"
    return f"{us * 100.0 / total_us:.2f}%"


def format_memory(nbytes):
    """Bytes in the unit that fits."""
    for power, name in ((3, "GB"), (2, "MB"), (1, "KB")):
        if abs(nbytes) >= 1024**power:
            return f"{nbytes * 1.0 / 1024**power:.2f} {name}"
    return f"{nbytes} B"


def table_of(
    events,
    *,
    sort_by,
    row_limit,
    max_src_column_width,
    max_name_column_width,
    max_shapes_column_width,
    header,
    is_memory_shown,
    are_flops_shown,
    top_level_events_only,
    time_unit,
):
    """The table of a list of events or averages; empty for an empty list."""
    if len(events) == 0:
        return ""
    if not events[0].use_device and any(event.self_device_time_total > 0 for event in events):
        raise RuntimeError("use_device is None, but there is device performance data.")
    if sort_by is not None:
        attribute = device_free(sort_by)
        events = sorted(events, key=lambda event: getattr(event, attribute), reverse=True)
    limits = _Limits(max_name_column_width, max_shapes_column_width, max_src_column_width)
    totals = _totals(events)
    columns = _name_columns(events, limits)
    columns += _time_columns(events, totals, time_unit)
    columns += _device_columns(events, totals, time_unit)
    columns += _memory_columns(events, is_memory_shown)
    columns += _count_columns(events)
    columns += _input_columns(events, limits)
    columns += _flops_columns(events) if are_flops_shown else []
    sources = _source_column(events, limits)
    if sources:
        # In front of the operations, as their heads are.
        columns.insert(len(columns) - (columns[-1].head.endswith("FLOPs")), sources)
    lines = _head(columns, header, top_level_events_only)
    lines += _rows(events, columns, sources, row_limit, top_level_events_only)
    lines.append(_rule(columns))
    lines.append(f"Self CPU time total: {format_time(totals.cpu_us, time_unit)}")
    if _has_device_time(events):
        lines.append(f"Self {_device(events)} time total: {format_time(totals.device_us, time_unit)}")
    return "".join(line + "\n" for line in lines)


_Limits = namedtuple("_Limits", ["name", "shapes", "source"])
_Totals = namedtuple("_Totals", ["cpu_us", "device_us"])


def _totals(events):
    cpu_us = device_us = 0
    for event in events:
        cpu_us += event.self_cpu_time_total
        is_host = event.device_type.name == "CPU"
        if event.is_legacy if is_host else not event.is_user_annotation:
            device_us += event.self_device_time_total
    return _Totals(cpu_us, device_us)


def _limited(width, limit):
    return width if limit is None else min(width, limit)


def _name_columns(events, limits):
    width = _limited(max(len(event.key) for event in events) + 4, limits.name)

    def shortened(name):
        if limits.name is not None and len(name) >= limits.name - 3:
            return name[: limits.name - 3] + "..."
        return name

    columns = [_Column("Name", width, lambda event: shortened(event.key))]
    if any(event.overload_name for event in events):
        columns.append(_Column("Overload Name", width, lambda event: shortened(event.overload_name)))
    return columns


def _time_columns(events, totals, unit):
    def self_share(event):
        event.self_cpu_percent = format_share(event.self_cpu_time_total, totals.cpu_us)
        return event.self_cpu_percent

    def total_share(event):
        event.total_cpu_percent = 0 if event.is_async else format_share(event.cpu_time_total, totals.cpu_us)
        return event.total_cpu_percent

    return [
        _Column("Self CPU %", _WIDTH, self_share),
        _Column("Self CPU", _WIDTH, lambda event: format_time(event.self_cpu_time_total, unit)),
        _Column("CPU total %", _WIDTH, total_share),
        _Column("CPU total", _WIDTH, lambda event: format_time(event.cpu_time_total, unit)),
        _Column("CPU time avg", _WIDTH, lambda event: format_time(event.cpu_time, unit)),
    ]


def _has_device_time(events):
    return any(event.self_device_time_total > 0 for event in events)


def _device(events):
    return "None" if events[0].use_device is None else events[0].use_device.upper()


def _device_columns(events, totals, unit):
    if not _has_device_time(events):
        return []

    def share(event):
        event.total_device_percent = format_share(event.self_device_time_total, totals.device_us)
        return event.total_device_percent

    name = _device(events)
    return [
        _Column(f"Self {name}", _WIDTH, lambda event: format_time(event.self_device_time_total, unit)),
        _Column(f"Self {name} %", _WIDTH, share),
        _Column(f"{name} total", _WIDTH, lambda event: format_time(event.device_time_total, unit)),
        _Column(f"{name} time avg", _WIDTH, lambda event: format_time(event.device_time, unit)),
    ]


def _memory_columns(events, is_shown):
    if not is_shown:
        return []
    columns = [
        _Column("CPU Mem", _WIDTH, lambda event: format_memory(event.cpu_memory_usage)),
        _Column("Self CPU Mem", _WIDTH, lambda event: format_memory(event.self_cpu_memory_usage)),
    ]
    if events[0].use_device and any(event.self_device_memory_usage > 0 for event in events):
        name = _device(events)
        columns += [
            _Column(f"{name} Mem", _WIDTH, lambda event: format_memory(event.device_memory_usage)),
            _Column(f"Self {name} Mem", _WIDTH, lambda event: format_memory(event.self_device_memory_usage)),
        ]
    return columns


def _count_columns(events):
    columns = [_Column("# of Calls", _WIDTH, lambda event: event.count)]
    if any(event.node_id != -1 for event in events):
        columns.append(_Column("Node ID", _WIDTH, lambda event: event.node_id))
    return columns


def _input_columns(events, limits):
    if not any(event.input_shapes is not None and len(event.input_shapes) > 0 for event in events):
        return []
    width = _limited(max(len(str(event.input_shapes)) for event in events) + 4, limits.shapes)
    return [_Column("Input Shapes", width, lambda event: str(event.input_shapes)[:width])]


def _flops_columns(events):
    found = [event.flops for event in events if event.flops]
    if not found:
        return []
    thousands = max(0, min(math.log10(min(found)) / 3, float(len(_OPERATIONS) - 1)))
    scale = 10 ** (math.floor(thousands) * -3.0)

    def cell(event):
        return "--" if not event.flops else f"{event.flops * scale:8.3f}"

    return [_Column(f"Total {_OPERATIONS[int(thousands)]}", _WIDTH, cell)]


def _source_column(events, limits):
    stacks = [event.stack for event in events if event.stack]
    if not stacks:
        return None
    width = _limited(max(max(len(frame) for frame in stack) for stack in stacks) + 4, limits.source)
    return _Column("Source Location", width, lambda event: _frame(event.stack[0], width) if event.stack else "", True)


def _frame(frame, width):
    """The end of a frame's text, where the function is."""
    if len(frame) <= width:
        return frame
    frame = frame[len(frame) - width :]
    return "..." + frame[3:] if len(frame) > 3 else frame


def _head(columns, header, top_level_events_only):
    line = "=" * (sum(column.width + len(_GAP) for column in columns) - len(_GAP))
    lines = []
    if header is not None:
        lines += [line, header]
    if top_level_events_only:
        lines += [line, "This report only display top-level ops statistics"]
    return [*lines, _rule(columns), _row(columns, [column.head for column in columns]), _rule(columns)]


def _rule(columns):
    return "".join("-" * column.width + _GAP for column in columns)


def _row(columns, cells):
    padded = (
        str(cell).ljust(column.width) if column.is_left else str(cell).rjust(column.width)
        for column, cell in zip(columns, cells)
    )
    return "".join(cell + _GAP for cell in padded)


def _rows(events, columns, sources, row_limit, top_level_events_only):
    lines, shown = [], 0
    for event in events:
        if shown == row_limit:
            break
        if top_level_events_only and event.cpu_parent is not None:
            continue
        shown += 1
        lines.append(_row(columns, [column.cell(event) for column in columns]))
        if sources:
            frames = [*(_frame(frame, sources.width) for frame in (event.stack or [])[1:]), ""]
            lines += [_row(columns, [frame if column is sources else "" for column in columns]) for frame in frames]
    return lines
