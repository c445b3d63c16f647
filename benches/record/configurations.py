"""What is recorded, as Stepscope and torch.profiler are told it, and whether Stepscope does record it."""

import os
import subprocess
import sys
import tempfile

CHEAP = {"modules": False, "gc": False, "counters": False}

# Options of Stepscope, arguments of torch.profiler, what a trace then has in it.
CONFIGURATIONS = {
    "plain": (CHEAP, {}, ["cpu_op"]),
    "shapes": ({**CHEAP, "shapes": True}, {"record_shapes": True}, ['"Input Dims"']),
    "memory": ({**CHEAP, "memory": True}, {"profile_memory": True}, ['"[memory]"']),
    "stacks": ({**CHEAP, "stacks": "ops"}, {"with_stack": True}, ["python_function"]),
    "calls": ({**CHEAP, "stacks": "calls"}, {"with_stack": True}, ["python_function"]),
    "all": (
        {"shapes": True, "memory": True, "stacks": "calls"},
        {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_modules": True, "with_flops": True},
        ['"Input Dims"', '"[memory]"', "python_function"],
    ),
}

_TRY = """
import sys
import torch
from record.profilers import Stepscope
profiler = Stepscope(sys.argv[2], sys.argv[1])
profiler.start()
def work():
    return torch.nn.Linear(4, 4)(torch.ones(2, 4)).sum().backward()
work()
profiler.close()
"""

_known = {}


def is_recorded(name):
    """True when a trace that Stepscope recorded so has what it should: options may be known and not yet implemented."""
    if name not in _known:
        _known[name] = _try(name)
    return _known[name]


def _try(name):
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with tempfile.TemporaryDirectory(prefix="stepscope-bench-") as folder:
        run, trace = os.path.join(folder, "run"), os.path.join(folder, "trace.json")
        commands = [["-c", _TRY, name, run], ["-m", "stepscope", "convert", run, "--output", trace]]
        for command in commands:
            done = subprocess.run([sys.executable, *command], cwd=here, capture_output=True, text=True)
            if done.returncode != 0:
                print(f"{name}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
                return False
        with open(trace, encoding="utf-8") as file:
            text = file.read()
    return all(evidence in text for evidence in CONFIGURATIONS[name][2])
