"""What is written of a recording while it is read is what a whole trace of it says; and how a document ends."""

import json
import threading

import pytest
import stepscope
import torch
from stepscope import _engine
from stepscope.profiler import profile, record_function, schedule

OPTIONS = {
    "plain": {},
    "shapes": {"record_shapes": True},
    "memory": {"profile_memory": True},
    "stacks": {"with_stack": "ops"},
    "calls": {"with_stack": True},
    "modules": {"with_modules": True},
    "all": {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_flops": True},
}


def train(steps=3, prof=None):
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Sequential(torch.nn.Linear(16, 8)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.utils.data.TensorDataset(torch.randn(64, 8))
    for _, (batch,) in zip(range(steps), torch.utils.data.DataLoader(data, batch_size=4)):
        with record_function("forward"):
            loss = model(batch).sum()
        with torch.profiler.record_function("backward"):
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if prof:
            prof.step()


def on_threads(prof):
    threads = [threading.Thread(target=train, args=(2,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    train(2)
    for thread in threads:
        thread.join()


def with_steps(prof):
    train(8, prof)


def open_at_the_ends(prof):
    train(2)
    label = record_function("open")
    label.__enter__()
    return label


def told(path):
    """The rows by thread and time, with their places in the document numbered anew; and everything else."""
    document = json.loads(path.read_text())

    def place(row):
        args = {key: value for key, value in row.get("args", {}).items() if key != "Ev Idx"}
        return str(row.get("tid")), row["ts"], -row.get("dur", 0), json.dumps({**row, "args": args})

    rows = sorted(document.pop("traceEvents"), key=place)
    numbered = [row["args"] for row in rows if "Ev Idx" in row.get("args", {})]
    for number, args in enumerate(numbered):
        args["Ev Idx"] = number
    return rows, {**document, "traceName": None}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("program", [train, with_steps, on_threads, open_at_the_ends])
def test_what_is_written_while_it_is_read_is_what_a_trace_says(tmp_path, options, program):
    cycles = {"schedule": schedule(wait=1, warmup=1, active=2, repeat=2)} if program is with_steps else {}
    with profile(run=tmp_path / "run", **OPTIONS[options], **cycles) as prof:
        label = program(prof) if program is not train else train()
    if label:
        label.__exit__(None, None, None)
    for are_all_threads in (False, True):
        capture, asked = prof.profiler.last_window(are_all_threads)
        is_streamed, count = _engine.write_chrome(tmp_path / "streamed.json", capture, asked, [], first_id=9)
        assert is_streamed, "without a trace"
        written = _engine.write_chrome(tmp_path / "whole.json", capture, asked, [], first_id=9, streams=False)
        assert written == (False, count)
        streamed, whole = told(tmp_path / "streamed.json"), told(tmp_path / "whole.json")
        assert len(streamed[0]) > 50
        assert streamed == whole


def closing_of(path):
    rows = json.loads(path.read_text())["traceEvents"]
    known = ("name", "ph", "cat", "s", "pid", "tid")
    return rows, [{key: row[key] for key in known if key in row} for row in rows[-4:]]


def test_a_document_ends_as_that_of_torch_profiler(tmp_path):
    """[test_basic_chrome_trace: the last events, and that all times lie in the window]"""
    with profile(run=tmp_path / "run") as prof:
        train()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as theirs:
        train()
    prof.export_chrome_trace(str(tmp_path / "ours.json"))
    theirs.export_chrome_trace(str(tmp_path / "theirs.json"))
    capture, asked = prof.profiler.last_window()
    _engine.write_chrome(tmp_path / "whole.json", capture, asked, [], streams=False)
    (rows, ours), (_, torchs) = closing_of(tmp_path / "ours.json"), closing_of(tmp_path / "theirs.json")
    assert ours == torchs == closing_of(tmp_path / "whole.json")[1]
    span, _, begin, end = rows[-4:]
    assert end["ts"] == pytest.approx(span["ts"] + span["dur"]) and begin["ts"] == span["ts"]
    times = [row["ts"] for row in rows if row["ph"] != "M"]
    assert begin["ts"] == min(times) and end["ts"] == max(times)
    ends = [row["ts"] + row["dur"] for row in rows if row["ph"] == "X"]
    assert max(ends) <= end["ts"] + 0.001
    # Our own reader takes them for what they are.
    names = {row["name"] for row in stepscope.open(tmp_path / "ours.json").operators()["results"]}
    assert "aten::addmm" in names and not any("PyTorch Profiler" in name for name in names)
