"""Requests by libaio: each is recorded with its file, its place and the bytes that it moved, once they are known."""

import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import runs
from files_recorded import record, rows_of, succeed

SOURCES = Path(__file__).with_name("programs")
READ, WRITE, SYNC = (f"io_getevents ({does})" for does in ("read", "write", "sync"))
# Name, bytes, bytes asked for where that is more, offset, error: of what `swap` does with the file.
CALLS = [
    ("io_submit", None, 4096, 0, None),
    ("io_submit", None, 8192, 4096, None),
    ("io_submit", None, 512, 1 << 20, None),
    ("io_submit", None, 3000, 100, None),
    ("io_submit", None, 3000, 200, None),
    ("io_submit", None, None, None, None),
    (READ, 4096, None, 0, None),
    (WRITE, 8192, None, 4096, None),
    (READ, 0, 512, 1 << 20, None),
    (READ, 3000, None, 100, None),
    (WRITE, 3000, None, 200, None),
    (SYNC, None, None, None, None),
    # A read of what is only open to be written.
    ("io_submit", None, 100, 0, 9),
]
PROGRAM = """
    import ctypes, os, sys, time
    from stepscope.profiler import profile

    def swap():
        engine = ctypes.CDLL("./engine.so")
        # What is loaded while a profile is on is found a little later.
        while not engine.is_recorded():
            time.sleep(0.01)
        assert engine.swap(b"data/file") == 0

    if sys.argv[1] == "profile":
        import torch
        with profile(io=True, run="run"):
            swap()
    else:
        swap()
"""


def build(folder, *flags, libraries=()):
    """The engine in a folder, with the libaio that is there, or with ours in its place."""

    def cc(source, target, *more):
        return subprocess.run(["cc", "-shared", "-fPIC", *flags, "-o", folder / target, SOURCES / source, *more])

    if libraries:
        if cc("aio_engine.c", "engine.so", *libraries, "-ldl").returncode:
            pytest.skip("there is no libaio to link with")
        return
    assert cc("aio_library.c", "libaio.so.1", "-Wl,-soname,libaio.so.1").returncode == 0
    assert cc("aio_engine.c", "engine.so", folder / "libaio.so.1", f"-Wl,-rpath,{folder}", "-ldl").returncode == 0


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no compiler")
@pytest.mark.parametrize("how", ["record", "profile"])
@pytest.mark.parametrize("libraries", [["-laio"], []])
@pytest.mark.parametrize("flags", [["-Wl,-z,lazy"], ["-Wl,-z,now"]])
def test_requests_are_recorded_once_with_what_they_moved(tmp_path, how, libraries, flags):
    build(tmp_path, *flags, libraries=libraries)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/file").write_bytes(bytes(50_000))
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM))
    before = record("run", "--io-include", "data") if how == "record" else []
    succeed([*before, sys.executable, "program.py", how], tmp_path)
    runs.stepscope("recover", tmp_path / "run")
    rows = [row for row in rows_of(tmp_path / "run") if row["file"] == str(tmp_path / "data/file")]
    keys = ("name", "bytes", "asked_bytes", "offset", "errno")
    found = [tuple(row[key] for key in keys) for row in rows if row["name"].startswith("io_")]
    assert sorted(found, key=str) == sorted(CALLS, key=str)
    # They share the time of the call, and lie in nothing else of its kind.
    totals = runs.analyze("io_files", tmp_path / "run")["results"]
    (totals,) = [row for row in totals if row["file"] == str(tmp_path / "data/file")]
    assert (totals["read_bytes"], totals["write_bytes"]) == (7096, 11192)
    assert "capture.io_bytes_not_seen" not in runs.findings(tmp_path / "run")


def test_a_program_that_finds_the_functions_without_libaio_may_use_them(tmp_path):
    program = """
        import ctypes, os, struct
        found = ctypes.CDLL(None)
        context, buffer = ctypes.c_ulong(0), ctypes.create_string_buffer(100)
        # io_setup, as the processor numbers it.
        assert found.syscall(206, 4, ctypes.byref(context)) == 0
        fd = os.open("data/file", os.O_RDONLY)
        request = struct.pack("=QIIhhiQQqQQ", 0, 0, 0, 0, 0, fd, ctypes.addressof(buffer), 100, 7, 0, 0)
        request = ctypes.create_string_buffer(request, 64)
        requests = (ctypes.c_void_p * 1)(ctypes.addressof(request))
        assert found.io_submit(context, ctypes.c_long(1), requests) == 1
        events = ctypes.create_string_buffer(32)
        assert found.io_getevents(context, ctypes.c_long(1), ctypes.c_long(1), events, None) == 1
        assert struct.unpack("=QQqq", events.raw)[2] == 100
        assert found.io_submit(context, ctypes.c_long(-1), requests) == -22
    """
    (tmp_path / "data").mkdir()
    (tmp_path / "data/file").write_bytes(bytes(1_000))
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    succeed([*record("run", "--io-include", "data"), sys.executable, "program.py"], tmp_path)
    found = [(row["name"], row["bytes"], row["offset"]) for row in rows_of(tmp_path / "run")]
    assert [row for row in found if row[0].startswith("io_")] == [("io_submit", None, 7), (READ, 100, 7)]
