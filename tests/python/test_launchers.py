"""Ways to start the processes of a job: each is in the one run, with its name, its rank and its tracks."""

from collections import Counter

import pytest
import runs

STARTS = ("fork", "spawn", "forkserver")


def made(how, run, is_self_recorded):
    """The run of ``programs/launched.py``, recorded from outside or by itself."""
    command = runs.program("launched.py", how, *([run] if is_self_recorded else []))
    if is_self_recorded:
        runs.execute(*command)
    else:
        runs.record(run, command)
    return runs.rows(run)


def places_of(rows, op):
    """How often an op ran, by process name."""
    return Counter(row["process_name"] for row in runs.named(rows, f"aten::{op}"))


@pytest.mark.parametrize("is_self_recorded", [False, True], ids=["record", "api"])
@pytest.mark.parametrize("how", STARTS)
def test_processes_of_multiprocessing(how, is_self_recorded, tmp_path):
    rows = made(how, tmp_path / "run", is_self_recorded)
    assert places_of(rows, "erfinv") == {"job 0": 1, "job 1": 2}
    assert places_of(rows, "neg") == {"launched.py": 1}
    check_family(tmp_path / "run", 2)


@pytest.mark.parametrize("is_self_recorded", [False, True], ids=["record", "api"])
def test_processes_of_torch_multiprocessing_spawn(is_self_recorded, tmp_path):
    rows = made("mp_spawn", tmp_path / "run", is_self_recorded)
    places = places_of(rows, "erfinv")
    assert sorted(places.values()) == [1, 2] and "launched.py" not in places
    check_family(tmp_path / "run", 2)


@pytest.mark.parametrize("is_self_recorded", [False, True], ids=["record", "api"])
@pytest.mark.parametrize("how", STARTS)
def test_workers_of_a_dataloader(how, is_self_recorded, tmp_path):
    rows = made(f"loader_{how}", tmp_path / "run", is_self_recorded)
    assert places_of(rows, "log1p") == {"DataLoader worker 0": 4, "DataLoader worker 1": 4}
    workers = [row for row in rows if row["name"] == "DataLoader.fetch"]
    assert {(row["process_name"], row["thread_name"]) for row in workers} == {
        ("DataLoader worker 0", "DataLoader worker 0"),
        ("DataLoader worker 1", "DataLoader worker 1"),
    }
    check_family(tmp_path / "run", 2)


def check_family(run, children):
    """Every process that recorded something closed its capture and knows who started it."""
    found = [runs.metadata(part) for part in runs.parts(run)]
    assert not any(process["is_killed"] or process["dropped"] or process["damaged"] for process in found)
    named = {process["facts"]["process_name"]: process for process in found}
    first = named["launched.py"]
    others = [process for process in found if process is not first]
    assert len(others) >= children
    # Where a fork server stands between, it recorded nothing: its own parent is not known.
    known = {process["pid"] for process in found}
    strangers = {process["parent_pid"] for process in others} - known
    assert len(strangers) <= 1


@pytest.mark.parametrize(
    "variables",
    [
        {"OMPI_COMM_WORLD_RANK": 2, "OMPI_COMM_WORLD_SIZE": 4},
        {"PMI_RANK": 2, "PMI_SIZE": 4},
        {"SLURM_PROCID": 2, "SLURM_NTASKS": 4},
        {"RANK": 2, "WORLD_SIZE": 4, "SLURM_PROCID": 7, "SLURM_NTASKS": 9},
    ],
    ids=["openmpi", "mpich", "slurm", "torchrun-under-slurm"],
)
def test_variables_of_launchers_say_the_rank(variables, tmp_path):
    run = tmp_path / "run"
    runs.record(run, runs.script("import torch; torch.ones(1)"), env=runs.environment(**variables))
    (part,) = runs.parts(run)
    process = runs.metadata(part)
    assert (process["rank"], process["facts"]["world_size"]) == (2, "4")
