"""Modules inside what distributes them: their paths, and what their forward and backward passes take."""

import json
import sys

import pytest
import runs

STEPS = 3
LAUNCHER = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2]
ROOTS = {"ddp": "DistributedDataParallel", "fsdp": "FSDPNet", "data-parallel": "DataParallel"}


@pytest.fixture(scope="module", params=ROOTS)
def recorded(request, tmp_path_factory):
    """How it is distributed, the run, and the paths of the modules that are called."""
    run = tmp_path_factory.mktemp(request.param) / "run"
    launcher = [sys.executable] if request.param == "data-parallel" else LAUNCHER
    told = runs.record(run, [*launcher, runs.PROGRAMS / "parallel_modules.py", request.param]).stdout
    paths = json.loads(told.splitlines()[0])
    root = ROOTS[request.param]
    return request.param, run, [f"{root}.{path}" if path else root for path in paths]


def test_paths_are_those_of_named_modules_and_each_is_called_once_a_step(recorded):
    _, run, paths = recorded
    for part in runs.parts(run):
        rows = [row for row in runs.pyarrow.parquet.read_table(part, partitioning=None).to_pylist()]
        calls = [row["name"] for row in rows if row["kind"] == "module"]
        # The launcher calls none.
        assert not calls or sorted(calls) == sorted(paths * STEPS)


def test_every_module_has_its_forward_and_its_backward_pass(recorded):
    _, run, paths = recorded
    rows = runs.analyze("modules", run)["results"]
    linear = [path for path in paths if path.endswith((".up", ".down"))]
    found = {row["path"]: row for row in rows if row["path"] in linear}
    assert sorted(found) == sorted(linear)
    for row in found.values():
        assert row["forward_host_total_ns"] > 0 and row["backward_host_total_ns"] > 0
    # A module takes what is in it, and its own.
    totals = {row["path"]: row for row in rows}
    for path in linear:
        block = totals[path.rsplit(".", 1)[0]]
        for phase in ("forward", "backward"):
            assert block[f"{phase}_host_total_ns"] >= totals[path][f"{phase}_host_total_ns"]
