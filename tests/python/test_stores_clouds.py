"""Azure's and Google's stores: what ``test_stores`` tests of S3 in depth holds there as well."""

import json
from pathlib import Path

import pytest
import runs
import stores
from test_stores_recording import recorded

boto3 = pytest.importorskip("boto3")
RUN = Path(__file__).parents[1] / "fixtures" / "gpu" / "streams" / "run"
TRACE = RUN.with_name("torch.json.gz")


@pytest.fixture(scope="module", params=["az", "gs"])
def server(request, tmp_path_factory):
    """How addresses begin, the proxy before a server here, and the environment in which they lead there."""
    if request.param == "az":
        with stores.azure(tmp_path_factory.mktemp("azurite")) as text:
            settings = dict(pair.split("=", 1) for pair in text.split(";") if pair)
            address = settings["BlobEndpoint"].removesuffix(f"/{stores.ACCOUNT}")
            with stores.proxy(address) as proxy:
                text = text.replace(address, proxy.address)
                yield "az://runs", proxy, runs.environment(**stores.HERE, AZURE_STORAGE_CONNECTION_STRING=text)
    else:
        with stores.s3() as (address, _), stores.google(address) as proxy:
            yield "gs://runs", proxy, runs.environment(**stores.HERE, STORAGE_EMULATOR_HOST=proxy.address)


@pytest.fixture
def cloud(server):
    """How addresses begin, and the environment in which they lead to a server here."""
    base, proxy, env = server
    proxy.requests.clear()
    yield base, env
    proxy.fault = lambda request: None


def table(path, env):
    return stores.table(path, env, "kernels")


def fails(path, env):
    """What the command says that cannot open ``path``."""
    told = runs.run(runs.COMMAND, "analyze", "kernels", path, "--json", env={**env, "STEPSCOPE_STORE_RETRY_S": "1"})
    assert told.returncode == 1 and not told.stdout, (told.returncode, told.stdout)
    assert "panicked" not in told.stderr and f"at: {path}" in told.stderr
    return told.stderr


def test_a_run_is_sent_and_read(cloud):
    base, env = cloud
    assert "2 files" in runs.stepscope("upload", RUN, f"{base}/jobs/run", env=env).stdout
    assert "0 files" in runs.stepscope("upload", RUN, f"{base}/jobs/run", env=env).stdout
    found = table(f"{base}/jobs/run", env)
    assert found and found == table(RUN, runs.environment()) == table(f"{base}/job*/run", env)


def test_a_long_file_is_sent_in_parts_and_read_in_ranges(cloud, tmp_path):
    base, env = cloud
    event = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "dur": 1}
    events = [{**event, "ts": 2 * at, "args": {"device": 0, "stream": 7, "note": "x" * 150}} for at in range(80_000)]
    (tmp_path / "run").mkdir()
    path = tmp_path / "run" / "t.json"
    path.write_text(json.dumps({"traceEvents": events}))
    assert path.stat().st_size > 2 * (8 << 20)
    runs.stepscope("convert", path, "-o", f"{base}/long.json", env=env)
    runs.stepscope("convert", path, "-o", tmp_path / "long.json")
    assert (tmp_path / "long.json").stat().st_size > 8 << 20
    assert table(f"{base}/long.json", env) == table(tmp_path / "long.json", runs.environment())


def test_what_is_not_there_is_said(cloud):
    base, env = cloud
    said = runs.run(runs.COMMAND, "report", f"{base}/nothing", env=env)
    assert said.returncode == 1 and "no such file or folder" in said.stderr
    other = base.replace("runs", "other")
    said = runs.run(runs.COMMAND, "report", f"{other}/run", env=env)
    assert said.returncode == 1 and f"there is no bucket or container {other}" in said.stderr


