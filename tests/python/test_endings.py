"""How programs end, and what else can happen to them while they are recorded: the run is closed, they are unharmed."""

import signal
import sys

import pytest
import runs

TORCH = "import os, signal, sys, threading, time, torch\nx = torch.zeros(4)\n"


def recorded_ops(run):
    return [row["name"] for row in runs.ops(run)]


def test_a_command_that_does_not_exist(tmp_path):
    run = tmp_path / "run"
    told = runs.record(run, ["no-such-program"], code=127).stderr
    assert "not found" in told and "no-such-program" in told
    assert not run.exists()


def test_an_exit_code_is_passed_on_and_the_run_closes(tmp_path):
    run = tmp_path / "run"
    runs.record(run, runs.new_script(TORCH + "torch.erfinv(x); sys.exit(3)"), code=3)
    assert not list(run.glob("raw/*"))
    assert recorded_ops(run)[-1] == "aten::erfinv"


def test_an_exception_is_shown_as_without_us(tmp_path):
    run = tmp_path / "run"
    told = runs.record(run, runs.new_script(TORCH + "torch.erfinv(x); raise ValueError('bad luck')"), code=1).stderr
    assert "ValueError: bad luck" in told
    assert "capture.process_killed" not in runs.findings(run)


def test_a_program_that_a_signal_kills(tmp_path):
    run = tmp_path / "run"
    text = TORCH + "torch.erfinv(x); os.kill(os.getpid(), signal.SIGSEGV)"
    runs.record(run, runs.script(text), code=128 + signal.SIGSEGV)
    assert recorded_ops(run)[-1] == "aten::erfinv"
    assert "capture.process_killed" in runs.findings(run)


def test_a_program_that_leaves_without_goodbye(tmp_path):
    run = tmp_path / "run"
    runs.record(run, runs.script(TORCH + "torch.erfinv(x); os._exit(5)"), code=5)
    assert recorded_ops(run)[-1] == "aten::erfinv"
    assert "capture.process_killed" in runs.findings(run)


def test_a_program_that_replaces_itself(tmp_path):
    run = tmp_path / "run"
    text = TORCH + "torch.erfinv(x); os.execv(sys.executable, [sys.executable, '-c', sys.argv[1]])"
    runs.record(run, runs.script(text, "import torch; torch.digamma(torch.zeros(4))"))
    assert {"aten::erfinv", "aten::digamma"} <= set(recorded_ops(run))


def test_a_thread_that_still_runs_ops_at_the_end(tmp_path):
    """PyTorch often aborts when Python ends such a thread, recorded or not; the run is whole in any case."""
    run = tmp_path / "run"
    text = """
def work():
    while True:
        torch.erfinv(x)
        started.set()
started = threading.Event()
threading.Thread(target=work, daemon=True, name="busy").start()
started.wait()
"""
    command = [runs.COMMAND, "record", "-o", run, "--", *runs.new_script(TORCH + text)]
    recorded = runs.run(*command)
    assert recorded.returncode in (0, 128 + signal.SIGABRT)
    assert "panicked" not in recorded.stderr and "Traceback" not in recorded.stderr
    assert {row["thread_name"] for row in runs.named(runs.ops(run), "aten::erfinv")} == {"busy"}


def test_a_fork_in_a_thread(tmp_path):
    run = tmp_path / "run"
    text = """
def work():
    torch.erfinv(x)
    pid = os.fork()
    if pid == 0:
        torch.digamma(x)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    torch.erfinv(x)
thread = threading.Thread(target=work, name="forking")
thread.start()
thread.join()
torch.lgamma(x)
"""
    runs.record(run, runs.script(TORCH + text))
    rows = runs.ops(run)
    assert len(runs.named(rows, "aten::erfinv")) == 2
    (child,) = runs.named(rows, "aten::digamma")
    (parent,) = runs.named(rows, "aten::lgamma")
    assert child["pid"] != parent["pid"]
    assert {row["pid"] for row in runs.named(rows, "aten::erfinv")} == {parent["pid"]}


def test_a_forked_child_that_imports_torch_itself(tmp_path):
    run = tmp_path / "run"
    text = """
import multiprocessing
def child():
    import torch
    torch.erfinv(torch.zeros(4))
process = multiprocessing.get_context("fork").Process(target=child, name="late")
process.start()
process.join()
assert process.exitcode == 0
"""
    runs.record(run, runs.new_script(text))
    (row,) = runs.named(runs.ops(run), "aten::erfinv")
    assert row["process_name"] == "late"
    assert "capture.process_killed" not in runs.findings(run)


@pytest.mark.slow
def test_a_fork_while_other_threads_record(tmp_path):
    run = tmp_path / "run"
    text = """
def work():
    while not end.is_set():
        torch.erfinv(x)
end = threading.Event()
threads = [threading.Thread(target=work) for _ in range(3)]
[thread.start() for thread in threads]
for _ in range(20):
    pid = os.fork()
    if pid == 0:
        torch.digamma(x)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
end.set()
[thread.join() for thread in threads]
"""
    runs.record(run, runs.script(TORCH + text))
    assert len(runs.named(runs.ops(run), "aten::digamma")) == 20


def test_many_short_threads(tmp_path):
    run = tmp_path / "run"
    text = """
for number in range(300):
    thread = threading.Thread(target=torch.erfinv, args=(x,), name=f"short {number}")
    thread.start()
    thread.join()
"""
    runs.record(run, runs.script(TORCH + text))
    rows = runs.named(runs.ops(run), "aten::erfinv")
    assert sorted(row["thread_name"] for row in rows) == sorted(f"short {number}" for number in range(300))


