"""The table that ``check.py`` prints, and the JSON that it writes."""

import json

from gpu import cost
from gpu.outcome import NOT_RUN
from gpu.profilers import STEPSCOPE, TORCH
from gpu.trace import COPY, FILL, KERNEL

HEAD = (
    "workload",
    "way",
    "kernels",
    "copies",
    "memsets",
    "durations",
    "added a step",
    "ratio",
    "added the first",
    "trace after",
    "left after",
    "checks",
)


def table(rows):
    """One line a row; counts and times are ``torch.profiler's / Stepscope's``."""
    lines = [HEAD, *map(_cells, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


def _cells(row):
    theirs, ours = (row.counts.get(name, {}) for name in (TORCH, STEPSCOPE))
    counted = [_both(theirs.get(kind), ours.get(kind)) for kind in (KERNEL, COPY, FILL)]
    their_costs, our_costs = (row.costs.get(name, {}) for name in (TORCH, STEPSCOPE))
    return (
        row.workload,
        row.way,
        *counted,
        _percent(_total_ratio(row)),
        _both(_us(their_costs.get("added_step_ns")), _us(our_costs.get("added_step_ns"))),
        _number(row.costs.get("added_ratio"), "{:.2f}"),
        _both(_us(their_costs.get("added_first_step_ns")), _us(our_costs.get("added_first_step_ns"))),
        _both(*(_number(costs.get("trace_s"), "{:.2f} s") for costs in (their_costs, our_costs))),
        _both(*(_number(costs.get("left_ratio"), "{:.2f}") for costs in (their_costs, our_costs))),
        _verdict(row),
    )


def _both(theirs, ours):
    texts = ["-" if value in (None, "") else str(value) for value in (theirs, ours)]
    return "-" if texts == ["-", "-"] else " / ".join(texts)


def _number(value, form):
    return "" if value is None else form.format(value)


def _us(ns):
    return _number(None if ns is None else ns / 1000, "{:.0f} us")


def _percent(ratio):
    return "-" if ratio is None else f"{(ratio - 1) * 100:+.2f} %"


def _total_ratio(row):
    found = [outcome.numbers.get("total_ratio") for outcome in row.outcomes if outcome.check == "durations"]
    return found[0] if found else None


def _verdict(row):
    bad = [outcome for outcome in row.outcomes if not outcome.is_good]
    if not bad:
        return f"{len(row.outcomes)} hold"
    not_run = sum(outcome.status == NOT_RUN for outcome in bad)
    parts = [(len(bad) - not_run, "fail"), (not_run, "not run")]
    return ", ".join(f"{count} {what}" for count, what in parts if count)


def remarks(rows):
    """What does not hold, and which goals were missed, a line each."""
    lines = []
    for row in rows:
        of = f"{row.workload} ({row.way})"
        bad = [outcome for outcome in row.outcomes if not outcome.is_good]
        lines += [f"{of}: {outcome.check} {outcome.status}: {outcome.says}" for outcome in bad]
        lines += [f"{of}: goal missed: {text}" for text in cost.missed_goals(row.costs)]
    return lines


def write_json(path, environment, rows):
    document = {
        "environment": environment,
        "holds": bool(rows) and all(row.holds for row in rows),
        "rows": [row.as_dict() for row in rows],
    }
    path.write_text(json.dumps(document, indent=2) + "\n")
