"""Who asks Azure's and Google's stores: keys, signatures that somebody else made, identities of machines and of services.

The servers know one key each. A proxy before them sees who asks, and passes on in the name of that key what bears a token of
the services that give these out, which are played here.
"""

import base64
import hashlib
import hmac
import json
import ssl
import time
from pathlib import Path
from urllib.parse import parse_qs, urlencode

import pytest
import runs
import stores
from certificates import certificates

pytest.importorskip("boto3")
RUN = Path(__file__).parents[1] / "fixtures" / "gpu" / "streams" / "run"
TOKEN = "a-token-of-a-service"


class TokenHandler(stores.Handler):
    """Gives out :data:`TOKEN`, as the services of both clouds do that know who a machine or a program is."""

    def answer_with_token(self):
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        self.server.requests.append(
            {
                "path": self.path,
                "headers": {name.lower(): value for name, value in self.headers.items()},
                "form": parse_qs(sent),
            }
        )
        expiry = {"expires_in": 3600, "expires_on": str(int(time.time()) + 3600)}
        body = {"access_token": TOKEN, "token_type": "Bearer", **expiry}
        self.answer(200, [("Content-Type", "application/json")], json.dumps(body).encode())

    do_GET = do_POST = answer_with_token


def token_server(tls=None):
    return stores.served(TokenHandler, tls, requests=[])


def asked_by(base, address, **changes):
    """The `Authorization` of each request of a command that reads the run, whose answer is that from disk."""
    env = runs.environment(**stores.HERE, HOME="/nonexistent", **changes)
    found = stores.table(f"{base}/jobs/run", env)
    assert found == stores.table(RUN, runs.environment())
    return {request["authorization"] for request in address.requests}


@pytest.fixture(scope="module")
def azure(tmp_path_factory):
    """The address of an Azure server with a run."""
    with stores.azure(tmp_path_factory.mktemp("azurite")) as text:
        settings = dict(pair.split("=", 1) for pair in text.split(";") if pair)
        env = runs.environment(**stores.HERE, AZURE_STORAGE_CONNECTION_STRING=text)
        runs.stepscope("upload", RUN, "az://runs/jobs/run", env=env)
        yield settings["BlobEndpoint"].removesuffix(f"/{stores.ACCOUNT}")


def shared_access():
    """A signature with which anybody may read for a while."""
    about = {"sv": "2019-12-12", "ss": "b", "srt": "sco", "sp": "rl", "se": "2099-01-01T00:00:00Z", "spr": "https,http"}
    lines = [
        stores.ACCOUNT,
        *(about[name] for name in ("sp", "ss", "srt")),
        "",
        about["se"],
        "",
        about["spr"],
        about["sv"],
        "",
    ]
    mac = hmac.new(base64.b64decode(stores.ACCOUNT_KEY), "\n".join(lines).encode(), hashlib.sha256).digest()
    return urlencode({**about, "sig": base64.b64encode(mac).decode()})


def by_token(path, headers):
    """Passes on with a signature what bears the token."""
    others = {name: value for name, value in headers.items() if name.lower() != "authorization"}
    if f"Bearer {TOKEN}" not in headers.values():
        return path, others
    return f"{path}{'&' if '?' in path else '?'}{shared_access()}", others


def azure_variables(address, **more):
    endpoint = f"{address}/{stores.ACCOUNT}"
    return {"AZURE_STORAGE_ACCOUNT_NAME": stores.ACCOUNT, "AZURE_STORAGE_ENDPOINT": endpoint, **more}


def test_azure_is_asked_with_the_key_of_an_account(azure):
    with stores.proxy(azure) as proxy:
        by = asked_by(
            "az://runs", proxy, **azure_variables(proxy.address, AZURE_STORAGE_ACCOUNT_KEY=stores.ACCOUNT_KEY)
        )
    assert by and all(text.startswith(f"SharedKey {stores.ACCOUNT}:") for text in by)


def test_azure_is_asked_with_a_signature_that_somebody_made(azure):
    with stores.proxy(azure) as proxy:
        by = asked_by("az://runs", proxy, **azure_variables(proxy.address, AZURE_STORAGE_SAS_TOKEN=shared_access()))
        assert by == {None} and all("sig=" in request["path"] for request in proxy.requests)


