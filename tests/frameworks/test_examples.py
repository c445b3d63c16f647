"""The examples of frameworks run as their first lines say, and have the steps that they say."""

import shlex
import sys
from collections import Counter
from pathlib import Path

import pytest
import runs

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "frameworks"
# Where an optimizer says where steps end, nobody knows where the first one begins.
STEPS = {"deepspeed_train": 10, "lightning_train": 40, "ray_train": 9, "transformers_train": 10}
RANKS = {"deepspeed_train": 2, "ray_train": 2}


def test_each_example_is_tested():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(STEPS)


@pytest.mark.parametrize("name", STEPS)
def test_the_command_in_its_first_line(tmp_path, name):
    path = EXAMPLES / f"{name}.py"
    command = path.read_text().split("``")[1]
    stepscope, record, dashes, *program = shlex.split(command.replace(f"examples/frameworks/{name}.py", str(path)))
    assert (stepscope, record, dashes) == ("stepscope", "record", "--")
    if program[0] == "python":
        program[0] = sys.executable
    else:
        program[:1] = [sys.executable, "-m", "torch.distributed.run"]
    runs.stepscope("record", "-o", "run", "--", *program, cwd=tmp_path)
    rows = runs.analyze("step_breakdown", tmp_path / "run")["results"]
    counts = Counter(row["rank"] for row in rows if row["step"] is not None and row["is_complete"])
    assert counts == dict.fromkeys(range(RANKS.get(name, 1)), STEPS[name])
