"""Greenlets switch stacks in the middle of operators, labels, modules and calls: nothing is lost or mixed up."""

from collections import Counter

import pytest
import runs

TURNS, GREENLETS = 20, 3


@pytest.mark.parametrize("option", [[], ["--stacks"], ["--stacks=calls"]], ids=["plain", "stacks", "calls"])
def test_every_range_has_its_begin_and_its_end(tmp_path, option):
    run = tmp_path / "run"
    told = runs.stepscope("record", *option, "-o", run, "--", *runs.new_program("greenlets.py"))
    assert told.stdout == "done\n"
    rows = runs.rows(run)
    counts = Counter(row["name"] for row in rows if row["kind"] in ("op", "label"))
    expected = {"Switch": 60, "aten::exp": 60, "aten::erfinv": 60, "aten::digamma": 1}
    expected.update({f"label {number}": TURNS for number in range(GREENLETS)})
    assert {name: counts[name] for name in expected} == expected
    modules = Counter(row["name"] for row in rows if row["kind"] == "module")
    assert sorted(modules.values()) == [TURNS] * GREENLETS
    assert not [row["name"] for row in rows if row["is_unfinished"]]
    findings = runs.findings(run)
    assert not {"capture.dropped_records", "capture.damaged_segment", "capture.unfinished_slices"} & set(findings)
    # What is around the ranges of several greenlets at the same time is said, and drawn on rows of their own.
    assert findings["import.overlapping_slices"]["count"] > 0


def test_a_range_ends_when_its_own_greenlet_ends_it(tmp_path):
    run = tmp_path / "run"
    runs.record(run, runs.new_program("greenlets.py"))
    rows = runs.ops(run)
    # exp runs after the switch back: inside of some Switch, and of the label of its greenlet.
    outer = [row for row in rows if row["name"] == "Switch"]
    for row in runs.named(rows, "aten::exp"):
        assert any(runs.contains(switch, row) and switch["start_ns"] <= row["start_ns"] for switch in outer)
    # Nothing stays open for what runs when all are done.
    (last,) = runs.named(rows, "aten::digamma")
    assert not [
        row for row in rows if row is not last and row["start_ns"] < last["start_ns"] and runs.contains(row, last)
    ]
