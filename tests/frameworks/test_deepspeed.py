"""Jobs of DeepSpeed have the steps that its engine counts, with its own words for what is done in them."""

import json
import os
import re
import shlex
import signal
import socket
import sys
from collections import Counter
from pathlib import Path

import pytest
import runs

PROGRAM = Path(__file__).with_name("programs") / "deepspeed_job.py"


def record(run, *arguments, start=runs.forked):
    """Record the job; gives what the engine counted."""
    told = runs.stepscope("record", "-o", run, "--", *start(PROGRAM, *arguments))
    return json.loads(told.stdout.splitlines()[-1])


def steps_of(run):
    found = runs.analyze("step_breakdown", run)["results"]
    assert {row["source"] for row in found if row["step"] is not None} == {"label"}
    return [row["step"] for row in found if row["step"] is not None and row["is_complete"]]


@pytest.mark.parametrize(
    "start, stage, accumulated, words, calls",
    [
        (runs.new_program, 0, 1, [], 1),
        # As often as there are groups of parameters, or parts of them.
        (runs.forked, 1, 2, [], 2),
        (runs.forked, 2, 1, [], 2),
        (runs.forked, 3, 2, [], None),
        (runs.forked, 1, 1, ["overflow"], None),
        (runs.forked, 1, 1, ["critic"], None),
    ],
)
def test_steps_are_those_of_the_engine(tmp_path, start, stage, accumulated, words, calls):
    run = tmp_path / "run"
    counted = record(run, stage, accumulated, 8, *words, start=start)
    assert counted["steps"] == 8 // accumulated
    assert steps_of(run) == list(range(counted["steps"]))
    rows = runs.rows(run)
    engines = 2 if "critic" in words else 1
    labels = Counter(row["name"] for row in rows if row["kind"] == "label")
    assert {name: labels[name] for name in ("fwd", "bwd", "bwd_allreduce", "step")} == dict.fromkeys(
        ("fwd", "bwd", "bwd_allreduce", "step"), 8 * engines
    )
    assert labels["train micro-step"] == counted["micro"] - counted["steps"]
    if calls is not None:
        assert labels["Optimizer.step#AdamW.step"] == calls * counted["steps"]
    # What an optimizer does is in its step of the engine, which is in the step.
    if "overflow" in words:
        assert 0 < counted["skipped"] < 8
        assert labels["Optimizer.step#AdamW.step"] < 2 * counted["steps"]
    assert not any(row["is_unfinished"] for row in rows if row["kind"] == "label")


def test_a_backward_pass_that_the_engine_does_not_begin_is_labelled(tmp_path):
    run = tmp_path / "run"
    counted = record(run, 1, 2, 8, "plain")
    rows = runs.rows(run)
    assert len(runs.named(rows, "bwd")) == len(runs.named(rows, "bwd_allreduce")) == 8
    assert not any(row["is_unfinished"] for row in runs.named(rows, "bwd"))
    assert steps_of(run) == list(range(counted["steps"]))


def test_what_zero_does_is_labelled_by_its_own_names(tmp_path):
    run = tmp_path / "run"
    counted = record(run, 3, 1, 4)
    labels = [row for row in runs.rows(run) if row["kind"] == "label"]
    names = Counter(row["name"] for row in labels)
    # The step of the optimizer is marked once a step, fetching once a module and pass.
    assert names["DeepSpeedZeroOptimizer_Stage3.step"] == counted["steps"] == 4
    assert names["PartitionedParameterCoordinator.fetch_sub_module"] >= 4 * 2 * 2
    assert names["reduce_partition_and_remove_grads"] == 4 * 4
    assert not any("<locals>" in name or name.startswith("DeepSpeedEngine") for name in names)
    # What is entered for each parameter is a part of these.
    assert "PartitionedParameterCoordinator.release_sub_module" in names
    assert not any(name.endswith(("__release_param", "_partition_param", "free_param")) for name in names)
    assert not any(row["is_unfinished"] for row in labels)
    phases = [row for row in labels if row["name"] in ("fwd", "bwd")]
    fetches = runs.named(labels, "PartitionedParameterCoordinator.fetch_sub_module")
    assert all(any(runs.contains(phase, fetch) for phase in phases) for fetch in fetches)


