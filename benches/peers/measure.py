"""Runs one program in a process of its own and prints, as JSON, what that took, seen from outside.

``python measure.py PROGRAM [ARGUMENT...]``; one that ends in ``.py`` runs in this Python. CPU time is user and system time of the process and of those that it started
and waited for; the peak is the largest resident memory of any of them.
"""

import json
import os
import subprocess
import sys
import tempfile
import time


def main():
    with tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        python = [sys.executable] if sys.argv[1].endswith(".py") else []
        process = subprocess.Popen([*python, *sys.argv[1:]], stdout=subprocess.DEVNULL, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        lines = errors.read().decode(errors="replace").strip().splitlines()
    failed = process.returncode != 0
    print(
        json.dumps(
            {
                "wall_s": wall_s,
                "cpu_s": usage.ru_utime + usage.ru_stime,
                "peak_bytes": usage.ru_maxrss * 1024,
                "failure": (lines[-1] if lines else f"exit status {process.returncode}") if failed else None,
            }
        )
    )


if __name__ == "__main__":
    main()
