"""How many parameters modules have, and how many of them are trained, as a program counts them itself."""

import json
import signal

import runs

MODELS = """
import json, sys, torch
from torch import nn
tied = nn.Linear(8, 8, bias=False)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = tied, nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4))
        self.tied = nn.Linear(8, 8, bias=False)
        self.tied.weight = tied.weight
        self.two[0].weight.requires_grad_(False)
        self.nothing = None
        self.never_called = nn.Linear(100, 100)
    def forward(self, x):
        return self.two(self.tied(self.one(x)))
net = Net()
"""


def sizes(run):
    """The size of each module of a run, by its path."""
    found = runs.analyze("modules", run)["results"]
    return {row["path"]: (row["module_class"], row["parameters"], row["trainable_parameters"]) for row in found}


def test_parameters_are_those_that_the_program_counts(tmp_path):
    text = (
        MODELS
        + """
net(torch.ones(2, 8))
counted = {}
for path, module in net.named_modules():
    name = "Net" + bool(path) * "." + path
    trained = sum(one.numel() for one in module.parameters() if one.requires_grad)
    counted[name] = (type(module).__name__, sum(one.numel() for one in module.parameters()), trained)
del counted["Net.never_called"]
print(json.dumps(counted))
"""
    )
    run = tmp_path / "run"
    told = runs.stepscope("record", "-o", run, "--", *runs.script(text))
    assert sizes(run) == {path: tuple(size) for path, size in json.loads(told.stdout).items()}


def test_a_program_that_is_killed_has_them_too_and_so_has_a_flight_recorder(tmp_path):
    text = (
        MODELS
        + """
import os, signal
for _ in range(int(sys.argv[1])):
    net(torch.ones(2, 8))
os.kill(os.getpid(), signal.SIGKILL)
"""
    )
    for name, options, calls in (("whole", (), 3), ("ring", ("--ring", "100ms"), 30000)):
        run = tmp_path / name
        command = ["record", *options, "-o", run, "--", *runs.script(text, calls)]
        runs.stepscope(*command, code=128 + signal.SIGKILL)
        # Once read by the tool that compacts, once from what it has written.
        for _ in range(2):
            assert sizes(run)["Net"] == ("Net", 64 + 36 + 8 + 10100, 64 + 4 + 8 + 10100), name
            assert sizes(run)["Net.two.0"] == ("Linear", 36, 4), name


def test_counting_does_not_disturb_modes_subclasses_and_modules_that_are_not_made_yet(tmp_path):
    text = """
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
class Seen(TorchFunctionMode):
    names = []
    def __torch_function__(self, function, types, args=(), kwargs=None):
        Seen.names.append(getattr(function, "__name__", str(function)))
        return function(*args, **(kwargs or {}))
class Loud(nn.Parameter):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        assert "numel" not in str(function) and "requires_grad" not in str(function), function
        with torch._C.DisableTorchFunctionSubclass():
            return function(*args, **(kwargs or {}))
net = nn.Sequential(nn.Linear(4, 4), nn.LazyLinear(3))
net[0].weight = Loud(torch.ones(4, 4))
with Seen():
    net(torch.ones(2, 4))
print(sorted({name for name in Seen.names if "numel" in name or "requires_grad" in name or "shape" in name}))
"""
    runs_apart = {}
    for name, command in (("alone", []), ("recorded", ["record", "-o", tmp_path / "run", "--"])):
        words = runs.new_script(text)
        runs_apart[name] = (runs.stepscope(*command, *words) if command else runs.execute(*words)).stdout
    assert runs_apart["recorded"] == runs_apart["alone"]
    assert sizes(tmp_path / "run")["Sequential.0"] == ("Linear", 20, 20)


def test_one_model_after_another_has_its_own_size(tmp_path):
    text = """
import torch
for width in (2, 3):
    net = torch.nn.Sequential(torch.nn.Linear(width, width))
    net(torch.ones(1, width))
    del net
"""
    run = tmp_path / "run"
    runs.stepscope("record", "-o", run, "--", *runs.script(text))
    rows = [(row["name"], row["overload"]) for row in runs.rows(run) if row["kind"] == "module"]
    assert rows == [("Sequential", "6 6"), ("Sequential.0", "6 6"), ("Sequential", "12 12"), ("Sequential.0", "12 12")]
