"""A GPU of our own: fake libraries of the driver, of CUPTI and of NVML, and a program's side of them.

A test builds the libraries and runs a program below ``environment``; the program plants, with :class:`Gpu`, what CUPTI
then reports. Where fields stand is as a C compiler finds it in CUPTI's headers.
"""

import ctypes
import struct
import subprocess
import sys
import threading
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "fake_cupti"
LIBRARIES = {"cupti.c": "libcupti.so", "cuda.c": "libcuda.so.1", "nvml.c": "libnvidia-ml.so.1"}

KERNEL, MEMCPY, MEMCPY2, MEMSET, GRAPH = 10, 1, 22, 2, 51
DRIVER, RUNTIME, OVERHEAD, WAIT, EVENT, MARKER = 4, 5, 17, 38, 36, 12
LAUNCH_KERNEL, MEMCPY_ASYNC, MEMSET_ASYNC, STREAM_SYNCHRONIZE, EVENT_RECORD = 211, 41, 51, 131, 135
GRAPH_LAUNCH, GET_DEVICE, CU_LAUNCH_KERNEL, CU_GET_INFO = 311, 17, 307, 242
NONE = 0xFFFFFFFF

# CUPTI's number of a CUDA. How long its records are, the fake knows.
CUDAS = {"11.8": 18, "12.4": 22, "12.9": 28, "13.0": 130001, "13.3": 130301, "13.5": 130500}
KINDS = (KERNEL, MEMCPY, MEMCPY2, MEMSET, GRAPH, OVERHEAD, WAIT, EVENT, RUNTIME, DRIVER, MARKER)

# Fields by kind: where, and as what.
_WORK = {"bytes": (8, "Q"), "start": (16, "Q"), "end": (24, "Q"), "device": (32, "I"), "context": (36, "I")}
_WORK |= {"stream": (40, "I")}
FIELDS = {
    KERNEL: {
        "registers": (6, "H"),
        "start": (16, "Q"),
        "end": (24, "Q"),
        "device": (40, "I"),
        "context": (44, "I"),
        "stream": (48, "I"),
        "grid": (52, "3i"),
        "block": (64, "3i"),
        "static": (76, "i"),
        "dynamic": (80, "i"),
        "correlation": (92, "I"),
        "name": (104, "Q"),
        "graph_node": (144, "Q"),
        "graph": (156, "I"),
    },
    MEMCPY: {
        **_WORK,
        "direction": (4, "B"),
        "source": (5, "B"),
        "destination": (6, "B"),
        "correlation": (44, "I"),
        "graph_node": (64, "Q"),
        "graph": (72, "I"),
    },
    MEMCPY2: {
        **_WORK,
        "direction": (4, "B"),
        "source": (5, "B"),
        "destination": (6, "B"),
        "from_device": (44, "I"),
        "to_device": (52, "I"),
        "correlation": (60, "I"),
        "graph_node": (72, "Q"),
        "graph": (80, "I"),
    },
    MEMSET: {**_WORK, "correlation": (44, "I"), "memory": (50, "H"), "graph_node": (64, "Q"), "graph": (72, "I")},
    GRAPH: {
        "correlation": (4, "I"),
        "start": (8, "Q"),
        "end": (16, "Q"),
        "device": (24, "I"),
        "graph": (28, "I"),
        "context": (32, "I"),
        "stream": (36, "I"),
    },
    RUNTIME: {
        "call": (4, "I"),
        "start": (8, "Q"),
        "end": (16, "Q"),
        "thread": (28, "I"),
        "correlation": (32, "I"),
        "status": (36, "I"),
    },
    OVERHEAD: {
        "what": (4, "I"),
        "object": (8, "I"),
        "thread": (16, "I"),
        "start": (24, "Q"),
        "end": (32, "Q"),
    },
    WAIT: {
        "what": (4, "I"),
        "start": (8, "Q"),
        "end": (16, "Q"),
        "correlation": (24, "I"),
        "context": (28, "I"),
        "stream": (32, "I"),
        "event": (36, "I"),
        "event_sync": (40, "Q"),
    },
    EVENT: {
        "correlation": (4, "I"),
        "context": (8, "I"),
        "stream": (12, "I"),
        "event": (16, "I"),
        "event_sync": (48, "Q"),
    },
    MARKER: {
        "flags": (4, "I"),
        "at": (8, "Q"),
        "id": (16, "I"),
        "object": (20, "I"),
        "thread": (28, "I"),
        "name": (40, "Q"),
    },
}
FIELDS[DRIVER] = FIELDS[RUNTIME]


