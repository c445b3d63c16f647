"""Ways to start the processes of a job: each is in the one run, with its name, its rank and its tracks."""

import os
import sys
from collections import Counter
from pathlib import Path

import pytest
import runs
from stepscope import _facts

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


def environments():
    """Environments of launchers, each with the facts that it means: the table that the recorder's own test reads."""
    lines = (Path(__file__).parents[2] / "crates/recorder/tests/launchers.txt").read_text().splitlines()
    for line in lines:
        if line and not line.startswith("#"):
            variables, facts = line.split(" ->")
            yield tuple(dict(word.split("=") for word in words.split()) for words in (variables, facts))


@pytest.mark.parametrize(("variables", "expected"), list(environments()))
def test_variables_of_launchers_mean_these_facts(variables, expected, monkeypatch):
    monkeypatch.setattr(os, "environ", variables)
    assert _facts.rank_facts_of_launcher() == expected


RANK_KEYS = ("rank", "world_size", "local_rank", "local_world_size", "node_rank", "restart_count")
SLURM = {"SLURM_PROCID": 2, "SLURM_NTASKS": 4, "SLURM_LOCALID": 1, "SLURM_NTASKS_PER_NODE": 2, "SLURM_NODEID": 1}
# Nobody else is needed for a group of PyTorch's stand-in for a backend.
INIT = """
import sys, torch, torch.distributed as distributed
from torch.testing._internal.distributed.fake_pg import FakeStore
def init(rank, world_size):
    distributed.init_process_group("fake", store=FakeStore(), rank=rank, world_size=world_size)
    distributed.destroy_process_group()
"""
WAITING = """
from stepscope.profiler import profile, schedule
with profile(schedule=schedule(wait=1, warmup=0, active=1), run=sys.argv[1]) as prof:
    init(3, 8)
    prof.step()
    torch.ones(1)
"""


def rank_facts(run):
    (part,) = runs.parts(run)
    process = runs.metadata(part)
    assert process["rank"] == int(process["facts"]["rank"])
    return {key: value for key, value in process["facts"].items() if key in RANK_KEYS}


def test_a_recorded_process_has_the_facts_of_its_launcher(tmp_path):
    run = tmp_path / "run"
    runs.record(run, runs.script("import torch; torch.ones(1)"), env=runs.environment(**SLURM))
    expected = {"rank": "2", "world_size": "4", "local_rank": "1", "local_world_size": "2", "node_rank": "1"}
    assert rank_facts(run) == expected


def test_a_group_of_all_that_is_made_later_beats_the_launcher(tmp_path):
    run = tmp_path / "run"
    # No step is made, and the group is gone at the end.
    text = INIT + "torch.ones(1)\ninit(3, 8)\n"
    runs.record(run, runs.script(text), env=runs.environment(**SLURM))
    assert rank_facts(run) == {"rank": "3", "world_size": "8"}


def test_the_launcher_says_where_the_rank_of_a_group_is(tmp_path):
    run = tmp_path / "run"
    text = INIT + "torch.ones(1)\ninit(2, 4)\n"
    runs.record(run, runs.script(text), env=runs.environment(**SLURM))
    expected = {"rank": "2", "world_size": "4", "local_rank": "1", "local_world_size": "2", "node_rank": "1"}
    assert rank_facts(run) == expected


def test_a_group_is_noticed_while_nothing_is_recorded(tmp_path):
    run = tmp_path / "run"
    runs.execute(*runs.script(INIT + WAITING, run), env=runs.environment(**SLURM))
    assert rank_facts(run) == {"rank": "3", "world_size": "8"}


MPIRUN = f"""#!{sys.executable} -SE
# Starts two ranks with no more of this environment than Open MPI takes to another node.
import os, subprocess, sys
kept = {{name: os.environ[name] for name in ["PATH", *os.environ["OMPI_MCA_mca_base_env_list"].split(";")]}}
ranks = [
    subprocess.Popen(sys.argv[3:], env={{**kept, "OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "2"}})
    for rank in range(2)
]
sys.exit(max(rank.wait() for rank in ranks))
"""


