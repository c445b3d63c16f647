"""Records Python's garbage collections."""

import gc

from stepscope import _recorder


def start(_torch, options):
    """Be told of collections, when the options want it."""
    if options.gc and _recorder.on_collection not in gc.callbacks:
        gc.callbacks.append(_recorder.on_collection)


def stop():
    """Be told no longer."""
    if _recorder.on_collection in gc.callbacks:
        gc.callbacks.remove(_recorder.on_collection)
