"""More of what PyTorch's own tests of ``torch.profiler`` ask for: what its traces say, and of what.

Where the other tests of PyTorch 2.13's ``test/profiler`` have their equivalent: the name stands in brackets in
``test_torch_profiler_tests.py``, ``test_profiler_api*.py`` and here. Those without brackets:

==============================  ======================================================================================
PyTorch's test                  ours
==============================  ======================================================================================
test_oom_tracing                test_memory.py, test_profiler_api_attributes.py
test_concrete_inputs_*,         test_shapes.py, test_all_options.py, each input of each operator
test_nested_tensor_with_shapes
test_profiler_overload_names,   test_profiler_api_attributes.py
test_expose_kineto_event_*
test_profiler_tree.py           test_profiler_api_stacks.py: the tree of torch.profiler itself in place of goldens
test_memory_profiler.py         test_profiler_api_memory_timeline.py
test_execution_trace.py         PyTorch's own observers: test_profiler_api.py
test_cupti_*, test_xpu_*,       test_profiler_api_device.py, test_cupti.py, test_gpus_of_other_vendors.py with libraries
test_kineto, *_cuda_sync_*,     of our own in place of the vendors'; on a GPU `cargo xtask gpu-check`
test_kineto_kernel_metadata_*
==============================  ======================================================================================

There is none for `test_cpp_thread.py` and TestPrivateUse1ProfilerState, which compile extensions in C++; and none for
`test_torch_tidy.py` and the patterns of TestExperimentalUtils, which ask `experimental_event_tree()`: it is not there.
"""

import threading
import time
from collections import Counter
from decimal import Decimal

import pytest
import runs
import torch
import torch.profiler
from stepscope.profiler import ProfilerActivity, profile

CPU = [ProfilerActivity.CPU]
Config = torch._C._profiler._ExperimentalConfig


def slices(trace):
    return [row for row in trace["traceEvents"] if row["ph"] == "X" and row["cat"] in ("cpu_op", "user_annotation")]


def start_unix_ns(trace, row):
    """Exact: decimals, of which no digit may be left below a nanosecond."""
    ns = Decimal(row["ts"]) * 1000
    assert ns == int(ns)
    return trace["baseTimeNanoseconds"] + int(ns)


def test_times_are_those_of_the_clock(both):
    """[test_basic_chrome_trace, test_profiler_time_scale, TestProfilerEventsParity: times]"""
    seen = []

    def work():
        before = time.time_ns()
        with torch.profiler.record_function("asleep"):
            seen.append((before, time.time_ns()))
            torch.ones(2)
            time.sleep(0.05)
            after = time.time_ns()
        seen.append((after, time.time_ns()))

    recorded = both(work)
    # The clocks of a process are read one after the other, and one of them may be set meanwhile.
    slack = 1_000_000
    for (_, trace), begin, end in zip(recorded, seen[::2], seen[1::2]):
        (label,) = [row for row in slices(trace) if row["name"] == "asleep"]
        start = start_unix_ns(trace, label)
        assert begin[0] - slack <= start <= begin[1] + slack
        assert end[0] - slack <= start + label["dur"] * 1000 <= end[1] + slack
        for row in slices(trace):
            assert begin[0] - slack <= start_unix_ns(trace, row) <= end[1] + slack, row


def test_times_in_a_trace_are_those_in_the_run(both):
    """[TestProfilerEventsParity: times, to the nanosecond]"""

    def work():
        x = torch.ones(3, 3, requires_grad=True)
        (x @ x).sum().backward()

    _, (prof, trace) = both(work)
    kinds = ("op", "backward", "label")
    of_run = Counter(
        (row["name"], row["start_ns"], row["dur_ns"]) for row in runs.rows(prof.run) if row["kind"] in kinds
    )
    of_trace = Counter((row["name"], start_unix_ns(trace, row), int(row["dur"] * 1000)) for row in slices(trace))
    assert of_trace == of_run and of_trace.total() > 10


class Momentless(torch.optim.Optimizer):
    """An optimizer of the program's own."""

    def __init__(self, parameters):
        super().__init__(parameters, {})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.sub_(parameter.grad)


def test_labels_that_pytorch_sets_itself(both):
    """[test_high_level_trace] Waits for two DataLoaders and steps of two optimizers, one of the program's own."""

    def work():
        data = torch.utils.data.TensorDataset(torch.ones(4, 2))
        model = torch.nn.Linear(2, 1)
        optimizers = [torch.optim.SGD(model.parameters(), lr=0.1), Momentless(model.parameters())]
        for batch_size in (1, 2):
            for (x,) in torch.utils.data.DataLoader(data, batch_size=batch_size):
                for optimizer in optimizers:
                    optimizer.zero_grad()
                    model(x).sum().backward()
                    optimizer.step()

    (theirs, _), (ours, _) = both(work)

    def labels(prof):
        return Counter(event.name for event in prof.events() if event.is_user_annotation)

    # The preparation of a batch is a label of ours.
    assert labels(ours) - labels(theirs) == {"DataLoader.fetch": 6} and not labels(theirs) - labels(ours)
    # The last wait of a DataLoader finds that there is nothing more.
    assert labels(theirs) == {
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__": 4 + 1 + 2 + 1,
        "Optimizer.step#SGD.step": 6,
        "Optimizer.zero_grad#SGD.zero_grad": 6,
        "Optimizer.step#Momentless.step": 6,
        "Optimizer.zero_grad#Momentless.zero_grad": 6,
    }


