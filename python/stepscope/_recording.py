"""Opens and closes the capture of this process, and hooks PyTorch: shared by ``stepscope record`` and the API."""

from __future__ import annotations

import atexit
import dataclasses
import os
import threading
import types

from stepscope import (
    _collections,
    _collectives,
    _counters,
    _dataloader,
    _demand,
    _device,
    _facts,
    _files,
    _frameworks,
    _listeners,
    _modules,
    _profiler_state,
    _recorder,
    _ring,
    _shapes,
    _stack_samples,
    _stacks,
    _steps,
)
from stepscope._hook import HookRefused, probe, unseen
from stepscope._options import Options
from stepscope._say import say


@dataclasses.dataclass(eq=False, repr=False)
class _State:
    """The capture of this process, and what is recorded into it now."""

    torch: types.ModuleType | None = None
    """The torch module that the capture was opened with."""
    run: str | None = None
    """The run folder of the last capture."""
    capture: str | None = None
    """The file of the last capture."""
    options: Options = dataclasses.field(default_factory=Options)
    """The options of the last capture."""
    is_prepared: bool = False
    """This process has been prepared, which happens once: see :func:`_prepare_process`."""
    wanted: _demand.Wanted | None = None
    """What is recorded now; None: nothing."""
    tells_children: bool = False
    """Forked processes record only while this one does."""
    is_hook_proven: bool = False
    """The probe of the hook has succeeded."""
    hook_refusal: HookRefused | None = None
    """Why the last probe of the hook failed; None if it succeeded, or has not run."""
    is_refusal_printed: bool = False
    """A reason why operators are not recorded was printed."""
    is_rank_known: bool = False
    """The rank is known from torch.distributed."""
    are_settings_known: bool = False
    """What the program set before its loop is known."""
    fork_watcher: _Watcher | None = None
    """The object that the callback after a fork is registered for: the registry does not keep it alive."""


_state = _State()

# What is recorded beside operators, each a module with start(torch, options) and stop(); see ARCHITECTURE.md.
_FEATURES = (
    _profiler_state,
    _collectives,
    _stacks,
    _modules,
    _collections,
    _counters,
    _stack_samples,
    _files,
    _device,
)


def open_capture(run, torch, options, tells_children=False):
    """Open this process's capture below the run folder; True when it was not open before.

    With ``tells_children`` those that it forks record when it does, and not all the time.
    """
    path, is_new = _recorder.open(os.fspath(run), _facts.facts_of_process(torch), int(options.ring * 1e9))
    _state.torch, _state.capture = torch, os.fspath(path)
    if is_new:
        _state.run, _state.options, _state.tells_children = os.fspath(run), options, tells_children
        tell_children(0)
        prove_hook(torch)
        _listeners.pass_labels_on()
        _steps.begin()
        _device.begin_capture(torch, options)
        _ring.start(options)
    if is_new and not _state.is_prepared:
        _state.is_prepared = True
        _prepare_process(torch)
    return is_new


def torch():
    """The torch module that the capture was opened with."""
    return _state.torch


def run():
    """The run folder that this process's capture was opened in at last."""
    return _state.run


def capture():
    """The file that this process's capture was opened at last."""
    return _state.capture


def options():
    """What the capture was opened with."""
    return _state.options


def is_wanted():
    """True while anybody wants anything recorded, be it of devices alone."""
    return _state.wanted is not None


def is_on():
    """True while anybody wants operators and labels recorded: ``stepscope record``, a schedule, a profiler object."""
    return _state.wanted is not None and _state.wanted.has_host


def want(who, options, has_host=True):
    """Record what ``options`` say, and what others want, until ``who`` leaves; without ``has_host`` only devices."""
    with _demand.alone():
        _demand.add(who, _demand.Wanted(has_host, options))
        _switch()


def leave(who):
    """``who`` wants nothing recorded any longer; what others want goes on."""
    with _demand.alone():
        _demand.remove(who)
        _switch()
        if is_wanted():
            _device.go_on()


def tell_children(cycle):
    """Tell forked processes whether to record now, where they do as this one does."""
    if _state.tells_children:
        _recorder.tell_children(is_on(), cycle)


def follow_parent():
    """In a forked process that is to record when its parent does: nobody else here wants anything."""
    wanted = _state.wanted
    _demand.clear()
    if wanted is not None:
        _demand.add("parent", wanted)


def _switch():
    """Record what is wanted now, and nothing else. What goes on stays as it is."""
    before, wanted = _state.wanted, _demand.together()
    _state.wanted = wanted
    if wanted == before:
        return
    was_host, is_host = before is not None and before.has_host, is_on()
    if was_host and not is_host:
        _recorder.set_labels(False)
    for feature in reversed(_features(before)):
        if feature not in _features(wanted) or _must_begin_anew(feature, before.options, wanted.options):
            _try_to_stop(feature)
    if was_host and (not is_host or before.options.shapes != wanted.options.shapes):
        _recorder.unhook()
    if is_host:
        _hook_operators(_state.torch, wanted.options)
    for feature in _features(wanted):
        try:
            feature.start(_state.torch, wanted.options)
        except Exception as error:
            say(f"not recording all of process {os.getpid()}: {feature.__name__}: {error}")


def _features(wanted):
    if wanted is None:
        return ()
    return _FEATURES if wanted.has_host else (_device,)


def _must_begin_anew(feature, before, wanted):
    """Whether a feature that goes on has to end first, so that it does what is wanted."""
    if feature is _stacks:
        return before.stacks != wanted.stacks
    return feature is _device and before.gpu != wanted.gpu


