"""Lines of Python are sampled: where the loop is outside of operators, and what it waits for there."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import runs

LOOP = """
import json, os, sys, threading, time, torch

spent = {name: 0.0 for name in ("spins", "sleeps", "waits", "yields", "reads")}
never = threading.Event()

class Work:
    def spins(self, until):
        count = 0
        while time.perf_counter() < until:
            count += 1

    def sleeps(self, until):
        time.sleep(max(0.0, until - time.perf_counter()))

    def waits(self, until):
        never.wait(max(0.0, until - time.perf_counter()))

    def reads(self, until):
        here, there = os.pipe()
        threading.Timer(max(0.0, until - time.perf_counter()), os.write, (there, b"x")).start()
        os.read(here, 1)
        os.close(here)
        os.close(there)

    def yields(self, until):
        while time.perf_counter() < until:
            time.sleep(0)

def hog(stop):
    count = 0
    while not stop.is_set():
        count += 1

weight = torch.nn.Parameter(torch.randn(64, 64))
optimizer = torch.optim.SGD([weight], lr=0.01)

def train(steps, *names):
    for _ in range(steps):
        for name in names:
            begin = time.perf_counter()
            getattr(Work(), name)(begin + 0.02)
            spent[name] += time.perf_counter() - begin
        (weight @ weight).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
