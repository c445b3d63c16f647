"""Proves, by running a few known ops, that PyTorch's internals look as the recorder needs them to.

``python -m stepscope._hook`` prints the result as one line of JSON.
"""

import os

from stepscope import _recorder

_OP = "aten::exp"
_RANGE = "__stepscope_probe__"


# Ops that take longer wait for something that the program holds.
_PATIENCE_S = 10
# The process in which a probe runs; 0: no process.
_probing_pid = 0


class HookRefused(Exception):
    """Operators cannot be recorded here; the message says why."""


def unseen(torch, find_out):
    """Call ``find_out()`` where nothing of the program is: no mode, hook, tracer or profiler of its threads.

    Raises
    ------
    HookRefused
        It could not be called now, or took too long. It may be tried again.
    """
    global _probing_pid
    if getattr(torch.__spec__, "_initializing", False):
        # Nothing of the program is there yet, and another thread would wait for what this one imports.
        return find_out()
    if _probing_pid == os.getpid():
        raise HookRefused("what was tried earlier has not ended yet")
    _probing_pid = os.getpid()

    def run():
        global _probing_pid
        try:
            return find_out()
        finally:
            _probing_pid = 0

    try:
        return _recorder.call_on_new_thread(run, _PATIENCE_S)
    except TimeoutError as error:
        raise HookRefused(str(error)) from error


def probe(torch):
    """Find PyTorch's fields, on a thread of :func:`unseen`; gives their offsets by name.

    Raises
    ------
    HookRefused
        Nothing is certain, so nothing is used.
    """
    try:
        return _run_known_ops(torch)
    except Exception as error:
        raise HookRefused(str(error)) from error


def _run_known_ops(torch):
    library = os.path.join(os.path.dirname(torch.__file__), "lib")
    next_sequence_number = torch._C._autograd._get_sequence_nr
    with torch.enable_grad(), torch.inference_mode(False):
        x = torch.ones(2, requires_grad=True, device="cpu")
        _recorder.probe_begin(library)
        try:
            numbers = []
            for i in range(6):
                if i in (2, 4):
                    x.sin()  # So that numbers do not grow by one alone.
                numbers.append(next_sequence_number())
                y = x.exp()
                with torch.autograd.profiler.record_function(_RANGE):
                    pass
            # The node itself, not a backward pass: that would start autograd's threads.
            y.grad_fn(torch.ones(2, device="cpu"))
            return _recorder.probe_end(_OP, numbers, _RANGE, torch.__version__)
        finally:
            _recorder.probe_cancel()


def main():
    """Print what the probe finds."""
    import json

    found = {"is_usable": False}
    try:
        import torch

        found["torch_version"] = torch.__version__
        found["offsets"] = unseen(torch, lambda: probe(torch))
        found["is_usable"] = True
    except Exception as error:
        found["reason"] = str(error)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
