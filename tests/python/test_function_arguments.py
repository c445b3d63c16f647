"""What a function of torch.autograd.Function was called with is recorded as torch.profiler does."""

import enum
import gc
import sys
import threading

import numpy
import pytest
import torch

LISTS = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
WEIGHT = torch.nn.Parameter(torch.ones(4))


class Color(enum.Enum):
    RED = 1


class Sized:
    """Nobody may ask it anything."""

    def __len__(self):
        raise AssertionError("asked for its length")

    __iter__ = __float__ = __index__ = __bool__ = __len__


SHOWN = [
    2.5,
    3,
    -7,
    True,
    None,
    1 + 2j,
    float("inf"),
    1e-30,
    numpy.float64(2.5),
    [1, 2],
    [1.5],
    [True],
    [1j],
    [1, None],
]
SHOWN_AS_NOTHING = [(), (1, 2), [None, 1], [1] * 40, torch.Size([1, 2]), [[1], [2, 3]], [(1, 2), (3, 4)], {1: 2}]
SHOWN_AS_NOTHING += [[1] * 5000, (1,) * 5000, [[[[[[[[[[1]]]]]]]]]]]  # not looked into
LEFT_OUT = [
    "text", b"bytes", [], {}, {"a": 1}, [1, 2.0], [True, 1], [[1], [1.0]], [(1,), (1, 2)], ["a"], [WEIGHT], (WEIGHT, 1),
    torch.float32, torch.strided, torch.device("cpu"), torch.Generator(), Color.RED, Sized(), len, numpy.int64(3),
    numpy.ones(2), {1: 2, 2: 2.5},
]  # fmt: skip


class Takes(torch.autograd.Function):
    @staticmethod
    def forward(ctx, first, *others):
        return first * 1

    @staticmethod
    def backward(ctx, gradient):
        return (gradient, *[None] * 10)


class TakesWithDefaults(torch.autograd.Function):
    @staticmethod
    def forward(first, scale=2.5):
        return first * scale

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.scale = inputs[1]

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.scale, None

    @staticmethod
    def vmap(info, dims, first, scale):
        return TakesWithDefaults.apply(first, scale), dims[0]


class Passes(Takes):
    """Calls of its own around the one of PyTorch."""

    @classmethod
    def apply(cls, *args):
        args = (*args, 9)
        return super().apply(*args)


class Inner(torch.autograd.Function):
    @staticmethod
    def forward(ctx, first, scale):
        with torch.enable_grad():
            return Takes.apply(first.detach().requires_grad_(), scale, [scale]).detach()

    @staticmethod
    def backward(ctx, gradient):
        return Takes.apply(gradient, 0.5), None


def inputs(trace):
    """What each function was called with: its name and the four lists."""
    names = {"Takes", "TakesWithDefaults", "TakesWithDefaultsGenerated", "Passes", "Inner"}
    return [
        (event["name"], *(event["args"].get(key) for key in LISTS))
        for event in sorted(trace["traceEvents"], key=lambda event: event.get("ts", 0))
        if event.get("name") in names and event.get("cat") == "cpu_op"
    ]


def compared(both, work):
    """What torch.profiler recorded of ``work``; ours is the same, in the trace and in ``events()``."""
    (theirs, their_trace), (ours, our_trace) = both(work, record_shapes=True)
    assert inputs(our_trace) == inputs(their_trace)
    for name in ("input_shapes", "concrete_inputs", "structured_input_shapes", "input_dtypes"):
        # Older releases have not all of them.
        if hasattr(theirs.events()[0], name):
            assert [getattr(event, name) for event in ours.events()] == [
                getattr(event, name) for event in theirs.events()
            ]
    return inputs(their_trace)


def test_arguments_of_every_kind(both):
    tensor, other = torch.ones(2, 3, requires_grad=True), torch.ones(5)

    def work():
        for value in SHOWN + SHOWN_AS_NOTHING + LEFT_OUT:
            Takes.apply(tensor, value, other)
            Takes.apply(tensor, other, value)
        Takes.apply(tensor, WEIGHT)
        Takes.apply(2.5)

    found = compared(both, work)
    between = [values for _, _, _, _, values in found[:-2:2]]
    assert len(between) == len(SHOWN) + len(SHOWN_AS_NOTHING) + len(LEFT_OUT)
    assert [len(values) for values in between] == [3] * (len(SHOWN) + len(SHOWN_AS_NOTHING)) + [2] * len(LEFT_OUT)
    assert [values[1] for values in between[:3]] == ["2.5", "3", "-7"]
    assert found[-1] == ("Takes", [[]], ["Scalar"], [[]], ["2.5"])


def test_functions_of_every_kind(both):
    tensor = torch.ones(2, 3, requires_grad=True)

    def work():
        TakesWithDefaults.apply(tensor)
        TakesWithDefaults.apply(tensor, 4.5)
        Passes.apply(tensor, 8)
        torch.autograd.grad(Inner.apply(tensor, 1.5).sum(), tensor)
        torch.vmap(lambda row: TakesWithDefaults.apply(row, 3.5))(tensor.detach())
        torch.func.grad(lambda rows: TakesWithDefaults.apply(rows, 6.5).sum())(tensor.detach())

    found = [(name, values[1:]) for name, *_, values in compared(both, work)]
    calls = [("TakesWithDefaults", ["2.5"]), ("TakesWithDefaults", ["4.5"]), ("Passes", ["8", "9"]), ("Inner", ["1.5"])]
    assert found[:4] == calls
    assert ("TakesWithDefaults", ["3.5"]) in found and ("TakesWithDefaultsGenerated", ["6.5"]) in found


def test_beside_torch_profiler(tmp_path):
    """It has PyTorch convert the arguments itself: they are then taken from there."""
    from stepscope.profiler import ProfilerActivity, profile

    tensor = torch.ones(2, requires_grad=True)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as theirs:
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True, run=tmp_path / "run") as ours:
            Takes.apply(tensor, 3, tensor)
            Takes.apply(tensor, tensor, 4)
    found, expected = (
        [event.concrete_inputs for event in prof.events() if event.name == "Takes"] for prof in (ours, theirs)
    )
    assert found == expected == [[None, 3, None], [None, None, 4]]


def test_a_number_that_torch_profiler_fails_at(tmp_path):
    from stepscope.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, run=tmp_path / "run") as prof:
        Takes.apply(torch.ones(2, requires_grad=True), 2**70, 3)
    (event,) = [event for event in prof.events() if event.name == "Takes"]
    assert event.concrete_inputs == [None, None, 3]


@pytest.mark.parametrize("how", ["traced", "collected", "with stacks", "in a thread"])
def test_inside_what_a_program_may_do(both, how):
    tensor = torch.ones(2, 3, requires_grad=True)
    tracer, threshold = sys.gettrace(), gc.get_threshold()

    def work():
        if how == "traced":
            sys.settrace(lambda frame, event, arg: lambda *_: frame.f_locals and None)
        if how == "collected":
            gc.set_threshold(1)
        try:
            for number in range(20):
                Takes.apply(tensor, number, [0.5])
        finally:
            sys.settrace(tracer)
            gc.set_threshold(*threshold)

    found = []
    thread = threading.Thread(
        target=lambda: found.extend(both(work, record_shapes=True, with_stack=how == "with stacks"))
    )
    if how == "in a thread":
        thread.start()
        thread.join()
    else:
        thread.run()
    (_, theirs), (_, ours) = found
    assert inputs(ours) == inputs(theirs)
    assert [values for *_, values in inputs(theirs)] == [["", str(number), "[0.5]"] for number in range(20)]
