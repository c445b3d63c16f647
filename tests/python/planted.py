"""Reports of a device that does not exist, written behind what a process recorded: as its recorder would have."""

import json
import os
import struct
from pathlib import Path

HEADER_BYTES = 4096
NAME, THREAD, FACT, DEVICE, DEVICE_CLOCK = 11, 12, 15, 36, 37
KERNEL, COPY, FILL, CALL, WAIT, OVERHEAD, RANGE = 1, 2, 3, 5, 6, 8, 9
CUDA, XPU = 1, 12
NO_NAME = 0xFFFF_FFFF
# An ordinal that no thread of a test has, and the first number of names that no test uses.
ORDINAL, FIRST_NAME = 500, 500_000


def halves(low, high):
    """Two numbers in a word."""
    return (low & 0xFFFF_FFFF) | (high & 0xFFFF_FFFF) << 32


class Planted:
    """Reports to be written into a capture, in the nanoseconds of the monotonic clock."""

    def __init__(self, device_type=CUDA):
        self.records = []
        self._names = {}
        self._device_type = device_type

    def name(self, text):
        """The number of a name."""
        return self._names.setdefault(text, FIRST_NAME + len(self._names))

    def _add(self, kind, *words):
        first = kind | self._device_type << 8 | len(words) << 32
        self.records.append((DEVICE, [first, *words]))

    def kernel(self, name, start_ns, end_ns, correlation, device=0, stream=7, graph=0):
        work = [start_ns, end_ns, halves(device, 1), halves(stream, correlation), 0]
        shape = [halves(graph, self.name(name)), halves(64, 2), halves(1, 32), halves(128, 1), halves(1, 0), 0]
        self._add(KERNEL, *work, *shape)

    def copy(self, start_ns, end_ns, correlation, device=0, stream=7):
        """1 kB from pinned host memory to the device."""
        work = [start_ns, end_ns, halves(device, 1), halves(stream, correlation), 0]
        self._add(COPY, *work, halves(0, 1 | 2 << 8 | 3 << 16), 1024, 0)

    def fill(self, start_ns, end_ns, correlation, device=0, stream=7):
        """1 kB of the device."""
        work = [start_ns, end_ns, halves(device, 1), halves(stream, correlation), 0]
        self._add(FILL, *work, halves(0, 3), 1024)

    def call(self, name, start_ns, end_ns, thread, correlation, is_runtime=True):
        """``thread``: what ``threading.get_ident`` says."""
        self._add(CALL, start_ns, end_ns, halves(self.name(name), is_runtime), halves(thread, correlation), 0)

    def wait(self, kind, start_ns, end_ns, correlation, stream):
        self._add(WAIT, start_ns, end_ns, halves(1, stream), halves(correlation, 0), kind, 0)

    def overhead(self, name, start_ns, end_ns, thread):
        self._add(OVERHEAD, start_ns, end_ns, halves(self.name(name), thread))

    def shift(self, by_ns):
        """Move all that was planted so far."""
        self.records = [(tag, [at[0], at[1] + by_ns, at[2] + by_ns, *at[3:]]) for tag, at in self.records]

    def write(self, path):
        """Behind what is in the capture at ``path``."""
        names = [(NAME, [halves(id, len(text.encode())), *_words(text)]) for text, id in self._names.items()]
        _append(path, [*names, *self.records])


