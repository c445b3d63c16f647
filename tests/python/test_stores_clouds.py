"""Azure's and Google's stores: what ``test_stores`` tests of S3 in depth holds there as well."""

import json
from pathlib import Path

import pytest
import runs
import stores

boto3 = pytest.importorskip("boto3")
RUN = Path(__file__).parents[1] / "fixtures" / "gpu" / "streams" / "run"


@pytest.fixture(scope="module", params=["az", "gs"])
def cloud(request, tmp_path_factory):
    """How addresses begin, and the environment in which they lead to a server here."""
    if request.param == "az":
        with stores.azure(tmp_path_factory.mktemp("azurite")) as text:
            yield "az://runs", runs.environment(**stores.HERE, AZURE_STORAGE_CONNECTION_STRING=text)
    else:
        with stores.s3() as (address, _), stores.google(address) as server:
            yield "gs://runs", runs.environment(**stores.HERE, STORAGE_EMULATOR_HOST=server.address)


def table(path, env):
    return json.loads(runs.stepscope("analyze", "kernels", path, "--json", env=env).stdout)["results"]


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
