"""Runs and traces in object stores: the same answers as from disk, few requests, and a clear word where something fails."""

import base64
import gzip
import json
import random
import shutil
import signal
import socket
import threading
from pathlib import Path
from urllib.parse import unquote

import pytest
import runs
import stores
from stores import table, variables
from test_view import ask

boto3 = pytest.importorskip("boto3")
FIXTURES = Path(__file__).parents[1] / "fixtures" / "gpu"
DDP = FIXTURES.parent / "ddp-cpu"
RUN, TRACE = FIXTURES / "streams" / "run", FIXTURES / "streams" / "torch.json.gz"


@pytest.fixture(scope="module")
def s3(tmp_path_factory):
    """A bucket with a run, a trace, and the traces of two ranks: the server's address, and a client of it."""
    with stores.s3() as (address, client):
        stores.upload(client, RUN, "jobs/run")
        client.upload_file(str(TRACE), "runs", "traces/torch.json.gz")
        for path in ranks(tmp_path_factory.mktemp("ranks")):
            client.upload_file(str(path), "runs", f"ranks/{path.name}")
        yield address, client


def ranks(folder, count=2, operators=60_000):
    """Traces of ranks, large enough to be read in several parts where nothing else is said."""
    events = [
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": f"aten::op{at % 7}",
            "pid": 1,
            "tid": 1,
            "ts": 10 * at,
            "dur": 7,
            "args": {"note": "x" * 60},
        }
        for at in range(operators)
    ]
    for rank in range(count):
        path = folder / f"rank{rank}.json"
        about = {"distributedInfo": {"rank": rank, "world_size": count}, "baseTimeNanoseconds": 0}
        path.write_text(json.dumps({**about, "traceEvents": events}))
        yield path


def fails(path, env):
    """What the command says that cannot open ``path``."""
    told = runs.run(runs.COMMAND, "analyze", "operators", path, "--json", env=env)
    assert told.returncode == 1 and not told.stdout, (told.returncode, told.stdout)
    assert "panicked" not in told.stderr
    return told.stderr


@pytest.mark.parametrize("place, local", [("jobs/run", RUN), ("traces/torch.json.gz", TRACE)])
@pytest.mark.parametrize("analysis", ["operators", "kernels", "idle_causes"])
def test_answers_are_those_from_disk(s3, place, local, analysis):
    address, _ = s3
    found = table(f"s3://runs/{place}", variables(address), analysis)
    assert found and found == table(local, runs.environment(), analysis)


def test_ranks_are_found_by_folder_and_by_pattern(s3, tmp_path):
    address, _ = s3
    expected = table(list(ranks(tmp_path))[0].parent, runs.environment())
    assert expected
    env = variables(address)
    assert table("s3://runs/ranks", env) == table("s3://runs/ranks/rank*.json", env) == expected
    told = fails("s3://runs/ranks/none*.json", env)
    assert "no file or folder matches the pattern" in told


