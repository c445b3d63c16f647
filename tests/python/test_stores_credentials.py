"""Who asks an object store, where the environment holds no keys: an instance, a container, a web identity, nobody.

The server answers for the services that give out keys as well; a proxy before it sees by whose key a run was asked for.
"""

import re
import ssl
from pathlib import Path

import pytest
import runs
import stores
from certificates import certificates

pytest.importorskip("boto3")
RUN = Path(__file__).parents[1] / "fixtures" / "gpu" / "streams" / "run"


@pytest.fixture(scope="module")
def s3():
    with stores.s3() as (address, client):
        stores.upload(client, RUN, "jobs/run")
        yield address, client


def environment(address, **changes):
    """Of a command that asks the server at an address, and has no keys."""
    changes = {"AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL": address, "HOME": "/nonexistent", **changes}
    return runs.environment(**stores.HERE, **changes)


def asked_by(address, **changes):
    """The keys by which a run is asked for; the answer is that from disk."""
    with stores.proxy(address) as proxy:
        found = stores.table("s3://runs/jobs/run", environment(proxy.address, **changes))
        keys = {request["by"] for request in proxy.requests}
    assert found == stores.table(RUN, runs.environment())
    return keys


def refused(address, **changes):
    """What is said to one who may not ask."""
    told = runs.run(runs.COMMAND, "analyze", "operators", "s3://runs/jobs/run", env=environment(address, **changes))
    assert told.returncode == 1 and "panicked" not in told.stderr
    assert "at: s3://runs/jobs/run" in told.stderr
    return told.stderr


def test_an_instance_asks_by_its_role(s3):
    address, _ = s3
    assert asked_by(address, AWS_METADATA_ENDPOINT=address) == {("test-key", "test-session-token")}


def test_a_container_asks_by_its_role(s3, tmp_path):
    address, _ = s3
    (tmp_path / "token").write_text("a token")
    changes = {
        # It answers as the service of instances does, at one address.
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{address}/latest/meta-data/iam/security-credentials/default-role",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": tmp_path / "token",
    }
    assert asked_by(address, **changes) == {("test-key", "test-session-token")}


def test_a_web_identity_takes_its_role(s3, tmp_path):
    address, _ = s3
    certificates(tmp_path)
    (tmp_path / "token").write_text("a token")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "worker.pem", tmp_path / "worker.key")

    def for_roles(path, headers):
        # The server knows by a signature that this is not for its objects; there is none in such a request.
        return path, {**headers, "Authorization": "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/sts/aws4_request"}

    with stores.proxy(address, for_roles, tls) as roles:
        changes = {
            "AWS_WEB_IDENTITY_TOKEN_FILE": tmp_path / "token",
            "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/reader",
            "AWS_ENDPOINT_URL_STS": roles.address,
            "SSL_CERT_FILE": tmp_path / "ca.pem",
        }
        ((key, token),) = asked_by(address, **changes)
        assert len(roles.requests) == 1
    assert re.fullmatch("ASIA[A-Z0-9]{16}", key) and token


def test_nobody_signs_what_anybody_may_read(s3):
    address, client = s3
    assert "s3://runs denies access" in refused(address, AWS_SKIP_SIGNATURE="true")
    client.put_bucket_acl(Bucket="runs", ACL="public-read")
    for entry in client.list_objects_v2(Bucket="runs")["Contents"]:
        client.put_object_acl(Bucket="runs", Key=entry["Key"], ACL="public-read")
    assert asked_by(address, AWS_SKIP_SIGNATURE="true") == {None}


def test_a_profile_that_takes_a_role_is_named(s3, tmp_path):
    address, _ = s3
    (tmp_path / "config").write_text("[default]\nrole_arn = arn:aws:iam::123456789012:role/reader\n")
    told = refused(address, AWS_CONFIG_FILE=tmp_path / "config")
    assert "there are no credentials for s3://runs: the profile has role_arn, which is not followed" in told
    assert "aws configure export-credentials" in told


@pytest.mark.parametrize("status", [403, 500])
def test_a_service_that_gives_no_keys_is_named(s3, status):
    address, _ = s3
    with stores.proxy(address) as proxy:
        proxy.fault = lambda request: status if "/latest/" in request["path"] else None
        told = refused(address, AWS_METADATA_ENDPOINT=proxy.address, STEPSCOPE_STORE_RETRY_S=1)
    assert "no credentials for s3://runs: the service that gives them to this machine answers" in told
    assert str(status) in told and "AWS_PROFILE" in told
