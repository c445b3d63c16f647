"""The flight recorder beside a CUPTI of our own, over several laps of the ring."""

import json

import fake_gpu
import pytest
import runs
import stepscope as package
from gpu_programs import PRELUDE, kernels, lost
from stand_in_device import DEVICE

# Each step is an operator that launches a kernel. Before all of them a launch whose kernel runs at the end.
PROGRAM = """
from stepscope.profiler import profile
gpu.set_clock(1_700_000_000_000_000_000, 30)
torch.cuda.init()
x = torch.ones(2, requires_grad=True)
planted = {}
class Launch(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, number):
        launch(number)
        return x * 2
def launch(number):
    now = time.monotonic_ns()
    gpu.put(fake_gpu.RUNTIME, call=fake_gpu.LAUNCH_KERNEL, start=now, end=now + 2_000, thread=fake_gpu.thread(),
            correlation=number)
def run_kernel(number, name):
    now = time.monotonic_ns() + 1_000
    planted[number] = now, now + 1_000 + number % 777
    assert gpu.put(fake_gpu.KERNEL, start=now, end=planted[number][1], stream=7, context=1, correlation=number, name=name)
with profile(ring="400ms", run=run) as prof:
    launch(1)
    number, until = 10, time.monotonic() + 3
    while time.monotonic() < until:
        Launch.apply(x, number)
        run_kernel(number, "k")
        number += 1
    run_kernel(1, "launched long ago")
    run_kernel(number, "the last one")
    prof.keep("look")
    # What the device reports from here on belongs to the run alone.
    while not list(run.glob("kept/*/raw/*.capture")):
        time.sleep(0.01)
    run_kernel(number + 1, "after")
print(json.dumps([planted, number]))
"""


@pytest.fixture(scope="module")
def recorded(libraries, tmp_path_factory):
    run = tmp_path_factory.mktemp("ring") / "run"
    environment = runs.environment(**fake_gpu.environment(libraries))
    result = runs.execute(*runs.new_script(PRELUDE + DEVICE + PROGRAM, libraries, run), env=environment)
    planted, number = json.loads(result.stdout.splitlines()[-1])
    (window,) = run.glob("kept/*")
    return run, window, {int(key): value for key, value in planted.items()}, number


@pytest.mark.slow
def test_what_the_window_has_lies_where_it_ran(recorded):
    run, window, planted, number = recorded
    for place in (run, window):
        found = kernels(place)
        assert 100 < len(found) < len(planted) / 2, "several laps"
        offsets = set()
        for row in found:
            start, end = planted[row["correlation"]]
            assert abs(row["dur_ns"] - (end - start)) <= 1
            offsets.add(row["start_ns"] - start)
        # One clock for all, of whose readings the ring has evicted all but the last ones.
        assert max(offsets) - min(offsets) <= 200
        numbers = [row["correlation"] for row in found if row["name"] == "k"]
        assert numbers == list(range(numbers[0], number)), "none is missing in between"
        assert lost(place) == 0


def test_what_is_reported_last_is_kept(recorded):
    run, window, _, _ = recorded
    # Nobody had fetched it when the window was asked for.
    assert {row["name"] for row in kernels(window)} == {"k", "launched long ago", "the last one"}
    assert "after" in {row["name"] for row in kernels(run)}


def test_a_kernel_whose_launch_is_gone_is_a_finding(recorded):
    run, window, _, _ = recorded
    for place in (run, window):
        found = runs.findings(place)
        assert 1 <= found["import.unlinked_device_event"]["count"] <= 4, found
        assert not found.keys() & {"capture.damaged_segment", "capture.device_reports_lost", "capture.dropped_records"}
        opened = package.open(place)
        named = {row["name"]: row for row in opened.kernels()["results"]}
        assert named["launched long ago"]["count"] == 1 and named["k"]["count"] > 100
        (operator,) = [row for row in opened.operators()["results"] if row["name"] == "Launch"]
        linked = named["k"]["count"] - (found["import.unlinked_device_event"]["count"] - 1)
        assert operator["count"] >= linked - 2 and operator["device_total_ns"] > 1_000 * (linked - 2)
    facts = dict(runs.metadata(runs.parts(window)[0])["facts"])
    assert json.loads(facts["devices"])[0]["name"] == "Fake GPU 0"
