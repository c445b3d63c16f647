"""Labels of Stepscope reach every listener, once each, and cost nothing while there is none."""

import json
from collections import Counter

import runs

# The import of `annotate` comes before PyTorch's: labels know of listeners as soon as there is one.
PROGRAM = """
import json, sys, warnings
from stepscope import annotate
import torch
theirs_alone = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
with theirs_alone, annotate("before stepscope.profiler"):
    pass
import torch.autograd.profiler as autograd
from torch.profiler import ExecutionTraceObserver
from stepscope import _hook, _recorder
from stepscope.profiler import profile, record_function

warnings.simplefilter("ignore")
CPU = [torch.profiler.ProfilerActivity.CPU]
numbers = iter(range(1000))
theirs = lambda: torch.profiler.profile(activities=CPU)
ours = lambda: profile(activities=CPU, run=f"{sys.argv[1]}-{next(numbers)}")

@record_function("function", "what it is given")
def function(): pass

@annotate("annotated")
def annotated(): pass

@annotate("generator")
def generator(): yield

again = record_function("again")

def work():
    with record_function("block", "what it is given"), annotate("annotation"):
        torch.ones(1)
    function(), annotated(), list(generator())
    with again, annotate("between"), again:
        pass
    future = torch.futures.Future()
    with record_function("future") as label:
        ended = label._call_end_callbacks_on_future(future)
    future.set_result(5)
    assert ended.wait() == 5
    with torch.profiler.record_function("theirs"):
        pass

def labels(events):
    return [event.name for event in events if not event.name.startswith("aten::")]

found = {"before": labels(theirs_alone.events())}

with theirs() as prof:
    work()
found["torch.profiler"] = labels(prof.events())

with autograd.profile() as prof:
    work()
found["torch.autograd.profiler"] = labels(prof.function_events)

with ours() as prof:
    work()
found["ours"] = labels(prof.events())

with ours() as prof, theirs() as beside:
    work()
found["ours beside it"], found["it beside ours"] = labels(prof.events()), labels(beside.events())

def traced(name, around):
    observer = ExecutionTraceObserver().register_callback(f"{sys.argv[1]}-{name}.json")
    with around(observer):
        work()
    observer.unregister_callback()
    nodes = [node["name"] for node in json.load(open(f"{sys.argv[1]}-{name}.json"))["nodes"]]
    return labels(type("Node", (), {"name": node}) for node in nodes if not node.startswith("[pytorch|"))

class Alone:
    def __init__(self, observer): self.observer = observer
    def __enter__(self): self.observer.start()
    def __exit__(self, *_): self.observer.stop()

found["an observer"] = traced("alone", Alone)
found["an observer of ours"] = traced(
    "ours", lambda observer: profile(run=sys.argv[1] + "-et", execution_trace_observer=observer)
)

# What no hook records is recorded by the label itself.
_recorder.hook, hook = lambda shapes: None, _recorder.hook
with ours() as prof, theirs() as beside:
    work()
_recorder.hook = hook
names = labels(prof.events())
names += ["theirs"] * (names.count("theirs") == 0)
found["ours without a hook"], found["it beside no hook"] = names, labels(beside.events())

# A label that is open while somebody begins or ends to listen.
with ours() as prof:
    with record_function("begins unheard"):
        beside = theirs()
        beside.start()
    with record_function("ends unheard"):
        beside.stop()
found["across"] = [labels(prof.events()), labels(beside.events())]

# Names that PyTorch refuses, and what goes wrong there.
with theirs() as prof:
    for name in (5, None, "half \\ud800"):
        with record_function(name):
            pass
class Fails:
    def __init__(self, name, args): raise error
record_function_of_torch, autograd.record_function = autograd.record_function, Fails
with theirs():
    error = ValueError("PyTorch's")
    with record_function("swallowed"):
        pass
    error = KeyboardInterrupt()
    try:
        with record_function("interrupted"):
            found["interrupted"] = False
    except KeyboardInterrupt:
        found["interrupted"] = True
autograd.record_function = record_function_of_torch

# Nobody listens: nothing of PyTorch's is made.
autograd.record_function = Fails
error = KeyboardInterrupt()
function()
with ours(), record_function("ours alone"):
    pass
print(json.dumps(found))
"""

