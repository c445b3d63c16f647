"""Calls of Python among events, and the functions around each of them: how attributes are looked up in columns."""

# No stack.
_NONE = 0xFFFF_FFFF
_MODULE = "nn.Module: "


def recorded_for(with_stack):
    """Which calls a profiler records: every one, as torch.profiler does; with ``"ops"``, those around operators."""
    return "" if not with_stack else "ops" if with_stack == "ops" else "calls"


def is_call(columns, row):
    """True for a call of a function or of a module."""
    return len(columns.call) > 0 and columns.call[row] != 0


def python_id(columns, row):
    """The number of a call, from 1; -1 for what is none."""
    return columns.call[row] if is_call(columns, row) else -1


def python_parent_id(columns, row):
    """The number of the call that a call is in; -1 without one, and for what is no call."""
    return columns.caller[row] or -1 if is_call(columns, row) else -1


def python_module_id(columns, row):
    """The number of a module among those of its class, from 0; -1 for what is no module."""
    name = columns.names[columns.name[row]]
    return int(name.rpartition("_")[2]) if is_call(columns, row) and name.startswith(_MODULE) else -1


def stack(columns, row):
    """The functions around an event, the innermost first."""
    at = columns.stack[row] if len(columns.stack) else _NONE
    frames = []
    while at != _NONE:
        at, name = columns.stacks[at]
        frames.append(columns.names[name])
    return frames
