"""What it costs that Stepscope knows a framework: a step recorded with its steps and phases, against one without.

Run by ``cargo xtask bench frameworks``. Each round records a job of each framework, which forgets Stepscope in every other
stretch of steps; a row is the median step of each kind, and what it adds to a step, the median of the rounds. With
``--control`` it forgets nothing: what is added then is noise.

Models are tiny, so that a step takes 1 to 4 ms and differs by less than what is measured. ``--long-steps`` has layers so wide
that it takes 20 to 80 ms on one thread, as in a training; ``--steps 400`` is enough then.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

JOB = Path(__file__).resolve().parent / "frameworks" / "jobs.py"
#: How wide the layers of the models are, and how wide they are for long steps: what is done beside them differs.
WIDTH = 16
LONG_STEPS = {
    "deepspeed": 512,
    "deepspeed-zero3": 1024,
    "lightning": 1280,
    "transformers": 640,
    "trl": 640,
    "accelerate": 1280,
    "torchtune": 1280,
    "vllm": 256,
    "sglang": 256,
}
#: Those of an environment of their own.
SERVERS = ("vllm", "sglang")
#: In their loops the program steps a profiler, which is ours.
OPTIONS = {"accelerate": ["--as-torch-profiler"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--control", action="store_true")
    parser.add_argument("--long-steps", action="store_true", help="of 20 to 80 ms, not of 1 to 4 ms")
    parser.add_argument("--only", default=",".join(LONG_STEPS), help="frameworks, with commas between them")
    arguments = parser.parse_args()
    print(f"{'median step, us':16} {'without':>9} {'with':>9}  added (half of the rounds lie between)")
    for framework in arguments.only.split(","):
        width = LONG_STEPS[framework] if arguments.long_steps else WIDTH
        words = [arguments.steps, width, *(["control"] if arguments.control else [])]
        rounds = [steps(framework, words) for _ in range(arguments.rounds)]
        medians = [statistics.median(of_kind) / 1_000 for of_kind in zip(*rounds)]
        added = [(watched - unwatched) / 1_000 for unwatched, watched in rounds]
        lower, middle, upper = statistics.quantiles(added, n=4)
        print(
            f"{framework:16} {medians[0]:9.1f} {medians[1]:9.1f}  {middle:.0f} ({lower:.0f} to {upper:.0f})", flush=True
        )
    print(f"{platform.processor() or platform.machine()}, Linux {platform.release()}")


def steps(framework, words):
    """The ns of a step in a recorded job, without and with what Stepscope knows."""
    with tempfile.TemporaryDirectory() as folder:
        command = [Path(sys.executable).with_name("stepscope"), "record", *OPTIONS.get(framework, [])]
        command += ["--output", Path(folder) / "run", "--"]
        python = os.environ["STEPSCOPE_SERVERS_PYTHON"] if framework in SERVERS else sys.executable
        command += [python, JOB, framework, *words]
        done = subprocess.run([*map(str, command)], cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr)
        return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