def test_a_long_trace_is_read_in_ranges_ahead(s3):
    address, client = s3
    with stores.proxy(address) as proxy:
        assert table("s3://runs/ranks/rank0.json", variables(proxy.address))
        ranges = [request["range"] for request in proxy.requests if request["range"]]
        size = client.head_object(Bucket="runs", Key="ranks/rank0.json")["ContentLength"]
        assert size > 2 * (4 << 20) and len(ranges) == len(set(ranges)) == -(-size // (4 << 20))


def test_a_packed_trace_is_read_in_ranges(s3, tmp_path):
    address, client = s3
    # Letters drawn at random are not packed well.
    draw = random.Random(1)
    event = {"ph": "X", "cat": "cpu_op", "pid": 1, "tid": 1, "dur": 7}
    notes = (base64.b64encode(draw.randbytes(120)).decode() for _ in range(60_000))
    events = [
        {**event, "name": f"aten::op{at % 7}", "ts": 10 * at, "args": {"note": note}} for at, note in enumerate(notes)
    ]
    path = tmp_path / "packed.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"traceEvents": events}).encode(), 1))
    client.upload_file(str(path), "runs", "long/packed.json.gz")
    check_ranges(address, "long/packed.json.gz", path, path)


def test_a_long_part_of_a_run_is_read_in_ranges(s3, tmp_path):
    address, client = s3
    runs.record(tmp_path, runs.script("import torch\nx = torch.zeros(1)\nfor _ in range(700_000): x.add_(1)"))
    (part,) = runs.parts(tmp_path)
    stores.upload(client, tmp_path, "long/run")
    check_ranges(address, "long/run", tmp_path, part)


def check_ranges(address, key, path, long):
    """What is in the store gives the answer from disk, and no part of its long file is asked for twice."""
    with stores.proxy(address) as proxy:
        found = table(f"s3://runs/{key}", variables(proxy.address))
        of_file = (request for request in proxy.requests if request["range"] and long.name in request["path"])
        begins = [int(request["range"].removeprefix("bytes=").partition("-")[0]) for request in of_file]
    assert found and found == table(path, runs.environment())
    # The end of a part of a run is looked at before, to see what it is.
    parts = [begin for begin in begins if begin % (4 << 20) == 0]
    assert sorted(parts) == list(range(0, long.stat().st_size, 4 << 20)) and len(parts) > 1


def test_summaries_are_kept_in_the_store_and_asked_for_at_once(s3, tmp_path):
    address, client = s3
    for path in ranks(tmp_path, 4):
        client.upload_file(str(path), "runs", f"kept/{path.name}")
    report = ["report", "s3://runs/kept", "--json"]
    with stores.proxy(address) as proxy:
        env = variables(proxy.address, XDG_CACHE_HOME=tmp_path / "cache", STEPSCOPE_STORE_RETRY_S=1)
        first = runs.stepscope(*report, env=env).stdout
        asked = [(request["method"], request["path"].partition("?")[0]) for request in proxy.requests]
        assert [path for method, path in asked if method == "HEAD"] == ["/runs/kept"]
        written = [f"/runs/kept/.stepscope/rank{rank}.json.parquet" for rank in range(4)]
        assert sorted(path for method, path in asked if method == "PUT") == written
        proxy.requests.clear()

        def is_summary(request):
            return ".stepscope/" in request["path"].partition("?")[0]

        # None of them is answered before all were asked for.
        together = threading.Barrier(4, timeout=60)
        proxy.fault = lambda request: together.wait if is_summary(request) else None
        assert runs.stepscope(*report, env=env).stdout == first
        assert not together.broken
        others = [request["path"].partition("?")[0] for request in proxy.requests if not is_summary(request)]
        assert len(proxy.requests) == len(others) + 4 and set(others) == {
            "/runs",
            "/runs/kept",
            "/runs/kept/rank0.json",
        }


def test_a_connection_that_breaks_is_taken_up_again(s3):
    address, _ = s3
    expected = table("s3://runs/ranks/rank0.json", variables(address))
    broken = []

    def cut(request):
        if request["range"] and len(broken) < 2:
            broken.append(request)
            return "cut", 100_000
        return None

    with stores.proxy(address) as proxy:
        proxy.fault = cut
        assert table("s3://runs/ranks/rank0.json", variables(proxy.address)) == expected
    assert len(broken) == 2


def test_a_busy_store_is_asked_again_and_a_slow_one_waited_for(s3):
    address, _ = s3
    expected = table("s3://runs/traces/torch.json.gz", variables(address))
    answers = iter([503, 503, ("delay", 0.3), 500])
    with stores.proxy(address) as proxy:
        proxy.fault = lambda request: next(answers, None)
        assert table("s3://runs/traces/torch.json.gz", variables(proxy.address)) == expected
    assert next(answers, None) is None


@pytest.mark.parametrize(
    "fault, said, hint",
    [
        (403, "s3://runs denies access", "right to list and read"),
        (401, "s3://runs does not accept the credentials", "AWS_PROFILE"),
        (503, "s3://runs answers that it gets too many requests", "STEPSCOPE_STORE_RETRY_S"),
        (("cut", 10), "the connection to s3://runs broke", "STEPSCOPE_STORE_RETRY_S"),
    ],
)
def test_what_stays_broken_is_said(s3, fault, said, hint):
    address, _ = s3
    with stores.proxy(address) as proxy:
        proxy.fault = lambda request: fault
        told = fails("s3://runs/traces/torch.json.gz", variables(proxy.address, STEPSCOPE_STORE_RETRY_S=1))
    assert said in told and hint in told and "at: s3://runs/traces/torch.json.gz" in told


@pytest.mark.parametrize(
    "fault, said, hint",
    [
        (403, "s3://runs denies access", "ask for the right to list and read it"),
        (503, "s3://runs answers that it gets too many requests", "STEPSCOPE_STORE_RETRY_S"),
        (("cut", 10), "the connection to s3://runs broke", "STEPSCOPE_STORE_RETRY_S"),
    ],
)
@pytest.mark.parametrize("place, file", [("jobs/ddp", "rank=1/part"), ("ranks", "rank1.json")])
def test_there_is_no_answer_without_a_rank_that_the_store_refuses(s3, tmp_path, fault, said, hint, place, file):
    """And none is kept: it is asked for again."""
    address, client = s3
    stores.upload(client, DDP, "jobs/ddp")
    expected = table(f"s3://runs/{place}", variables(address, XDG_CACHE_HOME=tmp_path / "other"))
    with stores.proxy(address) as proxy:
        env = variables(proxy.address, STEPSCOPE_STORE_RETRY_S=1, XDG_CACHE_HOME=tmp_path / "cache")
        proxy.fault = lambda request: fault if file in unquote(request["path"]) and request["range"] else None
        told = fails(f"s3://runs/{place}", env)
        assert said in told and hint in told and f"at: s3://runs/{place}" in told and file in told
        proxy.fault = lambda request: None
        assert table(f"s3://runs/{place}", env) == expected


def test_what_is_not_there_is_said(s3):
    address, _ = s3
    env = variables(address)
    assert "no such file or folder" in fails("s3://runs/nothing", env)
    assert "there is no bucket or container s3://other" in fails("s3://other/run", env)
    assert "this is no address of an object" in fails("s3://runs/a//b", env)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{free.getsockname()[1]}"
        told = fails("s3://runs/run", variables(nobody, STEPSCOPE_STORE_RETRY_S=0))
    assert "s3://runs cannot be reached" in told
    none = {**env, "HOME": "/nonexistent"}
    del none["AWS_ACCESS_KEY_ID"], none["AWS_SECRET_ACCESS_KEY"]
    told = fails("s3://runs/jobs/run", none)
    assert "there are no credentials for s3://runs" in told and "AWS_PROFILE" in told


def test_a_profile_says_who_asks_and_where(s3, tmp_path):
    address, _ = s3
    (tmp_path / "config").write_text(f"[profile lab]\nregion = us-east-1\nendpoint_url = {address}\n")
    (tmp_path / "credentials").write_text("[lab]\naws_access_key_id = a\naws_secret_access_key = b\n")
    files = {"AWS_CONFIG_FILE": tmp_path / "config", "AWS_SHARED_CREDENTIALS_FILE": tmp_path / "credentials"}
    env = runs.environment(**files, AWS_PROFILE="lab")
    assert table("s3://runs/traces/torch.json.gz", env) == table(TRACE, runs.environment())


def test_an_object_that_is_written_while_it_is_read_is_no_trace(s3, tmp_path):
    address, client = s3
    path = list(ranks(tmp_path))[0]
    client.upload_file(str(path), "runs", "changing/rank0.json")
    changed = []

    def change():
        changed.append(1)
        client.put_object(Bucket="runs", Key="changing/rank0.json", Body=path.read_bytes()[:-2] + b" ]}")

    with stores.proxy(address) as proxy:
        proxy.fault = lambda request: change if request["range"] and not changed else None
        told = runs.run(
            runs.COMMAND, "analyze", "operators", "s3://runs/changing/rank0.json", env=variables(proxy.address)
        )
    assert changed and "the object was written while it was read" in told.stdout + told.stderr


def test_damage_on_the_way_never_ends_in_a_panic(s3):
    address, _ = s3
    with stores.proxy(address) as proxy:
        proxy.fault = lambda request: ("flip", TRACE.stat().st_size // 2) if request["range"] else None
        told = runs.run(
            runs.COMMAND,
            "analyze",
            "operators",
            "s3://runs/traces/torch.json.gz",
            "--json",
            env=variables(proxy.address),
        )
    assert "panicked" not in told.stderr
    if told.returncode == 0:
        whole = runs.stepscope("analyze", "operators", TRACE, "--json").stdout
        assert json.loads(told.stdout)["findings"] != json.loads(whole)["findings"], "it says that it was damaged"
    else:
        assert "error:" in told.stderr


def test_reports_go_to_stores(s3, tmp_path):
    address, client = s3
    for name, option in {"report.html": "html", "report.md": "markdown"}.items():
        runs.stepscope("report", RUN, f"--{option}=s3://runs/reports/{name}", env=variables(address))
        runs.stepscope("report", RUN, f"--{option}={tmp_path / name}")
        kept = client.get_object(Bucket="runs", Key=f"reports/{name}")["Body"].read()
        assert kept == (tmp_path / name).read_bytes(), name


@pytest.mark.parametrize("name", ["trace.json.gz", "trace.pftrace", "slices.parquet", "tables/"])
def test_exports_go_to_stores(s3, tmp_path, name):
    address, client = s3
    env = variables(address)
    runs.stepscope("convert", RUN, "-o", f"s3://runs/exports/{name}", env=env)
    runs.stepscope("convert", RUN, "-o", f"{tmp_path}/{name}", env=env)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    for path in files:
        key = f"exports/{path.relative_to(tmp_path)}"
        assert client.get_object(Bucket="runs", Key=key)["Body"].read() == path.read_bytes(), key
    if name != "tables/":
        told = runs.run(runs.COMMAND, "convert", RUN, "-o", f"s3://runs/exports/{name}", env=env)
        assert told.returncode == 1 and "--force" in told.stderr


def test_a_web_server_gives_ranges_also_for_signed_addresses(tmp_path):
    env = runs.environment(**stores.HERE)
    shutil.copy(TRACE, tmp_path / "t.json.gz")
    expected = table(TRACE, env)
    with stores.folder_server(tmp_path) as server:
        assert table(f"{server.address}/t.json.gz", env) == expected
        assert any(wanted for _, _, wanted in server.requests)
        assert "no such file or folder" in fails(f"{server.address}/u.json.gz", env)
    with stores.folder_server(tmp_path, key="secret") as server:
        assert table(f"{server.address}/t.json.gz?key=secret", env) == expected
        assert "denies access" in fails(f"{server.address}/t.json.gz", env)


def test_python_opens_addresses_files_and_what_fsspec_knows(s3, monkeypatch):
    import fsspec
    import stepscope

    address, _ = s3
    for name, value in {**stores.CREDENTIALS, "AWS_ENDPOINT_URL": address}.items():
        monkeypatch.setenv(name, value)
    expected = stepscope.open(TRACE).operators()["results"]
    assert stepscope.open("s3://runs/traces/torch.json.gz").operators()["results"] == expected
    with pytest.raises(FileNotFoundError, match="no such file or folder"):
        stepscope.open("s3://runs/nothing")
    with open(TRACE, "rb") as file:
        assert stepscope.open(file).operators()["results"] == expected
    memory = fsspec.filesystem("memory")
    memory.put(str(RUN), "/jobs/run", recursive=True)
    memory.pipe("/t.json.gz", TRACE.read_bytes())
    with memory.open("/t.json.gz") as file:
        assert stepscope.open(file).operators()["results"] == expected
    assert stepscope.open("memory://t.json.gz").operators()["results"] == expected
    assert stepscope.open("memory://jobs/run").operators()["results"] == stepscope.open(RUN).operators()["results"]
    with pytest.raises(ValueError, match="nosuch"):
        stepscope.open("nosuch://a")


def test_runs_below_an_address_are_viewed(s3):
    address, client = s3
    stores.upload(client, RUN, "viewed/run")
    client.upload_file(str(TRACE), "runs", "viewed/trace.json.gz")
    env = variables(address)
    with runs.started(runs.COMMAND, "view", "s3://runs/viewed", "--no-browser", env=env) as viewing:
        url = viewing.stdout.readline().strip()
        listed = {run["path"]: run for run in ask(url, "runs")}
        assert list(listed) == ["s3://runs/viewed/run", "s3://runs/viewed/trace.json.gz"]
        for path, local in zip(listed, (RUN, TRACE)):
            # The first question has it read.
            ask(url, f"runs/{listed[path]['id']}")
            shown = ask(url, f"runs/{listed[path]['id']}/report")
            expected = json.loads(runs.stepscope("report", local, "--json").stdout)
            assert shown["run"]["sources"] == [path]
            for part in ("verdict", "span_ns", "devices", "operators", "kernels", "findings"):
                assert shown[part] == expected[part], (path, part)
            assert shown["kernels"] and shown["operators"]
        failed = [run["error"] for run in ask(url, "runs")]
        assert failed == [None, None]
        viewing.send_signal(signal.SIGTERM)
        assert viewing.wait(timeout=600) == 0, viewing.stderr.read()


def test_captures_that_were_not_closed_are_named(s3):
    address, client = s3
    env = variables(address)
    (part,) = RUN.glob("rank=*/*.parquet")
    client.upload_file(str(RUN / "run.json"), "runs", "open/run.json")
    client.put_object(Bucket="runs", Key="open/raw/4711-1.capture", Body=b"a capture")
    told = fails("s3://runs/open", env)
    assert "captures that were not closed are read from a disk only" in told and "at: s3://runs/open/raw" in told
    assert "copy the run's folder to a disk" in told and "stepscope upload" in told
    # Beside what was closed they are a finding, but for one that was closed while it was sent.
    client.put_object(Bucket="runs", Key=f"open/raw/{part.stem.removeprefix('part-')}.capture", Body=b"a capture")
    client.upload_file(str(part), "runs", f"open/{part.relative_to(RUN)}")
    assert table("s3://runs/open", env, "kernels") == table(RUN, runs.environment(), "kernels")
    report = json.loads(runs.stepscope("report", "s3://runs/open", "--json", env=env).stdout)
    found = {finding["code"]: finding for finding in report["findings"]}
    assert found["capture.in_store"]["examples"] == ["s3://runs/open/raw/4711-1.capture"]
    assert "capture.damaged_segment" not in found
