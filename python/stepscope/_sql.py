"""Questions in SQL: another program answers them, this file starts it and hands its rows over."""

import subprocess
import sys
import tempfile

from stepscope import _engine
from stepscope._table import Table


class Rows(Table):
    """What a query gave: a table. ``polars.DataFrame(rows)`` and ``pyarrow.table(rows)`` take it as it is."""

    def __init__(self, content):
        self._rows = _engine.ArrowRows(content)

    @property
    def columns(self):
        """The names of its columns."""
        return self._rows.columns()

    def __len__(self):
        return len(self._rows)

    def __repr__(self):
        rows = len(self)
        return f"<stepscope rows: {rows} {'row' if rows == 1 else 'rows'} of {', '.join(self.columns)}>"

    def to_dicts(self):
        """The rows as dicts; needs pyarrow 14 or later."""
        return self.to_arrow().to_pylist()

    def __arrow_c_stream__(self, requested_schema=None):
        """The rows as an Arrow stream, for libraries that know Arrow's PyCapsule interface."""
        return self._rows.__arrow_c_stream__(requested_schema)


def ask(paths, query, *, align, offsets, rank_from, join, memory):
    """The rows that a query gives on the run at some paths, opened as these keywords say."""
    command = [sys.executable, "-m", "stepscope", "sql", "--arrow", "--file", "-", f"--align={align}"]
    command += [f"--offset={rank}={ns}" for rank, ns in offsets]
    command += [f"--rank-from={rank_from}"] if rank_from is not None else []
    command += ["--join"] if join else []
    command += [f"--memory={memory}"] if memory is not None else []
    with tempfile.NamedTemporaryFile(
        "w", prefix="stepscope-", encoding="utf-8", errors="surrogateescape"
    ) as list_of_paths:
        run = paths[0]
        if len(paths) > 1:
            # Several words would be several runs.
            list_of_paths.write("\n".join(paths))
            list_of_paths.flush()
            run = f"@{list_of_paths.name}"
        done = subprocess.run([*command, "--", run], input=query.encode(), capture_output=True)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()
        # As the command says that there is no such program.
        error = RuntimeError if done.returncode == 127 else ValueError
        raise error(said.removeprefix("error: "))
    return Rows(done.stdout)