def test_azure_is_asked_as_the_machine_that_one_is(azure):
    with token_server() as tokens, stores.proxy(azure, by_token) as proxy:
        changes = azure_variables(
            proxy.address, IDENTITY_ENDPOINT=f"{tokens.address}/token", IDENTITY_HEADER="a secret"
        )
        assert asked_by("az://runs", proxy, **changes) == {f"Bearer {TOKEN}"}
        assert {request["headers"].get("x-identity-header") for request in tokens.requests} == {"a secret"}


@pytest.mark.parametrize("kind", ["client", "workload"])
def test_azure_is_asked_as_the_program_that_one_is(azure, tmp_path, kind):
    certificates(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "worker.pem", tmp_path / "worker.key")
    (tmp_path / "federated").write_text("a token of a cluster")
    proof = {
        "client": {"AZURE_CLIENT_SECRET": "a secret"},
        "workload": {"AZURE_FEDERATED_TOKEN_FILE": tmp_path / "federated"},
    }
    with token_server(tls) as tokens, stores.proxy(azure, by_token) as proxy:
        changes = {
            "AZURE_CLIENT_ID": "a program",
            "AZURE_TENANT_ID": "a-tenant",
            "AZURE_AUTHORITY_HOST": tokens.address,
            "SSL_CERT_FILE": tmp_path / "ca.pem",
            **proof[kind],
        }
        assert asked_by("az://runs", proxy, **azure_variables(proxy.address, **changes)) == {f"Bearer {TOKEN}"}
        asked = tokens.requests[0]
        assert asked["path"] == "/a-tenant/oauth2/v2.0/token" and asked["form"]["client_id"] == ["a program"]
        name = "client_secret" if kind == "client" else "client_assertion"
        assert asked["form"][name] == ["a secret" if kind == "client" else "a token of a cluster"]


@pytest.fixture(scope="module")
def google():
    """The address of an S3 server with a run, before which Google's proxies stand."""
    with stores.s3() as (address, client):
        stores.upload(client, RUN, "jobs/run")
        yield address


def google_variables(proxy, **more):
    return {"GOOGLE_BASE_URL": proxy.address, "GOOGLE_ALLOW_HTTP": "true", **more}


def test_google_is_asked_as_the_machine_that_one_is(google):
    with token_server() as tokens, stores.google(google) as proxy:
        changes = google_variables(proxy, GCE_METADATA_HOST=tokens.address.removeprefix("http://"))
        assert asked_by("gs://runs", proxy, **changes) == {f"Bearer {TOKEN}"}
        assert all(request["headers"]["metadata-flavor"] == "Google" for request in tokens.requests)


@pytest.mark.parametrize("variable", ["GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT"])
def test_google_is_asked_by_an_account_of_a_service(google, tmp_path, variable):
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import padding, rsa

    key = rsa.generate_private_key(65537, 2048)
    form = serialization.PrivateFormat.PKCS8
    text = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()
    about = {
        "type": "service_account",
        "client_email": "reader@example.com",
        "private_key_id": "1",
        "private_key": text,
    }
    with stores.google(google) as proxy:
        (tmp_path / "account.json").write_text(json.dumps(about))
        (by,) = asked_by("gs://runs", proxy, **google_variables(proxy, **{variable: tmp_path / "account.json"}))
    signed, _, signature = by.removeprefix("Bearer ").rpartition(".")
    # What is wrong raises.
    key.public_key().verify(decoded(signature), signed.encode(), padding.PKCS1v15(), hashes.SHA256())
    assert json.loads(decoded(signed.partition(".")[2]))["iss"] == "reader@example.com"


def decoded(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def test_a_token_that_one_has_is_used(google):
    with stores.google(google) as proxy:
        by = asked_by("gs://runs", proxy, **google_variables(proxy, GOOGLE_BEARER_TOKEN=TOKEN))
    assert by == {f"Bearer {TOKEN}"}


@pytest.mark.parametrize("base", ["az://runs", "gs://runs"])
def test_nobody_is_told_how_to_become_somebody(base):
    account = {"AZURE_STORAGE_ACCOUNT_NAME": stores.ACCOUNT}
    denied = {"AZURE_NO_INSTANCE": "true", "NO_GCE_CHECK": "true", "HOME": "/nonexistent"}
    env = runs.environment(**stores.HERE, **account, **denied)
    told = runs.run(runs.COMMAND, "report", f"{base}/jobs/run", env=env)
    assert told.returncode == 1 and f"there are no credentials for {base}" in told.stderr
    assert ("AZURE_STORAGE_ACCOUNT_KEY" if base.startswith("az") else "GOOGLE_APPLICATION_CREDENTIALS") in told.stderr
