"""torch.profiler runs beside a recording as it runs alone: before, inside, across it, on this and on other threads."""

import json

import pytest
import runs

START = """
import json, sys, threading, warnings
import torch
import torch.profiler
from stepscope import _recorder
from stepscope.profiler import profile

torch.set_num_threads(1)
CPU = [torch.profiler.ProfilerActivity.CPU]
run = sys.argv[1]

def work():
    x = torch.ones(64, requires_grad=True)
    (x * 2).exp().sum().backward()

def theirs(**options):
    return torch.profiler.profile(activities=CPU, profile_memory=True, **options)

def seen(prof):
    names = sorted(event.name for event in prof.events())
    return {"names": names, "bytes": sum(row.self_cpu_memory_usage > 0 for row in prof.key_averages())}

work()
with theirs() as prof:
    work()
alone = seen(prof)
"""

END = """
print(json.dumps({"alone": alone, "beside": seen(prof), "is_enabled": torch.autograd.profiler._is_profiler_enabled}))
"""

SCENARIOS = {
    "inside": """
with profile(run=run, profile_memory=True):
    with theirs() as prof:
        work()
    assert _recorder.is_attending()
    work()
""",
    "around": """
with theirs() as prof:
    with profile(run=run, profile_memory=True):
        work()
    assert not _recorder.is_attending()
with profile(run=run + "-2", profile_memory=True):
    work()
""",
    "begins_before": """
prof = theirs()
prof.start()
with profile(run=run, profile_memory=True):
    work()
    prof.stop()
    assert _recorder.is_attending()
    work()
""",
    "ends_after": """
prof = theirs()
ours = profile(run=run, profile_memory=True)
ours.start()
work()
prof.start()
work()
ours.stop()
prof.stop()
""",
    "on_another_thread": """
def beside():
    global prof
    with theirs() as prof:
        work()
with profile(run=run, profile_memory=True):
    work()
    thread = threading.Thread(target=beside)
    thread.start()
    thread.join()
    assert _recorder.is_attending()
""",
    "again_and_again": """
with profile(run=run, profile_memory=True):
    for _ in range(5):
        with theirs() as prof:
            work()
        work()
""",
    "on_all_threads": """
with profile(run=run, profile_memory=True):
    everywhere = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
    with torch.profiler.profile(activities=CPU, experimental_config=everywhere) as all_threads:
        work()
    assert _recorder.is_attending()
    assert "aten::exp" in {event.name for event in all_threads.events()}
    with theirs() as prof:
        work()
""",
}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_both_record(tmp_path, scenario):
    run = tmp_path / "run"
    text = START + SCENARIOS[scenario] + END
    printed = json.loads(runs.execute(*runs.script(text, run)).stdout)
    assert printed["beside"] == printed["alone"]
    assert printed["is_enabled"] is False
    assert len(runs.named(runs.ops(run), "aten::exp")) in (1, 2, 10)
    if scenario in ("inside", "begins_before", "on_another_thread"):
        finding = runs.findings(run)["capture.memory_not_recorded"]
        assert finding["severity"] == "suspect"


def test_a_profiler_inside_another_does_what_it_does_alone(tmp_path):
    text = """
def nested():
    try:
        with theirs():
            theirs().start()
            work()
    except Exception as error:
        return repr(error)
    return "nothing"

alone = nested()
with profile(run=run, profile_memory=True):
    beside = nested()
    work()
    assert _recorder.is_attending()
assert beside == alone, (beside, alone)
"""
    runs.execute(*runs.script(START + text, tmp_path / "run"))


@pytest.mark.parametrize("record_shapes", [False, True])
def test_itt_ranges_are_as_without_us(tmp_path, record_shapes):
    text = f"""
if not torch.profiler.itt.is_available():
    sys.exit()
with profile(run=run, profile_memory=True):
    with torch.autograd.profiler.emit_itt(record_shapes={record_shapes}):
        work()
        assert torch.autograd._profiler_enabled()
    assert not torch.autograd._profiler_enabled()
    assert _recorder.is_attending()
"""
    runs.execute(*runs.script(START + text, tmp_path / "run"))


