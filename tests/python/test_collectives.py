"""What collectives carry: equal to what torch.profiler shows of the same program."""

import json
import math
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import runs
import torch

# Our keys, and torch.profiler's.
KEYS = {
    "name": "Collective name",
    "dtype": "dtype",
    "input_elements": "In msg nelems",
    "output_elements": "Out msg nelems",
    "input_split_sizes": "In split size",
    "output_split_sizes": "Out split size",
    "group": "Process Group Name",
    "group_description": "Process Group Description",
    "group_ranks": "Process Group Ranks",
    "group_size": "Group size",
    "rank": "Rank",
    "source_rank": "Src Rank",
    "destination_rank": "Dst Rank",
    "is_async": "Is asynchronized op",
    "sequence_number": "Seq",
}


def said(run, kind):
    """What the ranges of a kind say, with their names, in order of time."""
    rows = sorted(runs.rows(run), key=lambda row: row["start_ns"])
    rows = [row for row in rows if row["collective"] is not None and row["kind"] == kind]
    return [
        {"range": row["name"], "sequence_number": row["collective_sequence_number"], **json.loads(row["collective"])}
        for row in rows
    ]


def events(trace, prefix):
    found = json.loads(Path(trace).read_text())["traceEvents"]
    found = [event for event in found if event.get("ph") == "X" and event["name"].startswith(prefix)]
    return sorted(found, key=lambda event: event["ts"])


