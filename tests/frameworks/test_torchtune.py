"""The component for torchtune's recipes: its keys, what recipes read of the configuration, and which steps are recorded."""

import pytest
import runs
import torch

pytest.importorskip("omegaconf")
from stepscope.torchtune import setup_profiler

# What recipes read to take snapshots of memory.
READ = ("enabled", "profile_memory", "wait_steps", "warmup_steps", "active_steps", "num_cycles")


def train(prof, steps):
    with prof:
        for _ in range(steps):
            torch.erfinv(torch.zeros(4))
            prof.step()


@pytest.mark.parametrize(
    "keys, expected, recorded",
    [
        ({}, (True, False, 5, 5, 2, 1), [10, 11]),
        ({"wait_steps": 1, "warmup_steps": 1}, (True, False, 1, 1, 2, 1), [2, 3]),
        ({"wait_steps": 0, "warmup_steps": 1, "active_steps": 1, "num_cycles": 2}, (True, False, 0, 1, 1, 2), [1, 3]),
        ({"profile_memory": True, "wait_steps": 1, "warmup_steps": 0}, (True, True, 1, 0, 2, 1), [1, 2]),
    ],
)
@pytest.mark.filterwarnings("ignore:Profiler won't be using warmup")
def test_steps_are_those_of_the_configuration(tmp_path, keys, expected, recorded):
    prof, config = setup_profiler(enabled=True, cuda=False, output_dir=str(tmp_path), **keys)
    assert tuple(config[name] for name in READ) == expected
    train(prof, 20)
    rows = runs.rows(tmp_path / "stepscope")
    assert [row["step"] for row in rows if row["kind"] == "step"] == recorded
    (first, *_) = runs.named(rows, "aten::erfinv")
    assert first["inputs"] is not None


def test_without_it_recipes_run_on(tmp_path):
    prof, config = setup_profiler()
    assert dict(config) == {"enabled": False}
    prof.start()
    train(prof, 2)
    prof.stop()
