"""Calls on files in the flight recorder: those of the last moments, and of each snapshot."""

import sys
import textwrap

import pytest
import runs
from files_recorded import rows_of

# Reads the file again and again, and says how many reads began in the last half of a second, and in all.
PROGRAM = """
    import os, sys, time
    import stepscope, torch

    def job():
        fd, times = os.open("data/file", os.O_RDONLY), []
        until = time.monotonic() + 3
        while time.monotonic() < until:
            times.append(time.monotonic())
            os.pread(fd, 10, len(times))
            time.sleep(0.0002)
            if len(times) == 100:
                os.pread(fd, 77, 0)
                assert stepscope.keep("early")
        return times

    if sys.argv[1] == "profile":
        from stepscope.profiler import profile
        with profile(io=True, ring=0.5, run="run"):
            times = job()
    else:
        times = job()
    # On a busy machine a recording ends some time after its last call.
    until = time.monotonic()
    print(sum(until - 0.5 < at for at in times), len(times), flush=True)
    if sys.argv[1] != "profile":
        # What is not killed records until it ends, which may take long.
        os.kill(os.getpid(), 9)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["default", "--io", "profile"])
def test_calls_of_the_last_moments_are_kept_and_those_of_a_snapshot(tmp_path, monkeypatch, how):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/file").write_bytes(bytes(1 << 20))
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM))
    program = [sys.executable, "program.py", how]
    if how == "profile":
        told = runs.execute(*program)
    else:
        options = ["--ring", "500ms", *(["--io"] if how == "--io" else [])]
        told = runs.stepscope("record", "-o", "run", *options, "--", *program, code=137)
    last, all_of_them = map(int, told.stdout.split()[-2:])
    runs.stepscope("recover", "run")

    def reads(run):
        return [row["bytes"] for row in rows_of(run) if row["file"] == str(tmp_path / "data/file") and row["bytes"]]

    at_end = reads("run")
    assert last <= at_end.count(10) < all_of_them and 77 not in at_end
    (early,) = (tmp_path / "run/kept").iterdir()
    runs.stepscope("recover", early)
    assert reads(early).count(77) == 1
    assert "capture.io_bytes_not_seen" not in runs.findings("run")
