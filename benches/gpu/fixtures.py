"""Small runs, and what torch.profiler recorded of the same steps, put where they can be kept as fixtures."""

import gzip
import shutil
import subprocess
import sys
from pathlib import Path

from gpu.profilers import TORCH
from gpu.runner import APART

LIMIT_BYTES = 200_000


def copy(rows, folder, environment):
    """Copies the first run of each workload that was recorded apart, when all checks hold; says what became of each."""
    folder.mkdir(parents=True)
    said, kept = [], []
    for row in rows:
        if row.way != APART or not row.runs:
            continue
        why_not = "its checks do not hold" if not row.holds else _copy_one(row, folder / row.workload)
        said.append(f"fixture {row.workload}: {why_not or 'copied'}")
        if why_not is None:
            kept.append(row)
    (folder / "README.md").write_text(_readme(kept, environment))
    return said


def _copy_one(row, to):
    run = row.runs[0]
    subprocess.run([sys.executable, "-m", "stepscope", "recover", str(run)], check=False, capture_output=True)
    parts = sorted(run.glob("rank=*/*.parquet"))
    theirs = gzip.compress(_trace_of_torch(run).read_bytes(), 9, mtime=0)
    size = sum(part.stat().st_size for part in parts)
    if not parts or not (run / "run.json").exists():
        return "the run has no part"
    if max(size, len(theirs)) > LIMIT_BYTES:
        return f"{size} bytes and {len(theirs)} bytes of torch.profiler, more than {LIMIT_BYTES}"
    for part in parts:
        place = to / "run" / part.relative_to(run)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(part, place)
    shutil.copyfile(run / "run.json", to / "run" / "run.json")
    (to / "torch.json.gz").write_bytes(theirs)
    return None


def _trace_of_torch(run):
    """The first trace of torch.profiler of the same workload, recorded in a process beside."""
    return Path(run).parents[2] / TORCH / f"{TORCH}-0" / "trace.json"


def _readme(rows, environment):
    facts = "\n".join(f"| {name} | {fact} |" for name, fact in environment.items())
    listed = "\n".join(f"| `{row.workload}` | {_counted(row)} |" for row in rows)
    return f"""# Runs of a GPU

Each folder has a run that Stepscope recorded and `torch.json.gz`, what torch.profiler recorded of the same steps in a
process beside it. Made by `python benches/gpu/check.py --fixtures FOLDER`, which copies only what all checks hold for.

| recorded on | |
|---|---|
{facts}

| workload | what both have recorded |
|---|---|
{listed}
"""


def _counted(row):
    counts = row.counts[TORCH]
    return ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
