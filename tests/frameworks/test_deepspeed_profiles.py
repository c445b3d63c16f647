"""What DeepSpeed's own profilers count, beside what a recording has of the same work."""

import json
import re
import statistics
import sys
from pathlib import Path

import pytest
import runs

PROGRAM = Path(__file__).with_name("programs") / "deepspeed_profiles.py"


def one_process():
    """The environment of a job of one process, which DeepSpeed asks for."""
    # It listens wherever it can.
    names = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_SIZE": "1"}
    return {**names, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0", "DS_ACCELERATOR": "cpu"}


@pytest.fixture(scope="module")
def profiled(tmp_path_factory):
    """For each model a run, and what the flops profiler counted."""
    folder = tmp_path_factory.mktemp("flops")
    told = runs.execute(*runs.forked(PROGRAM, "flops", folder))
    return {model: (folder / model, counted) for model, counted in json.loads(told.stdout.splitlines()[-1]).items()}


@pytest.mark.slow
@pytest.mark.parametrize("model", ["small", "llama"])
def test_modules_have_the_parameters_and_multiplications_of_the_flops_profiler(profiled, model):
    run, counted = profiled[model]
    rows = runs.analyze("modules", run)["results"]
    root = rows[0]["path"]
    found = {row["path"].removeprefix(root).removeprefix("."): row for row in rows}
    # A list of modules is never called. A module in two places has a row for each call.
    shared = {"blocks.0.tied", "blocks.1.Net.blocks.0.tied"}
    lists = {"blocks", "model.layers"}
    assert {*found} - shared == {*counted} - shared - lists - {"blocks.1.tied"}
    for path, (parameters, macs, flops) in counted.items():
        if path not in lists and not path.endswith("tied"):
            assert found[path]["parameters"] == parameters, path
            # The profiler adds up both calls of the shared module at both places.
            twice = 24576 if re.fullmatch(r"blocks\.\d", path) else 0
            assert found[path]["forward_macs"] == macs - twice, path
            # Of other operations than products, the profiler counts none, or one an element where we count more.
            if found[path]["module_class"] == "Linear":
                # The input of this one is transposed: its bias is added by an operation of its own.
                apart = 2 * 12 * 10 if (model, path) == ("small", "head") else 0
                assert found[path]["forward_flops"] == flops + apart, path
    # The backward pass of a matrix product is two of them, but for inputs and weights that need no gradient.
    linear = found["lm_head" if model == "llama" else "head"]
    assert linear["backward_flops"] == 4 * linear["forward_macs"]
    assert found[""]["forward_ns"] > 0 and found[""]["forward_ratio"] == found[""]["parameters_ratio"] == 1
    if model == "small":
        assert found[""]["trainable_parameters"] == found[""]["parameters"] - 2112


def test_classes_of_a_depth_are_listed_as_the_flops_profiler_lists_them(profiled):
    run, _ = profiled["llama"]
    asked = ["--group-by", "class", "--depth", "3", "--top", "1"]
    rows = runs.analyze("modules", run, *asked)["results"]
    # By parameters the layers are first, at the next depth their networks, by multiplications, too.
    by_depth = {depth: [row for row in rows if row["depth"] == depth] for depth in range(4)}
    assert [row["module_class"] for row in by_depth[2] if row["parameters"] == 15488] == ["LlamaDecoderLayer"]
    assert [(row["modules"], row["forward_macs"]) for row in by_depth[3] if row["module_class"] == "LlamaMLP"] == [
        (2, 294912)
    ]
    assert all(1 <= len(of_depth) <= 3 for of_depth in by_depth.values()) and len(rows) == sum(
        map(len, by_depth.values())
    )


@pytest.mark.slow
def test_collectives_have_the_counts_and_rates_of_the_comms_logger(tmp_path, monkeypatch):
    import deepspeed.comm
    from deepspeed.utils.comms_logging import calc_bw_log
    from deepspeed.utils.timer import trim_mean

    run = tmp_path / "run"
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*launcher, "--redirects", "0:0,1:0", PROGRAM, "comms"]
    told = runs.stepscope("record", "-o", run, "--", *command, env={"DS_ACCELERATOR": "cpu"})
    logged = {of["rank"]: of["logged"] for of in map(json.loads, re.findall(r'\{"rank".*?\}\}\}\}', told.stdout))}
    table = runs.analyze("collectives", run, "--compat", "deepspeed")["results"]
    words = {"all_gather_into_tensor": "all_gather", "reduce_scatter_tensor": "reduce_scatter"}
    words |= {"all_to_all_single": "all_to_all", "recv": "receive"}
    for rank in (0, 1):
        expected = {
            # Their barrier after the last one is not logged any more.
            (words.get(name, name), int(size)): row["count"] + (name == "barrier")
            for name, of_name in logged[rank].items()
            for size, row in of_name.items()
        }
        assert {(row["name"], row["message_bytes"]): row["count"] for row in table if row["rank"] == rank} == expected
    # The logger's formulas on the same latencies give the same rates.
    monkeypatch.setattr(deepspeed.comm, "get_world_size", lambda: 2)
    # A rank may have helpers of its own, which are recorded too.
    of_parts = [runs.metadata(part) for part in runs.parts(run)]
    pids = {part["pid"] for part in of_parts if part["rank"] == 0}
    rows = [row for row in runs.rows(run) if row["pid"] in pids]
    for name, size, works in (("all_reduce", 4000, "all_reduce"), ("all_gather_into_tensor", 1600, "all_gather")):
        took_ms = [
            row["dur_ns"] / 1e6
            for row in rows
            if row["name"] == f"gloo:{works}" and json.loads(row["collective"])["input_elements"] == size // 4
        ]
        rates = [calc_bw_log(name, size, ms) for ms in took_ms]
        [row] = [row for row in table if (row["rank"], row["message_bytes"]) == (0, size)]
        assert row["count"] == len(took_ms)
        assert row["mean_ns"] == pytest.approx(trim_mean(took_ms, 0.1) * 1e6, abs=1)
        assert row["throughput_gbit_per_s"] == pytest.approx(trim_mean([rate for rate, _ in rates], 0.1))
        assert row["bus_gbit_per_s"] == pytest.approx(trim_mean([bus for _, bus in rates], 0.1))
        # Waiting for the other rank is what is left.
        assert row["straggler_ns"] == row["total_ns"] - row["communication_ns"] >= 0