"""


def written(folder, program):
    """The command that runs a program in a process of its own."""
    path = folder / "train.py"
    path.write_text(program)
    return runs.new_program(path)


def lines(run, *arguments):
    """Time in ns, its error and the number of samples by function and what the thread does."""
    rows = runs.analyze("host_lines", run, *arguments)["results"]
    found = {}
    for row in rows:
        function = row["line"].rsplit(": ", 1)[1] if row["line"] else None
        time_ns, error_ns, samples = found.get((function, row["doing"]), (0, 0, 0))
        found[function, row["doing"]] = (
            time_ns + row["time_ns"],
            error_ns + row["error_ns"],
            samples + row["samples"],
        )
    return found


def test_lines_outside_of_operators_have_the_time_that_the_program_measures(tmp_path):
    program = LOOP + "train(60, 'spins', 'sleeps', 'waits')\nprint(json.dumps(spent))\n"
    run = tmp_path / "run"
    result = runs.stepscope("record", "-o", run, "--", *written(tmp_path, program))
    spent = json.loads(result.stdout.splitlines()[-1])
    found = lines(run)
    for function, doing in [("Work.spins", "running"), ("Work.sleeps", "sleep")]:
        time_ns, error_ns, samples = found[function, doing]
        assert samples > 10
        # Five standard errors, and what the step before the first, which is none, has of it.
        assert abs(time_ns / 1e9 - spent[function[5:]]) < 5 * error_ns / 1e9 + 0.1 * spent[function[5:]]
    # The event waits in a function of the standard library.
    assert sum(row[2] for (function, doing), row in found.items() if doing == "lock") > 10
    rows = runs.analyze("host_lines", run)["results"]
    assert any(row["line"].startswith("train.py(") for row in rows if row["line"])
    assert all(row["line"] for row in rows)


def test_waiting_at_a_pipe_is_no_access_to_a_file_and_has_its_advice(tmp_path):
    run = tmp_path / "run"
    runs.stepscope("record", "-o", run, "--", *written(tmp_path, LOOP + "train(60, 'reads')\n"))
    found = lines(run)
    assert found["Work.reads", "connection"][2] > 10
    assert ("Work.reads", "file") not in found
    advice = {row["rule"]: row for row in runs.analyze("advice", run)["results"]}
    assert advice["host.outside_wait"]["line"].endswith(": Work.reads")
    assert advice["host.outside_wait"]["priority"] == "high"


def test_waiting_for_the_interpreters_lock_is_told_from_waiting_for_others(tmp_path):
    program = LOOP + "stop = threading.Event()\nthread = threading.Thread(target=hog, args=[stop])\nthread.start()\n"
    program += "train(100, 'yields')\nstop.set()\n"
    run = tmp_path / "run"
    runs.stepscope("record", "-o", run, "--", *written(tmp_path, program))
    found = lines(run)
    assert found["Work.yields", "interpreter_lock"][2] > 10
    assert ("Work.yields", "lock") not in found
    # Who has it is sampled, too.
    samples = runs.stack_samples(run)
    assert sum("hog" in (row["name"] or "") for row in samples) > 10


@pytest.mark.parametrize("end", ["", "os.kill(os.getpid(), 9)\n"])
def test_advice_has_the_line_that_calls_a_library(tmp_path, end):
    program = LOOP + f"import wave\nWork.reads = wave.sums\ntrain(60, 'waits', 'reads')\n{end}"
    # Python has a module of this name, too: this one is the program's.
    (tmp_path / "wave.py").write_text("def sums(work, until):\n    while sum(range(1000)) and until > now(): pass\n")
    (tmp_path / "wave.py").open("a").write("from time import perf_counter as now\n")
    run = tmp_path / "run"
    runs.stepscope("record", "-o", run, "--", *written(tmp_path, program), code=137 if end else 0)
    advice = {row["rule"]: row for row in runs.analyze("advice", run)["results"]}
    assert advice["host.lock_wait"]["line"].endswith(": Work.waits")
    assert "which calls `threading.py(" in advice["host.lock_wait"]["says"]
    assert advice["host.python"]["line"] == "wave.py(2): sums"
    assert "calls" not in advice["host.python"]["says"]


def test_a_program_in_a_folder_whose_name_is_no_text_is_sampled(tmp_path):
    folder = os.path.join(os.fsencode(tmp_path), b"bad\xff")
    os.mkdir(folder)
    path = os.path.join(folder, b"train.py")
    with open(path, "wb") as file:
        file.write((LOOP + "train(30, 'spins')\n").encode())
    runs.stepscope("record", "-o", tmp_path / "run", "--", sys.executable, os.fsdecode(path))
    assert any("Work.spins" in (row["name"] or "") for row in runs.stack_samples(tmp_path / "run"))


def test_samples_are_of_every_process_and_left_out_when_asked(tmp_path):
    program = (
        LOOP
        + "import os\nif os.fork() == 0:\n    train(30, 'sleeps')\n    sys.exit(0)\ntrain(30, 'spins')\nos.wait()\n"
    )
    path = written(tmp_path, program)
    runs.stepscope("record", "-o", tmp_path / "run", "--", *path)
    samples = runs.stack_samples(tmp_path / "run")
    of_pids = {pid: {row["name"] for row in samples if row["pid"] == pid} for pid in {row["pid"] for row in samples}}
    assert len(of_pids) == 2
    assert sum(any("Work.sleeps" in name for name in names) for names in of_pids.values()) == 1
    # Functions that Python itself calls, when it ends or imports, have no module around them.
    of_program = [row["stack"] for row in samples if "Work." in (row["stack"] or "")]
    assert of_program and all(stack.endswith(": <module>") for stack in of_program)
    runs.stepscope("record", "-o", tmp_path / "without", "--no-stack-samples", "--", *path)
    assert not runs.stack_samples(tmp_path / "without")


def test_samples_of_a_killed_process_are_kept(tmp_path):
    program = LOOP + "print('ready', flush=True)\ntrain(100_000, 'spins')\n"
    run, path = tmp_path / "run", written(tmp_path, program)
    command = [sys.executable, "-m", "stepscope", "record", "-o", run, "--", *path]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, start_new_session=True, env=runs.environment()
    )
    assert process.stdout.readline() == "ready\n"
    time.sleep(2)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    runs.stepscope("recover", run)
    assert lines(run)["Work.spins", "running"][2] > 10


@pytest.mark.parametrize("depth", [1, 200])
def test_stacks_are_those_of_the_program(tmp_path, depth):
    """A line of a deep recursion, a generator, a comprehension and a method with a name beyond ASCII."""
    program = (
        LOOP
        + f"""
def deeper(depth):
    return deeper(depth - 1) if depth else Work().größe()

def größe(self):
    return sum(self.parts())

def parts(self):
    until = time.perf_counter() + 0.05
    while time.perf_counter() < until:
        yield 1

Work.größe, Work.parts = größe, parts
for _ in range(60):
    deeper({depth})
    train(1)
"""
    )
    run = tmp_path / "run"
    runs.stepscope("record", "-o", run, "--", *written(tmp_path, program))
    stacks = [row["stack"].split(";") for row in runs.stack_samples(run) if row["stack"]]
    functions = [[frame.rsplit(": ", 1)[1] for frame in stack] for stack in stacks]
    deep = [stack for stack in functions if stack[0] == "parts"]
    assert len(deep) > 10
    assert all(stack == ["parts", "größe", *["deeper"] * (depth + 1), "<module>"] for stack in deep)
    # Two lines of the generator take its time.
    at = program[: program.index("    while time.perf_counter() < until:\n        yield 1")].count("\n") + 1
    assert {int(stack[0].split("(")[1].split(")")[0]) for stack in stacks if stack[0].endswith(": parts")} <= {
        at,
        at + 1,
    }
