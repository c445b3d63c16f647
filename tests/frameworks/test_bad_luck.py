"""What goes wrong in our part of a framework's loop is told, and the training goes on."""

import json
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