def _try_to_stop(feature):
    try:
        feature.stop()
    except Exception as error:
        say(f"still recording in process {os.getpid()}: {feature.__name__}: {error}")


def _hook_operators(torch, options):
    """Record PyTorch's ops from now on. When the hook cannot be proven safe: say so once, and record the rest."""
    prove_hook(torch)
    if _state.hook_refusal is None:
        _recorder.hook(options.shapes and _shapes.are_proven(torch))
    else:
        _recorder.set_fact("hook_refused", str(_state.hook_refusal))
    # Only now: a label that is passed on is recorded by the hook where there is one.
    _recorder.set_labels(True)


def warm_up(options):
    """Make ready for steps that are recorded soon: only devices' profilers need that, when they do not run yet."""
    if is_wanted():
        return
    try:
        _device.warm_up(_state.torch, options)
    except Exception as error:
        say(f"not recording all of process {os.getpid()}: _device: {error}")


def uses_devices():
    """True when the program has begun to use a device, whatever is known of its driver."""
    import torch

    return bool(_device.kinds_in_use(torch))


def settle_devices():
    """Wait for what devices still do: the window that ends holds it."""
    try:
        _device.settle()
    except Exception:
        pass  # An error of the program's own work, which it hears of itself.


def prove_hook(torch):
    """Run the probe, until it has succeeded once. When it is refused: say so once."""
    try:
        _prove(torch)
    except HookRefused as refusal:
        if not _state.is_refusal_printed:
            _state.is_refusal_printed = True
            say(f"not recording operators of process {os.getpid()}: {refusal}")
            say("the program runs on; `stepscope doctor` says what can be recorded here")


def prove_early(torch):
    """The same, and what may be asked for later: before anybody listens to all threads."""
    try:
        _prove(torch)
        _shapes.prove(torch)
    except Exception:
        pass  # It is tried again, and said, when something is recorded.


def _prove(torch):
    if _state.is_hook_proven:
        return
    _state.hook_refusal = HookRefused("the probe was interrupted")

    def find_out():
        probe(torch)
        _collectives.prove_tensors(torch)

    try:
        unseen(torch, find_out)
    except Exception as error:
        _state.hook_refusal = error if isinstance(error, HookRefused) else HookRefused(str(error))
        raise _state.hook_refusal from error
    _state.is_hook_proven, _state.hook_refusal = True, None


def close_capture():
    """Close this process's capture; what is recorded afterwards is lost."""
    if _recorder.is_open():
        _learn_rank()
        with _demand.alone():
            _demand.clear()
            _switch()
            # A device's profiler may run although nobody wants it yet.
            _try_to_stop(_device)
        _ring.stop()
        _recorder.close()


def _prepare_process(torch):
    """What is set up once a process, whatever is recorded later."""
    atexit.register(close_capture)
    _watch_children()
    _name_threads()
    _mark_steps()
    _collectives.watch(torch)
    _watch_other_steps()
    _dataloader.watch()
    _frameworks.watch()


def _watch_children():
    """Forked children of multiprocessing leave without ``atexit``: close their captures when they finish."""
    from multiprocessing import process, util

    def close_at_end():
        util.Finalize(None, close_capture, exitpriority=-100)

    def after_fork(_):
        _recorder.set_fact("process_name", process.current_process().name)
        close_at_end()

    # This may be such a child already: one that imported PyTorch after the fork.
    close_at_end()
    _state.fork_watcher = _Watcher()
    util.register_after_fork(_state.fork_watcher, after_fork)


class _Watcher:
    """Something to hang a callback on."""


def _name_threads():
    """Tell the recorder the names that Python gives its threads, in the thread itself."""
    _recorder.name_thread(threading.current_thread().name)
    set_native_id = getattr(threading.Thread, "_set_native_id", None)
    if set_native_id is None:
        return

    def set_native_id_and_name(thread):
        set_native_id(thread)
        try:
            _recorder.name_thread(thread.name)
        except Exception:
            pass  # A thread that cannot be named must still start.

    threading.Thread._set_native_id = set_native_id_and_name


def _mark_steps():
    """A step of the training loop ends with the optimizer's: of several optimizers, the first one that stepped."""
    from torch.optim.optimizer import register_optimizer_step_post_hook

    is_compiling = _state.torch.compiler.is_compiling
    primary = _steps.Primary()

    def after_step(optimizer, _args, _kwargs):
        if is_compiling() or not _recorder.is_open():
            return
        if not _state.is_rank_known:
            _learn_rank()
        if not _state.are_settings_known:
            _learn_settings(optimizer)
        if primary.is_stepped_by(optimizer):
            _steps.optimizer_stepped(is_on())

    register_optimizer_step_post_hook(after_step)


def _watch_other_steps():
    """Objects of torch.profiler make steps, too."""
    from stepscope import _other_steps

    _other_steps.watch()


def _learn_rank():
    """The rank may only be known once torch.distributed is initialised; what it says stays when it is destroyed."""
    facts = _facts.rank_facts_of_torch()
    for key, value in facts.items():
        _recorder.set_fact(key, value)
    _state.is_rank_known = bool(facts)


def _learn_settings(optimizer):
    """A program has made its settings when the first step ends."""
    for key, value in _facts.settings_of_loop(_state.torch, optimizer).items():
        _recorder.set_fact(key, value)
    _state.are_settings_known = True