def build(folder):
    """Compile the libraries into a folder."""
    for source, library in LIBRARIES.items():
        command = ["cc", "-O1", "-shared", "-fPIC", "-o", folder / library, SOURCES / source, "-lpthread", "-ldl"]
        subprocess.run(command, check=True)
    return folder


def environment(folder, cuda="13.0"):
    """The variables that have a program find the libraries of a folder."""
    return {
        "LD_LIBRARY_PATH": folder,
        "STEPSCOPE_CUPTI": folder / "libcupti.so",
        "CUDA_FAKE_CUPTI_VERSION": CUDAS[cuda],
        "PYTHONPATH": Path(__file__).parent,
        # What is found out about these libraries is theirs alone.
        "XDG_CACHE_HOME": Path(folder) / "cache",
    }


class Gpu:
    """What a program does on the fake GPU. Times are on the monotonic clock; CUPTI's own differs as a test wants."""

    def __init__(self, folder):
        self.cupti = ctypes.CDLL(str(Path(folder) / "libcupti.so"))
        self.cuda = ctypes.CDLL(str(Path(folder) / "libcuda.so.1"))
        self.cupti.fake_now.restype = self.cupti.fake_at.restype = ctypes.c_int64
        self.cupti.fake_at.argtypes = [ctypes.c_int64]
        self.cupti.fake_clock.argtypes = [ctypes.c_int64, ctypes.c_int64]
        self.cupti.fake_size.argtypes = [ctypes.c_uint32, ctypes.c_size_t]
        self.cupti.fake_drop.argtypes = self.cupti.fake_slow_flush.argtypes = [ctypes.c_size_t]
        self.cupti.fake_size_of.restype = ctypes.c_size_t
        self.sizes = {kind: self.cupti.fake_size_of(kind) for kind in KINDS}
        self._names = {}

    def set_clock(self, offset_ns, drift_ppm):
        """CUPTI's clock from now on: so much ahead of the monotonic clock, and so much faster."""
        self.cupti.fake_clock(offset_ns, drift_ppm)

    def at(self, monotonic_ns):
        """A moment on CUPTI's clock."""
        return self.cupti.fake_at(monotonic_ns)

    def use(self, *devices):
        """The program uses these devices, and no others."""
        self.cuda.fake_use(sum(1 << device for device in devices))

    def put(self, kind, **values):
        """Has CUPTI report a record; 1 when it did, 0 when nobody asks for it, -1 when there was no room."""
        record = bytearray(b"\xee" * self.sizes[kind])
        struct.pack_into("I", record, 0, kind)
        for name, (offset, form) in FIELDS[kind].items():
            value = values.pop(name, None)
            if value is None:
                value = (1, 1, 1) if form == "3i" else 0
            if name in ("start", "end", "at") and value:
                value = self.at(value)
            if name == "name" and value:
                value = self._address(value)
            if offset + struct.calcsize(form) <= len(record):
                struct.pack_into(form, record, offset, *(value if isinstance(value, tuple) else (value,)))
        assert not values, f"no fields of kind {kind}: {values}"
        return self.cupti.fake_put(bytes(record))

    def _address(self, name):
        """A text that lives as long as this does."""
        if name not in self._names:
            self._names[name] = ctypes.create_string_buffer(name.encode())
        return ctypes.addressof(self._names[name])


def thread():
    """The calling thread, as CUPTI names it."""
    return threading.get_ident() & 0xFFFFFFFF


def start(**options):
    """Begin to record the fake GPU."""
    from stepscope import _recorder

    return _recorder.device_start({"kind": "cuda", **options})


def stop():
    """End it."""
    from stepscope import _recorder

    _recorder.device_stop()


if __name__ == "__main__":
    build(Path(sys.argv[1]))
