"""Four ranks on one machine: DistributedDataParallel with gloo under torchrun, one run."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest
import runs

RANKS = 4
STEPS = 6
LAUNCHER = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", RANKS]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The run of a job that ``stepscope record`` records."""
    run = tmp_path_factory.mktemp("ddp") / "run"
    runs.record(run, [*LAUNCHER, runs.PROGRAMS / "ddp.py", STEPS])
    return run


@pytest.fixture(scope="module")
def self_recorded(tmp_path_factory):
    """The run of a job whose ranks record themselves."""
    run = tmp_path_factory.mktemp("ddp-api") / "run"
    runs.execute(*LAUNCHER, runs.PROGRAMS / "ddp.py", STEPS, run)
    return run


def ranks_of(run):
    """What the processes that belong to a group say of themselves, by rank."""
    found = [runs.metadata(part) for part in runs.parts(run)]
    return {process["rank"]: process for process in found if "process_groups" in process["facts"]}


def collectives(run):
    """(kind, name, number, description) of each collective, by rank, in order of time."""
    found = {}
    for part in runs.parts(run):
        rank = runs.metadata(part)["rank"]
        rows = runs.pyarrow.parquet.read_table(part, partitioning=None).to_pylist()
        for row in sorted(rows, key=lambda row: row["start_ns"]):
            if row["collective"] is not None:
                said = json.loads(row["collective"])
                found.setdefault(rank, []).append((row["kind"], row["name"], row["collective_sequence_number"], said))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("how", ["recorded", "self_recorded"])
def test_one_run_has_four_ranks_with_their_names_and_sizes(how, request):
    run = request.getfixturevalue(how)
    ranks = ranks_of(run)
    assert sorted(ranks) == list(range(RANKS))
    assert {process["facts"]["world_size"] for process in ranks.values()} == {str(RANKS)}
    assert {process["facts"]["process_name"] for process in ranks.values()} == {"ddp.py"}
    assert [ranks[rank]["facts"]["local_rank"] for rank in range(RANKS)] == ["0", "1", "2", "3"]
    assert not any(process["is_killed"] or process["dropped"] for process in ranks.values())
    assert runs.analyze("operators", run)["run"]["ranks"] == list(range(RANKS))
    assert f"{RANKS} ranks" in runs.report(run)


def test_the_command_leaves_a_summary_of_each_rank(recorded):
    names = sorted(path.name for path in (recorded / ".stepscope").iterdir())
    assert names == [f"rank={rank}.parquet" for rank in range(RANKS)]
    [kept] = runs.pyarrow.parquet.read_table(recorded / ".stepscope" / "rank=2.parquet").to_pylist()
    own = runs.analyze("operators", recorded, "--rank", 2)["results"]
    assert own
    assert {(row["label"]["name"], row["count"]) for row in kept["rows"][0]["operators"]} == {
        (row["name"], row["count"]) for row in own
    }


@pytest.mark.parametrize(("how", "first"), [("recorded", 0), ("self_recorded", 2)])
def test_every_rank_has_its_steps(how, first, request):
    rows = runs.analyze("step_breakdown", request.getfixturevalue(how))["results"]
    steps = {rank: [row["step"] for row in rows if row["rank"] == rank] for rank in range(RANKS)}
    for found in steps.values():
        assert [step for step in found if step is not None][: STEPS - first] == list(range(first, STEPS))


@pytest.mark.parametrize(("how", "steps"), [("recorded", STEPS), ("self_recorded", STEPS - 2)])
def test_collectives_are_the_same_on_every_rank(how, steps, request):
    found = collectives(request.getfixturevalue(how))
    assert sorted(found) == list(range(RANKS))
    for kind in ("op", "label"):
        of_kind = [
            [(row[1], row[2], {**row[3], "rank": None}) for row in found[rank] if row[0] == kind] for rank in found
        ]
        assert all(rows == of_kind[0] for rows in of_kind)
    works = [row for row in found[0] if row[1] == "gloo:all_reduce" and row[3].get("dtype") == "Float"]
    # The gradients, which go in one bucket, and the program's own.
    assert sum(row[3]["input_elements"] == 8 * 4 + 4 for row in works) == steps
    assert sum(row[3]["input_elements"] == 3 * 5 for row in works) == steps
    for rank, rows in found.items():
        assert {row[3]["rank"] for row in rows} == {rank}
        assert {(row[3]["group"], row[3]["group_description"], row[3]["group_size"]) for row in rows} == {
            ("0", "default_pg", RANKS)
        }
        assert {row[3]["group_ranks"] for row in rows} == {"[0, 1, 2, 3]"}


