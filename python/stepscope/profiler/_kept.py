"""A capture that can be read for as long as somebody wants to, whatever its name has become meanwhile."""

import os
import weakref

_known: "weakref.WeakValueDictionary" = weakref.WeakValueDictionary()


def keep(path):
    """Keep the capture at ``path``; the same object as long as one is in use."""
    kept = _known.get(path)
    if kept is None:
        kept = _known[path] = Kept(path)
    return kept


def _identity(descriptor, fstat=os.fstat):
    status = fstat(descriptor)
    return status.st_dev, status.st_ino


def _is_file(descriptor, file, identity=_identity):
    """Whether the descriptor is open and leads to that file."""
    try:
        return identity(descriptor) == file
    except OSError:
        return False


class Kept:
    """Holds a file open: compacting the run takes its name away, and not what is in it."""

    def __init__(self, path):
        self._path = path
        self._descriptor, self._file = -1, None
        try:
            self._descriptor = os.open(path, os.O_RDONLY)
            self._file = _identity(self._descriptor)
        except OSError:
            pass  # It is read by its name, or from the run's part.

    def path(self):
        """A name to read it by."""
        # What was taken away with its run is gone.
        run = os.path.dirname(os.path.dirname(self._path))
        if os.path.exists(self._path) or not os.path.isdir(run) or not self._is_open():
            return self._path
        opened = f"/proc/self/fd/{self._descriptor}"
        return opened if os.path.exists(opened) else self._path

    def _is_open(self):
        """False when the program has closed it: the number may be another file's by now."""
        return _is_file(self._descriptor, self._file)

    # What it calls is bound now: when the interpreter ends, the names of modules are gone.
    def __del__(self, is_file=_is_file, close=os.close):
        if is_file(self._descriptor, self._file):
            close(self._descriptor)
