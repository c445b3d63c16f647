"""A process killed with kill -9 in mid-step: everything it had recorded until then is in the run."""

import os
import random
import signal
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
import runs

OPS_PER_STEP = 50
MOMENTS = 8
AT_ONCE = 4


@dataclass
class Killed:
    """What is known about a killed process without its run."""

    run: Path
    steps_read: int
    ops: int
    steps: int
    told: str
    code: int


def kill_at(folder, moment, command, run):
    """Start ``command``, read a few steps, wait a moment more, and kill the training process."""
    counters = folder / "counters"
    with runs.started(*command(counters)) as process:
        word, pid = process.stdout.readline().split()
        assert word == "pid"
        lines = [process.stdout.readline() for _ in range(moment.randint(1, 40))]
        time.sleep(moment.uniform(0, 0.02))
        os.kill(int(pid), signal.SIGKILL)
        rest, told = process.communicate(timeout=600)
    ops, steps = struct.unpack("<qq", counters.read_bytes())
    steps_read = len(lines) + rest.count("\n")
    return Killed(run, steps_read, ops, steps, told, process.returncode)


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """Training processes killed at random moments, several at once."""
    folders = [tmp_path_factory.mktemp(f"killed{seed}") for seed in range(MOMENTS)]

    def kill_one(seed):
        run = folders[seed] / "run"
        record = [runs.COMMAND, "record", "-o", run, "--"]
        return kill_at(
            folders[seed], random.Random(seed), lambda counters: record + runs.new_program("killed.py", counters), run
        )

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(kill_one, range(MOMENTS)))


def finished(rows, name):
    return [row for row in runs.named(rows, name) if not row["is_unfinished"]]


def check_counts(killed):
    """The op that ran when the kill came may be there or not: its counter was not written yet."""
    rows = runs.rows(killed.run)
    assert len(finished(rows, "aten::erfinv")) - killed.ops in (0, 1)
    steps = [row for row in rows if row["kind"] == "optimizer_step"]
    assert len(steps) - killed.steps in (0, 1)
    assert killed.steps_read <= len(steps)
    assert len(runs.named(rows, "aten::erfinv")) - len(finished(rows, "aten::erfinv")) <= 1


@pytest.mark.slow
def test_every_op_until_the_kill_is_there(killed):
    for one in killed:
        check_counts(one)


def test_some_kills_came_in_mid_step(killed):
    assert any(one.ops > one.steps * OPS_PER_STEP for one in killed)


def test_the_command_passes_the_signal_on_and_says_what_happened(killed):
    for one in killed:
        assert one.code == 128 + signal.SIGKILL
        assert "recorded" in one.told and "ended without closing" in one.told


def test_the_report_says_that_the_process_was_killed(killed):
    one = killed[0]
    assert runs.findings(one.run)["capture.process_killed"]["count"] == 1
    assert "killed" in runs.report(one.run) or "without closing" in runs.report(one.run)


def test_the_step_that_was_cut_is_left_out_of_averages(killed):
    for one in killed[:3]:
        steps = [step for step in runs.analyze("step_breakdown", one.run)["results"] if step["step"] is not None]
        # Nobody knows where step 0 began: the program waits for no data.
        cut = [step["step"] for step in steps[1:] if not step["is_complete"]]
        # Between two steps nothing is cut.
        assert cut in ([], [steps[-1]["step"]])
        assert len(steps) - len(cut) >= one.steps_read
        # A kill may come between a step's mark and the program's own count of it.
        marked = sum(row["kind"] == "optimizer_step" for row in runs.rows(one.run))
        if one.ops > marked * OPS_PER_STEP:
            assert cut == [steps[-1]["step"]]
            assert "trace.incomplete_step" in runs.findings(one.run)


@pytest.fixture
def killed_itself(tmp_path):
    """A program that recorded itself: nobody is left to close its run."""
    run = tmp_path / "run"
    return kill_at(tmp_path, random.Random(9), lambda counters: runs.new_program("killed.py", counters, run), run)


def test_a_report_closes_a_run_that_nobody_closed(killed_itself):
    assert list(killed_itself.run.glob("raw/*.capture"))
    assert "aten::erfinv" in runs.report(killed_itself.run)
    assert not list(killed_itself.run.glob("raw/*.capture"))
    check_counts(killed_itself)


def test_recover_closes_a_run_that_nobody_closed(killed_itself):
    told = runs.stepscope("recover", killed_itself.run).stdout
    assert "1 process ended without closing" in told
    assert runs.stepscope("recover", killed_itself.run).stdout == told
    check_counts(killed_itself)
    assert runs.findings(killed_itself.run)["capture.process_killed"]["count"] == 1


def test_a_run_is_readable_while_it_is_recorded(tmp_path):
    run, counters = tmp_path / "run", tmp_path / "counters"
    command = [runs.COMMAND, "record", "-o", run, "--", *runs.new_program("killed.py", counters)]
    with runs.started(*command) as process:
        pid = int(process.stdout.readline().split()[1])
        for _ in range(5):
            process.stdout.readline()
        try:
            assert "capture.process_running" in runs.findings(run)
            assert runs.counts_of_operators(run)["aten::erfinv"] >= 5 * OPS_PER_STEP
            assert "still being recorded: this is what it did so far." in " ".join(runs.report(run).split())
        finally:
            os.kill(pid, signal.SIGKILL)
            process.communicate(timeout=600)