class PlantedSession:
    """The same as a session of ``torch.profiler`` tells it: rows of a file beside the capture, by Unix time."""

    def __init__(self):
        self._rows = []

    def _add(self, kind, name, start_ns, end_ns, tid, **args):
        row = {"ph": "X", "cat": kind, "name": name, "pid": os.getpid() if kind in _OF_HOST else 0, "tid": tid}
        self._rows.append((row, start_ns, end_ns, args))

    def _work(self, kind, name, start_ns, end_ns, correlation, device, stream, **args):
        place = {"device": device, "context": 1, "stream": stream}
        self._add(kind, name, start_ns, end_ns, stream, correlation=correlation, **place, **args)

    def kernel(self, name, start_ns, end_ns, correlation, device=0, stream=7):
        shape = {"grid": [64, 2, 1], "block": [32, 1, 1], "registers per thread": 128}
        self._work("kernel", name, start_ns, end_ns, correlation, device, stream, **shape)

    def copy(self, start_ns, end_ns, correlation, device=0, stream=7):
        name = "Memcpy HtoD (Pinned -> Device)"
        self._work("gpu_memcpy", name, start_ns, end_ns, correlation, device, stream, bytes=1024)

    def fill(self, start_ns, end_ns, correlation, device=0, stream=7):
        self._work("gpu_memset", "Memset (Device)", start_ns, end_ns, correlation, device, stream, bytes=1024)

    def call(self, name, start_ns, end_ns, thread, correlation, is_runtime=True):
        # Kineto knows no version of a call.
        kind, name = ("cuda_runtime" if is_runtime else "cuda_driver"), name.partition("_v")[0]
        self._add(kind, name, start_ns, end_ns, _signed(thread), correlation=correlation)

    def wait(self, kind, start_ns, end_ns, correlation, stream):
        name = {3: "Stream Sync"}[kind]
        place = {"device": 0, "context": 1, "stream": stream, "correlation": correlation}
        self._add("cuda_sync", name, start_ns, end_ns, stream, cuda_sync_kind=name, **place)

    def overhead(self, name, start_ns, end_ns, thread):
        self._add("overhead", name, start_ns, end_ns, _signed(thread))

    def shift(self, by_ns):
        self._rows = [(row, start_ns + by_ns, end_ns + by_ns, args) for row, start_ns, end_ns, args in self._rows]

    def write(self, path):
        """Beside the capture at ``path``, and the fact that names it into the capture."""
        begun_ns = min(start_ns for _, start_ns, _, _ in self._rows) - 1000
        rows = [
            {
                **row,
                "ts": round((start_ns - begun_ns) / 1000, 3),
                "dur": round((end_ns - start_ns) / 1000, 3),
                "args": args,
            }
            for row, start_ns, end_ns, args in self._rows
        ]
        file = Path(path).parent.parent / "device" / "told.json"
        file.parent.mkdir()
        file.write_text(json.dumps({"baseTimeNanoseconds": _UNIX_NS, "traceEvents": rows}))
        said = {"file": "device/told.json", "monotonic_ns": begun_ns, "unix_ns": _UNIX_NS, "device_type": CUDA}
        key, value = "device_trace.0", json.dumps(said)
        _append(path, [(FACT, [halves(len(key), len(value)), *_words(key + value)])])


_OF_HOST = ("cuda_runtime", "cuda_driver", "overhead")
_UNIX_NS = 1_750_000_000_000_000_000


def _signed(thread):
    """What the device's profiler calls a thread, as Kineto writes it."""
    low = thread & 0xFFFF_FFFF
    return low - (1 << 32) * (low >= 1 << 31)


def _append(path, records):
    """Write records behind what is in a capture."""
    with open(path, "r+b") as file:
        header = file.read(HEADER_BYTES)
        (segment_bytes,) = struct.unpack_from("<I", header, 16)
        ticks, monotonic_ns = struct.unpack_from("<QQ", header, 72)
        (segment, left) = divmod(file.seek(0, 2) - HEADER_BYTES, segment_bytes)
        segment += left > 0
        records = [(DEVICE_CLOCK, [monotonic_ns]), *records]
        part, at = 0, 0
        while at < len(records):
            words = [0x5347_4D54 << 32 | segment, 0]
            words += [ticks << 8 | THREAD, halves(ORDINAL, part), 77, 0]
            while at < len(records) and len(words) + len(records[at][1]) + 2 < segment_bytes // 8:
                tag, body = records[at]
                words += [ticks << 8 | tag, *body]
                at += 1
            file.seek(HEADER_BYTES + segment * segment_bytes)
            words += [0] * (segment_bytes // 8 - len(words))
            file.write(struct.pack(f"<{len(words)}Q", *(word & 0xFFFF_FFFF_FFFF_FFFF for word in words)))
            segment, part = segment + 1, part + 1


def _words(text):
    data = text.encode()
    padded = data.ljust(-(-len(data) // 8) * 8, b"\0")
    return struct.unpack(f"<{len(padded) // 8}Q", padded)
