"""What ``stepscope convert`` writes is read by the programs that it is for, with the same numbers."""

import collections
import gzip
import json

import duckdb
import pyarrow.parquet
import pytest
import runs
from perfetto.protos.perfetto.trace import perfetto_trace_pb2

BEGIN, END = 1, 2
EVENTS = [
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 9, "ts": 10.5, "dur": 30.001},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": 20, "dur": 2,
     "args": {"correlation": 4}},
    {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 30, "dur": 50,
     "args": {"correlation": 4, "device": 0, "stream": 7, "grid": [4, 2, 1], "block": [128, 1, 1]}},
]  # fmt: skip


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": EVENTS}))
    return path


def convert(trace, name):
    out = trace.parent / name
    runs.stepscope("convert", trace, "-o", f"{out}/" if "." not in name else out)
    return out


def totals(rows):
    """(count, nanoseconds) by name."""
    found = collections.defaultdict(lambda: (0, 0))
    for name, ns in rows:
        found[name] = (found[name][0] + 1, found[name][1] + ns)
    return dict(found)


def totals_of_perfetto(path):
    """The same, read with Perfetto's own description of its format."""
    trace = perfetto_trace_pb2.Trace()
    trace.ParseFromString(path.read_bytes())
    names, stacks, rows = {}, collections.defaultdict(list), []
    for packet in trace.packet:
        names.update((entry.iid, entry.name) for entry in packet.interned_data.event_names)
        event = packet.track_event
        if packet.HasField("track_event") and event.type == BEGIN:
            stacks[event.track_uuid].append((event.name_iid, packet.timestamp))
        elif packet.HasField("track_event") and event.type == END:
            iid, start = stacks[event.track_uuid].pop()
            rows.append((names[iid], packet.timestamp - start))
    assert not any(stacks.values())
    return totals(rows)


def totals_of_chrome(path):
    with gzip.open(path, "rt") as file:
        events = json.load(file)["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    return totals((event["name"].removeprefix("nn.Module: "), round(event["dur"] * 1000)) for event in slices)


def totals_of_parquet(path):
    return totals(duckdb.sql(f"SELECT name, dur_ns FROM '{path}'").fetchall())


def test_every_format_has_the_same_totals(trace):
    expected = {"aten::mm": (1, 30_001), "cudaLaunchKernel": (1, 2_000), "gemm": (1, 50_000)}
    assert totals_of_perfetto(convert(trace, "a.pftrace")) == expected
    assert totals_of_chrome(convert(trace, "a.json.gz")) == expected
    assert totals_of_parquet(convert(trace, "a.parquet")) == expected


def test_a_recorded_run_has_the_same_totals(training, tmp_path):
    for name in ("a.pftrace", "a.json.gz", "a.parquet"):
        runs.stepscope("convert", training, "-o", tmp_path / name)
    expected = totals_of_parquet(tmp_path / "a.parquet")
    assert totals_of_perfetto(tmp_path / "a.pftrace") == totals_of_chrome(tmp_path / "a.json.gz") == expected
    ops = duckdb.sql(f"SELECT name, count(*) FROM '{tmp_path / 'a.parquet'}' WHERE kind = 'op' GROUP BY name")
    parts = ", ".join(f"'{part}'" for part in runs.parts(training))
    recorded = duckdb.sql(f"SELECT name, count(*) FROM read_parquet([{parts}]) WHERE kind = 'op' GROUP BY name")
    assert dict(ops.fetchall()) == dict(recorded.fetchall())


def test_tables_join(trace):
    tables = convert(trace, "tables")
    rows = duckdb.sql(
        f"SELECT kernel.name, launch.name FROM '{tables}/device_events.parquet' AS kernel "
        f"JOIN '{tables}/slices.parquet' AS launch ON kernel.launch = launch.slice"
    ).fetchall()
    assert rows == [("gemm", "cudaLaunchKernel")]
    schema = pyarrow.parquet.read_schema(tables / "slices.parquet")
    assert schema.field("name").type == pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    about = json.loads(pyarrow.parquet.read_metadata(tables / "slices.parquet").metadata[b"stepscope"])
    assert about["run"] == "trace"


def test_a_result_as_parquet(trace, tmp_path):
    runs.stepscope("analyze", "kernels", trace, "--parquet", tmp_path / "kernels.parquet")
    rows = pyarrow.parquet.read_table(tmp_path / "kernels.parquet").to_pylist()
    assert rows == runs.analyze("kernels", trace)["results"]


def test_a_page_opens_offline(trace, tmp_path):
    runs.stepscope("report", trace, "--html", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "<svg" in page and "gemm" in page
    assert "http" not in page and "<script" not in page
