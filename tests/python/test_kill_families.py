"""Jobs of four threads and two workers, killed at fifty random moments: every complete record is read back."""

import struct

import pyarrow.parquet
import pytest
import runs

JOBS = 50
LANES = [f"trainer {thread}" for thread in range(4)] + [f"worker {worker}" for worker in range(2)]
NAMES = {"aten::rand", "aten::empty", "aten::uniform_", "aten::erfinv", "batch"}


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """Fifty runs: the number of ops that each thread and each worker had finished, and the operators and labels of each."""
    folder = tmp_path_factory.mktemp("families")
    runs.execute(*runs.new_program("killed_families.py", folder, 0, JOBS), timeout=600)
    found = [folder / str(seed) for seed in range(JOBS)]
    counters = [struct.unpack("<6q", (job / "counters").read_bytes()) for job in found]
    return [(job / "run", counted, ranges_by_lane(job / "run")) for job, counted in zip(found, counters)]


def ranges_by_lane(run):
    """The operators and labels of each thread of the main process, and of each worker."""
    lanes = {lane: [] for lane in LANES}
    for part in runs.parts(run):
        name = runs.metadata(part)["facts"]["process_name"]
        columns = ["kind", "name", "start_ns", "dur_ns", "thread_name", "is_unfinished"]
        is_range = [("kind", "in", ["op", "label"])]
        for row in pyarrow.parquet.read_table(part, columns=columns, filters=is_range, partitioning=None).to_pylist():
            lane = row["thread_name"] if row["thread_name"] in lanes else name
            if lane in lanes:
                lanes[lane].append(row)
    return lanes


@pytest.mark.slow
def test_every_complete_record_is_read_back(killed):
    for run, counters, lanes in killed:
        for lane, counted in zip(LANES, counters):
            ops = [row for row in runs.named(lanes[lane], "aten::erfinv") if not row["is_unfinished"]]
            # The op that had just ended when the kill came may not be counted yet.
            assert len(ops) - counted in (0, 1), (run, lane)


def test_no_record_is_garbage(killed):
    for run, _, lanes in killed:
        for lane, ranges in lanes.items():
            assert {row["name"] for row in ranges} <= NAMES, (run, lane)
            # On one thread a range lies inside another or beside it; only the last of each kind may lack its end.
            ends = [row["start_ns"] + row["dur_ns"] for row in ranges if row["name"] == "aten::erfinv"]
            starts = [row["start_ns"] for row in ranges if row["name"] == "aten::erfinv"]
            assert all(end <= start for end, start in zip(ends, starts[1:])), (run, lane)
            assert sum(row["is_unfinished"] for row in runs.named(ranges, "aten::erfinv")) <= 1, (run, lane)
            assert sum(row["is_unfinished"] for row in runs.named(ranges, "batch")) <= 1, (run, lane)
        assert all(not runs.metadata(part)["damaged"] for part in runs.parts(run)), run


def test_the_kills_came_at_different_moments(killed):
    assert len({counters for _, counters, _ in killed}) == JOBS
    ranges = [row for _, _, lanes in killed for ranges in lanes.values() for row in ranges]
    assert any(row["is_unfinished"] for row in runs.named(ranges, "aten::erfinv"))
