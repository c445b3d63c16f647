"""What Stepscope records of a GPU, compared with torch.profiler on the same steps: one table.

Run by ``cargo xtask gpu-check``, or without Rust as ``python benches/gpu/check.py`` with a Python that has PyTorch and
Stepscope. ``docs/gpu.md`` says what it compares and how to carry it to a machine without a network. It exits with 0
when every check of every workload holds, with 1 when one does not or could not run, with 2 when it could not begin.
"""

import argparse
import datetime
import importlib.util
import json
import shutil
import sys
import tempfile
from pathlib import Path

if __name__ == "__main__":
    # The folder of this file has modules that are not meant to stand before those of others.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from gpu import fixtures, report, runner, workloads


def main(arguments=None):
    options = parse(arguments)
    if options.job is not None:
        return run_job(json.loads(options.job))
    if options.list:
        return print_list()
    if options.self_test:
        from gpu import self_test

        return self_test.run()
    missing = cannot_begin(options)
    if missing:
        print(f"gpu-check cannot begin: {missing}", file=sys.stderr)
        return 2
    return check(options)


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="list the workloads and end")
    parser.add_argument("--self-test", action="store_true", help="show that each check can fail; needs no GPU")
    parser.add_argument("--only", help="workloads, and ways to record them, such as 'gpt,graphs' or 'gpt/turns'")
    parser.add_argument("--rounds", type=int, default=5, help="recordings of each profiler (5)")
    parser.add_argument("--output", type=Path, default=Path("gpu-check.json"), help="all numbers (gpu-check.json)")
    parser.add_argument("--keep", type=Path, help="a new folder for traces and runs; otherwise they are removed")
    parser.add_argument("--fixtures", type=Path, help="a new folder for small runs, to be kept as fixtures")
    parser.add_argument("--rehearse", action="store_true", help="try the command with a made-up GPU; needs cc")
    parser.add_argument("--on-cpu", action="store_true", help="try the command without a GPU: its checks cannot hold")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error("--rounds takes a number from 1 on")
    options.variables = {}
    try:
        options.rows = REHEARSED if options.rehearse else wanted(options.only)
    except ValueError as error:
        parser.error(str(error))
    return options


REHEARSED = [("rehearsal", way) for way in runner.WAYS]


def wanted(only):
    """The rows to run. All workloads are recorded in turns and apart, and one below ``stepscope record``."""
    every = [(name, way) for name in workloads.NAMES for way in (runner.TURNS, runner.APART)]
    every.insert(every.index(("gpt", runner.APART)) + 1, ("gpt", runner.RECORD))
    if only is None:
        return every
    words = [tuple(word.strip().split("/")) for word in only.split(",")]
    for word in words:
        if word[0] not in workloads.NAMES or word[1:] not in {(), *((way,) for way in runner.WAYS)}:
            raise ValueError(f"{'/'.join(word)!r} is no workload, see --list")
    rows = [row for row in every if row in words or row[:1] in words]
    return rows + [word for word in words if len(word) == 2 and word not in rows]


def print_list():
    width = max(map(len, workloads.NAMES))
    for name in workloads.NAMES:
        print(f"{name.ljust(width)}  {workloads.says(name)}")
    return 0


def run_job(job):
    from gpu import job as one

    one.main({**job, "folder": Path(job["folder"])})
    return 0


def cannot_begin(options):
    """Why nothing can be recorded here; ``None`` when it can."""
    for package in ("torch", "stepscope"):
        if importlib.util.find_spec(package) is None:
            return f"{sys.executable} has no {package}"
    for folder in (options.keep, options.fixtures):
        if folder is not None and folder.exists():
            return f"{folder} is there already"
    if options.rehearse:
        return cannot_rehearse()
    if not options.on_cpu:
        import torch

        if not torch.cuda.is_available():
            return "PyTorch sees no GPU (torch.cuda.is_available() is false); --self-test needs none"
    return None


def cannot_rehearse():
    from gpu.workloads import rehearsal

    if not (rehearsal.folder_of_fake() / "fake_gpu.py").exists():
        return "tests/python/fake_gpu.py was not carried along"
    return None if shutil.which("cc") else "there is no C compiler, cc"


def check(options):
    with tempfile.TemporaryDirectory(prefix="gpu-check-", ignore_cleanup_errors=True) as temporary:
        folder = options.keep or Path(temporary)
        if options.rehearse:
            rehearse(options, Path(temporary) / "fake")
        rows = []
        for name, way in options.rows:
            print(f"{name} ({way}) ...", file=sys.stderr, flush=True)
            rows.append(runner.run(name, way, folder / f"{name}-{way}", options))
            if options.rehearse:
                rows[-1].costs = {}  # Those of a GPU that is made up mean nothing.
        return conclude(rows, options)


def rehearse(options, folder):
    """Builds the libraries of the made-up GPU, and has the jobs find them."""
    from gpu.workloads import rehearsal

    fake = rehearsal.fake_gpu()
    folder.mkdir()
    made = fake.environment(fake.build(folder))
    options.variables = {name: str(value) for name, value in made.items()}
    # PyTorch itself has no GPU.
    options.on_cpu = True


def conclude(rows, options):
    environment = next((row.environment for row in rows if row.environment), {})
    environment = {"date": datetime.date.today().isoformat(), **environment}
    print(report.table(rows))
    print(*report.remarks(rows), sep="\n")
    print(", ".join(f"{name} {fact}" for name, fact in environment.items()))
    report.write_json(options.output, environment, rows)
    print(f"all numbers: {options.output}")
    if options.fixtures:
        print(*fixtures.copy(rows, options.fixtures, environment), sep="\n")
    return 0 if rows and all(row.holds for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
