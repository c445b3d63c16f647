"""The component for torchtune's recipes beside torchtune's own: its keys, what recipes read of the configuration, and which
steps are recorded."""

import inspect
import warnings

import pytest
import runs
import torch

pytest.importorskip("torchtune")
from stepscope.torchtune import setup_profiler
from torchtune import training


def train(prof, steps):
    with prof:
        for _ in range(steps):
            torch.erfinv(torch.zeros(4))
            prof.step()


def test_it_has_the_keys_of_torchtunes_and_their_defaults():
    ours, theirs = (inspect.signature(setup).parameters for setup in (setup_profiler, training.setup_torch_profiler))
    assert [(key.name, key.default) for key in ours.values()] == [(key.name, key.default) for key in theirs.values()]


@pytest.mark.parametrize(
    "keys, recorded",
    [
        ({}, [10, 11]),
        ({"wait_steps": 1, "warmup_steps": 1, "with_flops": True}, [2, 3]),
        ({"wait_steps": 0, "warmup_steps": 1, "active_steps": 1, "num_cycles": 2}, [1, 3]),
        ({"profile_memory": True, "record_shapes": False, "wait_steps": 1, "warmup_steps": 0}, [1, 2]),
        ({"cpu": False, "cuda": False, "xpu": False, "with_stack": True, "active_steps": 1}, [10]),
    ],
)
@pytest.mark.filterwarnings(
    "ignore:Profiler won't be using warmup", "ignore:there is no driver", "ignore:a schedule without"
)
def test_configuration_and_steps_are_torchtunes(tmp_path, keys, recorded):
    keys = {"cuda": False, "output_dir": str(tmp_path / "profiles"), **keys}
    theirs, expected = training.setup_torch_profiler(enabled=True, **keys)
    prof, config = setup_profiler(enabled=True, **keys)
    assert type(config) is type(expected) and dict(config) == dict(expected)
    for name in ("profile_memory", "with_stack", "record_shapes", "with_flops"):
        assert getattr(prof, name) == getattr(theirs, name), name
    assert [prof.schedule(step) for step in range(20)] == [theirs.schedule(step) for step in range(20)]
    train(prof, 20)
    rows = runs.rows(tmp_path / "profiles" / "stepscope")
    assert [row["step"] for row in rows if row["kind"] == "step"] == recorded
    (first, *_) = runs.named(rows, "aten::erfinv")
    assert first["inputs"] is not None


def test_of_xpu_nothing_is_said_where_there_is_none(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prof, config = setup_profiler(enabled=True, cuda=False, output_dir=str(tmp_path))
        assert config.xpu is True
        train(prof, 1)


def test_without_it_recipes_run_on():
    prof, config = setup_profiler()
    theirs, expected = training.setup_torch_profiler()
    assert dict(config) == dict(expected) == {"enabled": False}
    assert {name for name in dir(type(theirs)) if not name.startswith("_")} <= set(dir(prof))
    prof.start()
    train(prof, 2)
    prof.stop()