@pytest.mark.parametrize("how", ["recorded", "self_recorded"])
def test_numbers_of_collectives_follow_each_other(how, request):
    for rows in collectives(request.getfixturevalue(how)).values():
        numbers = [row[2] for row in rows if row[0] == "op"]
        assert None not in numbers
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        works = [row[2] for row in rows if row[0] == "label" and row[2] is not None]
        assert works and set(works) <= set(numbers)


def test_the_table_of_collectives_has_every_call_with_its_work(recorded):
    rows = runs.analyze("collectives", recorded)["results"]
    assert {row["rank"] for row in rows} == set(range(RANKS))
    bytes_of = {"Int": 4, "Float": 4, "Long": 8}
    for part in runs.parts(recorded):
        table = runs.pyarrow.parquet.read_table(part, partitioning=None).to_pylist()
        said = [{**row, **json.loads(row["collective"])} for row in table if row["collective"] is not None]
        if not said:
            continue
        of_rank = [row for row in rows if row["rank"] == runs.metadata(part)["rank"]]
        issued = [row for row in said if row["kind"] == "op"]
        assert sum(row["calls"] or 0 for row in of_rank) == len(issued)
        assert sum(row["host_ns"] or 0 for row in of_rank) == sum(row["dur_ns"] for row in issued)
        assert {row["group_size"] for row in of_rank} == {RANKS}
        for row in (row for row in of_rank if row["works"]):
            keys = ("name", "dtype", "input_elements", "output_elements")
            works = [work for work in said if work["kind"] == "label"]
            works = [work for work in works if all(work.get(key) == row[key] for key in keys)]
            work_ns = sum(work["dur_ns"] for work in works)
            assert (row["works"], row["work_ns"]) == (len(works), work_ns)
            if row["dtype"] is None:
                continue
            # Gloo's work of an all-gather says only what goes in.
            gathered = row["input_elements"] * (RANKS if row["name"] == "all_gather" else 1)
            size = bytes_of[row["dtype"]] * max(gathered, row["output_elements"] or 0)
            assert row["size_bytes"] == size and row["device_ns"] is None
            expected = (2 * size * len(works) * 10**9 + work_ns) // (2 * work_ns)
            assert row["algorithm_bandwidth_bytes_per_s"] == expected


def test_what_was_not_recorded_counts_in_the_numbers(recorded, self_recorded):
    """The schedule leaves out two steps: the numbers are those of the group all the same."""
    whole, later = collectives(recorded)[1], collectives(self_recorded)[1]
    whole, later = ([(row[1], row[2]) for row in rows if row[0] == "op"] for rows in (whole, later))
    assert len(later) < len(whole)
    assert later == whole[-len(later) :]


def test_a_job_with_a_killed_rank_has_all_ranks(tmp_path):
    run = tmp_path / "run"
    command = [runs.COMMAND, "record", "-o", run, "--", *LAUNCHER, "--max-restarts", 0, runs.PROGRAMS / "ddp.py", 10**6]
    with runs.started(*command, stderr=subprocess.DEVNULL) as job:
        pids, steps = {}, dict.fromkeys(range(RANKS), 0)
        for line in job.stdout:
            for kind, rank, number in re.findall(r"(pid|step) (\d+) (\d+)", line):
                if kind == "pid":
                    pids[int(rank)] = int(number)
                else:
                    steps[int(rank)] = int(number) + 1
            if len(pids) == RANKS and min(steps.values()) >= 5:
                break
        assert sorted(pids) == list(range(RANKS)), "the job ended by itself, or took too long"
        os.kill(pids[2], signal.SIGKILL)
        told = job.stdout.read()
        job.wait(timeout=600)
    for rank, number in re.findall(r"step (\d+) (\d+)", told):
        steps[int(rank)] = max(steps[int(rank)], int(number) + 1)
    ranks = ranks_of(run)
    assert sorted(ranks) == list(range(RANKS))
    assert ranks[2]["is_killed"] and not any(process["damaged"] for process in ranks.values())
    for part in runs.parts(run):
        process = runs.metadata(part)
        if "process_groups" not in process["facts"]:
            continue
        kinds = runs.pyarrow.parquet.read_table(part, partitioning=None, columns=["kind"])["kind"].to_pylist()
        assert kinds.count("optimizer_step") - steps[process["rank"]] in (0, 1)
    assert runs.findings(run)["capture.process_killed"]["count"] >= 1