# What the clouds answer, in their own words.
NOT_ALLOWED = {
    "az": "<Error><Code>AuthorizationPermissionMismatch</Code><Message>This request is not authorized to perform this "
    "operation using this permission.</Message></Error>",
    "gs": "<Error><Code>AccessDenied</Code><Message>Access denied.</Message><Details>reader@example.com does not have "
    "storage.objects.get access to the Google Cloud Storage object.</Details></Error>",
}
NOT_KNOWN = {
    "az": "<Error><Code>AuthenticationFailed</Code><Message>Server failed to authenticate the request. Signature not valid "
    "in the specified time frame</Message></Error>",
    "gs": "<Error><Code>AuthenticationRequired</Code><Message>Authentication required.</Message></Error>",
}
BUSY = {
    "az": "<Error><Code>ServerBusy</Code><Message>Operations per second is over the account limit.</Message></Error>",
    "gs": "<Error><Code>rateLimitExceeded</Code><Message>The object exceeded the rate limit.</Message></Error>",
}
DENIES, REJECTS = "denies access", "does not accept the credentials"
THROTTLES = "answers that it gets too many requests"


@pytest.mark.parametrize(
    "server, fault, said, hint",
    [
        ("az", (403, NOT_ALLOWED), DENIES, "right to list and read"),
        ("gs", (403, NOT_ALLOWED), DENIES, "right to list and read"),
        ("az", (403, NOT_KNOWN), REJECTS, "AZURE_STORAGE_SAS_TOKEN"),
        ("gs", (401, NOT_KNOWN), REJECTS, "GOOGLE_APPLICATION_CREDENTIALS"),
        ("az", (503, BUSY), THROTTLES, "STEPSCOPE_STORE_RETRY_S"),
        ("gs", (429, BUSY), THROTTLES, "STEPSCOPE_STORE_RETRY_S"),
        ("gs", (403, BUSY), THROTTLES, "STEPSCOPE_STORE_RETRY_S"),
    ],
    indirect=["server"],
)
@pytest.mark.parametrize("where", ["everywhere", "in the middle"])
def test_what_stays_broken_is_said(server, cloud, fault, said, hint, where):
    base, proxy, env = server
    runs.stepscope("convert", TRACE, "-o", f"{base}/broken/t.json.gz", "--force", env=env)
    status, texts = fault
    answer = "says", (status, texts[base[:2]])
    proxy.fault = lambda request: answer if where == "everywhere" or request["range"] else None
    told = fails(f"{base}/broken/t.json.gz", env)
    assert f"{base} {said}" in told and hint in told


@pytest.mark.parametrize("server, status", [("az", 503), ("gs", 429)], indirect=["server"])
def test_a_busy_store_is_asked_again(server, cloud, status):
    base, proxy, env = server
    runs.stepscope("convert", TRACE, "-o", f"{base}/busy/t.json.gz", "--force", env=env)
    answers = iter([("says", (status, BUSY[base[:2]]))] * 2 + [("cut", 10)])
    proxy.fault = lambda request: next(answers, None)
    assert table(f"{base}/busy/t.json.gz", env) == table(TRACE, runs.environment())
    assert next(answers, None) is None


def test_a_connection_that_breaks_again_and_again_is_said(server, cloud):
    base, proxy, env = server
    runs.stepscope("convert", TRACE, "-o", f"{base}/cut/t.json.gz", "--force", env=env)
    proxy.fault = lambda request: ("cut", 10) if request["range"] else None
    told = fails(f"{base}/cut/t.json.gz", env)
    assert f"the connection to {base} broke" in told and "STEPSCOPE_STORE_RETRY_S" in told


def test_an_object_that_is_written_while_it_is_read_is_no_trace(server, cloud):
    base, proxy, env = server
    address = f"{base}/changing/t.json.gz"
    runs.stepscope("convert", TRACE, "-o", address, env=env)
    changed = []

    def change():
        runs.stepscope("convert", RUN, "-o", address, "--force", env=env)

    def fault(request):
        if request["range"] and not changed:
            changed.append(request)
            return change
        return None

    proxy.fault = fault
    told = fails(address, env)
    assert changed and "the object was written while it was read" in told and "open it again" in told


def test_a_run_is_recorded_into_a_store(cloud, tmp_path):
    base, env = cloud
    told = recorded(f"{base}/recorded", env, tmp_path, code=3)
    assert f"sent to {base}/recorded" in told.stderr
    rows = stores.table(f"{base}/recorded", env)
    assert [row["count"] for row in rows if row["name"] == "aten::add"] == [3]
    again = runs.run(runs.COMMAND, "record", "-o", f"{base}/recorded", "--", "true", cwd=tmp_path, env=env)
    assert again.returncode == 1 and "this address already holds objects" in again.stderr
