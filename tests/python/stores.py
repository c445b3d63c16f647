"""Servers of objects on this machine, and a proxy before them that fails as networks do."""

import contextlib
import http.client
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}
# A proxy for the world outside knows nothing of servers here.
HERE = {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
CREDENTIALS = {**HERE, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}


@contextlib.contextmanager
def served(handler, **members):
    """A server on a port of its own: the server itself, with its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    for name, value in members.items():
        setattr(server, name, value)
    server.address = f"http://127.0.0.1:{server.server_port}"
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
    """Passes requests on. What ``server.fault(request)`` gives is done to the answer: a status instead, ``("cut", n)``
    after n bytes, ``("flip", n)`` a bit of byte n, ``("delay", s)``, or a function that is called before."""

    def handle_any(self):
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        request = {"method": self.command, "path": self.path, "range": self.headers.get("Range")}
        with self.server.lock:
            self.server.requests.append(request)
            fault = self.server.fault(request)
        if isinstance(fault, int):
            self.answer(fault, [], b"<Error><Code>SlowDown</Code></Error>" if fault == 503 else b"")
            return
        if callable(fault):
            fault()
        upstream = http.client.HTTPConnection(self.server.upstream.removeprefix("http://"), timeout=30)
        upstream.request(self.command, self.path, sent or None, dict(self.headers))
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


def proxy(upstream):
    """A proxy before the server at ``upstream``, which does nothing until its ``fault`` says what."""
    return served(ProxyHandler, upstream=upstream, fault=lambda request: None, requests=[], lock=threading.Lock())


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
    try:
        host, port = server.get_host_and_port()
        address = f"http://{host}:{port}"
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
        client = boto3.client("s3", endpoint_url=address, region_name="us-east-1", config=Config(proxies={}), **keys)
        client.create_bucket(Bucket="runs")
        yield address, client
    finally:
        server.stop()


def upload(client, folder, prefix):
    """Puts all files below ``folder`` below ``prefix`` of the bucket."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            client.upload_file(str(path), "runs", f"{prefix}/{path.relative_to(folder)}")
