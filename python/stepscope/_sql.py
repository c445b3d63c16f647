"""Questions in SQL: another program answers them, this file starts it and hands its rows over."""

import contextlib
import subprocess
import sys
import tempfile

from stepscope import _engine
from stepscope._table import Table


class Rows(Table):
    """What a query gave: a table. ``polars.DataFrame(rows)`` and ``pyarrow.table(rows)`` take it as it is."""

    def __init__(self, rows):
        self._rows = rows

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


def ask(paths, query, **joining):
    """The rows that a query gives on the run at some paths, opened as these keywords say."""
    with _command(paths, **joining) as command:
        done = subprocess.run(command, input=query.encode(), capture_output=True)
    if done.returncode != 0:
        raise _error(done.returncode, done.stderr)
    return Rows(_engine.ArrowRows(done.stdout))


def ask_in_batches(paths, query, **joining):
    """The same rows in several tables, while they come."""
    with _command(paths, **joining) as command, tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said)
        try:
            # What ends before it has read all says why by itself.
            with contextlib.suppress(BrokenPipeError), process.stdin:
                process.stdin.write(query.encode())
            try:
                for rows in _engine.ArrowBatches(process.stdout):
                    yield Rows(rows)
            except ValueError:
                # It has written no rows, or not all of them.
                if process.wait() == 0:
                    raise
            if process.wait() != 0:
                said.seek(0)
                raise _error(process.returncode, said.read())
        finally:
            process.kill()
            process.stdout.close()
            process.wait()


@contextlib.contextmanager
def _command(paths, *, align, offsets, rank_from, join, memory):
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
        yield [*command, "--", run]


def _error(code, said):
    # As the command says that there is no such program.
    error = RuntimeError if code == 127 else ValueError
    text = said.decode(errors="replace").strip().removeprefix("error: ")
    return error(text or f"the program that answers queries ended with {code}")
