"""``stepscope record --as-torch-profiler``: what calls ``torch.profiler.profile`` gets ours, and goes on as before."""

import json
import sys
from pathlib import Path

import pytest
import runs

PROGRAM = Path(__file__).with_name("programs") / "profiler_patterns.py"


def patterns(folder, *before):
    folder.mkdir()
    told = runs.execute(*before, sys.executable, PROGRAM, cwd=folder)
    return json.loads(told.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What the patterns give by PyTorch's own profiler, and by ours in its place."""
    folder = tmp_path_factory.mktemp("patterns")
    command = [runs.COMMAND, "record", "--as-torch-profiler", "-o", folder / "run", "--"]
    return folder, patterns(folder / "torch"), patterns(folder / "ours", *command)


def test_each_pattern_gives_the_same(found):
    _, theirs, ours = found
    assert theirs.pop("of") == "torch.profiler.profiler"
    assert ours.pop("of") == "stepscope.profiler._profile"
    # PyTorch's own ends the outer one with the inner.
    assert (theirs.pop("nested"), ours.pop("nested")) == ([0, 1], [3, 1])
    assert ours == theirs
    assert ours["waiting"] == [1, 1]
    _, tables, traces = ours["torchtune"]
    assert tables == [True] * 2 and traces == [["gz", 2]] * 2
    assert ours["itself"]["theirs"] == "torch.profiler.profiler"
    assert ours["vllm"][1] == [["gz", 1], ["gz", 1]]


def test_the_run_has_what_they_asked_for(found):
    folder, *_ = found
    rows = runs.rows(folder / "run")
    assert runs.named(rows, "work") and runs.named(rows, "aten::erfinv")


def test_without_json_the_run_is_all(tmp_path):
    program = (
        "import torch\n"
        "with torch.profiler.profile() as prof:\n"
        "    torch.erfinv(torch.zeros(4))\n"
        "prof.export_chrome_trace('trace.json')\n"
        "print(len(prof.key_averages()))\n"
    )
    command = ["record", "--as-torch-profiler=no-json", "-o", tmp_path / "run", "--", sys.executable, "-c", program]
    told = runs.stepscope(*command, cwd=tmp_path)
    assert int(told.stdout) > 0 and "no Chrome trace is written" in told.stderr
    assert not (tmp_path / "trace.json").exists()


def test_in_a_program_that_records_itself(tmp_path):
    program = (
        "import stepscope.profiler, torch.profiler\n"
        "with torch.profiler.profile() as prof:\n"
        "    torch.erfinv(torch.zeros(4))\n"
        "print(prof.run)\n"
    )
    changes = runs.environment(STEPSCOPE_AS_TORCH_PROFILER="1")
    told = runs.execute(sys.executable, "-c", program, cwd=tmp_path, env=changes)
    assert runs.named(runs.rows(tmp_path / told.stdout.strip()), "aten::erfinv")