def with_mpirun(folder, text, **changes):
    """An environment in which this script is Open MPI's ``mpirun``."""
    mpirun = folder / "bin" / "mpirun"
    mpirun.parent.mkdir()
    mpirun.write_text(text)
    mpirun.chmod(0o755)
    return runs.environment(PATH=f"{mpirun.parent}:{os.environ['PATH']}", **changes)


def test_mpirun_takes_the_recording_to_other_nodes(tmp_path):
    run, environment = tmp_path / "run", with_mpirun(tmp_path, MPIRUN)
    program = runs.new_script("import torch; torch.erfinv(torch.zeros(4))")
    runs.stepscope("record", "--shapes", "-o", run, "--", "mpirun", "-n", "2", *program, env=environment)
    rows = runs.named(runs.rows(run), "aten::erfinv")
    assert len(rows) == 2 and all(row["inputs"] for row in rows)
    known = [runs.metadata(part) for part in runs.parts(run)]
    assert sorted((facts["rank"], facts["facts"]["world_size"]) for facts in known) == [(0, "2"), (1, "2")]


@pytest.mark.parametrize(
    "own, words, expected",
    [
        ("OF_USER", ["-n", "1"], "OF_USER"),
        # Open MPI refuses to be told in both ways.
        (None, ["-x", "OF_USER"], "none"),
    ],
)
def test_what_mpirun_is_told_already_stays(tmp_path, own, words, expected):
    text = '#!/bin/sh\necho "${OMPI_MCA_mca_base_env_list-none}"\n'
    environment = with_mpirun(tmp_path, text, OMPI_MCA_mca_base_env_list=own)
    told = runs.stepscope("record", "-o", tmp_path / "run", "--", "mpirun", *words, "true", env=environment)
    assert told.stdout == f"{expected}\n"


@pytest.mark.parametrize(
    "own, words, advice",
    [
        ("OF_USER", [], "add `;STEPSCOPE_RUN;STEPSCOPE_OPTIONS;PYTHONPATH` to OMPI_MCA_mca_base_env_list"),
        (None, ["-x", "STEPSCOPE_RUN"], "add `-x STEPSCOPE_RUN -x STEPSCOPE_OPTIONS -x PYTHONPATH`"),
        ("OF_USER;STEPSCOPE_RUN;STEPSCOPE_OPTIONS=a;PYTHONPATH", [], None),
        (None, ["-x", "STEPSCOPE_RUN=b", "-x", "STEPSCOPE_OPTIONS", "-x", "PYTHONPATH"], None),
        (None, [], None),
    ],
)
def test_it_is_said_when_mpirun_does_not_take_the_recording_to_other_nodes(tmp_path, own, words, advice):
    environment = with_mpirun(tmp_path, "#!/bin/sh\n", OMPI_MCA_mca_base_env_list=own)
    told = runs.stepscope("record", "-o", tmp_path / "run", "--", "mpirun", *words, "true", env=environment)
    warnings = [line for line in told.stderr.splitlines() if "other nodes" in line]
    assert len(warnings) == (advice is not None)
    assert not advice or warnings[0].endswith(advice)


@pytest.mark.parametrize("name, is_reached", [("a run", False), ("run", True)])
def test_it_is_said_when_deepspeed_does_not_take_the_recording_to_other_nodes(tmp_path, name, is_reached):
    launcher = tmp_path / "deepspeed"
    launcher.write_text('#!/bin/sh\necho "${DS_ENV_FILE:+reached}"\n')
    launcher.chmod(0o755)
    told = runs.stepscope("record", "-o", tmp_path / name, "--", launcher, env=runs.environment())
    assert told.stdout == ("reached\n" if is_reached else "\n")
    reason = "DeepSpeed's launcher cannot pass on STEPSCOPE_RUN, in whose value there is a space"
    assert (reason in told.stderr) != is_reached
