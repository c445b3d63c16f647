"""The examples of frameworks run as their first lines say, and have the steps that they say."""

import html
import shlex
import sys
from collections import Counter
from pathlib import Path

import pytest
import runs

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "frameworks"
# Where an optimizer says where steps end, nobody knows where the first one begins.
STEPS = {
    "accelerate_train": 3,
    "deepspeed_train": 10,
    "lightning_train": 40,
    "ray_train": 9,
    "torch_profiler_train": 6,
    "torchtune_train": 2,
    "transformers_train": 10,
    "trl_train": 20,
}
RANKS = {"deepspeed_train": 2, "ray_train": 2}
PROGRAMS = {"python": [sys.executable], "torchrun": [sys.executable, "-m", "torch.distributed.run"]}


def test_each_example_is_tested():
    # What servers load is run in test_servers.py.
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*STEPS, "tiny_llama"}
    assert [path.stem for path in EXAMPLES.glob("*.ipynb")] == ["notebook"]


def run_of(name, folder):
    """Runs the command in the first lines of an example; gives the run."""
    path = EXAMPLES / f"{name}.py"
    command = path.read_text().split("``")[1].replace(f"examples/frameworks/{name}.py", str(path))
    record, _, program = command.rpartition(" -- ")
    first, *arguments = shlex.split(program)
    # A job of Ray starts its workers as it was started itself.
    program = runs.forked(*arguments) if first == "python" and name not in RANKS else [*PROGRAMS[first], *arguments]
    if not record:
        runs.execute(*program, cwd=folder)
        return folder / "profiler_output" / "stepscope"
    assert record.startswith("stepscope record")
    runs.stepscope(*shlex.split(record)[1:], "-o", "run", "--", *program, cwd=folder)
    return folder / "run"


def complete(run):
    """The rows of complete steps."""
    rows = runs.analyze("step_breakdown", run)["results"]
    return [row for row in rows if row["step"] is not None and row["is_complete"]]


@pytest.mark.slow
@pytest.mark.parametrize("name", STEPS)
def test_the_command_in_its_first_lines(tmp_path, name):
    run = run_of(name, tmp_path)
    counts = Counter(row["rank"] for row in complete(run))
    assert counts == dict.fromkeys(range(RANKS.get(name, 1)), STEPS[name])
    if name in MORE:
        MORE[name](run)


def all_of_the_job_and_a_trace_of_each_cycle(run):
    """The steps are those that the schedule asks for, three a cycle; what ran around them is recorded, too."""
    traces = list((run.parent / "traces").glob("*.json"))
    assert [len(complete(trace)) for trace in traces] == [3] * (len(complete(run)) // 3)
    assert runs.counts_of_operators(run)["aten::addmm"] == 2 * 20


def phases_of_the_trainer(run):
    rows = runs.rows(run)
    # TRL has its own `compute_loss`, which calls that of transformers.
    assert len(runs.named(rows, "training_step")) == len(runs.named(rows, "compute_loss")) == 20
    assert any(runs.contains(runs.named(rows, "training_step")[0], row) for row in runs.named(rows, "aten::mm"))


MORE = {
    "accelerate_train": all_of_the_job_and_a_trace_of_each_cycle,
    "torch_profiler_train": all_of_the_job_and_a_trace_of_each_cycle,
    "trl_train": phases_of_the_trainer,
}


def test_the_cells_of_the_notebook(tmp_path):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    notebook = nbformat.read(EXAMPLES / "notebook.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": tmp_path}}).execute()
    *_, recorded, rows = (cell.outputs for cell in notebook.cells if cell.cell_type == "code")
    (page,) = (output.data["text/html"] for output in recorded if output.output_type == "display_data")
    assert "aten::addmm" in html.unescape(page)
    assert len(complete(tmp_path / "run")) == 9
    # What a later cell reads of the run is what the cell did.
    (table,) = (output.data["text/plain"] for output in rows)
    assert "aten::" in table
    (first, *_) = runs.named(runs.rows(tmp_path / "run"), "aten::addmm")
    assert first["inputs"] is not None