LABELS = "block annotation function annotated generator again between again future theirs".split()


def test_every_listener_hears_of_every_label_once(tmp_path):
    found = json.loads(runs.execute(*runs.script(PROGRAM, tmp_path / "run")).stdout.splitlines()[-1])
    assert found.pop("before") == ["before stepscope.profiler"]
    assert found.pop("interrupted") is True
    assert found.pop("across") == [["begins unheard", "ends unheard"], ["ends unheard"]]
    assert len(found) == 9
    # A generator has a label for each time that it runs.
    expected = Counter([*LABELS, "generator"])
    assert {name: Counter(names) - expected + (expected - Counter(names)) for name, names in found.items()} == {
        name: Counter() for name in found
    }


TRACED = """
import json, sys, torch
from stepscope.profiler import profile, record_function
CPU = [torch.profiler.ProfilerActivity.CPU]

def traced(label):
    def forward(x):
        with label("in the graph", "given"):
            y = x + 1
        return y
    return torch.jit.trace(forward, torch.ones(2))

def graph(function):
    return [line.partition(" # ")[0] for line in str(function.graph).splitlines()]

theirs, own = traced(torch.profiler.record_function), traced(record_function)
with profile(run=sys.argv[1], activities=CPU) as prof:
    again = traced(record_function)
    own(torch.ones(2))
names = [event.name for event in prof.events()]
print(json.dumps([graph(theirs) == graph(own) == graph(again), names.count("in the graph")]))
"""


def test_a_traced_graph_has_the_labels_of_what_was_traced(tmp_path):
    is_same, count = json.loads(runs.execute(*runs.script(TRACED, tmp_path / "run")).stdout)
    # Tracing runs the function once, and once more to check the graph, which it runs as well.
    assert is_same
    assert count >= 3


STEPS = """
import json, sys, torch
import stepscope.profiler
from torch.profiler import ExecutionTraceObserver
CPU = [torch.profiler.ProfilerActivity.CPU]

def stepped(profiler, path, **options):
    observer = ExecutionTraceObserver().register_callback(path)
    schedule = profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    observed = {"execution_trace_observer": observer} if options.pop("is_observed") else {}
    with profiler.profile(activities=CPU, schedule=schedule, **observed, **options) as prof:
        for _ in range(6):
            torch.ones(1)
            prof.step()
    observer.unregister_callback()
    nodes = [node["name"] for node in json.load(open(path))["nodes"]] if observed else []
    return sorted(event.name for event in prof.events()), sorted(nodes)

run = sys.argv[1]
theirs = stepped(torch.profiler, run + "-theirs.json", is_observed=True)
ours = stepped(stepscope.profiler, run + "-ours.json", is_observed=True, run=run + "-observed")
stepped(stepscope.profiler, run + "-alone.json", is_observed=False, run=run + "-alone")
print(json.dumps([theirs == ours, ours]))
"""


def test_steps_are_in_execution_traces_and_are_steps_nevertheless(tmp_path):
    run = tmp_path / "run"
    is_same, (events, nodes) = json.loads(runs.execute(*runs.script(STEPS, run)).stdout.splitlines()[-1])
    assert is_same
    assert [name for name in events if name.startswith("Profiler")] == ["ProfilerStep*"] * 2
    assert [name for name in nodes if name.startswith("Profiler")] == ["ProfilerStep#2", "ProfilerStep#3"]
    tables = [runs.analyze("step_breakdown", f"{run}-{which}")["results"] for which in ("observed", "alone")]
    of_each = [[(row["step"], row["source"], row["is_complete"]) for row in table] for table in tables]
    assert of_each[0] == of_each[1]
