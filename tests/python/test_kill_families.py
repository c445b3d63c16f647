"""Jobs of four threads and two workers, killed at fifty random moments: every complete record is read back."""

import struct

import pytest
import runs

JOBS = 50
LANES = [f"trainer {thread}" for thread in range(4)] + [f"worker {worker}" for worker in range(2)]
NAMES = {"aten::rand", "aten::empty", "aten::uniform_", "aten::erfinv", "batch"}


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """Fifty runs, each with the number of ops that each thread and each worker had finished."""
    folder = tmp_path_factory.mktemp("families")
    runs.execute(*runs.program("killed_families.py", folder, 0, JOBS), timeout=300)
    counters = [(folder / str(seed) / "counters").read_bytes() for seed in range(JOBS)]
    return [(folder / str(seed) / "run", struct.unpack("<6q", counters[seed])) for seed in range(JOBS)]


def rows_by_lane(run):
    """The rows of each thread of the main process, and of each worker."""
    lanes = {lane: [] for lane in LANES}
    for row in runs.rows(run):
        lane = row["thread_name"] if row["thread_name"] in lanes else row["process_name"]
        if lane in lanes:
            lanes[lane].append(row)
    return lanes


def test_every_complete_record_is_read_back(killed):
    for run, counters in killed:
        lanes = rows_by_lane(run)
        for lane, counted in zip(LANES, counters):
            ops = [row for row in runs.named(lanes[lane], "aten::erfinv") if not row["is_unfinished"]]
            # The op that had just ended when the kill came may not be counted yet.
            assert len(ops) - counted in (0, 1), (run, lane)


def test_no_record_is_garbage(killed):
    for run, _ in killed:
        for lane, rows in rows_by_lane(run).items():
            ranges = [row for row in rows if row["kind"] in ("op", "label")]
            assert {row["name"] for row in ranges} <= NAMES, (run, lane)
            # On one thread a range lies inside another or beside it; only the last of each kind may lack its end.
            ends = [row["start_ns"] + row["dur_ns"] for row in ranges if row["name"] == "aten::erfinv"]
            starts = [row["start_ns"] for row in ranges if row["name"] == "aten::erfinv"]
            assert all(end <= start for end, start in zip(ends, starts[1:])), (run, lane)
            assert sum(row["is_unfinished"] for row in runs.named(ranges, "aten::erfinv")) <= 1, (run, lane)
            assert sum(row["is_unfinished"] for row in runs.named(ranges, "batch")) <= 1, (run, lane)
        assert all(not runs.metadata(part)["damaged"] for part in runs.parts(run)), run


def test_the_kills_came_at_different_moments(killed):
    assert len({counters for _, counters in killed}) == JOBS
    assert any(row["is_unfinished"] for run, _ in killed for row in runs.named(runs.rows(run), "aten::erfinv"))
