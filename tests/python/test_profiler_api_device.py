"""Rows of devices in events, averages and tables: reports planted into a recording, listed by ``stepscope.profiler`` and by
the Python code of ``torch.profiler`` itself, which gets them as Kineto would hand them over."""

import pickle
import shutil
import threading
from types import SimpleNamespace

import pytest
import torch
import torch.profiler
from device_scenario import DEVICE_KINDS, Scenario, recorded, span_ns, told, wanted
from planted import CUDA, XPU, Planted, PlantedSession
from stepscope.profiler import ProfilerActivity
from torch.autograd import DeviceType


@pytest.fixture(scope="module", params=[Planted, PlantedSession])
def scenario(request, tmp_path_factory):
    """Reports of the device's own profiler, and the same from a session of ``torch.profiler`` (``gpu="torch"``)."""
    return Scenario(tmp_path_factory.mktemp("device") / "run", request.param(), record_shapes=True)


SAME = (
    "name trace_name thread device_type device_index device_resource_id activity_type is_user_annotation is_async "
    "is_python_function is_remote is_legacy use_device count scope sequence_nr fwd_thread input_shapes stack flops "
    "flow_type overload_name node_id kwinputs concrete_inputs python_id event_metadata cpu_memory_usage "
    "device_memory_usage"
).split()
TIMES = (
    "cpu_time_total self_cpu_time_total device_time_total self_device_time_total cpu_time device_time "
    "self_cpu_memory_usage self_device_memory_usage"
).split()


def test_the_scenario_has_all_kinds_of_rows(scenario):
    kinds = {event.activity_type() for event in scenario.kineto}
    assert kinds == {"cpu_op", "user_annotation", "cuda_runtime", "kernel", "gpu_memcpy", "gpu_memset", "overhead"} | {
        "gpu_user_annotation"
    }
    assert len(scenario.gpu) > 2
    assert sum(event.activity_type() == "kernel" for event in scenario.kineto) > 5


def test_events_are_those_of_torch_with_all_attributes(scenario):
    theirs, ours = scenario.theirs(), scenario.prof.events(all_threads=True)
    assert [(event.name, span_ns(event)) for event in ours] == [(event.name, span_ns(event)) for event in theirs]
    at = [{id(event): place for place, event in enumerate(events)} for events in (theirs, ours)]
    known = [told(events) for events in (theirs, ours)]
    # Of calls and what they launched, ours by theirs: those of several sessions may be alike, and are changed.
    numbers = {0: 0}
    for expected, found in zip(theirs, ours):
        for name in SAME:
            assert getattr(found, name) == getattr(expected, name), (expected.name, name)
        for name in TIMES:
            assert getattr(found, name) == pytest.approx(getattr(expected, name)), (expected.name, name)
        kernels = [(kernel.name, kernel.device, round(kernel.duration * 1000)) for kernel in expected.kernels]
        assert [(kernel.name, kernel.device, round(kernel.duration * 1000)) for kernel in found.kernels] == kernels
        for name in ("id", "external_id", "linked_correlation_id"):
            one, other = getattr(found, name), getattr(expected, name)
            if other >= 1_000_000:
                assert known[1][one] == known[0][other], name
            else:
                assert numbers.setdefault(other, one) == one, name
        assert at[1].get(id(found.cpu_parent)) == at[0].get(id(expected.cpu_parent)), expected.name
        children = [[at[of][id(child)] for child in event.cpu_children] for of, event in enumerate((expected, found))]
        assert children[0] == children[1], expected.name
        if expected.activity_type in ("cuda_runtime", "kernel"):
            assert (found.flow_id, found.flow_start) == (numbers[expected.flow_id], expected.flow_start)
    assert len(set(numbers.values())) == len(numbers) > 5
    assert isinstance(scenario.planted, PlantedSession) or all(one == other for one, other in numbers.items())
    assert any(event.kernels for event in ours)
    assert any(event.name == "ProfilerStep*" and event.device_type == DeviceType.CUDA for event in ours)


def same_text(found, expected):
    """Line by line; numbers may differ in the last digit, where torch's sums of floats are not exact."""
    found, expected = found.splitlines(), expected.splitlines()
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        assert len(one) == len(other), (one, other)
        for text, expected_text in zip(one.split(), other.split()):
            if text != expected_text:
                (value, unit), (expected_value, expected_unit) = split(text), split(expected_text)
                assert unit == expected_unit, (one, other)
                assert value == pytest.approx(expected_value, abs=0.0011 if unit != "%" else 0.011), (one, other)


def split(text):
    unit = text.lstrip("-0123456789.")
    return float(text[: len(text) - len(unit)]), unit