@pytest.mark.slow
def test_phases_take_what_the_timers_say(tmp_path):
    run = tmp_path / "run"
    told = runs.stepscope("record", "-o", run, "--", *runs.forked(PROGRAM, "timers"), env=one_process())
    printed = r"time \(ms\) \| fwd: ([\d.]+) \| bwd: ([\d.]+) .*\| bwd_allreduce: ([\d.]+) \| step: ([\d.]+)"
    lines = re.findall(printed, told.stdout + told.stderr)
    assert len(lines) == 7
    labels = [row for row in runs.rows(run) if row["kind"] == "label"]
    for at, phase in enumerate(("fwd", "bwd", "bwd_allreduce", "step")):
        ours = [row["dur_ns"] / 1e6 for row in runs.named(labels, phase)]
        of_steps = [ours[2 * step] + ours[2 * step + 1] for step in range(7)]
        # What the engine does around this timer takes a tenth of a millisecond a batch.
        around_ms = 0.3 if phase == "bwd_allreduce" else 0
        theirs = [float(line[at]) for line in lines]
        off = [max(abs(ours_ms - theirs_ms) - around_ms, 0) / theirs_ms for ours_ms, theirs_ms in zip(of_steps, theirs)]
        assert statistics.median(off) <= 0.02, (phase, of_steps, theirs)
