"""SQL and object stores: tables that lie in one, and answers that go to one."""

import json
import os
import subprocess
from pathlib import Path
from urllib.parse import unquote

import pytest
import runs
import stores
from stores import variables

SQL = os.environ.get("STEPSCOPE_SQL", "")
RUN = Path(__file__).parents[1] / "fixtures" / "gpu" / "streams" / "run"

pytestmark = pytest.mark.skipif(not SQL, reason="STEPSCOPE_SQL names no program: cargo xtask test builds it")


@pytest.fixture
def run(tmp_path):
    """A copy of a run, beside which tables may be kept."""
    subprocess.run(["cp", "-r", RUN, tmp_path], check=True)
    return tmp_path / RUN.name


@pytest.fixture(scope="module")
def s3():
    """A server with an empty bucket: its address, and a client of it."""
    with stores.s3() as (address, client):
        yield address, client


def test_tables_in_a_store_are_asked_from_a_copy_that_is_kept(s3, run, tmp_path):
    address, _ = s3
    runs.stepscope("convert", run, "-o", "s3://runs/asked/", env=variables(address))
    query = "select name, count(*) as n, sum(dur_ns) as ns from slice group by name order by name"
    answer = runs.stepscope("sql", run, query, "--json", env=runs.environment(STEPSCOPE_SQL=SQL)).stdout
    expected = json.loads(answer)["rows"]
    with stores.proxy(address) as proxy:
        env = variables(proxy.address, STEPSCOPE_STORE_RETRY_S=0, XDG_CACHE_HOME=tmp_path, STEPSCOPE_SQL=SQL)
        proxy.fault = lambda request: 403 if "kernel/" in unquote(request["path"]) and request["range"] else None
        told = runs.run(runs.COMMAND, "sql", "s3://runs/asked", query, env=env)
        assert told.returncode == 1 and "s3://runs denies access" in told.stderr and "/kernel/rank-0" in told.stderr
        proxy.fault = lambda request: None
        for reads in (True, False):
            proxy.requests.clear()
            asked = runs.stepscope("sql", "s3://runs/asked", query, "--json", env=env).stdout
            assert json.loads(asked)["rows"] == expected and expected
            assert any(".parquet" in request["path"] for request in proxy.requests if request["range"]) is reads


def test_answers_of_sql_go_to_stores(s3, run, tmp_path):
    address, client = s3
    query = "select name, dur_ns from slice order by slice"
    env = variables(address, STEPSCOPE_SQL=SQL)
    runs.stepscope("sql", run, query, "--parquet", "s3://runs/answers/all.parquet", env=env)
    runs.stepscope("sql", run, query, "--parquet", tmp_path / "here.parquet", env=env)
    sent = client.get_object(Bucket="runs", Key="answers/all.parquet")["Body"].read()
    assert sent == (tmp_path / "here.parquet").read_bytes()
    wrong = ["sql", run, "select nam from op", "--parquet", "s3://runs/answers/wrong.parquet"]
    told = runs.run(runs.COMMAND, *wrong, env=env)
    assert told.returncode == 1 and "there is no column nam" in told.stderr
    told = runs.run(runs.COMMAND, *wrong[:2], query, "--parquet", "s3://nowhere/a.parquet", env=env)
    assert told.returncode == 1 and "s3://nowhere" in told.stderr
    assert [found["Key"] for found in client.list_objects_v2(Bucket="runs", Prefix="answers/")["Contents"]] == [
        "answers/all.parquet"
    ]