TABLES = [
    {},
    {"row_limit": -1},
    {"sort_by": "cuda_time_total", "row_limit": 10},
    {"sort_by": "self_cuda_time_total", "row_limit": -1, "max_name_column_width": 30},
    {"sort_by": "device_time_total", "time_unit": "us"},
    {"sort_by": "self_device_time_total", "time_unit": "ms", "header": "A header"},
    {"sort_by": "cuda_time"},
    {"sort_by": "xpu_time_total"},
    {"top_level_events_only": True},
]


@pytest.mark.parametrize("table", TABLES, ids=str)
@pytest.mark.parametrize("grouping", [(), (True,), (False, 0, True)], ids=str)
def test_the_table_of_averages_is_the_same_text(scenario, grouping, table):
    expected = scenario.theirs().key_averages(*grouping).table(**table)
    assert "Self CUDA time total: " in expected
    assert "CUDA time avg" in expected
    prof = scenario.prof
    assert prof.events(all_threads=True).key_averages(*grouping).table(**table) == expected
    if "top_level_events_only" in table:
        return  # Averages that the engine adds up have no events, and so no parents.
    # The engine's own sums, of the list that is in memory, and without any.
    same_text(prof.key_averages(*grouping, all_threads=True).table(**table), expected)
    scenario.forget()
    same_text(prof.key_averages(*grouping, all_threads=True).table(**table), expected)


@pytest.mark.parametrize("table", TABLES, ids=str)
def test_the_table_of_events_is_the_same_text(scenario, table):
    assert scenario.prof.events(all_threads=True).table(**table) == scenario.theirs().table(**table)


def test_averages_have_the_attributes_of_torch(scenario):
    theirs = scenario.theirs().key_averages()
    ours = scenario.prof.key_averages(all_threads=True)
    assert [average.key for average in ours] == [average.key for average in theirs]
    for expected, found in zip(theirs, ours):
        for name in ("count", "device_type", "use_device", "is_user_annotation", "is_async", "scope", "flops"):
            assert getattr(found, name) == getattr(expected, name), (expected.key, name)
        for name in TIMES:
            assert getattr(found, name) == pytest.approx(getattr(expected, name)), (expected.key, name)
    assert repr(ours[0]) == repr(theirs[0])
    total = scenario.prof.events(all_threads=True).total_average()
    assert total.device_time_total == pytest.approx(scenario.theirs().total_average().device_time_total)


def test_without_all_threads_devices_are_shown_whole(scenario):
    """As there: operators are those of one thread, what devices did and calls of their runtime are of the process."""
    every, shown = scenario.prof.events(all_threads=True), scenario.prof.events()
    assert len(shown) < len(every)
    for kinds in (DEVICE_KINDS - {"gpu_user_annotation"}, {"cuda_runtime"}, {"overhead"}):
        count = [sum(event.activity_type in kinds for event in events) for events in (shown, every)]
        assert count[0] == count[1] > 0 or kinds == {"gpu_memset"}


def test_stacks_say_what_they_launched(tmp_path):
    scenario = Scenario(tmp_path / "run", with_stack=True)
    prof = scenario.prof
    events = prof.events(all_threads=True)
    of = {event.id: event for event in events if event.activity_type == "cpu_op"}
    kernels = [event for event in events if event.device_type != DeviceType.CPU and event.linked_correlation_id]

    def is_backward(event):
        return event is not None and (event.scope == 1 or is_backward(event.cpu_parent))

    # What runs in the backward pass has the stack of its forward operator, and what that launches its own, as there.
    forward = [kernel for kernel in kernels if not is_backward(of[kernel.linked_correlation_id])]
    assert len(forward) > 3
    for kernel in forward:
        assert kernel.stack == of[kernel.linked_correlation_id].stack != []
    for metric in ("self_cuda_time_total", "self_xpu_time_total", "self_cpu_time_total"):
        prof.export_stacks(str(tmp_path / "engine"), metric)
        prof.events().export_stacks(str(tmp_path / "events"), metric)
        lines = (tmp_path / "engine").read_text().splitlines()
        assert sorted(lines) == sorted((tmp_path / "events").read_text().splitlines())
        assert lines


def test_events_can_be_pickled_with_their_kernels(scenario):
    events = [event for event in scenario.prof.events() if event.kernels and not event.cpu_parent]
    for event in pickle.loads(pickle.dumps(events[:3])):
        assert event.kernels
        assert event.device_time_total > 0


def test_annotating_by_hand_counts(scenario):
    """What a program adds to an event is in its sums, as there."""
    scenario.forget()
    event = next(event for event in scenario.prof.events() if event.activity_type == "cpu_op")
    before = event.device_time_total
    event.append_kernel("mine", 0, 5.0)
    assert event.device_time_total == pytest.approx(before + 5.0)
    scenario.forget()


