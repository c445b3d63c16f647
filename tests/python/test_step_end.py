"""Steps that the program says itself: neither its optimizers nor its profilers make any then."""

import pytest
import runs

LOOP = """
import sys, torch, stepscope
from torch.profiler import ProfilerActivity, profile, schedule
words = sys.argv[1].split("+")
layers = [torch.nn.Linear(4, 1) for _ in range(2)]
kind = torch.optim.LBFGS if "lbfgs" in words else torch.optim.SGD
optimizers = [kind(layer.parameters(), lr=0.001) for layer in layers]

def turn(optimizer, layer):
    def closure():
        optimizer.zero_grad()
        loss = layer(torch.ones(2, 4)).sum()
        loss.backward()
        return loss
    optimizer.step(closure)

def evaluate():
    torch.digamma(torch.zeros(4))
    stepscope.step_end("evaluate")

other = profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=2, repeat=4))
with other if "profiler" in words else torch.no_grad() as prof, torch.enable_grad():
    for step in range(20):
        torch.erfinv(torch.zeros(4))
        if "accumulate" in words and step % 2 == 0:
            stepscope.step_end(micro=True)
            continue
        for optimizer, layer in zip(optimizers, layers):
            if "overflow" not in words or step != 5:
                turn(optimizer, layer)
        stepscope.step_end()
        if "profiler" in words:
            prof.step()
        if "evaluate" in words and step % 5 == 4:
            evaluate()
"""


@pytest.mark.parametrize(
    "words, steps",
    [("sgd", 20), ("lbfgs", 20), ("sgd+accumulate", 10), ("sgd+overflow+profiler", 20), ("sgd+evaluate", 20)],
)
def test_steps_are_what_the_program_says(tmp_path, words, steps):
    run = tmp_path / "run"
    runs.stepscope("record", "-o", run, "--", *runs.script(LOOP, words))
    rows = runs.rows(run)
    # Nobody knows where the first one began.
    found = [
        row for row in runs.analyze("step_breakdown", run)["results"] if row["step"] is not None and row["is_complete"]
    ]
    assert [row["step"] for row in found] == list(range(1, steps))
    assert {row["source"] for row in found} == {"label"}
    micro = runs.named(rows, "train micro-step")
    assert len(micro) == (10 if "accumulate" in words else 0)
    ranges = [(row["start_ns"], row["start_ns"] + row["dur_ns"]) for row in rows if row["kind"] == "step"]
    inside = [sum(start <= row["start_ns"] < end for start, end in ranges) for row in runs.named(rows, "aten::erfinv")]
    # In the last one that is begun, nothing runs any more.
    assert inside == [0, 0][: 20 // steps] + [1] * (20 - 20 // steps)
    evaluated = runs.named(rows, "aten::digamma")
    assert not any(start <= row["start_ns"] < end for row in evaluated for start, end in ranges)
    assert len(evaluated) == (4 if "evaluate" in words else 0)


@pytest.mark.parametrize("words, steps", [("sgd", 20), ("sgd+profiler", 20), ("sgd+accumulate", 10)])
def test_some_of_them_are_recorded(tmp_path, words, steps):
    run = tmp_path / "run"
    runs.stepscope("record", "-o", run, "--every", "4", "--for", "1", "--", *runs.script(LOOP, words))
    expected = [step for step in range(steps) if step % 4 == 3]
    assert [row["step"] for row in runs.rows(run) if row["kind"] == "step"] == expected
    assert len(runs.named(runs.rows(run), "aten::erfinv")) == 20 // steps * len(expected)


def test_without_a_recording_it_does_nothing():
    program = "import sys, stepscope; stepscope.step_end(); print('torch' in sys.modules)"
    assert runs.execute(*runs.new_script(program)).stdout == "False\n"
