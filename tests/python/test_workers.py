"""DataLoader workers that are forked record when the process does that forked them, and at no other time."""

import pytest
import runs

TRAIN = """
import os, sys, time, torch
from torch.utils.data import DataLoader, Dataset
from torch.profiler import record_function

class Items(Dataset):
    def __len__(self):
        return 100_000
    def __getitem__(self, index):
        time.sleep(0.001)
        return torch.erfinv(torch.zeros(4))

loader = iter(DataLoader(Items(), batch_size=4, num_workers=2, prefetch_factor=2))
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)

def steps(count):
    for _ in range(count):
        model(next(loader)).sum().backward()
        optimizer.step()
"""
# A batch takes a few milliseconds; on a busy machine one that was begun in a window may take longer.
BATCH_NS = 60e6


def workers_and_windows(run):
    """Rows of each worker, and the windows of the process that trains, both in Unix time."""
    windows, workers = [], {}
    for part in runs.parts(run):
        process = runs.metadata(part)
        name = process["facts"]["process_name"]
        if name.startswith("DataLoader worker"):
            workers[name] = [row for row in runs.rows(run) if row["process_name"] == name]
        else:
            switches = [(at + process["unix_offset_ns"], is_on) for at, is_on, _ in process["windows"]]
            assert [is_on for _, is_on in switches] == [True, False] * (len(switches) // 2), switches
            windows = [(on, off) for (on, _), (off, _) in zip(switches[::2], switches[1::2])]
    assert sorted(workers) == ["DataLoader worker 0", "DataLoader worker 1"]
    return workers, windows


def counts(rows, windows):
    """How many items were prepared within each window, or by the end of a batch that was begun in it; and outside of all."""
    inside, outside = [0] * len(windows), 0
    for row in runs.named(rows, "aten::erfinv"):
        at = [on <= row["start_ns"] <= off + BATCH_NS for on, off in windows]
        inside = [count + is_in for count, is_in in zip(inside, at)]
        outside += not any(at)
    return inside, outside


@pytest.mark.parametrize(
    "options, expected",
    [
        # Forked while nothing is recorded, and in a recorded step.
        (["--schedule", "wait=30,active=15"], 3),
        (["--schedule", "wait=30,active=15,skip_first_wait=1"], 4),
    ],
)
def test_workers_follow_the_windows_of_the_training_process(tmp_path, options, expected):
    run = tmp_path / "run"
    runs.stepscope("record", "-o", run, *options, "--", *runs.new_script(TRAIN + "steps(150)"))
    workers, windows = workers_and_windows(run)
    assert len(windows) == expected
    for rows in workers.values():
        inside, outside = counts(rows, windows)
        assert outside == 0 and min(inside) > 8, (inside, outside)
        fetches = runs.named(rows, "DataLoader.fetch")
        assert len(fetches) * 4 >= sum(inside) >= 3 * len(fetches), "a batch has four"
    # Each worker says when it was recorded, so that the time between is no idle.
    assert runs.findings(run)["capture.sampled_steps"]["count"] == 3


def test_workers_follow_a_schedule_of_the_program(tmp_path):
    text = (
        TRAIN.replace(
            "loader = iter",
            """
from stepscope.profiler import profile, schedule
prof = profile(schedule=schedule(wait=20, warmup=0, active=10, repeat=2), run=sys.argv[1])
prof.start()
loader = iter""",
        )
        + """
for _ in range(90):
    steps(1)
    prof.step()
prof.stop()
steps(20)
"""
    )
    runs.execute(*runs.new_script(text, tmp_path / "run"))
    workers, windows = workers_and_windows(tmp_path / "run")
    assert len(windows) == 2
    for rows in workers.values():
        inside, outside = counts(rows, windows)
        assert outside == 0 and min(inside) > 4, (inside, outside)


def test_without_a_schedule_all_is_recorded(tmp_path):
    run = tmp_path / "run"
    runs.stepscope("record", "-o", run, "--", *runs.new_script(TRAIN + "steps(40)"))
    names = ("DataLoader worker 0", "DataLoader worker 1")
    for name in names:
        rows = [row for row in runs.rows(run) if row["process_name"] == name]
        assert len(runs.named(rows, "aten::erfinv")) >= 20 * 4
