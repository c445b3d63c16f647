"""torch.profiler is the oracle: of the same step, Stepscope records the same ops, nested and linked alike."""

import json
from collections import Counter, defaultdict
from types import SimpleNamespace

import pytest
import runs

BACKWARD = 1


@pytest.fixture(scope="module")
def parity(tmp_path_factory):
    run = tmp_path_factory.mktemp("parity") / "run"
    printed = json.loads(runs.execute(*runs.program("parity.py", run)).stdout)
    threads = run.with_name("run-threads")
    return SimpleNamespace(run=run, threads=threads, rows=runs.ops(run), **printed)


def test_the_oracle_agrees_with_itself(parity):
    """Before and after the recording: it left nothing behind in PyTorch."""
    assert parity.before["counts"] == parity.after["counts"]


def test_the_same_ops_as_often(parity):
    ours = Counter(row["name"] for row in parity.rows)
    assert ours == Counter(row["name"] for row in parity.before["rows"])
    assert len(ours) > 50


def test_counts_of_the_command_line_equal_key_averages(parity):
    assert runs.counts_of_operators(parity.run) == without_labels(parity.before)


def test_the_same_nesting(parity):
    ours = Counter((parent and parent["name"], row["name"]) for parent, row in runs.with_parents(parity.rows))
    assert ours == Counter((row["parent"], row["name"]) for row in parity.before["rows"])


def test_the_same_scopes(parity):
    ours = Counter((row["name"], row["scope"]) for row in parity.rows)
    assert ours == Counter((row["name"], row["scope"]) for row in parity.before["rows"])


def test_the_same_sequence_numbers(parity):
    """Autograd counts on between two recordings: numbers are compared from the smallest one on."""
    theirs = [{**row, "sequence_number": none_below_0(row["sequence_number"])} for row in parity.before["rows"]]
    assert numbers_by_name(parity.rows) == numbers_by_name(without_copies(theirs))


def test_backward_nodes_have_the_sequence_number_of_their_forward_op(parity):
    forward = defaultdict(set)
    for row in parity.rows:
        if row["scope"] != BACKWARD and row["sequence_number"] is not None:
            forward[row["sequence_number"]].add(row["name"])
    for node, op in {"AddmmBackward0": "aten::addmm", "GeluBackward0": "aten::gelu"}.items():
        nodes = [row for row in runs.named(parity.rows, node) if row["scope"] == BACKWARD]
        assert nodes
        assert all(op in forward[row["sequence_number"]] for row in nodes)


def test_forward_threads_are_known_where_the_oracle_knows_them(parity):
    ours = {row["name"] for row in parity.rows if row["forward_thread"] and row["sequence_number"] is not None}
    assert ours == {row["name"] for row in without_copies(parity.before["rows"]) if row["forward_thread"]}


def test_durations_are_of_the_same_size(parity):
    ours = sum(row["dur_ns"] for parent, row in runs.with_parents(parity.rows) if parent is None) / 1000
    theirs = sum(row["dur_us"] for row in parity.before["rows"] if row["parent"] is None)
    # The oracle costs more than we do; a busy machine costs either of them more.
    assert theirs / 20 < ours < theirs * 20


def test_backward_on_another_thread_points_to_the_thread_of_its_forward(parity):
    (part,) = runs.parts(parity.threads)
    threads = runs.metadata(part)["threads"]
    rows = runs.ops(parity.threads)
    forward = {row["sequence_number"]: row for row in runs.named(rows, "aten::addmm")}
    nodes = [row for row in runs.named(rows, "AddmmBackward0") if row["scope"] == BACKWARD]
    assert nodes
    for node in nodes:
        op = forward[node["sequence_number"]]
        assert (node["thread_name"], op["thread_name"]) == ("backward", "MainThread")
        assert node["forward_thread"] == threads[op["thread"]]["framework_thread"]


def none_below_0(number):
    return None if number < 0 else number


def without_copies(rows):
    """torch.profiler copies a node's number and forward thread to the slice around it, which has none of its own."""
    nothing = {"sequence_number": None, "forward_thread": 0}
    return [{**row, **nothing} if row["name"].startswith("autograd::engine::") else row for row in rows]


def numbers_by_name(rows):
    first = min(row["sequence_number"] for row in rows if row["sequence_number"] is not None)
    relative = [(row["name"], row["sequence_number"]) for row in rows]
    return Counter((name, None if number is None else number - first) for name, number in relative)


def without_labels(recorded):
    """Counts by name of what is an operator: labels are slices of another kind for us."""
    labels = {row["name"] for row in recorded["rows"] if row["scope"] == 7}
    return {name: count for name, count in recorded["counts"].items() if name not in labels}
