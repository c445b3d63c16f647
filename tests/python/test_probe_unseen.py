"""The probe of PyTorch's layout is seen by nothing of the program, and nothing of the program disturbs it."""

import json

import runs

MODES = """
import json, os, sys, warnings
from stepscope.profiler import profile  # Before PyTorch: nothing is proven yet.
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

torch.set_num_threads(1)
warnings.simplefilter("ignore")

def work(x=None):
    return (torch.ones(4, 4) if x is None else x).exp()

class SeesOperators(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.seen.append(str(function))
        return function(*args, **(kwargs or {}))

class SeesFunctions(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.seen = []
    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.seen.append(getattr(function, "__name__", str(function)))
        return function(*args, **(kwargs or {}))

def under(mode, seen=lambda: None):
    def scenario(profiled):
        with mode:
            profiled(work)
        return seen()
    return scenario

def transformed(transform):
    return lambda profiled: str(transform(profiled)(torch.ones(3, 2)))

def graph_of(trace):
    # Whether anything but the program's own operator is in it.
    return lambda profiled: "exp" in trace(profiled) and "sin" not in trace(profiled)

operators, functions, packed = SeesOperators(), SeesFunctions(), []
def unpackable(tensor):
    raise ValueError("nothing of the program's is saved here")

SCENARIOS = {
    "FlopCounterMode": under(FlopCounterMode(display=False)),
    "FakeTensorMode": under(FakeTensorMode()),
    "TorchDispatchMode": under(operators, lambda: operators.seen),
    "TorchFunctionMode": under(functions, lambda: functions.seen),
    "saved_tensors_hooks": under(
        torch.autograd.graph.saved_tensors_hooks(lambda tensor: packed.append(1) or tensor, lambda tensor: tensor),
        lambda: packed,
    ),
    "saved_tensors_hooks that fail": under(torch.autograd.graph.saved_tensors_hooks(unpackable, unpackable)),
    "detect_anomaly": under(torch.autograd.detect_anomaly()),
    "inference_mode": under(torch.inference_mode()),
    "no_grad": under(torch.no_grad()),
    "autocast": under(torch.autocast("cpu")),
    "a default device": under(torch.device("meta")),
    "vmap": transformed(torch.vmap),
    "grad": transformed(lambda profiled: torch.func.grad(lambda x: profiled(x).sum())),
    "make_fx": graph_of(lambda profiled: make_fx(profiled)(torch.ones(2)).code),
    "torch.jit.trace": graph_of(lambda profiled: str(torch.jit.trace(profiled, torch.ones(2), check_trace=False).graph)),
}

def names(prof):
    return [event.name for event in prof.events()]

def observed(scenario, make):
    profiles = []
    def profiled(x=None):
        with make() as prof:
            y = work(x)
        profiles.append(prof)
        return y
    seen = scenario(lambda function_or_x=None: profiled(None if callable(function_or_x) else function_or_x))
    with make() as later:
        work()
    return [names(profiles[0]), names(later), seen]

def of_child(scenario, make):
    # Each in a process of its own, in which nothing was recorded before.
    end, begin = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            answer = observed(scenario, make)
        except BaseException as error:
            answer = repr(error)
        os.write(begin, json.dumps(answer).encode())
        os._exit(0)
    os.close(begin)
    with open(end) as answer:
        text = answer.read()
    os.waitpid(pid, 0)
    return json.loads(text or '"it died"')

CPU = [torch.profiler.ProfilerActivity.CPU]
theirs = lambda: torch.profiler.profile(activities=CPU)
number = iter(range(1000))
ours = lambda: profile(activities=CPU, run=f"{sys.argv[1]}-{os.getpid()}-{next(number)}")
differ = {}
for name, scenario in SCENARIOS.items():
    both = of_child(scenario, theirs), of_child(scenario, ours)
    if both[0] != both[1] or not both[1][0]:
        differ[name] = both
print(json.dumps({"differ": differ, "count": len(SCENARIOS)}))
"""


def test_a_first_profile_under_any_mode_hook_or_tracer_is_as_that_of_torch_profiler(tmp_path):
    result = runs.execute(*runs.new_script(MODES, tmp_path / "run"))
    found = json.loads(result.stdout.splitlines()[-1])
    assert found == {"differ": {}, "count": 15}
    assert "stepscope" not in result.stderr


