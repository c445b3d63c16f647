"""Records what devices do: through their own profiler, or through a session of PyTorch's.

Nothing begins before the program itself has begun to use a device, and a process without one loads nothing.
"""

from __future__ import annotations

import dataclasses
import os
import threading
import types

from stepscope import (
    _device_libraries,
    _device_others,
    _device_proof,
    _device_ranges,
    _device_session,
    _device_wait,
    _recorder,
)
from stepscope._options import Options
from stepscope._say import say


@dataclasses.dataclass(eq=False, repr=False)
class _State:
    """What is wanted of devices, and what records it."""

    wanted: str | None = None
    """``"warmup"``, ``"on"``, or None while nothing is wanted."""
    torch: types.ModuleType | None = None
    """The torch module; None until devices are wanted for the first time."""
    options: Options | None = None
    """The options with which devices were wanted last."""
    recorded_by: str | None = None
    """``"native"``: the device's own profiler; ``"torch"``: a session of ``torch.profiler``; None: nothing records."""
    kind: str | None = None
    """The kind of device that was recorded last."""
    is_settled: bool = False
    """What was enqueued has been waited for."""
    watched_kinds: set[str] = dataclasses.field(default_factory=set)
    """The kinds of devices whose first use calls :func:`_first_used`."""
    doubts: dict[str, str] = dataclasses.field(default_factory=dict)
    """Why devices of a kind are not recorded by their own profiler, once that is known; empty: they are."""
    printed: set[str] = dataclasses.field(default_factory=set)
    """Lines that were printed: each is printed once."""
    is_fork_watched: bool = False
    """Forked children call :func:`_forget`."""


_state = _State()
# What another thread's first use of the device and a step of the training loop do must not mix.
_lock = threading.RLock()


def start(torch, options):
    """Record devices from now on, or from when the program begins to use them."""
    _want("on", torch, options)


def warm_up(torch, options):
    """Let the device's profiler run already, as ``torch.profiler`` does: what it tells is not part of the window."""
    _want("warmup", torch, options)


def settle():
    """Wait for what devices still do, as ``torch.profiler`` does at the end of a window: it belongs to it."""
    with _lock:
        if _state.recorded_by is not None and not _state.is_settled:
            _state.is_settled = True
            _synchronize(_state.torch, _state.kind)


def stop():
    """Record devices no longer."""
    with _lock:
        _state.wanted = None
        _end()
        _device_others.end_gap()


def go_on():
    """Somebody's window has ended, and others' have not: what a session heard so far is written for its reader."""
    with _lock:
        if _state.wanted != "on" or _state.recorded_by is None:
            return
        _state.is_settled = False
        if _state.recorded_by == "torch":
            _end()
            _begin_if_in_use()


def begin_capture(torch, options):
    """What is counted is counted anew."""
    _device_others.begin_capture()
    _device_ranges.listen(torch, options)


def give_way(function):
    """Another profiler is about to begin, if ``function`` begins one; True when the call is the one that does."""
    if _device_session.is_own_thread():
        return False
    with _lock:
        has_begun = _device_others.begin(function)
        if has_begun and _state.wanted is not None and kinds_in_use(_state.torch):
            _end(is_given_up=True)
            _device_others.begin_gap()
        return has_begun


def come_back(function, has_failed, has_begun, result):
    """The call is over. When nobody else listens any more, what is wanted is recorded again."""
    if _device_session.is_own_thread():
        return
    with _lock:
        if _device_others.end(function, has_failed, has_begun, result):
            _device_others.end_gap()
            if _state.wanted is not None and _state.recorded_by is None:
                _begin_if_in_use()


def kinds_in_use(torch):
    """The kinds of devices that the program has begun to use, as ``_recorder.device_start`` names them."""
    return [kind for kind, module in _modules(torch) if module.is_initialized()]


def _want(what, torch, options):
    if options.gpu == "off":
        return
    with _lock:
        _watch_forks()
        is_warm = _state.wanted == "warmup" and what == "on"
        _state.wanted, _state.torch, _state.options = what, torch, options
        if is_warm and _state.recorded_by == "torch":
            _device_session.begin()
        if _state.recorded_by is None:
            _begin_if_in_use()


def _begin_if_in_use():
    torch = _state.torch
    if _state.options.gpu == "torch" and not any(map(_device_libraries.has_driver, ("cuda", "rocm", "xpu"))):
        _refuse("--gpu=torch: there is no GPU driver here")
        return
    _watch_first_use(torch)
    for kind in kinds_in_use(torch)[:1]:
        _begin(kind)


