"""One line to the person who runs the program, on standard error."""

import sys


def say(line):
    """Print ``line``; a program whose standard error is closed or replaced must not notice."""
    try:
        if sys.stderr is not None:
            print(f"stepscope: {line}", file=sys.stderr)
    except Exception:
        pass
