"""What the engine cannot open itself: files that are open, and the stores that only fsspec knows."""

import os
import tempfile

from stepscope import _engine


def opened(path):
    """The path or address that the engine opens for ``path``, and what has to be kept until it is not needed any more."""
    if hasattr(path, "read"):
        name = os.path.basename(str(getattr(path, "path", None) or getattr(path, "name", None) or "trace"))
        return _copied(lambda folder: _written(path, os.path.join(folder, name)))
    path = os.fspath(path)
    if _engine.is_remote(path) or "://" not in path or path.startswith("file://"):
        return path, None
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise ValueError(
            f"stepscope does not know this kind of address: {path}\nhint: install fsspec, which may"
        ) from None
    files, inner = url_to_fs(path)

    def fetched(folder):
        local = os.path.join(folder, os.path.basename(inner.rstrip("/")) or "run")
        files.get(inner, local, recursive=files.isdir(inner))
        return local

    return _copied(fetched)


def _copied(copy):
    folder = tempfile.TemporaryDirectory(prefix="stepscope-")
    return copy(folder.name), folder


def _written(source, path):
    with open(path, "wb") as file:
        while block := source.read(1 << 20):
            file.write(block.encode() if isinstance(block, str) else block)
    return path
