"""Memory snapshots of PyTorch: read by PyTorch's own tools, and counted backwards from their end, without our code."""

import gzip
import importlib.util
import pickle
from collections import Counter

import pytest
import runs
from torch.cuda import _memory_viz

SIGNS = {"alloc": 1, "free_requested": -1}
RESERVES = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}


@pytest.fixture(scope="module")
def fixture():
    return runs.PROGRAMS.parents[1] / "fixtures" / "memory-snapshot"


@pytest.fixture(scope="module")
def path(fixture):
    return fixture / "drawn.pickle"


@pytest.fixture(scope="module")
def snapshot(path):
    return pickle.loads(path.read_bytes())


def blocks_of(snapshot, device, state="active_allocated"):
    """Blocks of one state, by their address."""
    blocks = [b for s in snapshot["segments"] if s["device"] == device for b in s["blocks"]]
    return {block["address"]: block for block in blocks if block["state"] == state}


def levels(snapshot, device):
    """(allocated, reserved) after each entry that changes one of them, from the last to the first; and before them."""
    allocated = sum(block["requested_size"] for block in blocks_of(snapshot, device).values())
    reserved = sum(s["total_size"] for s in snapshot["segments"] if s["device"] == device)
    rows = []
    for entry in reversed(snapshot["device_traces"][device]):
        action = entry["action"]
        if action in SIGNS or action in RESERVES:
            rows.append((entry["time_us"] * 1000, allocated, reserved))
        allocated -= SIGNS.get(action, 0) * entry["size"]
        reserved -= RESERVES.get(action, 0) * entry["size"]
    return rows[::-1], (allocated, reserved)


def first_us(snapshot):
    entries = [entry for trace in snapshot["device_traces"] for entry in trace]
    return min(entry["time_us"] for entry in entries + snapshot["external_annotations"])


def rows(name, path, *options):
    return runs.analyze(name, path, *options)["results"]


def test_the_fixture_is_what_its_script_draws(fixture, snapshot):
    spec = importlib.util.spec_from_file_location("draw", fixture / "draw.py")
    draw = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(draw)
    assert draw.drawn() == snapshot


def test_the_tools_of_pytorch_read_the_fixture(snapshot):
    segments = _memory_viz.segsum(snapshot)
    assert f"segments: {len(snapshot['segments'])}" in segments
    assert "raise OutOfMemoryError" in _memory_viz.trace(snapshot)


def test_the_curve_is_that_of_counting_backwards(path, snapshot):
    curve = rows("memory_curve", path)
    start_ns = first_us(snapshot) * 1000
    for device in (0, 1):
        expected, _ = levels(snapshot, device)
        found = [
            (start_ns + row["time_ns"], row["allocated_bytes"], row["reserved_bytes"])
            for row in curve
            if row["device"] == device
        ]
        # What was there before the history stands before it, a row a block.
        assert found[-len(expected) :] == expected
        mentioned = {e["addr"] for e in snapshot["device_traces"][device] if e["action"] in SIGNS}
        older = set(blocks_of(snapshot, device)) - mentioned
        assert len(found) - len(expected) == len(older) and len(older) > 0
        assert {row[0] for row in found[: len(older)]} == {start_ns}


def test_the_end_is_what_the_segments_say(path, snapshot):
    for device in (0, 1):
        last = [row for row in rows("memory_curve", path) if row["device"] == device][-1]
        assert last["allocated_bytes"] == sum(b["requested_size"] for b in blocks_of(snapshot, device).values())
        assert last["reserved_bytes"] == sum(s["total_size"] for s in snapshot["segments"] if s["device"] == device)


def test_the_peak_and_who_holds_it(path, snapshot):
    for device in (0, 1):
        found, before = levels(snapshot, device)
        peak = max(allocated for _, allocated, _ in [*found, (0, *before)])
        holders = [row for row in rows("memory_peak", path, "--group-by", "stack") if row["device"] == device]
        assert {row["peak_bytes"] for row in holders} == {peak}
        assert sum(row["bytes"] for row in holders) == peak
        assert max(row["peak_bytes"] for row in rows("memory_summary", path) if row["device"] == device) == peak
    assert any(row["name"] and row["name"].endswith("train.py(40): <module>") for row in holders)


