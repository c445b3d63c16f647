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


def test_samples_of_stacks_are_moments_with_their_stack_in_perfetto_and_in_chrome_json(tmp_path):
    frames = {
        "1": {"name": "train.py(40): <module>"},
        "2": {"name": "train.py(12): step", "parent": 1},
        "3": {"name": "<built-in function sleep>", "parent": 2},
    }
    stacks = {
        2: [("<module>", "train.py", 40), ("step", "train.py", 12)],
        3: [("<module>", "train.py", 40), ("step", "train.py", 12), ("<built-in function sleep>", None, None)],
    }
    sampled = [(10.5, 2), (20.501, 3), (30.25, 2)]
    samples = [
        {"ph": "P", "name": "sample", "pid": 9, "tid": 9, "ts": at, "sf": frame, "args": {"Stepscope": "sleep"}}
        for at, frame in sampled
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": EVENTS + samples, "stackFrames": frames}))
    first = min(event["ts"] for event in EVENTS)
    expected = [(round((at - first) * 1000), stacks[frame]) for at, frame in sampled]
    assert samples_of_perfetto(convert(path, "a.pftrace")) == {(9, 9): expected}
    assert totals_of_perfetto(tmp_path / "a.pftrace") == totals_of_chrome(convert(path, "a.json.gz"))
    with gzip.open(tmp_path / "a.json.gz", "rt") as file:
        again = json.load(file)
    events = [event for event in again["traceEvents"] if event["ph"] == "P"]
    assert [event["args"]["Stepscope"] for event in events] == ["sleep"] * 3
    assert not any("dur" in event for event in events)
    names = []
    for event in events:
        frame, names_of = again["stackFrames"][str(event["sf"])], []
        while frame:
            names_of.append(frame["name"])
            frame = again["stackFrames"].get(str(frame.get("parent")))
        names.append(names_of)
    assert names[1] == [frames[number]["name"] for number in ("3", "2", "1")]
    rows = duckdb.sql(f"SELECT time_ns, line, stack FROM '{convert(path, 'tables')}/sample/*.parquet'").fetchall()
    assert rows == [(at, stack[0], ";".join(stack)) for (at, _), stack in zip(expected, names)]


def samples_of_perfetto(path):
    """Time and frames, outermost first, of the samples of each thread, with Perfetto's own description of its format."""
    trace = perfetto_trace_pb2.Trace()
    trace.ParseFromString(path.read_bytes())
    functions, files, frames, callstacks, found = {}, {}, {}, {}, collections.defaultdict(list)
    for packet in trace.packet:
        if packet.trusted_packet_sequence_id != 2:
            continue
        interned = packet.interned_data
        functions.update((entry.iid, entry.str.decode()) for entry in interned.function_names)
        files.update((entry.iid, entry.str.decode()) for entry in interned.source_paths)
        for frame in interned.frames:
            line = frame.line_number if frame.HasField("line_number") else None
            frames[frame.iid] = (functions[frame.function_name_id], files.get(frame.source_path_iid), line)
        callstacks.update((entry.iid, list(entry.frame_ids)) for entry in interned.callstacks)
        if packet.HasField("stack_sample"):
            sample = packet.stack_sample
            assert sample.primary_weight == 1
            stack = [frames[frame] for frame in callstacks[sample.callstack_iid]]
            found[sample.task_context.pid, sample.task_context.tid].append((packet.timestamp, stack))
        elif packet.HasField("trace_packet_defaults"):
            defaults = packet.trace_packet_defaults.stack_sample_defaults
            assert (defaults.source, defaults.primary_descriptor.name) == ("stepscope.python", "samples")
            assert defaults.primary_descriptor.unit == perfetto_trace_pb2.StackSample.UNIT_COUNT
    return dict(found)


def test_tables_join(trace):
    tables = convert(trace, "tables")
    rows = duckdb.sql(
        f"SELECT kernel.name, launch.name FROM '{tables}/kernel/*.parquet' AS kernel "
        f"JOIN '{tables}/slice/*.parquet' AS launch ON kernel.launch = launch.slice"
    ).fetchall()
    assert rows == [("gemm", "cudaLaunchKernel")]
    schema = pyarrow.parquet.read_schema(tables / "slice" / "rank-0.parquet")
    assert schema.field("name").type == pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    assert schema.field("dur_ns").metadata == {b"stepscope.unit": b"ns", b"stepscope.doc": b"How long it takes."}
    about = json.loads(pyarrow.parquet.read_metadata(tables / "slice" / "rank-0.parquet").metadata[b"stepscope"])
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
