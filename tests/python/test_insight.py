"""The bench of faults in small, on seeds that no rule was written on: what is simulated, and jobs whose fault no busy
machine hides."""

import json
import re
import sys
from pathlib import Path

import pytest
import runs
from insight.job import simulated
from insight.planted import all_planted

CHECKOUT = Path(__file__).resolve().parents[2]
BENCHES = CHECKOUT / "benches"
JOBS = all_planted()
SIMULATED = [name for name, job in JOBS.items() if job.is_simulated]
REAL = ["gc_every_step", "tiny_operators", "optimizer_for_loop", "sleep_in_step", "python_loop", "no_workers"]
REAL += ["checkpoint_every_step", "collections_and_python"]
# On a busy machine these are true as well, and may weigh more; tests have one thread.
OF_THE_MACHINE = ("host.cpu_contention", "host.cpu_steal", "host.cpu_quota", "host.few_threads", "step.tail")


def test_the_answers_that_jobs_declare_are_rules_that_there_are():
    documented = re.findall(r"^\| `([a-z_.0-9]+)` \|", (CHECKOUT / "docs" / "metrics.md").read_text(), re.MULTILINE)
    declared = {code for job in JOBS.values() for code in (*job.classes, *(job.second[0] if job.second else ()))}
    assert len(declared) > 50 and declared <= set(documented), declared - set(documented)


def advice(run):
    return runs.analyze("advice", run)["results"]


@pytest.mark.parametrize("seed", [101, 102])
@pytest.mark.parametrize("name", SIMULATED)
def test_a_fault_of_a_simulated_device_is_named_first(tmp_path, name, seed):
    """With its rule and its place; and a healthy job is told nothing of weight."""
    job, trace = JOBS[name], tmp_path / "trace.json"
    faulty, fixed = simulated(job, seed), simulated(job, seed, fixed=True)
    faulty.save(trace)
    rows = advice(trace)
    if job.kind == "controls":
        assert [row["rule"] for row in rows if row["priority"] != "low"] == []
        return
    assert sum(fixed.steps) < 0.96 * sum(faulty.steps) or job.second, "a fault that costs nothing"
    found, _ = job.found(rows)
    assert found is not None, rows
    assert found <= (2 if job.second else 1), rows


ON_A_GPU = {
    "gpu_cache_emptied": ("memory.device_allocations", "cudaMalloc"),
    "gpu_double_precision": ("compute.double_precision", "aten::addmm"),
    "gpu_float32_products": ("compute.tensor_cores", "aten::mm"),
    "gpu_odd_sizes": ("compute.gemm_shapes", "aten::mm"),
    "gpu_pageable_batches": ("copy.pageable", "12 copies"),
}


@pytest.mark.parametrize("name", ON_A_GPU)
def test_a_fault_that_a_real_gpu_had_is_named_first(name):
    """And what only looks like a fault is not: the first second, in which CUDA is set up; the thread of backward passes,
    for which the loop waits; the host, which runs ahead until the device's queue is full."""
    rows = advice(CHECKOUT / "tests" / "fixtures" / "gpu" / "faults" / f"{name}.json.gz")
    rule, told = ON_A_GPU[name]
    assert rows[0]["rule"] == rule and told in rows[0]["says"], rows[0]
    assert {"host.long_pauses", "host.lock_wait", "step.slower"}.isdisjoint(row["rule"] for row in rows), rows


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_a_fault_of_a_real_job_gains_most(tmp_path, name):
    """Its row has the right rule and place; of two faults, both do. Waiting for a processor may own a part of its time on a
    busy machine."""
    command = runs.forked(BENCHES / "insight" / "job.py", name, "--seed", 101, "--steps", 90)
    runs.record(tmp_path / "run", command, cwd=tmp_path)
    rows = [row for row in advice(tmp_path / "run") if row["rule"] not in OF_THE_MACHINE]
    rows.sort(key=lambda row: -(row["gain_ratio"] or 0))
    found, _ = JOBS[name].found(rows)
    assert found == (2 if JOBS[name].second else 1), json.dumps(rows, indent=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["slow_loader_on_a_rank", "skipped_collective"])
def test_a_fault_of_one_rank_is_named_first_with_the_rank(tmp_path, name):
    """In the product's own order, without what a busy machine adds."""
    job = JOBS[name]
    command = [sys.executable, BENCHES / "insight" / "job.py", name, "--seed", 101, "--steps", job.steps]
    command += ["--ranks", job.ranks]
    runs.record(tmp_path / "run", command, cwd=tmp_path, code=1 if job.fails else 0)
    rows = [row for row in advice(tmp_path / "run") if row["rule"] not in OF_THE_MACHINE]
    found, _ = job.found(rows)
    assert found == 1, json.dumps(rows, indent=1)
