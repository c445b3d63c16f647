"""Jobs of accelerate: the steps of its loop, and the traces that its own profiler writes for each process."""

import sys
from collections import Counter
from pathlib import Path

import pytest
import runs

pytest.importorskip("accelerate")
PROGRAM = Path(__file__).with_name("programs") / "accelerate_job.py"


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """A folder with the run of two processes and with the traces that accelerate wrote."""
    folder = tmp_path_factory.mktemp("job")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", PROGRAM]
    runs.stepscope("record", "--as-torch-profiler", "-o", "run", "--", *torchrun, cwd=folder)
    return folder


def test_batches_that_are_added_up_make_one_step(job):
    rows = runs.analyze("step_breakdown", job / "run")["results"]
    complete = Counter(row["rank"] for row in rows if row["step"] is not None and row["is_complete"])
    # Of four, nobody knows where the first one begins.
    assert complete == {0: 3, 1: 3}


def test_the_traces_of_its_profiler_are_a_rank_each(job):
    assert {path.name for path in (job / "traces").iterdir()} == {"profile_0.json", "profile_1.json"}
    assert "import.rank_unknown" not in runs.findings(job / "traces")
    for rank in ("0", "1"):
        counts = runs.counts_of_operators(job / "traces", "--rank", rank)
        assert counts["aten::linear"] == 8 and counts["c10d::allreduce_"] == 4
