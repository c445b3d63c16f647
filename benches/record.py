"""What recording costs: Stepscope and torch.profiler in turn, in one process, against nothing.

Run by ``cargo xtask bench record``. Its parts:

- ``ops``: what recording adds to an op of a hot loop, of a small MLP, of a GPT so small that PyTorch's own overhead is
  most of a step, and of one of ordinary size; plain, with shapes, memory, stacks, every Python call, and with all of it;
- ``after``: stop, export as Chrome JSON, the table of operators, and the memory at its peak;
- ``calls``: what recording adds to a call of a Python function;
- ``labels``: what ``record_function`` costs while nothing records;
- ``weight``: bytes that an op takes on disk.

Every row is measured in a process of its own. All times are CPU time of the process, since wall time on a shared machine
measures the neighbours; medians over rounds are printed, with the quartiles. What Stepscope does not record is left out
and said. One thread of PyTorch.
"""

import argparse
import importlib
import json
import mmap
import os
import subprocess
import sys
import tempfile
import warnings

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # torch.profiler would print a line at each start and stop.

MADV_POPULATE_WRITE = 23
PARTS = ("ops", "after", "calls", "labels", "weight")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="a part, or what a row has in its name, such as 'ops hot loop plain'")
    parser.add_argument("--rounds", type=int, default=40, help="rounds of a row; larger workloads run fewer")
    parser.add_argument("--ops", type=int, default=1_000_000, help="ops of the part 'after'")
    parser.add_argument("--full", action="store_true", help="torch.profiler's table of all ops: minutes, gigabytes")
    parser.add_argument("--json", action="store_true", help="print JSON instead of lines")
    parser.add_argument("--touch-memory", action="store_true", help="first use all memory once: see docs/benchmarks.md")
    parser.add_argument("--row", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.row is not None:
        measure_row(json.loads(arguments.row), arguments)
        return
    if arguments.touch_memory:
        touch_memory()
    rows = []
    for row in wanted(arguments):
        rows.append(run_row(row))
        if not arguments.json:
            print(text_of(rows[-1]), flush=True)
    if arguments.json:
        print(json.dumps({"environment": environment(), "rows": rows}, indent=2))
    else:
        print(environment())


def part(name):
    return importlib.import_module(f"record.{name}")


def wanted(arguments):
    """The rows to measure: each a part and a job of it."""
    words = (arguments.only or "").split()
    for name in PARTS:
        for job in part(name).jobs(arguments):
            row_name = " ".join([name, *map(str, job.values())])
            if all(word in row_name for word in words):
                yield {"part": name, "job": job}


def run_row(row):
    """Measures a row in a process of its own."""
    from record.configurations import is_recorded

    configuration = row["job"].get("configuration", "plain")
    if not is_recorded(configuration):
        return {**row, "skipped": f"Stepscope does not record {configuration} yet"}
    command = [sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--row", json.dumps(row)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        return {**row, "skipped": f"it failed with exit code {done.returncode}"}
    return {**row, "result": json.loads(done.stdout.splitlines()[-1])}


def measure_row(row, arguments):
    """In the row's own process: measures and prints the result as the last line."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(prefix="stepscope-bench-", ignore_cleanup_errors=True) as folder:
        result = part(row["part"]).measure(row["job"], arguments, folder)
        print(json.dumps(result), flush=True)


def touch_memory():
    """Writes to most pages of the machine, so that rows find what a machine has that was in use: a virtual machine gets
    each page from its host when it is first written to, which takes longer than what is measured."""
    with open("/proc/meminfo") as file:
        free = next(int(line.split()[1]) << 10 for line in file if line.startswith("MemAvailable:"))
    size = free * 9 // 10 // mmap.PAGESIZE * mmap.PAGESIZE
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(MADV_POPULATE_WRITE)


def text_of(row):
    if "skipped" in row:
        return f"{row['part']:<7} {' '.join(map(str, row['job'].values()))}: left out, {row['skipped']}"
    return f"{row['part']:<7} {part(row['part']).line(row['job'], row['result'])}"


def environment():
    import torch

    return f"torch {torch.__version__}, Python {sys.version.split()[0]}, {os.cpu_count()} CPUs; medians [quartiles]"


if __name__ == "__main__":
    main()