def test_a_stock_schedule_below_the_command(tmp_path):
    text = """
import torch
x = torch.ones(8)
plan = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=2)
cycles = []
options = dict(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True, profile_memory=True)
with torch.profiler.profile(schedule=plan, on_trace_ready=cycles.append, **options) as prof:
    for _ in range(8):
        x.exp()
        prof.step()
print(len(cycles), torch.autograd.profiler._is_profiler_enabled)
"""
    run = tmp_path / "run"
    recorded = runs.stepscope("record", "--memory", "-o", run, "--", *runs.script(text))
    assert recorded.stdout == "2 True\n", "what compiled code looks at stays on while we record"
    assert len(runs.named(runs.ops(run), "aten::exp")) == 8


@pytest.mark.parametrize("is_first", [True, False])
def test_one_that_stops_inside_a_range_that_began_under_it(tmp_path, is_first):
    """Its callback hears of the end of that range after it has stopped; recording goes on, or begins only then."""
    text = """
ours = profile(run=run, profile_memory=True)
if sys.argv[2] == "False":
    ours.start()
for _ in range(20):
    prof = torch.profiler.profile(activities=CPU)
    prof.start()
    work()
    outer = torch.profiler.record_function("outer")
    outer.__enter__()
    for _ in range(20):
        work()
    prof.stop()
    del prof
    if sys.argv[2] == "True":
        ours.start()
    assert not _recorder.is_attending()
    work()
    assert not _recorder.is_attending()
    outer.__exit__(None, None, None)
    work()
    assert _recorder.is_attending()
    if sys.argv[2] == "True":
        break
ours.stop()
"""
    run = tmp_path / "run"
    runs.execute(*runs.script(START + text, run, is_first))
    assert len(runs.named(runs.ops(run), "aten::exp")) == (2 if is_first else 20 * 23)


def test_the_command_beside_one_that_steps_inside_ranges(tmp_path):
    text = """
import torch
layer = torch.nn.Linear(64, 64)
plan = torch.profiler.schedule(wait=1, warmup=1, active=2)
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], schedule=plan) as prof:
    for _ in range(50):
        with torch.profiler.record_function("train_step"):
            for _ in range(5):
                layer(torch.ones(8, 64)).sum().backward()
            prof.step()
"""
    run = tmp_path / "run"
    runs.stepscope("record", "--memory", "-o", run, "--", *runs.script(text))
    rows = runs.rows(run)
    assert len(runs.named(rows, "train_step")) == 50 and len(runs.named(rows, "aten::addmm")) == 250


def test_ranges_that_only_a_profiler_sees(tmp_path):
    text = """
import threading, torch
Range = torch._C._profiler._RecordFunctionFast

def work(times):
    for _ in range(times):
        with Range("fast"):
            torch.ones(1)

work(1000)
thread = threading.Thread(target=work, args=(100,))
thread.start()
thread.join()
print(torch.autograd._profiler_enabled())
"""
    run = tmp_path / "run"
    assert runs.record(run, runs.script(text)).stdout == "False\n"
    rows = runs.ops(run)
    assert len(runs.named(rows, "fast")) == 1100
    pairs = [(parent and parent["name"], row["name"]) for parent, row in runs.with_parents(rows)]
    assert pairs.count(("fast", "aten::ones")) == 1100


def test_a_state_that_is_refused(tmp_path):
    """Everything else is recorded, and the run says what is missing."""
    text = f"""
import torch
from stepscope import _profiler_state
from stepscope.profiler import profile
_profiler_state._refusal = lambda torch: "the test says so"
with profile(run={str(tmp_path / "run")!r}, profile_memory=True):
    torch.ones(3).exp()
"""
    told = runs.execute(*runs.script(text)).stderr
    assert told.count("not recording memory and ranges of compiled code") == 1
    assert len(runs.named(runs.ops(tmp_path / "run"), "aten::exp")) == 1
    (example,) = runs.findings(tmp_path / "run")["capture.profiler_state_refused"]["examples"]
    assert "the test says so" in example
