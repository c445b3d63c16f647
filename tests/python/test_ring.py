"""The flight recorder: only the last moments are on the disk, and what is worth a look is kept."""

import os
import signal
import sys
import time

import pytest
import runs
import stepscope
import torch
from stepscope.profiler import profile

X = torch.zeros(4)


def record(run, *options_and_command, **options):
    """Run ``stepscope record`` with options."""
    return runs.stepscope("record", "-o", run, *options_and_command, **options)


def kept(run):
    """The folders that were kept, by the word at the end of their names."""
    return {folder.name.split("-", 2)[2]: folder for folder in sorted((run / "kept").glob("*"))}


def steps(run):
    """The numbers of the optimizer's steps."""
    return [row["step"] for row in runs.rows(run) if row["kind"] == "optimizer_step"]


def work(seconds):
    """Run ops for a while; gives when each began."""
    until, ops = time.monotonic() + seconds, []
    while time.monotonic() < until:
        ops.append(time.monotonic())
        torch.erfinv(X)
        time.sleep(0.0002)
    return ops


def test_only_the_last_seconds_are_kept(tmp_path):
    with profile(ring="500ms", run=tmp_path / "run") as prof:
        torch.digamma(X)
        ops = work(3)
        torch.digamma(X)
    # However late the machine is: what ran 500 ms before this is there, and not everything is.
    after = time.monotonic()
    rows = runs.ops(prof.run)
    assert sum(began > after - 0.5 for began in ops) <= len(runs.named(rows, "aten::erfinv")) < len(ops)
    assert len(runs.named(rows, "aten::digamma")) == 1, "the first one is long ago, but its name is known"
    assert runs.findings(prof.run)["capture.ring"]["count"] == 1


def test_a_short_program_loses_nothing(tmp_path):
    with profile(ring=30, run=tmp_path / "run") as prof:
        [torch.erfinv(X) for _ in range(100)]
    assert len(runs.named(runs.ops(prof.run), "aten::erfinv")) == 100
    assert "capture.ring" not in runs.findings(prof.run)


@pytest.mark.slow
def test_what_is_kept_is_a_run_of_its_own(tmp_path):
    with profile(ring=0.5, run=tmp_path / "run") as prof:
        torch.digamma(X)
        assert prof.keep("digamma seen")
        work(3)
        assert stepscope.keep("later")
    windows = kept(tmp_path / "run")
    assert list(windows) == ["digamma", "later"]
    assert len(runs.named(runs.ops(windows["digamma"]), "aten::digamma")) == 1
    assert runs.named(runs.ops(windows["later"]), "aten::digamma") == []
    assert runs.named(runs.ops(prof.run), "aten::digamma") == []
    finding = runs.findings(windows["digamma"])["capture.kept_because"]
    assert "digamma seen" in finding["examples"][0]
    assert runs.findings(prof.run)["capture.kept_windows"]["count"] == 2
    assert "aten::digamma" in runs.report(windows["digamma"])
    assert "2 windows kept" in runs.stepscope("recover", prof.run).stdout


def test_without_a_ring_nothing_is_kept(tmp_path):
    with profile(run=tmp_path / "run") as prof:
        assert not prof.keep() and not stepscope.keep()
    assert not (tmp_path / "run/kept").exists()
    assert not stepscope.keep()


def test_an_exception_that_passes_through_is_kept(tmp_path):
    with pytest.raises(ZeroDivisionError), profile(ring=30, run=tmp_path / "run"):
        torch.digamma(X)
        raise ZeroDivisionError
    window = kept(tmp_path / "run")["exception"]
    assert len(runs.named(runs.ops(window), "aten::digamma")) == 1
    assert "ZeroDivisionError" in runs.findings(window)["capture.kept_because"]["examples"][0]


