"""Programs that do what few do end as without us: what they print, how they exit, and a report that can be read."""

import sys

import pytest
import runs

OPTIONS = ("--shapes", "--memory", "--stacks=calls")


@pytest.fixture
def recorded(tmp_path):
    """Runs a program without us and with everything recorded, compares the two; gives the run."""

    def record(command, code=0):
        run = tmp_path / "run"
        alone = runs.execute(*command, code=code)
        ours = runs.stepscope("record", *OPTIONS, "-o", run, "--", *command, code=code)
        assert ours.stdout == alone.stdout
        assert "Traceback" not in ours.stderr or "Traceback" in alone.stderr, ours.stderr
        assert "Fatal" not in ours.stderr
        return run

    return record


def test_exceptions_signals_recursion_tasks_debuggers_and_many_functions(recorded):
    run = recorded(runs.new_program("awkward.py"), code=3)
    rows = runs.rows(run)
    assert len(runs.named(rows, "aten::erfinv")) == 1, "recorded to the end"
    assert not [row for row in rows if row["kind"] == "op" and row["is_unfinished"]]
    (last,) = runs.named(rows, "aten::erfinv")
    calls = [row for row in rows if row["thread"] == last["thread"] and row["kind"] in ("python_call", "c_call")]
    around = [row["name"] for row in calls if row["start_ns"] <= last["start_ns"] and runs.contains(row, last)]
    assert around == ["awkward.py(1): <module>", "<built-in method erfinv of type object>"], (
        "every other call has ended"
    )
    assert {"capture.process_killed", "capture.dropped_records"}.isdisjoint(runs.findings(run))


def test_an_exit_in_the_middle_of_calls(recorded):
    text = """
import os, sys, torch
def deep(n):
    if n == 0:
        torch.erfinv(torch.ones(3))
        print("leaves", flush=True)
        os._exit(7)
    deep(n - 1)
with torch.profiler.record_function("outer"):
    deep(10)
"""
    run = recorded(runs.script(text), code=7)
    assert len(runs.named(runs.rows(run), "aten::erfinv")) == 1
    assert "capture.process_killed" in runs.findings(run)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="there, profilers do not take each other's place")
def test_a_profiler_that_takes_a_thread_over_is_a_finding(recorded):
    text = """
import cProfile, pstats, torch
def work():
    return torch.erfinv(torch.ones(3))
work()
profiler = cProfile.Profile()
profiler.enable()
work()
profiler.disable()
work()
print([value[0] for key, value in pstats.Stats(profiler).stats.items() if key[2] == "work"])
"""
    run = recorded(runs.script(text))
    finding = runs.findings(run)["capture.option_not_recorded"]
    assert "another profiler was started" in str(finding["examples"])
    assert len(runs.named(runs.rows(run), "aten::erfinv")) == 3


@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_pools_of_processes(recorded, tmp_path, method):
    program = tmp_path / "pool.py"
    program.write_text(f"""
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
import torch

def work(number):
    if number == 3:
        raise ValueError(number)
    return float(torch.full((number,), 2.0).sum())

if __name__ == "__main__":
    torch.ones(2)
    context = multiprocessing.get_context("{method}")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        print(list(pool.map(work, range(3))))
        try:
            pool.submit(work, 3).result()
        except ValueError as error:
            print("raised", error)
""")
    run = recorded(runs.forked(program))
    assert len(runs.named(runs.rows(run), "aten::full")) == 3
    assert "capture.process_killed" not in runs.findings(run)
