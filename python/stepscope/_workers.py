"""Workers of a DataLoader record when the process does that forked them: each looks before it prepares a batch."""

from stepscope import _recorder

# This process is a worker of a DataLoader.
_is_worker = False


def begin():
    """This process is a worker: what is recorded from its beginning is a window, too."""
    global _is_worker
    _is_worker = True
    window = _recorder.window_of_parent()
    if window is not None:
        _recording().follow_parent()
    if window is not None and window[0]:
        _recorder.set_window(*window)


def is_recorded():
    """Whether the next batch is recorded, once the worker does as its parent; elsewhere all are."""
    window = _recorder.window_of_parent() if _is_worker else None
    if window is None:
        return True
    is_on, cycle = window
    if is_on != _recording().is_on():
        _follow(is_on, cycle)
    return is_on


def _follow(is_on, cycle):
    if is_on:
        _recording().want("parent", _recording().options())
        _recorder.set_window(True, cycle)
    else:
        _recorder.set_window(False, cycle)
        _recording().leave("parent")


def _recording():
    from stepscope import _recording

    return _recording