def test_a_range_that_an_error_leaves_open_ends_with_the_method(tmp_path):
    text = """
import torch
from stepscope import _deepspeed, _deepspeed_ranges
class Accelerator:
    pushed = 0
    def range_push(self, name):
        self.pushed += 1
    def range_pop(self):
        self.pushed -= 1
accelerator = Accelerator()
_deepspeed_ranges.watch(accelerator)
_deepspeed_ranges.watch(accelerator)
class Engine:
    def method(self):
        accelerator.range_push("outer.<locals>.fails")
        raise ValueError
_deepspeed._wrap(Engine, "method", lambda function, engine: function(engine))
accelerator.range_push("around")
for _ in range(2):
    try:
        Engine().method()
    except ValueError:
        torch.erfinv(torch.zeros(2))
accelerator.range_pop()
accelerator.range_pop()
torch.erfinv(torch.zeros(2))
print(accelerator.pushed)
"""
    run = tmp_path / "run"
    assert runs.stepscope("record", "-o", run, "--", *runs.forked("-c", text)).stdout == "1\n"
    rows = runs.rows(run)
    assert [len(runs.named(rows, name)) for name in ("around", "fails")] == [1, 2]
    pairs = [(parent and parent["name"], row["name"]) for parent, row in runs.with_parents(rows)]
    assert [parent for parent, name in pairs if name == "aten::erfinv"] == ["around", "around", None]


def test_a_batch_of_a_pipeline_is_a_step(tmp_path):
    run = tmp_path / "run"
    assert record(run, 0, 2, 10, "pipeline") == {"steps": 5}
    assert steps_of(run) == list(range(5))
    labels = Counter(row["name"] for row in runs.rows(run) if row["kind"] == "label")
    assert (labels["train_batch"], labels["fwd"], labels["bwd"], labels["train micro-step"]) == (5, 10, 10, 0)
    assert labels["step"] == 5


PAGE = Path(__file__).parents[2] / "docs" / "deepspeed-tutorial.md"


def commands_of_the_page(program, folder):
    """The commands of the page on the tutorial, with this program and with its runs in this folder."""
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(), flags=re.DOTALL | re.MULTILINE)
    for line in "".join(blocks).splitlines():
        name, *words = shlex.split(line.replace("python train.py", shlex.join(map(str, program))), comments=True)
        assert name == "stepscope"
        yield [str(folder / word) if word.startswith(("RUN", "train.json")) else word for word in words]


@pytest.mark.slow
def test_its_tutorial_as_it_stands(tmp_path):
    record, *commands = commands_of_the_page(runs.forked(PROGRAM, "1", "2", "32", "tutorial"), tmp_path)
    told = runs.stepscope(*record, cwd=tmp_path)
    assert json.loads(told.stdout.splitlines()[-1]) == {"steps": 16}
    assert "tensorboard_trace_handler was given without a folder" in told.stderr
    # Two cycles of six batches, which are three steps.
    assert len(list((tmp_path / "RUN-traces").glob("*.pt.trace.json"))) == 2
    assert "model_forward" in told.stdout
    assert steps_of(tmp_path / "RUN") == list(range(16))
    # Every command of the page runs, and has rows to show where the job has what it is about: there is no GPU.
    is_empty = {}
    for command in commands:
        if command[0] == "view":
            with runs.started(runs.COMMAND, *command, "--no-browser") as viewing:
                assert viewing.stdout.readline().startswith("http://127.0.0.1:")
                viewing.send_signal(signal.SIGINT)
                assert viewing.wait() == 0
            continue
        shown = runs.stepscope(*command).stdout
        if command[0] == "analyze":
            is_empty[command[1]] = not json.loads(runs.stepscope(*command, "--json").stdout)["results"]
        else:
            assert shown or command[0] == "convert"
    assert (tmp_path / "train.json.gz").stat().st_size > 0
    assert {name for name, empty in is_empty.items() if empty} <= {"advice", "idle_causes", "kernels"}
    assert len(is_empty) >= 9


