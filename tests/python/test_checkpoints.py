"""Checkpoints that real libraries write: found by labels, by calls and by what is written, with the bytes that are there."""

import json

import pytest
import runs

PROGRAM = """
import os, sys, time, torch
import torch.distributed.checkpoint as dcp
from stepscope.dataflow import checkpoint
folder = sys.argv[1]
state = {f"w{i}": torch.rand(256, 1024) for i in range(4)}      # 4 MiB
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def step():
    model(torch.ones(4)).sum().backward()
    optimizer.step()

step()
torch.save(state, folder + "/plain.pt")
time.sleep(1.2)
step()
with checkpoint("labelled", step=1) as saving:
    torch.save(state, folder + "/labelled.pt")
time.sleep(1.2)
dcp.save(state, checkpoint_id=folder + "/dcp", no_dist=True)
time.sleep(1.2)
HAS_SAFETENSORS
step()
"""
SAFETENSORS = 'import safetensors.torch; safetensors.torch.save_file(state, folder + "/state.safetensors")'


@pytest.fixture(scope="module")
def has_safetensors():
    try:
        import safetensors  # noqa: F401
    except ImportError:
        return False
    return True


def written(folder, name):
    """The bytes of a file, or of all files of a folder."""
    path = folder / name
    return sum(file.stat().st_size for file in ([path] if path.is_file() else path.iterdir()))


def record(tmp_path, has_safetensors, *options):
    folder = tmp_path / "saved"
    folder.mkdir()
    text = PROGRAM.replace("HAS_SAFETENSORS", SAFETENSORS if has_safetensors else "")
    runs.stepscope("record", "-o", tmp_path / "run", "--io", *options, "--", *runs.new_script(text, folder))
    rows = runs.analyze("checkpoints", tmp_path / "run")["results"]
    return folder, [row for row in rows if row["write_bytes"]]


@pytest.mark.slow
def test_what_is_written_is_a_checkpoint(tmp_path, has_safetensors):
    folder, rows = record(tmp_path, has_safetensors)
    expected = ["plain.pt", "labelled.pt", "dcp"] + ["state.safetensors"] * has_safetensors
    # safetensors writes through a mapping, or in calls, as its version does.
    assert len(rows) in (3, len(expected)), json.dumps(rows, indent=1)
    plain, labelled, dcp = rows[:3]
    assert (plain["known_by"], plain["name"]) == ("writes", str(folder / "plain.pt"))
    assert (labelled["known_by"], labelled["name"]) == ("label", "labelled")
    assert dcp["known_by"] == "writes" and dcp["name"].startswith(str(folder / "dcp"))
    for row, name in zip(rows, expected):
        size = written(folder, name)
        # The zip's directory is written anew when it ends, and small files beside the large one may not count.
        assert 0.99 * size <= row["write_bytes"] <= 1.05 * size, (name, row, size)
        assert row["total_ns"] >= row["writing_ns"] > 0
        assert row["write_bytes_per_s"] == pytest.approx(row["write_bytes"] * 1e9 / row["total_ns"], rel=1e-6)
        assert 0 <= row["blocking_ns"] <= row["total_ns"]
    assert plain["blocking_ratio"] == labelled["blocking_ratio"] == 1.0


@pytest.mark.slow
def test_functions_that_write_checkpoints_are_known_where_calls_are_recorded(tmp_path, has_safetensors):
    _, rows = record(tmp_path, has_safetensors, "--stacks=calls")
    names = [row["name"].rsplit("/", 1)[-1] for row in rows]
    assert [row["known_by"] for row in rows] == ["call", "label", "call"] + ["call"] * has_safetensors
    assert names[0].startswith("serialization.py(") and names[0].endswith("): save")
    assert names[2].startswith("state_dict_saver.py(") and names[2].endswith("): save")


@pytest.mark.slow
def test_a_thread_that_writes_beside_the_training_does_not_block(tmp_path):
    text = """
import sys, threading, time, torch
state = {"w": torch.rand(512, 1024)}
thread = threading.Thread(target=torch.save, args=(state, sys.argv[1] + "/beside.pt"))
for at in range(50):
    torch.rand(100, 100).mm(torch.rand(100, 100))
    time.sleep(0.005)
    if at == 10: thread.start()
thread.join()
"""
    runs.stepscope("record", "-o", tmp_path / "run", "--io", "--", *runs.new_script(text, tmp_path))
    rows = [row for row in runs.analyze("checkpoints", tmp_path / "run")["results"] if row["write_bytes"]]
    assert [(row["name"], row["known_by"], row["blocking_ns"]) for row in rows] == [
        (str(tmp_path / "beside.pt"), "writes", 0)
    ]
