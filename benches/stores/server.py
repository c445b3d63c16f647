"""A small S3 server: objects in memory, listed, read whole and in ranges, written. It answers in a fraction of a millisecond.

``server.py --delay-ms MS`` prints its address. Each answer comes as much later, as those of a store that is far away do.
``GET /asked`` tells what was asked for since it was asked last. Nobody's signature is looked at.
"""

import argparse
import asyncio
import collections
import email.utils
import hashlib
import json
import re
import time
import urllib.parse
from xml.sax.saxutils import escape

PAGE = 1000


class Connection(asyncio.Protocol):
    def __init__(self, objects, asked, delay_s):
        self.objects, self.asked, self.delay_s = objects, asked, delay_s
        self.received = bytearray()

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.received += data
        while (end := self.received.find(b"\r\n\r\n")) >= 0:
            request, *headers = bytes(self.received[:end]).decode("latin-1").split("\r\n")
            headers = {name.lower(): value for name, value in (header.split(": ", 1) for header in headers)}
            whole = end + 4 + int(headers.get("content-length", 0))
            if len(self.received) < whole:
                return
            body = bytes(self.received[end + 4 : whole])
            del self.received[:whole]
            method, target, _ = request.split(" ")
            if target == "/asked":
                told = json.dumps(self.asked).encode()
                self.asked.clear()
                self.send(method, "200 OK", {}, told)
                continue
            answer = self.answer(method, target, headers, body)
            asyncio.get_running_loop().call_later(self.delay_s, self.send, method, *answer)

    def answer(self, method, target, headers, body):
        """The status, the headers and the body."""
        url = urllib.parse.urlsplit(target)
        key = urllib.parse.unquote(url.path).removeprefix("/runs").lstrip("/")
        query = dict(urllib.parse.parse_qsl(url.query))
        self.asked[method if key else "LIST"] += 1
        if not key:
            return "200 OK", {}, self.listed(query)
        if method == "PUT":
            self.objects[key] = (body, described(body))
            return "200 OK", {"ETag": self.objects[key][1]["ETag"]}, b""
        if key not in self.objects:
            return "404 Not Found", {}, b"<Error><Code>NoSuchKey</Code></Error>"
        body, about = self.objects[key]
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", headers.get("range", ""))
        if wanted:
            first, last = int(wanted[1]), min(int(wanted[2]), len(body) - 1)
            about = {**about, "Content-Range": f"bytes {first}-{last}/{len(body)}"}
            body = body[first : last + 1]
        self.asked["bytes"] += len(body) if method == "GET" else 0
        return "206 Partial Content" if wanted else "200 OK", about, body

    def listed(self, query):
        keys = sorted(key for key in self.objects if key.startswith(query.get("prefix", "")))
        keys = [key for key in keys if key > query.get("continuation-token", "")]
        page = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
            f"<ETag>{about['ETag']}</ETag><Size>{len(body)}</Size></Contents>"
            for key, (body, about) in ((key, self.objects[key]) for key in keys[:PAGE])
        )
        more = "false</IsTruncated>"
        if len(keys) > PAGE:
            more = f"true</IsTruncated><NextContinuationToken>{escape(keys[PAGE - 1])}</NextContinuationToken>"
        told = f"<ListBucketResult><Name>runs</Name><IsTruncated>{more}{page}</ListBucketResult>".encode()
        self.asked["bytes"] += len(told)
        return told

    def send(self, method, status, headers, body):
        headers = {**headers, "Content-Length": len(body)}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self.transport.write(f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + (b"" if method == "HEAD" else body))


def described(body):
    modified = email.utils.formatdate(time.time(), usegmt=True)
    return {"ETag": f'"{hashlib.md5(body).hexdigest()}"', "Last-Modified": modified, "Accept-Ranges": "bytes"}


async def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--delay-ms", type=float, default=0)
    held = {}, collections.Counter(), parser.parse_args().delay_ms / 1e3
    server = await asyncio.get_running_loop().create_server(lambda: Connection(*held), "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
