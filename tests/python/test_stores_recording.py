"""Runs that are recorded into a store: sent while the job runs, resumed, and never lost when the store is away."""

import contextlib
import shutil
import sys
import time
from pathlib import Path
from urllib.parse import unquote

import pytest
import runs
import stores
from stores import table, variables

pytest.importorskip("boto3")
RUN = Path(__file__).parents[1] / "fixtures" / "gpu" / "streams" / "run"


@pytest.fixture(scope="module")
def s3():
    with stores.s3() as (address, client):
        yield address, client


PROGRAM = "import sys, torch\nfor _ in range(3):\n    torch.ones(4) + 1\nsys.exit(int(sys.argv[1]))\n"


def recorded(address, env, folder, *arguments, code=0):
    command = [runs.COMMAND, "record", "-o", address, *arguments, "--", sys.executable, "-c", PROGRAM, code]
    return runs.execute(*command, cwd=folder, env=env, code=code)


def test_a_run_is_recorded_into_a_store(s3, tmp_path):
    address, client = s3
    env = variables(address)
    told = recorded("s3://runs/recorded", env, tmp_path, code=3)
    assert "sent to s3://runs/recorded" in told.stderr
    assert [row["count"] for row in table("s3://runs/recorded", env) if row["name"] == "aten::add"] == [3]
    again = runs.run(runs.COMMAND, "record", "-o", "s3://runs/recorded", "--", "true", cwd=tmp_path, env=env)
    assert again.returncode == 1 and "this address already holds objects" in again.stderr
    recorded("s3://runs/recorded", env, tmp_path, "--join")
    assert [row["count"] for row in table("s3://runs/recorded", env) if row["name"] == "aten::add"] == [6]


def test_a_store_that_refuses_is_told_before_the_job_runs(s3, tmp_path):
    address, _ = s3
    marker = tmp_path / "ran"
    command = [runs.COMMAND, "record", "-o", "s3://other/run", "--", "touch", marker]
    told = runs.run(*command, cwd=tmp_path, env=variables(address))
    assert told.returncode == 1 and "there is no bucket or container s3://other" in told.stderr
    assert not marker.exists() and not list(tmp_path.iterdir())


def test_nothing_is_lost_when_the_store_is_away(s3, tmp_path):
    address, _ = s3
    env = variables(address)
    with stores.proxy(address) as proxy:
        away = variables(proxy.address, STEPSCOPE_STORE_RETRY_S=0)
        proxy.fault = lambda request: 500
        told = recorded("s3://runs/away", away, tmp_path)
        assert "the run is kept here" in told.stderr and "stepscope upload" in told.stderr
        (run,) = (tmp_path / "stepscope-runs").iterdir()
        proxy.fault = lambda request: None
        runs.stepscope("upload", run, "s3://runs/away", env=away)
        proxy.requests.clear()
        assert "0 files" in runs.stepscope("upload", run, "s3://runs/away", env=away).stdout
        assert len(proxy.requests) == 1, "one listing tells of all files"
    assert table("s3://runs/away", env) == table(run, runs.environment())


CHILD = """
import os, sys, time, torch
child = os.fork()
torch.ones(4) + 1
if child:
    os.waitpid(child, 0)
    while not os.path.exists("go on"):
        time.sleep(0.05)
"""


def test_what_a_process_recorded_is_sent_when_it_ends(s3, tmp_path):
    address, client = s3
    command = [runs.COMMAND, "record", "-o", "s3://runs/early", "--", sys.executable, "-c", CHILD]
    with runs.started(*command, cwd=tmp_path, env=variables(address)) as job:
        deadline = time.monotonic() + 300
        while not (parts := keys(client, "early/", ".parquet")):
            assert job.poll() is None and time.monotonic() < deadline
            time.sleep(0.1)
        assert len(parts) == 1
        (tmp_path / "go on").touch()
        _, said = job.communicate(timeout=300)
        assert job.returncode == 0, said
    assert set(parts) < set(keys(client, "early/", ".parquet"))
    assert [row["count"] for row in table("s3://runs/early", variables(address)) if row["name"] == "aten::add"] == [2]


# A process for each argument, one after the other. Each ends when there is a file of that name.
FAMILY = """
import os, sys, time, torch
for name in sys.argv[1:]:
    child = os.fork()
    torch.ones(4) + 1
    if not child:
        break
    os.waitpid(child, 0)
    while not os.path.exists(name):
        time.sleep(0.05)
sys.exit(7)
"""


@contextlib.contextmanager
def family(proxy, folder, address):
    """A recording of two processes that end early, and of their parent, and the environment that it sends in."""
    env = variables(proxy.address, STEPSCOPE_STORE_RETRY_S=0)
    command = [runs.COMMAND, "record", "-o", address, "--", sys.executable, "-c", FAMILY, "one", "two"]
    with runs.started(*command, cwd=folder, env=env) as job:
        yield job, env


def wait_until(is_so, job):
    deadline = time.monotonic() + 300
    while not is_so():
        assert job.poll() is None and time.monotonic() < deadline
        time.sleep(0.1)


