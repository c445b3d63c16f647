"""Workers of Ray Train are the ranks of one run, on a cluster that knows nothing of a recording."""

import sys
import tempfile
from pathlib import Path

import pytest
import runs

pytest.importorskip("ray.train")
PROGRAM = Path(__file__).with_name("programs") / "ray_job.py"

CLUSTER = """
import ray
context = ray.init(num_cpus=2, include_dashboard=False, object_store_memory=10**8)
print(context.address_info["gcs_address"], flush=True)
input()
"""


@pytest.fixture
def cluster():
    """The address of a cluster, as a variable of those that use it."""
    # Names of sockets below it must be short.
    with tempfile.TemporaryDirectory(prefix="ray") as folder:
        env = runs.environment(RAY_TMPDIR=folder)
        with runs.started(sys.executable, "-c", CLUSTER, stdin=-1, env=env) as process:
            yield {"RAY_ADDRESS": process.stdout.readline().strip()}
            process.communicate("\n")


def workers_of(run):
    """The facts and the rows of each worker by rank; there is nothing else of Ray, and each process was closed."""
    assert "capture.process_killed" not in runs.findings(run)
    parts, rows = [runs.metadata(part) for part in runs.parts(run)], runs.rows(run)
    assert {part["facts"]["process_name"] for part in parts} <= {"RayTrainWorker", "ray_job.py"}
    workers = [part for part in parts if part["facts"]["process_name"] == "RayTrainWorker"]
    found = {part["rank"]: (part["facts"], [row for row in rows if row["pid"] == part["pid"]]) for part in workers}
    assert len(found) == len(workers)
    return found


@pytest.mark.slow
def test_workers_are_recorded_also_if_one_raises_an_error(tmp_path, cluster):
    env = runs.environment(RAY_TRAIN_CALLBACKS="stepscope.ray.StepscopeCallback", **cluster)
    told = runs.execute(sys.executable, PROGRAM, cwd=tmp_path, env=env)
    assert told.stdout.splitlines()[-1] == "on purpose", told.stderr
    (own,) = tmp_path.glob("stepscope-runs/*")
    for run, steps, is_failed in ((own, 5, False), (tmp_path / "run", 3, True)):
        workers = workers_of(run)
        assert sorted(workers) == [0, 1]
        for rank, (facts, rows) in workers.items():
            place = [facts[name] for name in ("rank", "world_size", "local_rank", "local_world_size", "node_rank")]
            assert place == [str(rank), "2", str(rank), "2", "0"]
            marked = [row["step"] for row in rows if row["kind"] == ("step" if is_failed else "optimizer_step")]
            assert marked == (list(range(1, steps + 1)) if is_failed else list(range(steps)))
            # The training function has a thread of its own.
            labels = runs.named(rows, "in the training function")
            pairs = [(parent, row) for parent, row in runs.with_parents(rows) if row["name"] == "aten::erfinv"]
            assert [parent["name"] for parent, _ in pairs] == ["in the training function"] * steps
            assert all(row["thread"] != row["pid"] for row in labels)
            assert len(runs.named(rows, "report")) == 1
            assert bool(runs.named(rows, "aten::digamma")) == (is_failed and rank == 1)