def _begin(kind):
    """The program uses devices of a kind and wants them recorded."""
    if _device_others.have_devices():
        _device_others.begin_gap()
        return
    doubt = _doubt(kind) if _state.options.gpu == "auto" else ""
    if doubt and _state.options.ring:
        _refuse(f"{doubt}; PyTorch's profiler, which would be used instead, does not go with a ring")
        return
    by_torch = bool(doubt) or _state.options.gpu == "torch"
    try:
        if by_torch:
            _device_session.prepare(_state.torch, kind, _state.options)
            if _state.wanted == "on":
                _device_session.begin()
            _remark([f"{doubt}; torch.profiler records it instead"] if doubt else [])
        else:
            found = _recorder.device_start(_native_options(kind))
            _remark(found["remarks"])
    except Exception as error:
        _refuse(f"{doubt}; {error}" if doubt else str(error))
    else:
        _device_wait.prepare()
        _state.recorded_by = "torch" if by_torch else "native"
        _state.kind, _state.is_settled = kind, False


def _doubt(kind):
    """Why the device's own profiler is not used; empty when it has shown that it may be."""
    torch = _state.torch
    if kind not in _state.doubts:
        libraries = _device_libraries.libraries(kind, torch)
        device = _device_of_this_thread(_module(torch, kind)) or 0
        try:
            found = _device_proof.verdict(kind, libraries, torch.__version__, device)
        except Exception as error:
            found = _device_proof.Verdict("untried", f"it could not be tried: {error}")
        _state.doubts[kind] = "" if found.is_proven else f"the device's own profiler is not used: {found.why}"
    return _state.doubts[kind]


def _native_options(kind):
    torch, options = _state.torch, _state.options
    return {
        "kind": kind,
        "libraries": _device_libraries.libraries(kind, torch),
        "ranges": options.nvtx,
        "others_are_idle": _device_others.are_idle(torch),
        **({} if options.counters else {"sample_period_ms": 0}),
    }


def _end(is_given_up=False):
    try:
        # Where another profiler begins, the program does not expect to wait.
        if not is_given_up:
            settle()
    except Exception:
        pass  # An error of the program's own work, which it hears of itself.
    by, _state.recorded_by = _state.recorded_by, None
    if by is None:
        return
    try:
        if by == "torch":
            _device_session.end()
        else:
            _recorder.device_stop()
    except Exception as error:
        _refuse(str(error))


def _refuse(reason):
    reason = " ".join(reason.split()) or "no reason given"
    _recorder.set_own_fact("device_refused", reason)
    _tell(f"not recording the GPU of process {os.getpid()}: {reason}")


def _remark(remarks):
    """What the device's profiler does not tell, although it runs, or what must be known of it."""
    if remarks:
        _recorder.set_own_fact("device_remarks", "\n".join(remarks))
    for remark in remarks:
        _tell(f"the GPU of process {os.getpid()}: {remark}")


def _tell(line):
    if line not in _state.printed and len(_state.printed) < 16:
        _state.printed.add(line)
        say(line)


def _modules(torch):
    """The kinds of devices that this PyTorch may use, each with its module; its ``cuda`` is also AMD's."""
    cuda, xpu = getattr(torch, "cuda", None), getattr(torch, "xpu", None)
    kind_of_cuda = "rocm" if getattr(torch.version, "hip", None) else "cuda"
    return [(kind, module) for kind, module in ((kind_of_cuda, cuda), ("xpu", xpu)) if module is not None]


def _watch_first_use(torch):
    """Hear of it when the program begins to use a device, once a process; nothing here does so itself."""
    for kind, module in _modules(torch):
        calls = getattr(module, "_queued_calls", None)
        if kind in _state.watched_kinds or module.is_initialized() or not isinstance(calls, list):
            continue
        _state.watched_kinds.add(kind)
        # Not by `_lazy_call`: it waits for a lock that a thread may hold for seconds.
        calls.append((lambda kind=kind: _first_used(kind), []))


def _first_used(kind):
    """PyTorch initialises a kind of device, on this thread; whatever fails here must not fail there."""
    try:
        with _lock:
            if _state.wanted is not None and _state.recorded_by is None:
                _begin(kind)
    except Exception as error:
        say(f"not recording the GPU of process {os.getpid()}: {error}")


def _synchronize(torch, kind):
    """Wait for what was enqueued."""
    module = _module(torch, kind)
    if module.is_initialized() and not _is_capturing(module):
        # Each thread has a device of its own, and another thread may do the waiting.
        device = _device_of_this_thread(module)
        _device_wait.wait(lambda: module.synchronize(device))


def _module(torch, kind):
    return torch.xpu if kind == "xpu" else torch.cuda


def _device_of_this_thread(module):
    try:
        return module.current_device()
    except Exception:
        return None  # Waiting says what is wrong with it.


def _is_capturing(module):
    """True while the calling thread's work becomes part of a graph: to wait would spoil the graph."""
    return bool(getattr(module, "is_current_stream_capturing", lambda: False)())


def _watch_forks():
    """A forked child has no profiler of a device; it may begin to use a device of its own."""
    if not _state.is_fork_watched:
        _state.is_fork_watched = True
        os.register_at_fork(after_in_child=_forget)


def _forget():
    global _lock
    _lock = threading.RLock()
    _state.recorded_by, _state.kind, _state.is_settled = None, None, False
    _device_others.forget()
    _device_session.forget()
    _device_wait.forget()


_recorder.hide(_device_wait.work.__code__)
