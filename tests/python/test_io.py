"""What is said of files is what a slow count of DFTracer's own rows finds."""

import gzip
import json
from collections import defaultdict
from fractions import Fraction
from statistics import median_low

import pytest
import stepscope as package

#: Traces of some dialects, with the nanoseconds of their unit of time and the calls on files in them.
TRACES = [
    ("wheel-1.0.4.pfw", 1000, 88),
    ("wheel-1.0.5.pfw", 1000, 88),
    ("wheel-1.0.9.pfw", 1000, 88),
    ("wheel-2.2.0", 1000, 88),
    ("wheel-2.2.0-ns.pfw.gz", 1, 66),
]
#: What starts, ends or awaits a process is no call on a file.
NO_FILES = {"fork", "vfork", "waitpid", "wait", "wait4", "execve", "_exit"}


class Call:
    """One row of the source."""

    def __init__(self, row, unit_ns, files):
        self.row = row
        self.name = row["name"]
        self.start = int(row["ts"]) * unit_ns
        self.dur = int(row["dur"]) * unit_ns
        self.end = self.start + self.dur
        args = row["args"]
        self.file = args.get("fname") or files.get(str(args.get("fhash")))
        self.does = next((does for does in ("read", "write", "open") if does in self.name), "other")
        moved = args.get("ret", args.get("count"))
        self.bytes = max(int(moved), 0) if self.does in ("read", "write") else 0


def rows_of(path):
    # Beside traces that are looked at there is a folder of what is kept of them.
    for file in sorted(entry for entry in path.iterdir() if entry.is_file()) if path.is_dir() else [path]:
        read = gzip.open if file.suffix == ".gz" else open
        with read(file, "rt") as lines:
            for line in lines:
                text = line.strip().rstrip(",")
                if text.startswith("{"):
                    yield json.loads(text)


def calls_of(path, unit_ns):
    """Its calls on files, and when it begins."""
    rows = list(rows_of(path))
    names = [row["args"] for row in rows if row["name"] == "FH"]
    files = {str(args["value"]): args["name"] for args in names}
    timed = [row for row in rows if str(row["ph"]) in ("X", "1") and "ts" in row]
    calls = [row for row in timed if row["cat"] in ("POSIX", "STDIO") and row["name"] not in NO_FILES]
    begin = min(int(row["ts"]) * unit_ns for row in timed)
    return [Call(row, unit_ns, files) for row in calls], begin


@pytest.fixture(params=TRACES, ids=lambda trace: trace[0])
def counted(request, checkout):
    name, unit_ns, count = request.param
    path = checkout / "tests/fixtures/dftracer" / name
    calls, begin = calls_of(path, unit_ns)
    assert len(calls) == count
    return package.open(path), calls, begin


def test_files(counted):
    run, calls, begin = counted
    by_file = defaultdict(list)
    for call in calls:
        by_file[call.file].append(call)
    found = {row["file"]: row for row in run.io_files()["results"]}
    assert set(found) == set(by_file)
    for file, calls in by_file.items():
        row = found[file]
        of = {does: [call for call in calls if call.does == does] for does in ("read", "write", "open", "other")}
        assert (row["count"], row["opens"]) == (len(calls), len(of["open"]))
        assert [row[name] for name in ("reads", "writes", "others")] == [
            len(of[does]) for does in ("read", "write", "other")
        ]
        assert row["unsized"] == 0
        assert row["total_ns"] == sum(call.dur for call in calls)
        for does in ("read", "write"):
            moved, time = sum(call.bytes for call in of[does]), sum(call.dur for call in of[does])
            assert (row[f"{does}_bytes"], row[f"{does}_ns"]) == (moved, time)
            rate = round_half_up(Fraction(moved * 10**9, time)) if time and of[does] else None
            assert row[f"{does}_bytes_per_s"] == rate
        sizes = [call.bytes for call in of["read"] + of["write"] if call.bytes > 0]
        assert row["request_bytes_min"] == min(sizes)
        assert row["request_bytes_median"] == median_low(sizes)
        assert row["request_bytes_max"] == max(sizes)
        longest = max(call.dur for call in calls)
        first = min((call for call in calls if call.dur == longest), key=lambda call: call.start)
        assert row["longest_ns"] == longest
        assert row["longest_start_ns"] == first.start - begin


def test_processes_and_files_sum_to_the_same(counted):
    run, calls, _ = counted
    files, processes = run.io_files()["results"], run.io_files(group_by="process")["results"]
    for name in ("count", "opens", "reads", "writes", "others", "read_bytes", "write_bytes", "total_ns"):
        assert sum(row[name] for row in processes) == sum(row[name] for row in files)
    assert {row["is_helper"] for row in processes} <= {True, False}
    assert sum(row["files"] for row in processes) >= len(files)


@pytest.mark.parametrize("bucket_ms", [0.05, 1, 1000])
def test_curve(counted, bucket_ms):
    run, calls, begin = counted
    rows = run.io_curve(bucket_ms=bucket_ms)["results"]
    width = int(bucket_ms * 1_000_000)
    assert len({row["rank"] for row in rows}) == 1
    assert rows[0]["start_ns"] == min(call.start for call in calls) - begin
    assert sum(row["count"] for row in rows) == len(calls)
    for does in ("read", "write"):
        moved = sum(call.bytes for call in calls if call.does == does)
        assert sum(row[f"{does}_bytes"] for row in rows) == moved
    for row in rows:
        start, end = row["start_ns"] + begin, row["start_ns"] + row["span_ns"] + begin
        for does in ("read", "write"):
            expected = sum(share(call, start, end, begin, width) for call in calls if call.does == does)
            # Each bucket is rounded where it begins and where it ends.
            assert abs(row[f"{does}_bytes"] - expected) <= 1
            assert row[f"{does}_ns"] == covered([call for call in calls if call.does == does], start, end)
        assert row["busy_ns"] == covered(calls, start, end)
        assert row["exposed_ns"] is None


def share(call, start, end, begin, width):
    """The bytes of a call that come between two moments."""
    if call.dur == 0:
        return call.bytes * ((call.start - begin) // width == (start - begin) // width)
    return Fraction(call.bytes * max(0, min(call.end, end) - max(call.start, start)), call.dur)


def covered(calls, start, end):
    """The time between two moments in which any call runs."""
    total, at = 0, start
    for call in sorted(calls, key=lambda call: call.start):
        from_, to = max(call.start, at), min(call.end, end)
        if to > from_:
            total += to - from_
            at = to
    return total


def round_half_up(value):
    return int(value + Fraction(1, 2))
