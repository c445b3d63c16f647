"""Pages in the browser, served by this process; the engine does all of it."""

import os

from stepscope import _engine

# Served until the process ends, whether or not somebody keeps the address.
_servers = []


class View(str):
    """The address of pages, with the token that opens them.

    It is served until :meth:`close`, the end of a ``with`` block, or the end of the process.
    """

    def __new__(cls, server):
        view = super().__new__(cls, server.url)
        view._server = server
        _servers.append(server)
        return view

    def close(self):
        """End serving."""
        self._server.stop()
        if self._server in _servers:
            _servers.remove(self._server)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        self.close()


def view(paths, *, port, browser, allow_hosts, allow_frame, joining=None):
    """See :func:`stepscope.view`."""
    paths = [os.fspath(path) for path in paths]
    for path in paths:
        if not _engine.is_remote(path) and not os.path.exists(path):
            raise FileNotFoundError(f"no such run or trace file: {path}")
    found = View(_engine.serve(paths, port, list(allow_hosts), allow_frame, **(joining or {})))
    if browser:
        import webbrowser

        webbrowser.open(found)
    return found
