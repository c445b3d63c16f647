"""Several `stepscope record` commands, one on each node, make one run."""

import json
import socket
import sys

import pytest
import runs


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.mark.slow
def test_a_job_of_two_nodes_is_one_run(tmp_path):
    run, port = tmp_path / "run", free_port()
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nnodes", 2, "--nproc-per-node", 2]
    launcher += ["--master-addr", "127.0.0.1", "--master-port", port]

    def start(node):
        command = [runs.COMMAND, "record", "--join", "-o", run, "--", *launcher, "--node-rank", node]
        command += [runs.PROGRAMS / "ddp.py", 3]
        return runs.started(*command, timeout=600)

    with start(0) as first, start(1) as second:
        nodes = [first, second]
        ended = [node.communicate() for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0], ended
    found = [runs.metadata(part) for part in runs.parts(run)]
    ranks = [process["rank"] for process in found if "process_groups" in process["facts"]]
    assert sorted(ranks) == [0, 1, 2, 3]
    assert json.loads((run / "run.json").read_text())["format"]
    rows = runs.analyze("step_breakdown", run)["results"]
    assert {row["rank"] for row in rows} == {0, 1, 2, 3}
    # The run is over: a third command would mix it with another job.
    told = runs.stepscope("record", "--join", "-o", run, "--", sys.executable, "-c", "pass", code=1)
    assert "has already finished" in told.stderr


def test_the_folder_that_one_is_in_may_be_joined(tmp_path):
    recorded = [runs.COMMAND, "record", "--join", "-o", ".", "--", *runs.new_script("import torch; torch.ones(2)")]
    runs.execute(*recorded, cwd=tmp_path)
    assert runs.rows(tmp_path)


def test_without_being_told_to_nobody_joins(tmp_path):
    run = tmp_path / "run"
    runs.record(run, runs.new_script("import torch; torch.ones(2)"))
    assert "this folder already holds a run" in runs.stepscope("record", "-o", run, "--", "true", code=1).stderr
    assert "--output" in runs.stepscope("record", "--join", "--", "true", code=2).stderr
