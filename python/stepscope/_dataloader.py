"""What PyTorch's DataLoader does: which worker makes which batch, of which samples, and which of them each ``next()``
of the loop gets.

===============  ========================================  ============================================
range            where                                     details
===============  ========================================  ============================================
a fetch          ``DataLoader.fetch``, where the batch is  ``worker``, ``batch``, ``samples``, ``count``
                 made: in a worker, or within ``next()``
a ``next()``     PyTorch's own label of it, or one of the  ``worker``, ``worker_pid``, ``batch``
                 same name where operators are not
                 recorded
===============  ========================================  ============================================

All that is wrapped are attributes of PyTorch's classes that a release may not have, or use otherwise: what is then not
known is left out, and the loader works as ever.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect

from stepscope import _recorder, _workers

# How many indices of samples are recorded of a batch.
FIRST_SAMPLES = 16


@dataclasses.dataclass(eq=False, repr=False)
class _State:
    """What this process makes as a worker of a DataLoader."""

    worker: int | None = None
    """Which worker this process is; None: none."""
    batch: int | None = None
    """The batch that the worker was asked for last."""


_state = _State()
# The classes of PyTorch's are wrapped.
_is_watching = False


def watch():
    """Wrap, once a process, what makes and hands out batches. PyTorch is loaded."""
    global _is_watching
    if _is_watching:
        return
    _is_watching = True
    from torch.utils.data import _utils, dataloader

    _wrap(_utils.worker, "_worker_loop", _named_worker_loop)
    for fetcher in ("_MapDatasetFetcher", "_IterableDatasetFetcher"):
        _wrap(getattr(_utils.fetch, fetcher, None), "fetch", _labelled_fetch)
    _wrap(getattr(dataloader, "_SingleProcessDataLoaderIter", None), "_next_data", _numbered_next)
    _wrap(getattr(dataloader, "_MultiProcessingDataLoaderIter", None), "_next_data", _described_next)


def _wrap(owner, name, make):
    function = getattr(owner, name, None)
    if callable(function):
        wrapper = functools.wraps(function)(make(function))
        # Stacks show what it calls, which is the program's.
        _recorder.hide(wrapper.__code__)
        setattr(owner, name, wrapper)


def _named_worker_loop(worker_loop):
    def named_worker_loop(*args, **kwargs):
        worker, args, kwargs = _as_worker(worker_loop, args, kwargs)
        name = f"DataLoader worker {'?' if worker is None else worker}"
        _recorder.set_fact("process_name", name)
        _recorder.name_thread(name)
        _workers.begin()
        return worker_loop(*args, **kwargs)

    return named_worker_loop


def _as_worker(worker_loop, args, kwargs):
    """Which worker it is that is called so, and the arguments, of which the queue of tasks tells their numbers."""
    try:
        call = inspect.signature(worker_loop).bind(*args, **kwargs)
        _state.worker = call.arguments.get("worker_id")
        if "index_queue" in call.arguments:
            call.arguments["index_queue"] = _Tasks(call.arguments["index_queue"])
        return _state.worker, call.args, call.kwargs
    except (TypeError, ValueError):
        return None, args, kwargs


class _Tasks:
    """The queue through which a worker is asked for batches; it remembers the number of the last one."""

    def __init__(self, queue):
        self._queue = queue

    def __getattr__(self, name):
        return getattr(self._queue, name)

    def get(self, *args, **kwargs):
        task = self._queue.get(*args, **kwargs)
        _state.batch = _whole(task[0]) if type(task) is tuple and len(task) == 2 else None
        return task


def _labelled_fetch(fetch):
    def labelled_fetch(self, possibly_batched_index):
        if not _is_recorded():
            return fetch(self, possibly_batched_index)
        token = _recorder.begin_label("DataLoader.fetch")
        _recorder.describe(token, _details_of_fetch(self, possibly_batched_index))
        try:
            return fetch(self, possibly_batched_index)
        finally:
            _recorder.end_label(token, "DataLoader.fetch")

    return labelled_fetch


def _details_of_fetch(fetcher, index):
    details = {"dataflow": "fetch"}
    if _state.worker is not None:
        details["worker"], details["batch"] = _state.worker, _state.batch
    else:
        details["batch"] = fetcher.__dict__.get("_stepscope_batch")
    # An iterable dataset is asked for a number of samples, and says of none which it is.
    indices = index if type(index) in (list, tuple) else [index]
    samples = [_whole(sample) for sample in indices[:FIRST_SAMPLES]]
    if samples and None not in samples:
        details["samples"], details["count"] = samples, len(indices)
    return details


def _whole(value):
    """A whole number as one of Python's own; None for anything else, which is not asked to become one."""
    kind = type(value)
    return int(value) if kind is int or (kind.__module__ == "numpy" and "int" in kind.__name__) else None


def _numbered_next(next_data):
    """Without workers: what fetches is told which batch it fetches."""

    def numbered_next(self):
        if not _is_recorded():
            return next_data(self)
        try:
            batch = self._num_yielded
            self._dataset_fetcher._stepscope_batch = batch
        except AttributeError:
            return next_data(self)
        return _described(self, next_data, lambda: {"batch": batch})

    return numbered_next


def _described_next(next_data):
    """With workers: which batch the loop got, and who made it."""

    def described_next(self):
        if not _is_recorded():
            return next_data(self)
        try:
            tasks = self._task_info
            if type(tasks) is dict:
                tasks = self._task_info = _ListedTasks(tasks)
            tasks.taken = None
        except AttributeError:
            return next_data(self)
        return _described(self, next_data, lambda: _details_of_next(self, tasks.taken))

    return described_next


class _ListedTasks(dict):
    """The tasks that a loader has given to its workers, by number; it remembers which was taken from it last, as the one
    is whose batch is handed out."""

    taken = None

    def pop(self, batch, *default):
        task = super().pop(batch, *default)
        self.taken = (batch, task)
        return task

    def __delitem__(self, batch):
        self.taken = (batch, self[batch])
        super().__delitem__(batch)


def _details_of_next(loader, taken):
    batch, (worker, *_) = taken
    return {"worker": worker, "worker_pid": loader._workers[worker].pid, "batch": batch}


def _described(loader, next_data, details):
    """The next batch, with what is known of it said of the label that PyTorch made for it. Where operators are not
    recorded, that label is not, either."""
    token, own_name = _recorder.innermost(), None
    if not _recorder.is_hooked():
        own_name = getattr(loader, "_profile_name", "enumerate(DataLoader)#DataLoader.__next__")
        token = _recorder.begin_label(own_name)
    try:
        data = next_data(loader)
        try:
            known = {"dataflow": "next"}
            known.update(details())
            _recorder.describe(token, known)
        except (TypeError, ValueError, AttributeError, LookupError):
            pass  # A release that keeps it otherwise: the batch is handed out all the same.
        return data
    finally:
        if own_name is not None:
            _recorder.end_label(token, own_name)


def _is_recorded():
    """Whether the next batch is, of this process."""
    from stepscope import _recording

    return _workers.is_recorded() and _recording.is_on()


for own in (_is_recorded, _described, _details_of_next, _details_of_fetch, _whole, _Tasks.get, _Tasks.__getattr__):
    _recorder.hide(own.__code__)
for own in (_ListedTasks.pop, _ListedTasks.__delitem__):
    _recorder.hide(own.__code__)
for native in (
    _recorder.begin_label,
    _recorder.end_label,
    _recorder.describe,
    _recorder.innermost,
    _recorder.is_hooked,
):
    _recorder.hide(native)