def test_what_a_program_prints_is_the_same_byte_for_byte(tmp_path):
    text = """
import sys, torch, torch.utils.data
torch.manual_seed(0)
print("argv", sys.argv, sys.flags, sys.path[:1], __name__)
print("torch", torch.__spec__.loader.__class__, torch.__loader__.__class__)
loader = torch.utils.data.DataLoader(torch.arange(8.0), batch_size=4, num_workers=1, shuffle=True)
print([batch.tolist() for batch in loader], torch.rand(2), torch.get_num_threads())
model = torch.nn.Linear(2, 2)
model(torch.ones(2)).sum().backward()
# One finder waits for Dynamo, which this program does not load.
finders = [finder for finder in sys.meta_path if type(finder).__module__ != "stepscope._imports"]
print(model.weight.grad, torch.initial_seed(), len(finders))
sys.stdout.buffer.write(bytes(range(256)))
sys.stdout.flush()
print("to standard error", file=sys.stderr)
"""
    command = [sys.executable, "-c", text, "--flag", "two words"]
    options = {"text": False, "cwd": tmp_path}
    plain = runs.run(*command, **options)
    recorded = runs.run(runs.COMMAND, "record", "-o", "run", "--", *command, **options)
    assert plain.returncode == recorded.returncode == 0, recorded.stderr
    assert recorded.stdout == plain.stdout
    assert recorded.stderr.startswith(plain.stderr)
    assert all(line.startswith(b"stepscope: ") for line in recorded.stderr[len(plain.stderr) :].splitlines())


def test_standard_input_is_passed_on(tmp_path):
    text = "import sys, torch; print(sys.stdin.read().upper())"
    assert runs.record(tmp_path / "run", runs.script(text), input="hello").stdout == "HELLO\n"


def test_a_sitecustomize_of_the_user_still_runs(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.customized = [*getattr(sys, 'customized', []), 'once']")
    text = TORCH + "torch.erfinv(x); import sitecustomize; print(*sys.customized, sitecustomize.__file__)"
    run = tmp_path / "run"
    printed = runs.record(run, runs.new_script(text), env=runs.environment(PYTHONPATH=tmp_path)).stdout
    assert printed.split() == ["once", str(tmp_path / "sitecustomize.py")]
    assert "aten::erfinv" in recorded_ops(run)


def test_a_sitecustomize_that_raises_is_told_as_without_us(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("raise ValueError('broken')")
    run = tmp_path / "run"
    environment = runs.environment(PYTHONPATH=tmp_path)
    plain = runs.execute(*runs.new_script("print('runs on')"), env=environment)
    recorded = runs.record(run, runs.new_script("print('runs on')"), env=environment)
    assert recorded.stdout == plain.stdout == "runs on\n"
    assert "broken" in plain.stderr and "broken" in recorded.stderr


def test_a_process_that_has_the_path_of_a_recording_but_no_run(tmp_path):
    """As on another node, where a launcher passes on some variables."""
    script = runs.new_script("import sys; print(*sorted(sys.modules))")

    def modules(path):
        done = runs.execute(*script, env=runs.environment(PYTHONPATH=path))
        assert done.stderr == ""
        return set(done.stdout.split())

    assert modules(runs.package() / "_inject") - modules(tmp_path) <= {"sitecustomize"}


def test_a_run_folder_with_a_strange_name(tmp_path):
    run = tmp_path / "my runs: größer, it's" / "a b"
    runs.record(run, runs.script(TORCH + "torch.erfinv(x)"))
    assert "aten::erfinv" in recorded_ops(run)


def test_a_program_that_uses_the_profiler_of_torch(tmp_path):
    text = (
        TORCH
        + """
import torch.profiler
torch.digamma(x)
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as prof:
    with torch.profiler.record_function("block"):
        torch.erfinv(x)
    prof.step()
torch.digamma(x)
prof.export_chrome_trace(sys.argv[1])
print(sorted({average.key: average.count for average in prof.key_averages()}.items()))
"""
    )
    run, trace = tmp_path / "run", tmp_path / "trace.json"
    recorded = runs.record(run, runs.script(text, trace))
    assert recorded.stdout == runs.execute(*runs.script(text, trace)).stdout
    assert "('aten::erfinv', 1), ('block', 1)" in recorded.stdout
    names = recorded_ops(run)
    assert names.count("aten::erfinv") == 1 and names.count("aten::digamma") == 2 and names.count("block") == 1
    assert runs.counts_of_operators(trace)["aten::erfinv"] == 1


def test_the_program_finds_the_environment_it_was_given(tmp_path):
    text = "import os, torch; print(os.environ['A'], os.environ['PYTHONPATH'].split(os.pathsep)[-1])"
    environment = runs.environment(A="b c", PYTHONPATH=tmp_path)
    assert runs.record(tmp_path / "run", runs.script(text), env=environment).stdout == f"b c {tmp_path}\n"


KEPT = """
import os, sys, threading, torch
from stepscope.profiler import profile
with profile(run=sys.argv[1]) as prof:
    torch.ones(3)
prof.events()
# These modules go after those of the package.
os.kept = threading.kept = torch.kept = prof
"""


def test_a_profile_that_outlives_its_module_ends_silently(tmp_path):
    assert "Exception" not in runs.execute(*runs.new_script(KEPT, tmp_path / "run")).stderr