OTHERS = """
import json, os, sys, threading
from stepscope.profiler import profile
import torch
from torch.profiler import ExecutionTraceObserver

started = []
threading.setprofile(lambda *_: started.append("profile"))
threading.settrace(lambda *_: started.append("trace"))
observer = ExecutionTraceObserver().register_callback(sys.argv[1] + ".et.json")
CPU = [torch.profiler.ProfilerActivity.CPU]
with torch.profiler.profile(activities=CPU) as theirs, profile(run=sys.argv[1], execution_trace_observer=observer):
    torch.ones(2)
observer.unregister_callback()
nodes = [node["name"] for node in json.load(open(sys.argv[1] + ".et.json"))["nodes"]]
print(json.dumps({
    "theirs": [event.name for event in theirs.events()],
    "nodes": [name for name in nodes if not name.startswith("[pytorch|")],
    "threads": [thread.name for thread in threading.enumerate()],
    "started": started,
}))
"""


def test_nobody_who_listens_sees_the_probe(tmp_path):
    """Another profiler, an observer of all threads, what Python tells of threads."""
    result = runs.execute(*runs.new_script(OTHERS, tmp_path / "run"))
    found = json.loads(result.stdout.splitlines()[-1])
    assert found["theirs"] == ["aten::ones", "aten::empty", "aten::fill_"]
    assert sorted(found["nodes"]) == ["aten::empty", "aten::fill_", "aten::ones"]
    assert (found["threads"], found["started"]) == (["MainThread"], [])


IMPORTED_LATE = """
import json, sys
import torch
from torch.profiler import ExecutionTraceObserver
import stepscope.profiler

observer = ExecutionTraceObserver().register_callback(sys.argv[1] + ".et.json")
observer.start()
with stepscope.profiler.profile(run=sys.argv[1], record_shapes=True) as prof:
    torch.ones(2)
observer.stop()
observer.unregister_callback()
nodes = [node["name"] for node in json.load(open(sys.argv[1] + ".et.json"))["nodes"]]
print(json.dumps([name for name in nodes if not name.startswith("[pytorch|")]))
"""


def test_what_listens_to_all_threads_since_the_import_sees_the_program_alone(tmp_path):
    result = runs.execute(*runs.new_script(IMPORTED_LATE, tmp_path / "run"))
    assert sorted(json.loads(result.stdout.splitlines()[-1])) == ["aten::empty", "aten::fill_", "aten::ones"]


TRIED_AGAIN = """
import json, sys
from stepscope.profiler import profile
import torch
from stepscope import _hook, _recorder

def names(number, **options):
    with profile(run=f"{sys.argv[1]}-{number}", **options) as prof:
        torch.ones(2)
    return [event.name for event in prof.events()]

found = []
known_ops, _hook._run_known_ops = _hook._run_known_ops, lambda torch: 1 / 0
found.append(names(0))
found.append(names(1))
# One that waits for what the program holds is not waited for, and not begun twice.
import threading
gate = threading.Event()
_hook._PATIENCE_S, _hook._run_known_ops = 0.01, lambda torch: gate.wait()
found.append(names(2))
found.append(names(3))
gate.set()
while _hook._probing_pid:
    pass
_hook._PATIENCE_S, _hook._run_known_ops = 10, known_ops
found.append(names(4))
shapes, _recorder.probe_inputs_begin = _recorder.probe_inputs_begin, lambda: 1 / 0
from stepscope import _shapes
with profile(run=sys.argv[1] + "-5", record_shapes=True) as prof:
    torch.ones(2)
found.append([event.input_shapes for event in prof.events()])
_recorder.probe_inputs_begin = shapes
with profile(run=sys.argv[1] + "-6", record_shapes=True) as prof:
    torch.ones(2)
found.append([event.input_shapes for event in prof.events()])
print(json.dumps(found))
"""


def test_a_probe_that_was_refused_is_tried_again_and_said_once(tmp_path):
    result = runs.execute(*runs.new_script(TRIED_AGAIN, tmp_path / "run"))
    *refused, proven, shapeless, shapes = json.loads(result.stdout.splitlines()[-1])
    assert refused == [[]] * 4
    assert proven == ["aten::ones", "aten::empty", "aten::fill_"]
    assert not any(shapeless) and any(shapes)
    assert result.stderr.count("not recording operators") == result.stderr.count("not recording shapes") == 1
