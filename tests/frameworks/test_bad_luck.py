"""What goes wrong in our part of a framework's loop is told, and the training goes on."""

import json
import sys
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
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "framework, words",
    [
        ("deepspeed", ["deepspeed_job.py", "1", "2", "8"]),
        ("transformers", ["trainer_job.py", "plain"]),
        ("lightning", ["lightning_job.py", "lightning.pytorch"]),
    ],
)
def test_a_training_goes_on_when_our_part_of_it_fails(tmp_path, framework, words):
    program = [PROGRAMS / words[0], *words[1:]]
    well = runs.execute(sys.executable, *program, cwd=tmp_path)
    run = tmp_path / "run"
    told = runs.stepscope("record", "-o", run, "--", sys.executable, "-c", WRONG, *program, cwd=tmp_path)
    assert json.loads(told.stdout.splitlines()[-1]) == json.loads(well.stdout.splitlines()[-1])
    line = f"not recording steps and phases of {framework} "
    assert told.stderr.count(line) == 1 and "LookupError: on purpose" in told.stderr
    finding = runs.findings(run)["capture.framework_refused"]
    assert framework in str(finding["examples"])
    # Operators are recorded as ever.
    assert runs.named(runs.rows(run), "AddmmBackward0" if framework != "transformers" else "MmBackward0")
