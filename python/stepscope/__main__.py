"""The ``stepscope`` command, as the wheel installs it; also ``python -m stepscope``."""

import os
import signal
import sys


def main():
    """Run the ``stepscope`` command with this program's arguments and return its exit code."""
    from stepscope import _engine

    # `stepscope record` looks here for what it puts into the recorded process.
    os.environ["STEPSCOPE_PACKAGE"] = os.path.dirname(os.path.abspath(__file__))
    # `stepscope doctor` asks this Python first.
    os.environ["STEPSCOPE_PYTHON"] = sys.executable or ""
    # Python's own handler would wait for the command to return; with the default one, Ctrl-C ends it at once.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _engine.main(["stepscope", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