def test_names_with_overloads(both):
    """[test_profiler_overload_names] The same names in traces."""

    def work():
        torch.ones(2).add(1).add_(torch.ones(2)).to(torch.float64)

    recorded = both(work, experimental_config=Config(capture_overload_names=True))
    theirs, ours = (Counter(row["name"] for row in slices(trace)) for _, trace in recorded)
    assert ours == theirs and ours["aten::add.Tensor"] == 1 and ours["aten::empty.memory_format"] == 2


def test_scripted_modules_are_operators_without_their_modules(both):
    """[test_module_hierarchy] torch.profiler names the modules of TorchScript, and no others; ours those of eager mode."""

    class Inner(torch.nn.Module):
        def forward(self, x):
            return x + 1

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x):
            return self.inner(x) * 2

    scripted, eager = torch.jit.script(Outer()), Outer()
    for _ in range(3):
        scripted(torch.ones(2))  # Until it is compiled.

    def work():
        scripted(torch.ones(2))
        eager(torch.ones(2))

    (_, theirs), (ours, trace) = both(work, with_modules=True)
    assert Counter(row["name"] for row in slices(trace)) == Counter(row["name"] for row in slices(theirs))
    hierarchies = {row["args"]["Module Hierarchy"] for row in slices(theirs) if "Module Hierarchy" in row["args"]}
    assert any("Outer" in hierarchy for hierarchy in hierarchies)
    assert not any("Module Hierarchy" in row["args"] for row in slices(trace))
    assert {"Outer", "Outer.inner"} <= {row["name"] for row in runs.rows(ours.run) if row["kind"] == "module"}


def test_what_joins_operators_with_kernels_may_be_off(both):
    """[test_disable_external_correlation] On the CPU nothing changes."""
    config = Config(disable_external_correlation=True)
    (_, theirs), (_, ours) = both(lambda: torch.ones(2).exp(), experimental_config=config)
    assert [row["name"] for row in slices(ours)] == [row["name"] for row in slices(theirs)] != []
    assert all("External id" in row["args"] for row in slices(ours) + slices(theirs))


def test_events_are_listed_when_they_are_asked_for(both):
    """[test_lazy_build_tree] Neither the end of recording nor the export of a trace makes the list."""
    for prof, _ in both(lambda: torch.ones(2).exp()):
        assert prof._stats().function_events_build_tree_call_duration_us == 0
        assert len(prof.events()) > 0
        assert prof._stats().function_events_build_tree_call_duration_us > 0


def test_it_may_be_stopped_on_another_thread(tmp_path):
    """[pytorch#64795, a crash] What was recorded is that of the thread that began."""
    prof = profile(activities=CPU, run=tmp_path / "run")
    prof.start()
    torch.erfinv(torch.ones(2))

    def stop():
        torch.digamma(torch.ones(2))
        prof.stop()

    thread = threading.Thread(target=stop)
    thread.start()
    thread.join()
    torch.sin(torch.ones(2))
    shown = {event.name for event in prof.events()}
    everything = {event.name for event in prof.events(all_threads=True)}
    assert {"aten::erfinv"} <= shown and not {"aten::digamma", "aten::sin"} & shown
    assert {"aten::erfinv", "aten::digamma"} <= everything and "aten::sin" not in everything


@pytest.mark.slow
def test_beside_kinetos_daemon(tmp_path):
    """[test_kineto.py: test_kineto_profiler_with_environment_variable] It counts steps; ours records."""
    text = """
import sys, torch
from stepscope.profiler import profile
parameter = torch.nn.Parameter(torch.ones(2))
optimizer = torch.optim.SGD([parameter], lr=0.1)
with profile(run=sys.argv[1]) as prof:
    for _ in range(3):
        parameter.sum().backward()
        optimizer.step()
        prof.step()
counted = torch.autograd.profiler.KinetoStepTracker.current_step()
print(counted, sum(event.name.startswith("Optimizer.step") for event in prof.events()))
"""
    environment = runs.environment(KINETO_USE_DAEMON="1", KINETO_LOG_LEVEL="99")
    printed = runs.execute(*runs.new_script(text, tmp_path / "run"), env=environment).stdout
    assert printed.split()[-1] == "3" and int(printed.split()[-2]) > 0


class Nested(torch.autograd.Function):
    """Its backward pass runs another: beyond 60 of them, on threads that autograd starts for it."""

    @staticmethod
    def forward(ctx, value, depth):
        ctx.depth = depth
        return value.clone()

    @staticmethod
    def backward(ctx, gradient):
        if ctx.depth > 0:
            with torch.enable_grad():
                Nested.apply(torch.ones(1, requires_grad=True), ctx.depth - 1).sum().backward()
        return gradient, None


def test_threads_that_autograd_starts(both):
    """The backward pass is shown on whichever threads it runs, also where the program's Python runs on them."""

    def work():
        Nested.apply(torch.ones(1, requires_grad=True), 130).sum().backward()

    (_, theirs), (prof, ours) = both(work)
    counts = [sorted(Counter(row["tid"] for row in slices(trace)).values()) for trace in (theirs, ours)]
    assert len(counts[0]) == 3 and counts[0] == counts[1]
    assert len({event.thread for event in prof.events()}) == 3
