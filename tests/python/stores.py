"""Servers of objects on this machine, and a proxy before them that fails as networks do."""

import base64
import contextlib
import email.utils
import fcntl
import hashlib
import hmac
import http.client
import json
import re
import socket
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import runs

HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}
# A proxy for the world outside knows nothing of servers here.
HERE = {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
CREDENTIALS = {**HERE, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}


def variables(address, **more):
    """The environment of a command that asks the S3 server at an address."""
    return runs.environment(**CREDENTIALS, AWS_ENDPOINT_URL=address, AWS_EC2_METADATA_DISABLED="true", **more)


def table(path, env, analysis="operators"):
    """The rows of an analysis of what is at a path or an address."""
    return json.loads(runs.stepscope("analyze", analysis, path, "--json", env=env).stdout)["results"]


@contextlib.contextmanager
def served(handler, tls=None, **members):
    """A server on a port of its own, behind what ``tls`` says: the server itself, with its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    for name, value in members.items():
        setattr(server, name, value)
    server.address = f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, headers, body):
        self.send_response(status)
        for name, value in headers:
            if name.lower() not in HOP_BY_HOP:
                self.send_header(name, value)
        # The answer to HEAD says how long the body would be.
        lengths = [value for name, value in headers if name.lower() == "content-length"]
        self.send_header("Content-Length", lengths[0] if self.command == "HEAD" and lengths else str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class ProxyHandler(Handler):
    """Passes requests on, their path and headers as ``server.rewrite`` makes them. What ``server.fault(request)`` gives is done to the answer: a status instead,
    ``("says", (status, text))`` instead, ``("gone", 0)`` for none at all, ``("cut", n)`` after n bytes, ``("flip", n)`` a bit of byte n, ``("delay", s)``, or a
    function that is called before."""

    def handle_any(self):
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        request = {"method": self.command, "path": self.path, "range": self.headers.get("Range")}
        # Who asks: the name of the key, and the token that came with it.
        by = re.search(r"Credential=([^/]+)/", self.headers.get("Authorization") or "")
        request["by"] = by and (by[1], self.headers.get("X-Amz-Security-Token"))
        request["authorization"] = self.headers.get("Authorization")
        with self.server.lock:
            self.server.requests.append(request)
            fault = self.server.fault(request)
        if isinstance(fault, int):
            fault = "says", (fault, "<Error><Code>SlowDown</Code></Error>" if fault == 503 else "")
        if isinstance(fault, tuple) and fault[0] == "says":
            status, text = fault[1]
            self.answer(status, [], b"" if self.command == "HEAD" else text.encode())
            return
        if isinstance(fault, tuple) and fault[0] == "gone":
            self.close_connection = True
            return
        if callable(fault):
            fault()
        upstream = http.client.HTTPConnection(self.server.upstream.removeprefix("http://"), timeout=30)
        path, headers = self.server.rewrite(self.path, dict(self.headers))
        upstream.request(self.command, path, sent or None, headers)
        answer = upstream.getresponse()
        body, headers = answer.read(), answer.getheaders()
        upstream.close()
        request["bytes"] = len(body)
        kind, amount = fault if isinstance(fault, tuple) else (None, 0)
        if kind == "delay":
            time.sleep(amount)
        elif kind == "flip" and amount < len(body):
            body = body[:amount] + bytes([body[amount] ^ 0x10]) + body[amount + 1 :]
        elif kind == "cut" and amount < len(body):
            self.send_response(answer.status)
            for name, value in headers:
                if name.lower() not in HOP_BY_HOP:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[:amount])
            self.close_connection = True
            return
        self.answer(answer.status, headers, body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_any


def proxy(upstream, rewrite=lambda path, headers: (path, headers), tls=None):
    """A proxy before the server at ``upstream``, which does nothing until its ``fault`` says what."""
    members = {"upstream": upstream, "rewrite": rewrite, "requests": [], "lock": threading.Lock()}
    return served(ProxyHandler, tls, fault=lambda request: None, **members)


class TunnelHandler(Handler):
    """Leads to ``server.to``, whatever host is asked for."""

    def do_CONNECT(self):
        self.server.asked.add(self.path)
        with socket.create_connection(self.server.to) as there:
            self.send_response(200)
            self.end_headers()
            back = threading.Thread(target=pump, args=(there, self.connection), daemon=True)
            back.start()
            pump(self.connection, there)
            back.join()
        self.close_connection = True


def pump(source, target):
    """Passes on what comes until there is no more."""
    with contextlib.suppress(OSError):
        while some := source.recv(1 << 16):
            target.sendall(some)
        target.shutdown(socket.SHUT_WR)


def tunnel(server):
    """A proxy as ``HTTPS_PROXY`` names one, by which every host is that server."""
    return served(TunnelHandler, to=server.server_address, asked=set())


def google(s3_address):
    """Google's XML interface before an S3 server: it is the same but for slashes in names, and who may ask."""

    def rewrite(path, headers):
        signed = "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
        others = {name: value for name, value in headers.items() if name.lower() != "authorization"}
        return path.replace("%2F", "/"), {**others, "Authorization": signed}

    return proxy(s3_address, rewrite)


class FolderHandler(Handler):
    """The files below ``server.folder``, whole and in ranges, as web servers give them."""

    def do_GET(self):
        path = self.server.folder / self.path.partition("?")[0].lstrip("/")
        self.server.requests.append((self.command, self.path, self.headers.get("Range")))
        if self.server.key and f"key={self.server.key}" not in self.path:
            self.answer(403, [], b"")
        elif not path.is_file():
            self.answer(404, [], b"")
        else:
            body = path.read_bytes()
            modified = self.date_time_string(path.stat().st_mtime)
            headers = [("ETag", f'"{len(body)}"'), ("Last-Modified", modified), ("Accept-Ranges", "bytes")]
            wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range") or "")
            if self.command == "HEAD":
                self.answer(200, [*headers, ("Content-Length", str(len(body)))], b"")
            elif wanted:
                first, last = int(wanted[1]), min(int(wanted[2]), len(body) - 1)
                headers.append(("Content-Range", f"bytes {first}-{last}/{len(body)}"))
                self.answer(206, headers, body[first : last + 1])
            else:
                self.answer(200, headers, body)

    do_HEAD = do_GET

    def do_PROPFIND(self):
        self.answer(405, [], b"")


def folder_server(folder, key=None):
    """A web server of the files in ``folder``; with ``key`` only for addresses that have it."""
    return served(FolderHandler, folder=folder, key=key, requests=[])


@contextlib.contextmanager
def s3():
    """An S3 server with the bucket ``runs``: its address, and a client of it."""
    import boto3
    from botocore.config import Config
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        address = f"http://{host}:{port}"
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
        client = boto3.client("s3", endpoint_url=address, region_name="us-east-1", config=Config(proxies={}), **keys)
        client.create_bucket(Bucket="runs")
        yield address, client
    finally:
        # All servers of a process hold the same objects.
        connection = http.client.HTTPConnection(host, port, timeout=30)
        connection.request("POST", "/moto-api/reset")
        assert connection.getresponse().status == 200
        server.stop()


def upload(client, folder, prefix):
    """Puts all files below ``folder`` below ``prefix`` of the bucket."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            client.upload_file(str(path), "runs", f"{prefix}/{path.relative_to(folder)}")


AZURITE = Path(__file__).parents[1] / "stores"
# Of all emulators of Azure's stores.
ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


def azurite_program():
    """The command of Azurite, which is installed where it is not."""
    program = AZURITE / "node_modules" / ".bin" / "azurite-blob"
    with open(AZURITE / "package.json") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=AZURITE, check=True)
    return program


@contextlib.contextmanager
def azure(folder):
    """An Azure server with the container ``runs``: its connection string."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        azurite_program(),
        "--silent",
        "--disableTelemetry",
        "--skipApiVersionCheck",
        "--blobPort",
        str(port),
        "--location",
        folder,
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert any("successfully listens" in line for line in process.stdout)
            make_container(port)
            end = f"BlobEndpoint=http://127.0.0.1:{port}/{ACCOUNT};"
            yield f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={ACCOUNT_KEY};{end}"
        finally:
            process.terminate()


def make_container(port):
    about = {"x-ms-date": email.utils.formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    lines = [f"{name}:{value}" for name, value in about.items()]
    text = "\n".join(["PUT", *[""] * 11, *lines, f"/{ACCOUNT}/{ACCOUNT}/runs", "restype:container"])
    mac = hmac.new(base64.b64decode(ACCOUNT_KEY), text.encode(), hashlib.sha256).digest()
    signed = {**about, "Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(mac).decode()}", "Content-Length": "0"}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("PUT", f"/{ACCOUNT}/runs?restype=container", headers=signed)
    assert connection.getresponse().status == 201