# Kinds that are asked for, what is shown of devices then, and the kind of device whose times are shown.
FILTERS = {
    "the host alone": ([ProfilerActivity.CPU], {"cuda_runtime"}, None),
    "devices alone": (
        [ProfilerActivity.CUDA],
        {"kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "overhead"},
        "cuda",
    ),
    "kernels of devices": ([ProfilerActivity.CPU, {ProfilerActivity.CUDA: ["CONCURRENT_KERNEL"]}], None, "cuda"),
    "copies, no calls": (
        [{ProfilerActivity.CPU: ["CPU_OP"]}, {ProfilerActivity.CUDA: ["GPU_MEMCPY", "GPU_USER_ANNOTATION"]}],
        {"gpu_memcpy", "gpu_user_annotation"},
        "cuda",
    ),
}


@pytest.mark.parametrize("name", FILTERS)
def test_activities_say_what_is_shown(scenario, tmp_path, name):
    activities, kinds, use_device = FILTERS[name]
    kinds = {"kernel", "cuda_runtime"} if kinds is None else kinds
    other = recorded(tmp_path / "run", activities)
    # As where there is a driver.
    other._devices_missing = []
    with other:
        pass
    other.profiler._windows = [scenario.window]
    other._are_steps_shown = True
    other.profiler._kinds = other._kinds()
    events = other.events(all_threads=True)
    found = {event.activity_type for event in events}
    of_host = {"cpu_op", "user_annotation"} if ProfilerActivity.CPU in other.activities else set()
    assert found == kinds | of_host
    if of_host:
        links = {(event.name, len(event.kernels)) for event in events if event.kernels}
        assert bool(links) == bool(kinds & {"kernel", "gpu_memcpy"})
    averages = other.key_averages(all_threads=True)
    assert {average.use_device for average in averages} == {use_device}
    assert ("CUDA total" in averages.table()) == bool(use_device)
    scenario.forget()


def test_other_kinds_of_devices_have_their_names(tmp_path):
    prof = recorded(tmp_path / "run", [ProfilerActivity.CPU, ProfilerActivity.XPU])
    with prof:
        torch.ones(300, 300) @ torch.ones(300, 300)
    window = prof.profiler._windows[-1]
    path = str(tmp_path / "copy.capture")
    shutil.copyfile(window.capture, path)
    window._kept = SimpleNamespace(path=lambda: path)
    planted, at_ns = Planted(XPU), window.spans[0][1]
    planted.call("urEnqueueKernelLaunch", at_ns - 3000, at_ns - 2000, threading.get_ident(), 5)
    planted.call(
        "zeCommandListAppendLaunchKernel", at_ns - 2900, at_ns - 2100, threading.get_ident(), 6, is_runtime=False
    )
    planted.kernel("gemm", at_ns - 1500, at_ns - 500, 5)
    planted.write(path)
    found = {event.name: (event.activity_type, event.device_type) for event in prof.events()}
    assert found["urEnqueueKernelLaunch"] == ("xpu_runtime", DeviceType.CPU)
    assert found["zeCommandListAppendLaunchKernel"] == ("xpu_driver", DeviceType.CPU)
    assert found["gemm"] == ("kernel", DeviceType.XPU)
    (average,) = [average for average in prof.key_averages() if average.key == "gemm"]
    assert (average.device_type, average.use_device, average.device_time_total) == (DeviceType.XPU, "xpu", 1.0)
    assert "Self XPU time total: 1.000us" in prof.key_averages().table()


def test_waits_are_shown_when_they_are_asked_for(scenario, tmp_path):
    other = recorded(tmp_path / "run", experimental_config=wanted(enable_cuda_sync_events=True))
    with other:
        pass
    other.profiler._windows = [scenario.window]
    (wait,) = [event for event in other.events() if event.activity_type == "cuda_sync"]
    assert (wait.name, wait.device_resource_id, wait.device_type) == ("Stream Sync", 7, DeviceType.CUDA)
    scenario.forget()


def test_unknown_types_of_devices_are_refused(tmp_path):
    with pytest.raises(RuntimeError, match="Unknown or non-member activity type name: 'CPU_OP'"):
        recorded(tmp_path / "run", [{ProfilerActivity.CUDA: ["CPU_OP"]}])


def test_a_chrome_trace_has_what_is_shown(scenario, tmp_path):
    import json

    scenario.prof.export_chrome_trace(str(tmp_path / "trace.json"), all_threads=True)
    rows = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = [row["name"] for row in rows if row.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    expected = [event.name() for event in scenario.kineto if event.activity_type() in DEVICE_KINDS]
    annotations = [event.name() for event in scenario.kineto if event.activity_type() == "gpu_user_annotation"]
    for name in annotations:
        expected.remove(name)
    assert sorted(names) == sorted(expected)
    assert not any(row.get("cat") == "cuda_sync" for row in rows)


assert (int(DeviceType.CUDA), int(DeviceType.XPU)) == (CUDA, XPU)
