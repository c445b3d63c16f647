"""``%%stepscope``: records a cell of a notebook and shows the report below it."""

import argparse
import html
import subprocess
import sys
import tempfile
from pathlib import Path

_OPTIONS = {
    "--shapes": ("record_shapes", "what each operator is called with"),
    "--memory": ("profile_memory", "every allocation and free"),
    "--stacks": ("with_stack", "Python's call stack of each operator"),
    "--io": ("io", "calls on files"),
}


def load(ipython):
    """Make the magic known to a notebook."""
    ipython.register_magic_function(_Cells(ipython).record, magic_kind="cell", magic_name="stepscope")


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        raise ValueError(message)


def _parser():
    parser = _Parser(prog="%%stepscope", description="Record the cell and show the report.", add_help=False)
    parser.add_argument("-o", "--output", dest="run", metavar="RUN", help="the run's folder")
    for option, (name, says) in _OPTIONS.items():
        parser.add_argument(option, dest=name, action="store_true", help=says)
    return parser


class _Cells:
    def __init__(self, ipython):
        self._ipython = ipython

    def record(self, line, cell):
        """Record the cell, and show the report: ``%%stepscope [-o RUN] [--shapes] [--memory] [--stacks] [--io]``."""
        from IPython.display import HTML, display

        from stepscope.profiler import profile

        try:
            options = vars(_parser().parse_args(line.split()))
        except ValueError as error:
            print(f"%%stepscope: {error}\n{_parser().format_usage()}", file=sys.stderr)
            return
        # What the cell raises is shown there, and what ran until then is reported.
        with profile(**options) as prof:
            self._ipython.run_cell(cell)
        page = _page_of(prof.run)
        # In a frame: the page's styles and the notebook's do not meet.
        frame = f'<iframe srcdoc="{html.escape(page)}" style="width: 100%; height: 600px; border: 0"></iframe>'
        display(HTML(f"{frame}<p><code>stepscope view {html.escape(str(prof.run))}</code></p>"))


def _page_of(run):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        command = [sys.executable, "-m", "stepscope", "report", run, "--html", path]
        subprocess.run([*map(str, command)], check=True, capture_output=True)
        return path.read_text(encoding="utf-8")
