"""What it costs that Stepscope knows a framework: a step recorded with its steps and phases, against one without.

Run by ``cargo xtask bench frameworks``. Each round records a job of each framework twice, in turn; a row is the median step
of each, and the median of the rounds' ratios.
"""

import argparse
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

JOB = Path(__file__).resolve().parent / "frameworks" / "jobs.py"
WAYS = ("unwatched", "watched")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    print(f"{'median step, us':16} {'without':>9} {'with':>9}  ratio: median (half of the rounds lie between)")
    for framework in ("deepspeed", "lightning", "transformers"):
        rounds = []
        for at in range(arguments.rounds):
            order = WAYS if at % 2 else WAYS[::-1]
            rounds.append({way: step(framework, arguments.steps, way) for way in order})
        medians = [statistics.median(found[way] for found in rounds) / 1_000 for way in WAYS]
        ratios = [found["watched"] / found["unwatched"] for found in rounds]
        lower, middle, upper = statistics.quantiles(ratios, n=4)
        print(
            f"{framework:16} {medians[0]:9.1f} {medians[1]:9.1f}  {middle:.4f} ({lower:.4f} to {upper:.4f})", flush=True
        )
    print(f"{platform.processor() or platform.machine()}, Linux {platform.release()}")


def step(framework, steps, way):
    """The ns of a step in a recorded job."""
    with tempfile.TemporaryDirectory() as folder:
        command = [Path(sys.executable).with_name("stepscope"), "record", "--output", Path(folder) / "run", "--"]
        command += [sys.executable, JOB, framework, steps, way]
        done = subprocess.run([*map(str, command)], cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr)
        return int(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