def test_the_ring_is_a_time(tmp_path):
    for ring in ("30 minutes", "s", -1, "1x"):
        with pytest.raises(ValueError):
            profile(ring=ring)
    with pytest.raises(ValueError, match="needs a ring"):
        profile(slow_step=3)
    for options in (["--ring", "30x"], ["--slow-step", "3"], ["--ring", "1s", "--slow-step", "1"]):
        told = record(tmp_path / "run", *options, "--", "true", code=2).stderr
        assert "expected a" in told or "--ring <TIME>" in told


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A program with one slow step that ends with an exception; what ``record`` said."""
    run = tmp_path_factory.mktemp("ring") / "run"
    command = runs.program("endless.py", 6, 60, 1)
    told = record(run, "--ring", "1s", "--slow-step", "10", "--", *command, code=1)
    return run, told


def test_a_slow_step_is_kept_without_a_change_of_the_program(recorded):
    run, told = recorded
    # On a busy machine other steps may be slow, too.
    windows = (run / "kept").glob("*-slow_step")
    why = {window: runs.findings(window)["capture.kept_because"]["examples"][0] for window in windows}
    window = next(window for window, said in why.items() if "slow_step 60:" in said)
    numbers = steps(window)
    assert 60 in numbers and numbers == list(range(numbers[0], numbers[-1] + 1))
    breakdown = runs.analyze("step_breakdown", window)["results"]
    slow = [row for row in breakdown if row["step"] == 60]
    assert slow[0]["is_complete"] and slow[0]["total_ns"] > 1e9
    assert f"kept a window: {window}" in told.stderr


def test_an_exception_that_ends_the_program_is_kept(recorded):
    run, told = recorded
    assert "ArithmeticError: the end" in told.stderr
    assert "ArithmeticError" in runs.findings(kept(run)["exception"])["capture.kept_because"]["examples"][0]
    last = int(told.stdout.split()[-1])
    assert steps(run)[-1] == last == steps(kept(run)["exception"])[-1]
    assert steps(run)[0] > 60, "the ring has turned"


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_program_that_is_killed_leaves_its_ring(tmp_path, end):
    run = tmp_path / "run"
    command = [runs.COMMAND, "record", "-o", run, "--ring", "1s", "--", *runs.program("endless.py", 60)]
    with runs.started(*command) as process:
        lines = iter(process.stdout.readline, "")
        next(lines)
        until = time.monotonic() + 4
        next(line for line in lines if time.monotonic() > until and int(line) > 300)
        pid = int(runs_pid(run))
        os.kill(pid, end)
        rest, _told = process.communicate(timeout=600)
    began = int(rest.split()[-1]) if rest else None
    numbers = steps(run)
    assert numbers == list(range(numbers[0], numbers[-1] + 1)) and numbers[0] > 0
    assert began is None or numbers[-1] in (began - 1, began)
    found = runs.findings(run)
    assert "capture.ring" in found and "capture.process_killed" in found
    rows = runs.rows(run)
    # Of every whole step in the window all ops are there.
    breakdown = runs.analyze("step_breakdown", run)["results"]
    whole = [row for row in breakdown if row["step"] is not None and row["is_complete"]]
    assert whole
    start_ns = min(row["start_ns"] for row in rows)
    for step in whole:
        begin = start_ns + step["start_ns"]
        end_ns = begin + step["total_ns"]
        inside = [row for row in runs.named(rows, "aten::erfinv") if begin <= row["start_ns"] < end_ns]
        assert len(inside) == 200


def runs_pid(run):
    """The process that records into ``run``."""
    (pid,) = {capture.name.split("-")[0] for capture in (run / "raw").glob("*.capture")}
    return pid


RANKS = """
import os, signal, sys, time, torch
pid = os.fork()
os.environ["RANK"] = "1" if pid == 0 else "0"
until = time.monotonic() + 4
asked = False
while time.monotonic() < until:
    (torch.erfinv if pid else torch.digamma)(torch.zeros(4))
    time.sleep(0.001)
    if pid and not asked and time.monotonic() > until - 3:
        asked = True
        os.kill(os.getpid(), signal.SIGUSR2)
if pid == 0:
    from stepscope import _recording
    _recording.close_capture()
    os._exit(0)
os.waitpid(pid, 0)
"""


@pytest.mark.slow
def test_a_signal_to_one_process_keeps_the_windows_of_all(tmp_path):
    run = tmp_path / "run"
    record(run, "--ring", "1s", "--", *runs.script(RANKS))
    names = {row["name"]: row["pid"] for row in runs.ops(kept(run)["signal"])}
    assert {"aten::erfinv", "aten::digamma"} <= set(names)
    assert names["aten::erfinv"] != names["aten::digamma"]


@pytest.mark.slow
def test_a_signal_to_the_command_keeps_the_windows(tmp_path):
    run = tmp_path / "run"
    command = [runs.COMMAND, "record", "-o", run, "--ring", "1s", "--", *runs.program("endless.py", 6)]
    with runs.started(*command) as process:
        while int(process.stdout.readline()) < 20:
            pass
        process.send_signal(signal.SIGUSR2)
        process.communicate(timeout=600)
    assert process.returncode == 1
    assert steps(kept(run)["signal"])[-1] < steps(run)[-1]


def test_a_handler_of_the_program_is_called_too(tmp_path):
    program = """
import os, signal, sys
signal.signal(signal.SIGUSR2, lambda *_: print("mine", flush=True))
import torch
torch.digamma(torch.zeros(4))
os.kill(os.getpid(), signal.SIGUSR2)
"""
    run = tmp_path / "run"
    assert record(run, "--ring", "1s", "--", sys.executable, "-c", program).stdout == "mine\n"
    assert "signal" in kept(run)