@pytest.fixture(scope="module")
def emitter(tmp_path_factory):
    """A library that announces collectives as NCCL's backend does: there is no GPU here."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    library = tmp_path_factory.mktemp("emitter") / "emit.so"
    root = Path(torch.__file__).parent
    flags = [
        "-std=c++20",
        "-DNDEBUG",
        "-shared",
        "-fPIC",
        f"-I{root}/include",
        f"-I{root}/include/torch/csrc/api/include",
    ]
    source = runs.PROGRAMS / "emit_collectives.cpp"
    command = [compiler, *flags, source, "-o", library, f"-L{root}/lib", "-ltorch_cpu", "-lc10"]
    built = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if built.returncode != 0:
        pytest.skip(f"cannot compile against this PyTorch: {built.stderr[-300:]}")
    return library


@pytest.mark.slow
def test_announced_collectives_say_what_torch_profiler_says(emitter, tmp_path):
    text = f"""
        import ctypes, torch, torch.distributed as distributed
        from torch.profiler import ProfilerActivity, profile
        distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
        emit = ctypes.CDLL({str(emitter)!r}).emit
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
            for which in range(5):
                emit(which)
        profiler.export_chrome_trace({str(tmp_path / "trace.json")!r})
    """
    run = tmp_path / "run"
    runs.record(run, runs.script(textwrap.dedent(text)))
    ours = [row for row in said(run, "op") if row["range"] == "record_param_comms"]
    theirs = [event["args"] for event in events(tmp_path / "trace.json", "record_param_comms")]
    assert len(ours) == len(theirs) == 5
    for our, their in zip(ours, theirs):
        compared = {ours_key: their.get(key) for ours_key, key in KEYS.items()}
        # What it shows as text is a list or a number all the same.
        compared = {key: plain(value) for key, value in compared.items() if value is not None}
        assert {key: plain(value) for key, value in our.items() if key != "range" and value is not None} == compared
    assert "capture.collectives_refused" not in runs.findings(run)
    assert "trace.collective_without_metadata" not in runs.findings(run)
    exported = tmp_path / "ours.json"
    runs.stepscope("convert", run, "-o", exported)
    exported = [event["args"] for event in events(exported, "record_param_comms")]
    keys = set(KEYS.values())
    assert [{key: args[key] for key in keys & set(args)} for args in exported] == [
        {key: args[key] for key in keys & set(args)} for args in theirs
    ]
    distributed = [
        json.loads(path.read_text())["distributedInfo"] for path in (tmp_path / "ours.json", tmp_path / "trace.json")
    ]
    assert distributed[0] == distributed[1]


def plain(value):
    """A value as text, as both write it."""
    if isinstance(value, bool):
        return str(int(value))
    return str(value).replace('"', "").strip()


def test_sizes_of_gloo_are_those_that_torch_profiler_shows(tmp_path):
    text = f"""
        import torch, torch.distributed as distributed
        from torch.profiler import ProfilerActivity, profile
        distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
        a, b = torch.ones(6, 2), torch.ones(7, dtype=torch.int64)
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
            distributed.all_reduce(a)
            distributed.broadcast(b, 0)
            distributed.all_gather([torch.zeros(6, 2)], a)
            distributed.all_reduce_coalesced([a, torch.ones(5)])
            distributed.all_reduce(a.half(), async_op=True).wait()
            distributed.barrier()
        group = distributed.distributed_c10d._get_default_group()
        print(group._get_sequence_number_for_group())
        profiler.export_chrome_trace({str(tmp_path / "trace.json")!r})
    """
    run = tmp_path / "run"
    recorded = runs.record(run, runs.script(textwrap.dedent(text)))
    ours = sorted(
        said(run, "label"), key=lambda row: (row["range"], row.get("input_elements", 0), row.get("dtype", ""))
    )
    theirs = [(event["name"], event["args"]) for event in events(tmp_path / "trace.json", "gloo:")]
    types = {"float": "Float", "long int": "Long", "c10::Half": "Half"}
    sizes = [
        (
            name,
            sum(math.prod(dims) for dims in args.get("Input Dims", ())),
            types.get(args.get("Input type", [""])[0], ""),
        )
        for name, args in theirs
    ]
    assert [(row["range"], row.get("input_elements", 0), row.get("dtype", "")) for row in ours] == sorted(sizes)
    numbers = [row["sequence_number"] for row in said(run, "op")]
    assert numbers == list(range(1, int(recorded.stdout.split()[-1]) + 1))


def test_works_of_several_groups_say_which_one_and_their_number(tmp_path):
    run = tmp_path / "run"
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2]
    recorded = runs.record(run, [*launcher, runs.PROGRAMS / "groups.py"])
    told = [json.loads(line) for line in recorded.stdout.splitlines() if line.startswith("{")]
    assert len(told) == 2
    for of_rank in told:
        parts = [part for part in runs.parts(run) if runs.metadata(part)["rank"] == of_rank["rank"]]
        rows = [row for part in parts for row in runs.pyarrow.parquet.read_table(part, partitioning=None).to_pylist()]
        rows = [row for row in rows if row["name"].startswith(("c10d::", "gloo:"))]
        rows.sort(key=lambda row: row["start_ns"])
        said = [
            (row["name"], json.loads(row["collective"])["group"], row["collective_sequence_number"]) for row in rows
        ]
        issued = [(group, number) for name, group, number in said if name.startswith("c10d::")]
        works = [(group, number) for name, group, number in said if name.startswith("gloo:")]
        # The program waits for each collective in the first part; in the second several are under way at once.
        expected = [tuple(pair) for pair in of_rank["expected"]]
        one_by_one = of_rank["one_by_one"]
        assert issued == expected and works[:one_by_one] == expected[:one_by_one]
        assert sorted(group for group, _ in works) == sorted(group for group, _ in expected)
        assert {work for work in works if work[1] is not None} <= set(expected)
        # Once all have begun they are certain again.
        assert works[-3:] == expected[-3:]


@pytest.mark.parametrize("count, has_ranks", [(4, True), (60, False), (200, False)])
def test_many_groups_are_listed_as_far_as_a_fact_goes(count, has_ranks, monkeypatch):
    from stepscope import _collectives

    monkeypatch.setattr(_collectives._state, "refusals", [])
    monkeypatch.setattr(_collectives._state, "is_refusal_printed", True)
    group = {"description": "dp", "backend_config": "cpu:gloo", "size": 64, "ranks": list(range(64))}
    text = _collectives._as_fact([{"name": str(number), **group} for number in range(count)])
    listed = json.loads(text)
    assert len(text) <= 8192 and [one["name"] for one in listed] == [str(number) for number in range(len(listed))]
    assert ("ranks" in listed[0]) == has_ranks == (not _collectives._state.refusals)
    assert len(listed) == count or (count == 200 and len(listed) > 50)


def test_a_job_without_groups_runs_no_op_of_ours(tmp_path):
    run = tmp_path / "run"
    runs.record(run, [sys.executable, "-c", "import torch; torch.ones(2).neg()"])
    assert {row["name"] for row in runs.ops(run)} <= {"aten::ones", "aten::empty", "aten::fill_", "aten::neg"}
    (part,) = runs.parts(run)
    assert not {"process_groups", "collectives_refused"} & set(runs.metadata(part)["facts"])
