"""``stepscope view``: pages, and the run of a job that is still at work."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
import stepscope as package

EVENTS = [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10, "dur": 30}]


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": EVENTS}))
    return path


def ask(url, path):
    """What ``api/PATH`` answers; it is asked again while the run is still being read."""
    base, token = url.split("?token=")
    request = urllib.request.Request(f"{base}api/{path}", headers={"Authorization": f"Bearer {token}"})
    deadline = time.monotonic() + 600
    while True:
        try:
            with urllib.request.urlopen(request, timeout=600) as answer:
                told = json.load(answer)
                if answer.status != 202:
                    return told
        except urllib.error.HTTPError as error:
            if error.code != 409:
                raise
        assert time.monotonic() < deadline, "the run is still being read"
        time.sleep(0.05)


def test_a_run_is_served_from_python(trace):
    run = package.open(trace)
    with run.view() as url:
        assert isinstance(url, str) and url.startswith("http://127.0.0.1:")
        answer = ask(url, "runs/0/analyses/operators")
        assert answer["results"] == run.operators()["results"]
        with urllib.request.urlopen(url, timeout=600) as page:
            assert page.read().lower().startswith(b"<!doctype html>")
    with pytest.raises(urllib.error.URLError):
        ask(url, "runs")


def test_several_are_served(trace, tmp_path):
    url = package.view(trace, tmp_path)
    try:
        assert [run["name"] for run in ask(url, "runs")] == ["trace.json"]
    finally:
        url.close()
    with pytest.raises(FileNotFoundError):
        package.view(tmp_path / "nothing")


def test_the_command_prints_the_address_and_ends_on_request(trace):
    command = [sys.executable, "-m", "stepscope", "view", str(trace), "--no-browser"]
    for wish in (signal.SIGINT, signal.SIGTERM):
        viewing = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        url = viewing.stdout.readline().strip()
        assert ask(url, "runs/0")["counts"]["slices"] == 1
        viewing.send_signal(wish)
        assert viewing.wait(timeout=600) == 0, viewing.stderr.read()


# Steps until it is told to end, each with a number of operators.
JOB = """
import pathlib, sys, time, torch
a = torch.ones(8, 8)
while not pathlib.Path(sys.argv[1]).exists():
    with torch.profiler.record_function("work"):
        for _ in range(100):
            a = torch.mm(a, a) * 0.1
    print("step", flush=True)
    time.sleep(0.01)
"""


@pytest.mark.slow
def test_a_job_is_followed_while_it_runs(tmp_path):
    program, end, run = tmp_path / "job.py", tmp_path / "end", tmp_path / "run"
    program.write_text(JOB)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "stepscope", "record", "-o", run, "--", sys.executable, program, end]
    job = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        # So much that it has begun to write.
        for _ in range(20):
            assert job.stdout.readline() == "step\n"
        with package.view(run) as url:
            counts, versions = [], []
            deadline = time.monotonic() + 600
            while len(versions) < 4 and time.monotonic() < deadline:
                job.stdout.readline()
                listed = ask(url, "runs")[0]
                if listed["version"] is not None and listed["version"] not in versions:
                    assert listed["is_live"]
                    told = ask(url, "runs/0")
                    versions.append(listed["version"])
                    counts.append(told["counts"]["slices"])
                    mm = ask(url, "runs/0/analyses/operators?where=name:eq:aten::mm")["results"]
                    assert mm[0]["count"] > 0
                time.sleep(0.05)
            assert len(versions) == 4 and versions == sorted(versions)
            assert counts == sorted(set(counts)), counts
            end.touch()
            steps = sum(1 for line in job.stdout if line == "step\n")
            assert job.wait(timeout=600) == 0 and steps >= 0
            # The end is seen, too, and everything is there.
            while ask(url, "runs")[0]["is_live"] and time.monotonic() < deadline + 60:
                time.sleep(0.1)
            assert not ask(url, "runs")[0]["is_live"]
            expected = package.open(run).operators()["results"]
            found = ask(url, "runs/0/analyses/operators?limit=10000")["results"]
            assert found == expected and len(found) > 0
    finally:
        end.touch()
        job.wait(timeout=600)
