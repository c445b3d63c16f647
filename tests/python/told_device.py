"""A device's profiler that writes down what it is told to do."""

import json

import runs
from stand_in_device import DEVICE

STAND_INS = (
    DEVICE
    + """
import json, threading, warnings
from stepscope import _device_proof, _recorder
from stepscope.profiler import ProfilerActivity, profile, schedule

run = sys.argv[1]
CPU, CUDA = ProfilerActivity.CPU, ProfilerActivity.CUDA
told = []
refusals = []

def device_start(options):
    if refusals:
        raise RuntimeError(refusals[0])
    told.append("start")
    given.append(options)
    return {"remarks": remarks}

given, remarks = [], []
verdicts = []
_device_proof.verdict = lambda *_: verdicts[0] if verdicts else _device_proof.Verdict("proven")
_recorder.device_start = device_start
_recorder.device_stop = lambda: told.append("stop")
torch.cuda.synchronize = lambda device=None: told.append("wait")
"""
)

# Before what is written at the end of the process.
END = """
print(json.dumps(told), flush=True)
"""


def told(tmp_path, text, *, command=()):
    """What a program has told the device's profiler to do."""
    words = runs.script(STAND_INS + text + END, tmp_path / "run")
    if command:
        words = [runs.COMMAND, "record", "-o", tmp_path / "run", *command, "--", *words]
    return json.loads(runs.execute(*words).stdout.splitlines()[-1])
