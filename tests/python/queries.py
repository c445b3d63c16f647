"""Questions in SQL of copies of the fixtures."""

import json
import os
import subprocess
from pathlib import Path

import pytest
import runs

PROGRAM = os.environ.get("STEPSCOPE_SQL", "")
FIXTURES = Path(__file__).parents[1] / "fixtures"
CPU = FIXTURES / "gpt-cpu"
RANKS = FIXTURES / "ddp-cpu"
GPU = FIXTURES / "kineto" / "a100_alexnet_sync.json.gz"

needs_program = pytest.mark.skipif(not PROGRAM, reason="STEPSCOPE_SQL names no program: cargo xtask test builds it")


def copies(folder):
    """Copies of the fixtures, beside which tables may be kept."""
    for source in (CPU, RANKS, GPU):
        subprocess.run(["cp", "-r", source, folder], check=True)
    return {"cpu": folder / CPU.name, "ranks": folder / RANKS.name, "gpu": folder / GPU.name}


def environment(**changes):
    return runs.environment(STEPSCOPE_SQL=PROGRAM, **changes)


def sql(*words, **options):
    """What a query prints."""
    return runs.stepscope("sql", *words, env=environment(), **options).stdout


def rows(source, query, *words):
    """The rows of a query as dicts."""
    answer = json.loads(sql(source, query, "--json", "--limit", "1000000", *words))
    names = [column["name"] for column in answer["columns"]]
    assert answer["is_complete"]
    return [dict(zip(names, row, strict=True)) for row in answer["rows"]]


def fails(*words, code=1):
    """What a query that cannot be answered says."""
    told = runs.run(runs.COMMAND, "sql", *words, env=environment())
    assert told.returncode == code, told.stdout + told.stderr
    assert "panicked" not in told.stderr
    return told.stderr


def tables(source, folder):
    runs.stepscope("convert", source, "-o", f"{folder}/", "--force")
    return folder
