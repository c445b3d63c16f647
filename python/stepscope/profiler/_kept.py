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


class Kept:
    """Holds a file open: compacting or deleting the run takes its name away, and not what is in it."""

    def __init__(self, path):
        self._path = path
        self._descriptor = self._file = None
        try:
            self._descriptor = os.open(path, os.O_RDONLY)
            self._file = _identity(self._descriptor)
        except OSError:
            return  # It is read by its name, or from the run's part.
        # Not by `__del__`, which may run when the process ends and nothing that it needs is there any more.
        weakref.finalize(self, _close, self._descriptor, self._file).atexit = False

    def path(self):
        """A name to read it by."""
        opened = f"/proc/self/fd/{self._descriptor}"
        is_needed = not os.path.exists(self._path) and _is_open(self._descriptor, self._file)
        return opened if is_needed and os.path.exists(opened) else self._path


def _close(descriptor, file):
    if _is_open(descriptor, file):
        os.close(descriptor)


def _is_open(descriptor, file):
    """False when the program has closed it: the number may be another file's by now."""
    try:
        return file is not None and _identity(descriptor) == file
    except OSError:
        return False


def _identity(descriptor):
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino
