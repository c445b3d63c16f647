"""Addresses that somebody signed. They have the clouds' own host names: a tunnel leads from there to servers here."""

import contextlib
import json
import ssl
from pathlib import Path
from urllib.parse import quote

import pytest
import runs
import stores
from certificates import certificates
from stores import table
from test_stores import ranks
from test_stores_cloud_credentials import shared_access

boto3 = pytest.importorskip("boto3")
TRACE = Path(__file__).parents[1] / "fixtures" / "gpu" / "streams" / "torch.json.gz"
KEY = "traces/a b+c=1/torch.json.gz"
HOSTS = [
    "runs.s3.eu-west-1.amazonaws.com",
    "runs.s3.amazonaws.com",
    "s3.eu-west-1.amazonaws.com",
    f"{stores.ACCOUNT}.blob.core.windows.net",
    "storage.googleapis.com",
]


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """A folder with a certificate for all of these hosts."""
    folder = tmp_path_factory.mktemp("keys")
    certificates(folder, HOSTS)
    return folder


@contextlib.contextmanager
def behind(keys, upstream, rewrite):
    """The clouds' hosts before a server, for who has no credentials: the proxy there, and the environment."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(keys / "worker.pem", keys / "worker.key")
    with stores.proxy(upstream, rewrite, tls) as proxy, stores.tunnel(proxy) as tunnel:
        nobody = {"AWS_EC2_METADATA_DISABLED": "true", "AZURE_NO_INSTANCE": "true", "HOME": "/nonexistent"}
        ways = {"HTTPS_PROXY": tunnel.address, "https_proxy": tunnel.address, "SSL_CERT_FILE": keys / "ca.pem"}
        yield proxy, runs.environment(**nobody, **ways, NO_PROXY="", no_proxy="", STEPSCOPE_STORE_RETRY_S=1)


@pytest.fixture(scope="module")
def s3():
    with stores.s3() as (address, client):
        client.upload_file(str(TRACE), "runs", KEY)
        yield address, client


def for_this_machine(headers):
    """Without the cloud's host name, from which servers here would take a bucket or an account."""
    return {name: value for name, value in headers.items() if name.lower() != "host"}


def by_path(path, headers):
    """The bucket as Moto finds it, signed as Moto wants it."""
    signed = "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
    path = path.partition("?")[0]
    path = path if path.startswith("/runs/") else f"/runs{path}"
    return path, {**for_this_machine(headers), "Authorization": signed}


def signed_by_amazon(version, style, key=KEY):
    from botocore.config import Config

    config = Config(signature_version=version, s3={"addressing_style": style})
    who = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    client = boto3.client("s3", region_name="eu-west-1", config=config, **who)
    return client.generate_presigned_url("get_object", {"Bucket": "runs", "Key": key})


def signed_by_google():
    return f"https://storage.googleapis.com/runs/{quote(KEY)}?X-Goog-Expires=60&X-Goog-Signature=0a1b"


@pytest.mark.parametrize(
    "address, part",
    [
        (signed_by_amazon("s3v4", "virtual"), "X-Amz-Signature="),
        (signed_by_amazon("s3v4", "path"), "X-Amz-Signature="),
        (signed_by_amazon("s3", "virtual"), "AWSAccessKeyId="),
        (signed_by_google(), "X-Goog-Signature="),
    ],
)
def test_a_signed_address_is_read_by_who_has_nothing_else(s3, keys, address, part):
    assert address.startswith(tuple(f"https://{host}/" for host in HOSTS)) and part in address
    with behind(keys, s3[0], by_path) as (proxy, env):
        # It is signed for reading alone.
        proxy.fault = lambda request: None if part in request["path"] and request["method"] == "GET" else 403
        assert table(address, env) == table(TRACE, runs.environment())
        query = address.partition("?")[2]
        assert {request["path"].partition("?")[2] for request in proxy.requests} == {query}
        assert {request["authorization"] for request in proxy.requests} == {None}


def test_ranks_may_be_signed_addresses(s3, keys, tmp_path):
    """Of which no summaries are kept beside them: they are signed for reading."""
    server, client = s3
    paths = list(ranks(tmp_path, operators=100))
    for path in paths:
        client.upload_file(str(path), "runs", f"ranks/{path.name}")
    addresses = [signed_by_amazon("s3v4", "virtual", f"ranks/{path.name}") for path in paths]
    with behind(keys, server, by_path) as (proxy, env):
        proxy.fault = lambda request: None if request["method"] == "GET" else 403
        told = runs.stepscope("analyze", "operators", *addresses, "--json", env=env).stdout
    expected = runs.stepscope("analyze", "operators", *paths, "--json").stdout
    assert json.loads(told)["results"] == json.loads(expected)["results"]
    assert len(client.list_objects_v2(Bucket="runs", Prefix="ranks/")["Contents"]) == len(paths)


def test_azure_checks_the_signature_of_an_address(tmp_path, keys):
    with stores.azure(tmp_path) as text:
        settings = dict(pair.split("=", 1) for pair in text.split(";") if pair)
        env = runs.environment(**stores.HERE, AZURE_STORAGE_CONNECTION_STRING=text)
        runs.stepscope("convert", TRACE, "-o", "az://runs/a b/trace.json.gz", env=env)
        expected = table("az://runs/a b/trace.json.gz", env)

        def by_account(path, headers):
            return f"/{stores.ACCOUNT}{path}", for_this_machine(headers)

        server = settings["BlobEndpoint"].removesuffix(f"/{stores.ACCOUNT}")
        with behind(keys, server, by_account) as (_, env):
            address = f"https://{stores.ACCOUNT}.blob.core.windows.net/runs/a%20b/trace.json.gz?{shared_access()}"
            assert table(address, env) == expected
            told = runs.run(runs.COMMAND, "report", address.replace("sp=rl", "sp=rw"), env=env)
            assert (
                told.returncode == 1 and f"https://{stores.ACCOUNT}.blob.core.windows.net denies access" in told.stderr
            )
            assert "ask for a new signed address" in told.stderr


def test_a_signature_that_is_over_is_said_and_not_repeated(s3, keys):
    address = signed_by_amazon("s3v4", "virtual")
    with behind(keys, s3[0], by_path) as (proxy, env):
        proxy.fault = lambda request: 403
        told = runs.run(runs.COMMAND, "report", address, env=env)
    assert told.returncode == 1 and "https://runs.s3.eu-west-1.amazonaws.com denies access" in told.stderr
    assert "ask for a new signed address" in told.stderr


def test_what_stands_behind_an_address_is_never_left_out():
    told = runs.run(runs.COMMAND, "report", "https://runs.s3.eu-west-1.amazonaws.com/t.json?versionId=1")
    assert told.returncode == 1 and "what stands behind its `?` is no signature" in told.stderr
