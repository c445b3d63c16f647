"""SQL and object stores: tables that lie in one, and answers that go to one."""

import json
import subprocess
from urllib.parse import unquote

import pytest
import runs
import stores
from queries import FIXTURES, PROGRAM, RANKS, needs_program
from stores import variables

RUN = FIXTURES / "gpu" / "streams" / "run"

pytestmark = needs_program


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


@pytest.fixture(scope="module")
def asked(s3, tmp_path_factory):
    """Tables of a job of two ranks, on this disk and as ``s3://runs/asked``."""
    folder = tmp_path_factory.mktemp("here") / "asked"
    runs.stepscope("convert", RANKS, "-o", f"{folder}/")
    runs.stepscope("convert", RANKS, "-o", "s3://runs/asked/", env=variables(s3[0]))
    return folder


def rows(*words, env):
    return json.loads(runs.stepscope("sql", *words, "--json", env=env).stdout)["rows"]


def reads(proxy, table=""):
    """The ranges that were read of the files of a table, or of all, as pairs of path and bytes."""
    found = ((unquote(request["path"]), request) for request in proxy.requests if request["range"])
    return [(path, request.get("bytes", 0)) for path, request in found if f"/{table}" in path and ".parquet" in path]


def test_tables_in_a_store_are_read_where_they_lie(s3, asked, tmp_path):
    """Rows are those of tables on this disk; only the columns and ranks that a question needs are read, and nothing is kept."""
    local = runs.environment(STEPSCOPE_SQL=PROGRAM)
    with stores.proxy(s3[0]) as proxy:
        env = variables(proxy.address, STEPSCOPE_STORE_RETRY_S=0, XDG_CACHE_HOME=tmp_path, STEPSCOPE_SQL=PROGRAM)
        for query in (
            "select * from slice order by rank, slice",
            "select name, count(*) as n, sum(dur_ns) as ns from op group by name order by name",
            "select rank, step_of(rank, start_ns) as step, count(*) as n from op group by 1, 2 order by 1, 2",
        ):
            expected = rows(asked, query, env=local)
            assert rows("s3://runs/asked", query, env=env) == expected and expected
        sizes = {}
        for query in ("select * from slice", "select sum(dur_ns) from slice", "select * from slice where rank = 1"):
            proxy.requests.clear()
            runs.stepscope("sql", "s3://runs/asked", query, "--csv", env=env)
            sizes[query] = sum(size for _, size in reads(proxy, "slice/"))
            assert not reads(proxy, "op/")
            # A footer of each file, which also the plan is made by, and not once again for each reader.
            assert len(reads(proxy, "slice/rank-0")) <= 2
        everything, column, rank = sizes.values()
        assert column < everything and rank < everything, sizes
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]


def test_runs_of_this_disk_and_of_a_store_are_asked_together(s3, asked):
    env = variables(s3[0], STEPSCOPE_SQL=PROGRAM)
    [[count, ns]] = rows(asked, "select count(*), sum(dur_ns) from op", env=env)
    query = "select run, count(*) as n, sum(dur_ns) as ns from op group by run order by run"
    assert rows(asked, "s3://runs/asked", query, env=env) == [["asked", count, ns], ["asked (2)", count, ns]]


def test_what_a_store_refuses_of_a_table_is_said(s3, asked):
    """Which object, why, and what to do, also where it is refused in the middle of a query."""
    address, client = s3
    query = "select name, sum(dur_ns) from slice group by name"
    with stores.proxy(address) as proxy:
        env = variables(proxy.address, STEPSCOPE_STORE_RETRY_S=0, STEPSCOPE_SQL=PROGRAM)
        proxy.fault = lambda request: 403 if "slice/" in unquote(request["path"]) and request["range"] else None
        told = runs.run(runs.COMMAND, "sql", "s3://runs/asked", query, env=env)
        assert told.returncode == 1
        assert told.stderr.startswith("error: cannot read s3://runs/asked/slice/rank-0"), told.stderr
        assert "s3://runs denies access" in told.stderr and "hint: ask for the right" in told.stderr
        # The command lists first, to see what is there; then the engine does.
        listings = []

        def after_listings(request, answered=99):
            """Refuses the listings behind the first ones."""
            listings.extend([request["path"]] if "list-type" in request["path"] else [])
            return 403 if len(listings) > answered and "list-type" in request["path"] else None

        proxy.fault = after_listings
        runs.stepscope("sql", "s3://runs/asked", query, "--csv", env=env)
        of_both = len(listings)
        listings.clear()
        proxy.fault = lambda request: after_listings(request, of_both // 2)
        told = runs.run(runs.COMMAND, "sql", "s3://runs/asked", query, env=env)
        assert told.returncode == 1 and told.stderr.startswith("error: cannot read the tables: "), told.stderr
        assert "s3://runs denies access" in told.stderr and "hint: ask for the right" in told.stderr
        seen = []

        def after_the_footer(request):
            """All that is read of rank 0 behind its footer comes from another object."""
            if "slice/rank-0" in unquote(request["path"]) and request["range"]:
                seen.append(request)
                if len(seen) == 2:
                    key = next(key for key in keys(client, "asked/slice/") if "rank-0" in key)
                    body = client.get_object(Bucket="runs", Key=key)["Body"].read()
                    client.put_object(Bucket="runs", Key=key, Body=body[:-9] + b"123456789")
            return

        proxy.fault = after_the_footer
        told = runs.run(runs.COMMAND, "sql", "s3://runs/asked", query, env=env)
        assert len(seen) >= 2
        assert told.returncode == 1 and "the object was written while it was read" in told.stderr, told.stderr


def keys(client, prefix):
    return [found["Key"] for found in client.list_objects_v2(Bucket="runs", Prefix=prefix)["Contents"]]


def test_answers_of_sql_go_to_stores(s3, run, tmp_path):
    address, client = s3
    query = "select name, dur_ns from slice order by slice"
    env = variables(address, STEPSCOPE_SQL=PROGRAM)
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