def test_every_allocation_has_its_stream_and_its_stack(path, snapshot):
    def stack(frames):
        # What has no file has its name alone; `;` stands between frames.
        return ";".join(
            (f["name"] if f["filename"] == "??" else f"{f['filename']}({f['line']}): {f['name']}").replace(";", ",")
            for f in frames
        )

    found = rows("memory_events", path)
    for device in (0, 1):
        trace = snapshot["device_traces"][device]
        expected = Counter(
            (e["addr"], e["size"], e["stream"], stack(e["frames"])) for e in trace if e["action"] == "alloc"
        )
        mentioned = {e["addr"] for e in trace if e["action"] in SIGNS}
        older = {at: b for at, b in blocks_of(snapshot, device).items() if at not in mentioned}
        expected += Counter(
            (at, b["requested_size"], s["stream"], stack(b["frames"]) or None)
            for s in snapshot["segments"]
            for b in s["blocks"]
            for at in [b["address"]]
            if older.get(at) is b
        )
        ours = [row for row in found if row["device"] == device and row["state"] != "allocated_before"]
        assert Counter((r["address"], r["bytes"], r["stream"], r["stack"]) for r in ours) == expected
        freed = [row["freed_ns"] for row in found if row["device"] == device and row["freed_ns"] is not None]
        assert len(freed) == sum(e["action"] == "free_requested" for e in trace)
        assert {r["address"] for r in ours if r["state"] == "held"} == set(blocks_of(snapshot, device))


def test_sums_are_those_of_the_history(path, snapshot):
    for row in rows("memory_statistics", path):
        trace = snapshot["device_traces"][row["device"]]
        before = {b: v for b, v in blocks_of(snapshot, row["device"]).items()}
        mentioned = {e["addr"] for e in trace if e["action"] in SIGNS}
        older = sum(block["requested_size"] for at, block in before.items() if at not in mentioned)
        assert row["allocation_bytes"] == older + sum(e["size"] for e in trace if e["action"] == "alloc")
        freed = sum(e["size"] for e in trace if e["action"] == "free_requested")
        assert row["size_increase_bytes"] == row["allocation_bytes"] - freed


def test_labels_are_steps_and_say_what_memory_is_for(path):
    steps = [row for row in rows("step_breakdown", path) if row.get("step") is not None]
    assert {row["step"] for row in steps} == {0, 1, 2}
    made = [row for row in rows("memory_timeline", path) if row["action"] == "create"]
    assert Counter(row["bytes"] for row in made if row["category"] == "optimizer_state") == {9_000: 3}


def test_what_is_doubtful_is_told(path):
    found = {row["code"]: row["count"] for row in rows("findings", path)}
    assert found["trace.out_of_memory"] == 1
    assert found["import.memory_before_history"] >= 3 and found["import.memory_history_dropped"] >= 1
    assert "import.memory_contradicted" not in found and "import.unreadable_event" not in found


def test_packed_and_converted_it_says_the_same(path, tmp_path):
    packed, converted = tmp_path / "drawn.pickle.gz", tmp_path / "drawn.json"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert rows("memory_events", packed) == rows("memory_events", path)
    runs.stepscope("convert", path, "-o", converted)
    assert rows("memory_curve", converted) == rows("memory_curve", path)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_protocol_reads_alike(path, snapshot, protocol, tmp_path):
    again = tmp_path / path.name
    again.write_bytes(pickle.dumps(snapshot, protocol=protocol))
    assert rows("memory_curve", again) == rows("memory_curve", path)


def test_objects_are_never_made(tmp_path):
    class Touch:
        def __reduce__(self):
            return open, (str(tmp_path / "touched"), "w")

    evil = tmp_path / "evil.pickle"
    evil.write_bytes(pickle.dumps({"segments": [], "device_traces": [], "more": Touch()}))
    found = {row["code"] for row in rows("findings", evil)}
    assert "import.foreign_object" in found and not (tmp_path / "touched").exists()


def test_another_pickle_is_refused_with_what_it_is(tmp_path):
    other = tmp_path / "weights.pickle"
    other.write_bytes(pickle.dumps([1, 2, 3]))
    error = runs.stepscope("analyze", "memory_curve", other, code=1).stderr
    assert (
        "expected a memory snapshot or a dump of the Flight Recorder of PyTorch" in error
        and "a pickle of a list" in error
        and "_dump_snapshot" in error
    )
