"""``stepscope.profiler`` has every name of ``torch.profiler``."""

import inspect
import pickle

import pytest
import stepscope.profiler
import torch
import torch.profiler


def test_every_name_of_torch_is_there():
    for name in torch.profiler.__all__:
        assert hasattr(stepscope.profiler, name), name
        assert name in stepscope.profiler.__all__
    for name in ("_ExperimentalConfig", "_KinetoProfile", "RecordScope", "itt"):
        assert hasattr(stepscope.profiler, name), name
    with pytest.raises(AttributeError):
        _ = stepscope.profiler.no_such_name


def test_public_classes_are_pickled_by_name():
    names = ("profile", "_KinetoProfile", "record_function", "EventList", "FunctionEvent", "FunctionEventAvg", "Kernel")
    for name in (*names, "Interval"):
        kind = getattr(stepscope.profiler, name)
        assert pickle.loads(pickle.dumps(kind)) is kind
        assert kind.__module__.startswith("stepscope.profiler."), name


@pytest.mark.parametrize("name", ["profile", "_KinetoProfile", "schedule", "tensorboard_trace_handler"])
def test_every_keyword_of_torch_is_there(name):
    ours = inspect.signature(getattr(stepscope.profiler, name)).parameters
    theirs = inspect.signature(getattr(torch.profiler, name)).parameters
    for keyword, parameter in theirs.items():
        assert keyword in ours, keyword
        assert ours[keyword].default == parameter.default, keyword


@pytest.mark.parametrize(
    "kind", ["profile", "_KinetoProfile", "record_function"], ids=["profile", "_KinetoProfile", "record_function"]
)
def test_every_method_of_torch_is_there(kind):
    ours, theirs = getattr(stepscope.profiler, kind), getattr(torch.profiler, kind)
    for name, method in inspect.getmembers(theirs, callable):
        if name.startswith("_") and not name.startswith(("__enter", "__exit", "_stats", "_call_end")):
            continue
        assert hasattr(ours, name), name
        expected = [parameter for parameter in inspect.signature(method).parameters if parameter != "self"]
        found = [parameter for parameter in inspect.signature(getattr(ours, name)).parameters if parameter != "self"]
        if not name.startswith("__"):
            assert found[: len(expected)] == expected, name