def test_a_store_that_goes_away_meanwhile_gets_the_rest_later(s3, tmp_path):
    address, client = s3
    with stores.proxy(address) as proxy, family(proxy, tmp_path, "s3://runs/broken") as (job, env):
        wait_until(lambda: keys(client, "broken/", ".parquet"), job)
        sent = keys(client, "broken/", "")
        refused = []

        def away(request):
            refused.append(request["path"])
            return "gone", 0

        proxy.fault = away
        (tmp_path / "one").touch()
        # The part of the second process is refused while the job runs.
        wait_until(lambda: any(path.partition("?")[0].endswith(".parquet") for path in refused), job)
        (tmp_path / "two").touch()
        _, said = job.communicate(timeout=300)
        assert job.returncode == 7, said
        assert "the connection to s3://runs broke" in said and "the run is kept here" in said
        assert keys(client, "broken/", "") == sent
        proxy.fault = lambda request: None
        proxy.requests.clear()
        (run,) = (tmp_path / "stepscope-runs").iterdir()
        assert f"stepscope upload stepscope-runs/{run.name} s3://runs/broken" in said
        files = [path for path in run.rglob("*") if path.is_file() and "raw" not in path.relative_to(run).parts]
        missing = len(files) - len(sent)
        assert missing >= 2, "the second process and the parent"
        told = runs.stepscope("upload", run, "s3://runs/broken", env=env).stdout
        assert told.startswith(f"{missing} files"), told
        put = {unquote(request["path"].partition("?")[0]) for request in proxy.requests if request["method"] == "PUT"}
        assert len(put) == missing and not put & {f"/runs/{key}" for key in sent}
        found = table("s3://runs/broken", env)
        assert found == table(run, runs.environment())
        assert [row["count"] for row in found if row["name"] == "aten::add"] == [4]


def test_a_store_that_comes_back_while_the_job_runs_gets_all(s3, tmp_path):
    address, client = s3
    with stores.proxy(address) as proxy:
        proxy.fault = lambda request: 500
        with family(proxy, tmp_path, "s3://runs/back") as (job, env):
            # The first process has ended, and nothing of it could be sent.
            wait_until(lambda: any(".parquet" in request["path"] for request in proxy.requests), job)
            assert not keys(client, "back/", "")
            proxy.fault = lambda request: None
            wait_until(lambda: keys(client, "back/", ".parquet") and "back/run.json" in keys(client, "back/", ""), job)
            (tmp_path / "one").touch()
            (tmp_path / "two").touch()
            _, said = job.communicate(timeout=300)
    assert job.returncode == 7, said
    assert "and sent when that works" in said and "sent to s3://runs/back" in said and "kept here:" not in said
    assert [row["count"] for row in table("s3://runs/back", variables(address)) if row["name"] == "aten::add"] == [4]


def is_part(number):
    return lambda request: request["method"] == "PUT" and f"partNumber={number}&" in f"{request['path']}&"


@pytest.mark.parametrize(
    "is_refused",
    [is_part(1), is_part(8), lambda request: request["method"] == "POST" and "uploadId=" in request["path"]],
    ids=["the first part", "the last part", "the end"],
)
def test_a_file_that_breaks_off_leaves_no_parts_at_the_store(s3, tmp_path, is_refused):
    address, client = s3
    run = tmp_path / "run"
    shutil.copytree(RUN, run)
    with open(run / "long.bin", "wb") as file:
        # Seven parts and a half.
        file.truncate(60 << 20)
    with stores.proxy(address) as proxy:
        env = variables(proxy.address, STEPSCOPE_STORE_RETRY_S=0)
        prefix = tmp_path.name
        proxy.fault = lambda request: 403 if is_refused(request) else None
        told = runs.run(runs.COMMAND, "upload", run, f"s3://runs/{prefix}", env=env)
        assert told.returncode == 1 and "s3://runs denies access" in told.stderr
        assert any(is_refused(request) for request in proxy.requests)
        begun = client.list_multipart_uploads(Bucket="runs").get("Uploads", [])
        assert not [upload for upload in begun if upload["Key"].startswith(prefix)]
        assert not keys(client, f"{prefix}/", ".bin")
        # What the store said first is the error, also where it does not hear that the rest will not come.
        proxy.fault = lambda request: 403 if is_refused(request) else 500 if request["method"] == "DELETE" else None
        told = runs.run(runs.COMMAND, "upload", run, f"s3://runs/{prefix}", env=env)
        assert told.returncode == 1 and "s3://runs denies access" in told.stderr
        proxy.fault = lambda request: None
        runs.stepscope("upload", run, f"s3://runs/{prefix}", env=env)
        assert client.head_object(Bucket="runs", Key=f"{prefix}/long.bin")["ContentLength"] == 60 << 20


def keys(client, prefix, ending):
    listed = client.list_objects_v2(Bucket="runs", Prefix=prefix).get("Contents", [])
    return [entry["Key"] for entry in listed if entry["Key"].endswith(ending)]
