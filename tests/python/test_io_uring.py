"""Requests by io_uring: each is recorded with its file, its place and the bytes that it moved, once they are known."""

import shutil
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import pytest
import runs
from files_recorded import record, rows_of, succeed

SOURCE = Path(__file__).with_name("programs") / "uring_engine.c"
SUBMIT = "io_uring_submit"
READ, WRITE, SYNC = (f"io_uring ({does})" for does in ("read", "write", "sync"))
# Name, bytes, bytes asked for where that is more, offset, error: of what `swap` does with the file.
CALLS = [
    (SUBMIT, None, 4096, 0, None),
    (SUBMIT, None, 8192, 4096, None),
    (SUBMIT, None, 512, 1 << 20, None),
    (SUBMIT, None, 500, 49_900, None),
    (SUBMIT, None, 3000, 100, None),
    (SUBMIT, None, 3000, 200, None),
    (SUBMIT, None, None, None, None),
    (READ, 4096, None, 0, None),
    (WRITE, 8192, None, 4096, None),
    (READ, 0, 512, 1 << 20, None),
    (READ, 100, 500, 49_900, None),
    (READ, 3000, None, 100, None),
    (WRITE, 3000, None, 200, None),
    (SYNC, None, None, None, None),
    # A read of what is only open to be written.
    (SUBMIT, None, 101, 0, None),
    (READ, 0, 101, 0, 9),
    # Two batches that were taken at once.
    *((SUBMIT, None, 1001, offset, None) for offset in (0, 1000, 2000)),
    *((READ, 1001, None, offset, None) for offset in (0, 1000, 2000)),
    *((SUBMIT, None, 1002, offset, None) for offset in (0, 1000)),
    *((READ, 1002, None, offset, None) for offset in (0, 1000)),
    # Where the file stands.
    (SUBMIT, None, 10, None, None),
    (READ, 10, None, None, None),
    ("read", 20, None, 10, None),
    # Registered; opened by a request; taken by the program alone.
    (SUBMIT, None, 1003, 7, None),
    (READ, 1003, None, 7, None),
    ("pread", 1005, None, 8, None),
    (SUBMIT, None, 1007, 9, None),
    (READ, 1007, None, 9, None),
]
PROGRAM = """
    import ctypes, sys, time
    from stepscope.profiler import profile

    def job():
        open("data/one").close()
        engine = ctypes.CDLL("./engine.so")
        # What is loaded while recording is on is found a little later.
        while not engine.is_recorded():
            time.sleep(0.01)
        line = engine.swap(b"data/file")
        assert line == 0, line
        line = engine.read_in_threads(b"data/one", b"data/other")
        assert line == 0, line

    if sys.argv[1] == "profile":
        import torch
        with profile(io=True, run="run"):
            job()
    else:
        job()
"""


def build(folder, *flags):
    command = ["cc", "-shared", "-fPIC", *flags, "-o", folder / "engine.so", SOURCE, "-luring", "-lpthread", "-ldl"]
    if shutil.which("cc") is None or subprocess.run(command).returncode:
        pytest.skip("there is no liburing to link with")
    probe = "import ctypes, sys; sys.exit(not ctypes.CDLL('./engine.so').can_use())"
    if subprocess.run([sys.executable, "-c", probe], cwd=folder).returncode:
        pytest.skip("the system has no io_uring for this process")


@pytest.mark.parametrize("how", ["record", "profile"])
@pytest.mark.parametrize("flags", [["-Wl,-z,lazy"], ["-Wl,-z,now"]])
def test_requests_are_recorded_once_with_what_they_moved(tmp_path, how, flags):
    build(tmp_path, *flags)
    (tmp_path / "data").mkdir()
    for name in ("file", "one", "other"):
        (tmp_path / "data" / name).write_bytes(bytes(50_000))
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM))
    before = record("run", "--io-include", "data") if how == "record" else []
    succeed([*before, sys.executable, "program.py", how], tmp_path)
    runs.stepscope("recover", tmp_path / "run")
    rows = [row for row in rows_of(tmp_path / "run") if row["file"] and row["file"].startswith(f"{tmp_path}/data/")]
    keys = ("name", "bytes", "asked_bytes", "offset", "errno")
    found = {name: Counter() for name in ("file", "one", "other")}
    for row in rows:
        if row["name"].startswith("io_uring") or row["name"] in ("read", "pread"):
            found[Path(row["file"]).name][tuple(row[key] for key in keys)] += 1
    assert found["file"] == Counter(CALLS)
    # Each of them once, whichever was over first.
    places = [(offset, 1 + offset % 16) for offset in range(16 * 500)]
    submitted = Counter((SUBMIT, None, asked, offset, None) for offset, asked in places)
    moved = Counter((READ, asked, None, offset, None) for offset, asked in places)
    assert found["one"] == found["other"] == submitted + moved
    threads = {name: {row["tid"] for row in rows if row["file"].endswith(name)} for name in ("/other", "/file")}
    assert [len(of) for of in threads.values()] == [1, 1] and threads["/other"] != threads["/file"]
    totals = {
        Path(row["file"]).name: row for row in runs.analyze("io_files", tmp_path / "run")["results"] if row["file"]
    }
    assert totals["other"]["read_bytes"] == sum(asked for _, asked in places)
    assert totals["file"]["write_bytes"] == 11_192
    assert "capture.io_bytes_not_seen" not in runs.findings(tmp_path / "run")
