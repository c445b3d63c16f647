"""What goes wrong in our part of a framework's loop is told, and the training goes on."""

import json
import re
from pathlib import Path

import pytest
import runs

PROGRAMS = Path(__file__).with_name("programs")

WRONG = """
import runpy, sys
from stepscope import _steps
def fails(*_args, **_kwargs):
    raise LookupError("on purpose")
_steps.step_ended = fails
if sys.argv[1].endswith("lightning_job.py"):
    from stepscope import lightning
    class Label:
        def __init__(self, name):
            name.endswith("training_step") and fails()
        def __enter__(self):
            pass
        __exit__ = fails
    lightning.annotate, lightning.OwnRun.begin, lightning.OwnRun.end = Label, fails, fails
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "framework, words, counted",
    [
        ("deepspeed", ["deepspeed_job.py", "1", "2", "8"], {"steps": 4, "micro": 8, "skipped": 0}),
        ("transformers", ["trainer_job.py", "plain"], [6]),
        ("lightning", ["lightning_job.py", "lightning.pytorch"], [16]),
    ],
)
def test_a_training_goes_on_when_our_part_of_it_fails(tmp_path, framework, words, counted):
    program = runs.forked("-c", WRONG, PROGRAMS / words[0], *words[1:])
    run = tmp_path / "run"
    told = runs.stepscope("record", "-o", run, "--", *program, cwd=tmp_path)
    assert json.loads(told.stdout.splitlines()[-1]) == counted
    line = f"not recording steps and phases of {framework} "
    assert told.stderr.count(line) == 1 and "LookupError: on purpose" in told.stderr
    finding = runs.findings(run)["capture.framework_refused"]
    assert framework in str(finding["examples"])
    # Operators are recorded as ever.
    assert runs.named(runs.rows(run), "AddmmBackward0" if framework != "transformers" else "MmBackward0")


def test_what_a_loop_calls_of_ours_is_in_no_stack(tmp_path):
    program = """
import torch
from stepscope._frameworks import harmless
@harmless
def ours():
    return torch.erfinv(torch.zeros(4))
def of_the_program():
    return ours()
of_the_program()
"""
    run = tmp_path / "run"
    runs.stepscope("record", "--stacks=calls", "-o", run, "--", *runs.forked("-c", program))
    names = {row["name"].rpartition(" ")[2] for row in runs.rows(run) if row["kind"] == "python_call"}
    assert "of_the_program" in names and not {"ours", "called"} & names


# As much of the servers as our labels hang on.
STUBS = {
    "vllm/__init__.py": "__version__ = '99.0'",
    "vllm/v1/utils.py": """
import contextlib
def record_function_or_nullcontext(name):
    return contextlib.nullcontext()
""",
    "vllm/v1/worker/gpu_worker.py": """
import contextlib, types
def compute_iteration_details(scheduled):
    tokens = scheduled.num_scheduled_tokens.values()
    context = {"num_ctx_requests": len(tokens), "num_ctx_tokens": sum(tokens)}
    return types.SimpleNamespace(**context, num_generation_requests=0, num_generation_tokens=0)
class Worker:
    def annotate_profile(self, scheduled):
        return contextlib.nullcontext()
""",
    "sglang/__init__.py": "__version__ = '99.1'",
    "sglang/srt/utils/nvtx_utils.py": """
import contextlib
def profile_range(debug_name, *, color=None, nvtx_enabled=False, of_a_later_release=None):
    return contextlib.nullcontext()
""",
}
SERVERS = """
import sys, types
sys.path.insert(0, sys.argv[1])
import torch
from sglang.srt.utils import nvtx_utils
from vllm.v1 import utils
from vllm.v1.worker import gpu_worker
def work(scope):
    with scope:
        torch.erfinv(torch.zeros(4))
for tokens in ({"a": 3, "b": 4}, {"a": None}, {"a": 1}):
    work(gpu_worker.Worker().annotate_profile(types.SimpleNamespace(num_scheduled_tokens=tokens)))
work(gpu_worker.Worker().annotate_profile(types.SimpleNamespace()))
work(utils.record_function_or_nullcontext("gpu_model_runner: forward"))
work(nvtx_utils.profile_range("step[DECODE bs=2]", of_a_later_release=1))
"""


def record_servers(folder, names=lambda text: text, program=SERVERS, options=()):
    """Record the stubs of servers; gives what was told, and for each operator of theirs its label."""
    for path, text in STUBS.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(names(text))
    program = runs.forked("-c", names(program), folder)
    told = runs.stepscope("record", *options, "-o", folder / "run", "--", *program).stderr
    pairs = runs.with_parents(runs.rows(folder / "run"))
    return told, [parent and parent["name"] for parent, row in pairs if row["name"] == "aten::erfinv"]


def test_a_server_goes_on_when_a_label_of_its_passes_fails(tmp_path):
    told, labels = record_servers(tmp_path)
    of_passes = ["execute_context_2(7)_generation_0(0)", None, "execute_context_1(1)_generation_0(0)", None]
    assert labels == [*of_passes, "gpu_model_runner: forward", "step[DECODE bs=2]"]
    line = "not recording steps and phases of vllm 99.0: "
    assert told.count(line) == 2 and f"{line}TypeError" in told and f"{line}AttributeError" in told
    assert "vllm 99.0" in str(runs.findings(tmp_path / "run")["capture.framework_refused"]["examples"])


@pytest.mark.parametrize(
    "passes, label",
    [
        (
            "gpu_worker.Worker().annotate_profile(types.SimpleNamespace(num_scheduled_tokens={'a': number}))",
            "execute_context_1({})_generation_0(0)",
        ),
        ("nvtx_utils.profile_range(f'step[DECODE bs={number}]')", "step[DECODE bs={}]"),
    ],
)
def test_passes_of_a_server_move_a_schedule_on(tmp_path, passes, label):
    beginning = SERVERS.partition("for tokens in")[0]
    program = f"{beginning}for number in range(1, 9):\n    work({passes})\n"
    _, labels = record_servers(tmp_path, program=program, options=["--steps", "3..4"])
    assert labels == [label.format(4), label.format(5)]


def test_a_server_of_a_release_that_is_not_known_goes_on(tmp_path):
    known = r"annotate_profile|record_function_or_nullcontext|profile_range"
    told, labels = record_servers(tmp_path, lambda text: re.sub(known, r"\g<0>_of_another", text))
    assert labels == [None] * 6
    assert told.count("not recording steps and phases of vllm 99.0: AttributeError") == 2
    assert told.count("not recording steps and phases of sglang 99.1: AttributeError") == 1
    assert "capture.framework_refused" in runs.findings(tmp_path / "run")
