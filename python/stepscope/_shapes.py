"""Proves, by running a few known ops, that PyTorch keeps the inputs of operators where the recorder reads them."""

import dataclasses
import os
import sys

from stepscope import _hook, _recorder
from stepscope._say import say


@dataclasses.dataclass(eq=False, repr=False)
class _State:
    """Whether inputs of operators can be recorded."""

    is_proven: bool = False
    """The probe has succeeded."""
    is_refusal_printed: bool = False
    """A reason why inputs are not recorded was printed."""


_state = _State()


def are_proven(torch):
    """True when inputs can be recorded. When they cannot: say so once, and record the rest."""
    try:
        prove(torch)
    except Exception as error:
        if not _state.is_refusal_printed:
            _state.is_refusal_printed = True
            say(f"not recording shapes in process {os.getpid()}: {error}")
        _recorder.set_fact("inputs_refused", str(error))
    return _state.is_proven


def prove(torch):
    """Run the probe, until it has succeeded once."""
    if not _state.is_proven:
        _hook.unseen(torch, lambda: _probe(torch))
        _recorder.read_arguments_of(list(_callers_of_functions(torch)), torch.Tensor)
        _state.is_proven = True


def _probe(torch):
    library = os.path.join(os.path.dirname(torch.__file__), "lib")
    with torch.no_grad(), torch.inference_mode(False):
        tensors = list(_known_tensors(torch))
        _recorder.probe_inputs_begin()
        try:
            _run_known_calls(torch, tensors[0][0], tensors[1][0])
            _recorder.probe_inputs_end(library, [_facts_of(tensor, what) for tensor, what in tensors])
        finally:
            _recorder.probe_inputs_cancel()


def _callers_of_functions(torch):
    """What calls functions of ``torch.autograd.Function``: the code, and the variable that holds their arguments."""
    yield torch.autograd.Function.apply.__func__.__code__, "args"
    transforms = sys.modules.get("torch._functorch.autograd_function")
    transformed = getattr(transforms, "custom_function_call_grad", None)
    if hasattr(transformed, "__code__"):
        yield transformed.__code__, "operands"


def _known_tensors(torch):
    """Tensors whose sizes, strides and types no chance would repeat, each with what it is to the probe."""

    def empty(*sizes, dtype=torch.float32):
        return torch.empty(sizes, dtype=dtype, device="cpu")

    yield empty(13, 29), "plain"
    yield empty(13, 31), "plain"
    yield empty(3, 5, dtype=torch.float64).t(), "plain"
    yield empty(dtype=torch.int64), "plain"
    yield empty(7, dtype=torch.uint8), "plain"
    yield empty(0, 9, 2, dtype=torch.bool), "plain"
    yield empty(4, 1, 6, 2, 5, dtype=torch.bfloat16), "plain"
    yield empty(3, 4, 1, 2, 6, 5, dtype=torch.float16).transpose(0, 5), "plain"
    yield empty(2, 1, 3, 1, 2, 1, 4, dtype=torch.complex64), "plain"
    for sizes in ((11, 3), (8,)):
        for asks_for in (None, "strides", "sizes"):
            tensor = torch.Tensor._make_wrapper_subclass(
                _Wrapper.of(torch), sizes, dtype=torch.float32, device="cpu", dispatch_sizes_strides_policy=asks_for
            )
            yield tensor, asks_for or "plain"
        yield torch.zeros(sizes, layout=torch.sparse_coo, dtype=torch.float32, device="cpu"), "sparse"


class _Wrapper:
    """Makes the class of tensors that ask Python: only once PyTorch is there."""

    _class = None

    @classmethod
    def of(cls, torch):
        if cls._class is None:
            # Never called: nobody runs an operator on such a tensor.
            body = {
                "__torch_dispatch__": classmethod(lambda cls, function, types, args=(), kwargs=None: NotImplemented)
            }
            cls._class = type("_StepscopeProbe", (torch.Tensor,), body)
        return cls._class


def _facts_of(tensor, what):
    """What is known of a tensor without asking it: those that ask Python must not be asked."""
    if what in ("strides", "sizes"):
        return (tensor._cdata, [], [], "torch.float32", what)
    strides = [] if what == "sparse" else list(tensor.stride())
    return (tensor._cdata, list(tensor.shape), strides, str(tensor.dtype), what)


def _run_known_calls(torch, first, second):
    """The calls that ``recorder_torch/src/inputs/probe.rs`` knows, in its order."""
    torch.full((3, 5, 7), 1.5, dtype=torch.float64, device="cpu", pin_memory=False)
    torch.full((11,), True, dtype=torch.bool, device="cpu", pin_memory=False)
    torch.full((2, 4), 2.5 + 3.5j, dtype=torch.complex128, device="cpu", pin_memory=False)
    torch.full((6,), -9, dtype=torch.int64, device="cpu", pin_memory=False)
    torch.cat([first, second, first], 1)
    torch.cat([second, first], -1)
    torch.div(first, first, rounding_mode="trunc")
    torch._C._nn.pad(first, (1, 2), "constant", None)