def test_settings_that_change_what_is_measured_are_told(tmp_path):
    record(tmp_path / "run", 1, 1, 2, "disturbed")
    finding = runs.findings(tmp_path / "run")["capture.disturbed"]
    assert finding["count"] == 4
    for setting in ("comms_logger", "wall_clock_breakdown", "memory_breakdown", "flops_profiler"):
        assert f"DeepSpeed's {setting}" in str(finding["examples"])


def test_a_release_that_is_not_known_runs_on_and_is_told(tmp_path):
    # As one in which the engine has lost a method.
    changed = "import deepspeed.runtime, sys, types\n"
    changed += "module = types.ModuleType('deepspeed.runtime.engine'); module.DeepSpeedEngine = type('E', (), {})\n"
    changed += "import torch; from stepscope import _frameworks; sys.modules[module.__name__] = module\n"
    changed += "_frameworks.watch(); torch.erfinv(torch.zeros(4))\n"
    run = tmp_path / "run"
    told = runs.stepscope("record", "-o", run, "--", *runs.forked("-c", changed))
    assert "not recording steps and phases of deepspeed" in told.stderr
    assert "capture.framework_refused" in runs.findings(run)


def test_some_of_its_steps_are_recorded(tmp_path):
    run = tmp_path / "run"
    command = ["--every", "4", "--for", "1", "--", *runs.forked(PROGRAM, "1", "2", "24")]
    runs.stepscope("record", "-o", run, *command)
    assert steps_of(run) == [3, 7, 11]
    assert len(runs.named(runs.rows(run), "fwd")) == 6


PDSH = """#!/bin/sh
# Runs the command for each host with no more of this environment than a login shell has there.
while [ "$1" != -w ]; do shift; done
hosts=$2
shift 2
number=0
for host in $(echo "$hosts" | tr , ' '); do
    env -i "PATH=$PATH" "HOME=$HOME" sh -c "$(echo "$*" | sed "s/%n/$number/")" &
    number=$((number + 1))
done
wait
"""

RANK = """
import sys, torch
torch.distributed.init_process_group("gloo")
torch.erfinv(torch.zeros(4))
torch.distributed.barrier()
torch.distributed.destroy_process_group()
"""


def test_its_launcher_takes_the_recording_to_other_nodes(tmp_path):
    pdsh = tmp_path / "bin/pdsh"
    pdsh.parent.mkdir()
    pdsh.write_text(PDSH)
    pdsh.chmod(0o755)
    (tmp_path / "hosts").write_text("node-a slots=1\nnode-b slots=1\n")
    (tmp_path / ".deepspeed_env").write_text("OF_USER=1\n\n")
    (tmp_path / "rank.py").write_text(RANK + "import os\nassert os.environ['OF_USER'] == '1'\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    launcher = [sys.executable, Path(sys.executable).with_name("deepspeed"), "--hostfile", "hosts", "--no_ssh_check"]
    launcher += ["--master_addr", "127.0.0.1", "--master_port", port, "--launcher", "pdsh", "rank.py"]
    changes = {"PATH": f"{pdsh.parent}:{os.environ['PATH']}", "DS_ACCELERATOR": "cpu", "HOME": str(tmp_path / "home")}
    command = ["record", "--steps", "0..", "--shapes", "-o", "run", "--", *launcher]
    runs.stepscope(*command, cwd=tmp_path, env=runs.environment(**changes))
    rows = runs.named(runs.rows(tmp_path / "run"), "aten::erfinv")
    assert sorted(row["process_name"] for row in rows) == ["rank.py"] * 2
    assert all(row["inputs"] for row in rows)
    known = [runs.metadata(part) for part in runs.parts(tmp_path / "run")]
    assert {(facts["rank"], facts["facts"].get("node_rank")) for facts in known} >= {(0, "0"), (1, "1")}
