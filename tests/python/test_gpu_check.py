"""``benches/gpu``: what compares recordings of a GPU sees each difference that is planted, and none where none is."""

import gzip
import json
import os
import shutil
import subprocess
import sys
from argparse import Namespace
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
KINETO = CHECKOUT / "tests" / "fixtures" / "kineto"
TRACES = ("a100_alexnet_sync.json.gz", "a100_event_sync_multi_stream.json.gz")
RUNS = sorted(path.parent for path in (CHECKOUT / "tests" / "fixtures" / "gpu").glob("*/torch.json.gz"))

sys.path.insert(0, str(CHECKOUT / "benches"))
from gpu import check, checks, cost, fixtures, planted, report, runner, self_test, trace, workloads  # noqa: E402
from gpu.durations import durations  # noqa: E402
from gpu.outcome import FAILS, HOLDS, NOT_RUN, NOTHING  # noqa: E402

MS = 1_000_000


def compare(theirs, ours, expected=()):
    return {outcome.check: outcome for outcome in checks.compare(theirs, ours, expected)}


def statuses(outcomes):
    return {outcome.status for outcome in outcomes.values()}


def work(name="gemm", dur_ns=MS, start_ns=0, **arguments):
    return trace.Work(name, start_ns, dur_ns, (0, 7), arguments, trace.KERNEL)


def rounds(*durations):
    """Recordings of one kernel that takes so long, a round each."""
    return [trace.Trace(work=[work(dur_ns=dur_ns)]) for dur_ns in durations]


@pytest.mark.parametrize("name", TRACES)
def test_a_real_trace_equals_itself(name):
    read = trace.read(KINETO / name)
    found = compare(read, read)
    assert statuses(found) == {HOLDS, NOTHING}
    assert found["kernels"].status == found["occupancy"].status == found["launching ops"].status == HOLDS


@pytest.mark.parametrize("name", TRACES)
def test_a_real_trace_equals_what_stepscope_makes_of_it(name, stepscope, tmp_path):
    """Read, written again as Chrome JSON: through all that a run goes through after it was recorded."""
    stepscope("convert", KINETO / name, "-o", tmp_path / "again.json")
    found = compare(trace.read(KINETO / name), trace.read(tmp_path / "again.json"))
    assert [outcome for outcome in found.values() if not outcome.is_good] == []


@pytest.mark.parametrize("name", TRACES)
def test_every_planted_difference_is_seen(name):
    found = {difference: (expected, seen) for difference, expected, seen in self_test.planted(name)}
    assert {difference: seen for difference, (expected, seen) in found.items() if not expected <= seen} == {}
    assert len(found) > 20


def test_every_check_can_fail():
    plants = {**planted.PLANTED, **planted.PLANTED_IN_HEAD}
    assert {check for expected in plants.values() for check in expected} == set(checks.CHECKS)


def test_work_belongs_to_the_operator_around_its_launch_by_brute_force():
    """Ids are not asked here: the innermost of all operators that hold the launch, on its thread."""
    for name in TRACES:
        (read,) = trace.read(KINETO / name)
        for row in read.work:
            around = [op for op in read.ops if op.thread == row.launch.thread and op.holds(row.launch.start_ns)]
            innermost = min(around, key=lambda op: op.dur_ns, default=None)
            assert row.op == (innermost and innermost.name)
    assert any(row.op == "aten::mm" for row in read.work)


def test_a_correlation_that_is_some_operators_id_joins_nothing():
    """Older releases write the correlation where no operator is linked."""
    op = {"cat": "cpu_op", "name": "aten::add", "ts": 0, "dur": 10, "args": {"External id": 5}}
    launch = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 20, "dur": 1, "args": {"correlation": 5}}
    kernel = {"cat": "kernel", "name": "k", "ts": 30, "dur": 1, "args": {"correlation": 5, "External id": 5}}
    (read,) = trace.rounds_of({"traceEvents": [{"ph": "X", **event} for event in (op, launch, kernel)]})
    assert read.work[0].launch.name == "cudaLaunchKernel"
    assert read.work[0].op is None


def test_times_are_exact_and_each_label_is_a_round():
    def event(category, name, ts, dur):
        return {"ph": "X", "cat": category, "name": name, "ts": Decimal(ts), "dur": Decimal(dur)}

    labels = [event("user_annotation", trace.LABEL, ts, 10) for ts in ("1712867402348256.001", "1712867402348300")]
    kernels = [event("kernel", "k", f"1712867402348{ts}", "1.001") for ts in ("256.000", "256.001", "270", "305.5")]
    found = trace.rounds_of({"traceEvents": labels + kernels})
    assert [[row.start_ns % MS for row in one.work] for one in found] == [[348256001 % MS], [348305500 % MS]]
    assert found[0].work[0].dur_ns == 1001


def test_durations_may_differ_by_two_percent():
    assert compare(rounds(MS), rounds(1_019_000))["durations"].status == HOLDS
    assert compare(rounds(MS), rounds(1_021_000))["durations"].status == FAILS
    assert compare(rounds(MS), rounds(979_000))["durations"].status == FAILS


def test_durations_may_differ_by_twice_what_rounds_do():
    theirs = rounds(MS, 1_100_000, 900_000)
    assert compare(theirs, rounds(1_190_000))["durations"].status == HOLDS
    assert compare(theirs, rounds(1_210_000))["durations"].status == FAILS
    # Also when the noise is in our rounds.
    assert compare(rounds(1_190_000), theirs)["durations"].status == HOLDS
    assert compare(rounds(MS), rounds(MS, 2 * MS, 2 * MS))["durations"].status == FAILS


def test_what_is_too_noisy_is_not_compared_and_does_not_hold():
    found = compare(rounds(MS, 2 * MS, 3 * MS), rounds(2 * MS))["durations"]
    assert found.status == NOT_RUN and not found.is_good
    assert "own rounds differ by 50%" in found.says


def by_chance(random, noise, factor=1.0):
    """Rounds of 40 names, some long and some short, each off by chance; the longest takes ``factor`` times as long."""
    sizes = [MS // (1 + number) for number in range(40)]
    sizes[0] = int(sizes[0] * factor)

    def of_round():
        return [work(f"k{number}", int(size * random.gauss(1, noise))) for number, size in enumerate(sizes)]

    return [trace.Trace(work=of_round()) for _ in range(5)]


@pytest.mark.parametrize("noise", [0.001, 0.01, 0.03])
def test_profilers_that_are_alike_hold_although_rounds_differ_by_chance(noise):
    random = Random(1)
    found = [durations("d", by_chance(random, noise), by_chance(random, noise)).status for _ in range(200)]
    assert found.count(HOLDS) >= 198, found.count(HOLDS)


def test_what_takes_longer_is_seen_although_rounds_differ_by_chance():
    random = Random(1)
    seen = [durations("d", by_chance(random, 0.005), by_chance(random, 0.005, 1.05)).status for _ in range(200)]
    assert seen.count(FAILS) >= 198, seen.count(FAILS)


def test_an_occupancy_that_torch_profiler_does_not_tell_is_counted_and_not_compared():
    def kernel(percent, shared):
        arguments = {"blocks per SM": 2.5, "est. achieved occupancy %": percent, "shared memory": shared}
        return [trace.Trace(work=[work(**arguments)])]

    found = compare(kernel(0, 67584), kernel(25, 67584))["occupancy"]
    assert found.status == HOLDS and found.numbers["not_told_by_torch"] == 1
    assert compare(kernel(0, 49152), kernel(25, 49152))["occupancy"].status == FAILS
    assert compare(kernel(25, 67584), kernel(0, 67584))["occupancy"].status == FAILS


def test_waits_of_streams_on_which_nothing_ran_are_not_compared():
    def waiting(*streams):
        waits = [trace.Range("Stream Wait Event", 0, 1, (0, 7), {"device": 0, "stream": stream}) for stream in streams]
        return [trace.Trace(work=[work(device=0, stream=7)], waits=waits)]

    assert compare(waiting(7), waiting(7, 13, 13))["waits"].status == HOLDS
    assert compare(waiting(7, 7), waiting(7, 13))["waits"].status == FAILS


def test_work_that_only_one_side_has_is_no_small_difference():
    empty = [trace.Trace()]
    assert compare(rounds(MS), empty)["durations"].status == FAILS
    assert compare(empty, rounds(MS))["durations"].status == FAILS


def test_counts_are_compared_in_every_round():
    found = compare(rounds(MS), [*rounds(MS), trace.Trace(work=[work(), work()])])
    assert found["kernels"].status == FAILS
    assert found["kernels"].says == "kernels differ: gemm: torch.profiler 1, Stepscope 2"


def test_counts_are_not_compared_where_torch_profiler_differs_from_itself():
    found = compare([*rounds(MS), trace.Trace(work=[work(), work()])], rounds(MS))
    assert found["kernels"].status == NOT_RUN and not found["kernels"].is_good


def test_what_a_workload_must_have_cannot_be_missing_on_both_sides():
    empty = [trace.Trace()]
    assert statuses(compare(empty, empty)) == {NOTHING}
    found = compare(empty, empty, ["kernels", "graph nodes"])
    assert [name for name, outcome in found.items() if outcome.status == FAILS] == ["kernels", "graph nodes"]


def test_calls_that_ask_whether_something_is_done_are_as_often_as_there_is_time():
    def called(*names):
        return [trace.Trace(calls=[trace.Range(name, 0, 1, (0, 1), {}) for name in names])]

    theirs = called("cudaLaunchKernel", "cudaEventQuery", "cudaEventQuery")
    assert compare(theirs, called("cudaLaunchKernel", "cudaEventQuery"))["calls"].status == HOLDS
    assert compare(theirs, called("cudaEventQuery", "cudaEventQuery"))["calls"].status == FAILS


@pytest.mark.parametrize("folder", RUNS, ids=[folder.name for folder in RUNS])
def test_a_run_of_a_real_gpu_is_what_torch_profiler_recorded_of_the_same_steps(folder, stepscope, tmp_path):
    """But for durations: several workloads were recorded at once."""
    stepscope("convert", folder / "run", "-o", tmp_path / "trace.json")
    theirs = trace.read(folder / "torch.json.gz")
    expected = [check for check in workloads.expected(folder.name) if check not in ("durations", "memsets")]
    found = compare(theirs, trace.read(tmp_path / "trace.json"), expected)
    assert [outcome for outcome in found.values() if not outcome.is_good and outcome.check != "durations"] == []
    assert found["clock"].status == found["streams"].status == HOLDS
    named = runner.findings([folder / "run"], runner.APART)
    assert named.status == HOLDS, named.says


def test_graphs_are_told_apart_by_their_nodes_and_not_by_their_ids():
    def replayed(graph, nodes):
        return [work(**{"graph id": graph, "graph node id": node}) for node in nodes]

    theirs = [trace.Trace(work=replayed(1, [11, 12, 11, 12]) + replayed(2, [21]))]
    same = [trace.Trace(work=replayed(9, [91]) + replayed(4, [41, 42, 41, 42]))]
    other = [trace.Trace(work=replayed(9, [91, 92]) + replayed(4, [41, 42, 41]))]
    assert compare(theirs, same)["graph nodes"].status == HOLDS
    assert compare(theirs, other)["graph nodes"].status == FAILS


def test_nodes_that_torch_does_not_tell_have_to_be_as_many_as_each_launch_runs():
    def launched(name, correlation, nodes):
        launch = trace.Range(name, 0, 1, (1, 1), {"correlation": correlation})
        told = [{"graph id": 3, "graph node id": node} if node else {} for node in nodes]
        works = [work(correlation=correlation, **fields) for fields in told]
        for row in works:
            row.launch = launch
        return works

    theirs = [trace.Trace(work=launched("cudaGraphLaunch", 1, [None] * 3) + launched("cudaLaunchKernel", 2, [None]))]
    kernel = launched("cudaLaunchKernel", 8, [None])
    same = [trace.Trace(work=launched("cudaGraphLaunch", 7, [31, 32, 33]) + kernel)]
    twice = [trace.Trace(work=launched("cudaGraphLaunch", 7, [31, 32, 32]) + kernel)]
    stray = [trace.Trace(work=launched("cudaGraphLaunch", 7, [31, 32, 33]) + launched("cudaLaunchKernel", 8, [34]))]
    assert compare(theirs, same)["graph nodes"].status == HOLDS
    assert compare(theirs, twice)["graph nodes"].status == FAILS
    assert compare(theirs, stray)["graph nodes"].status == FAILS


def answer(profilers, step_ns, plain_ns=1000, after_ns=1000):
    """What a process answers: two rounds of each profiler, of which the first is slow."""
    seconds = {"first_step_ns": 5000, "start_s": 0.1, "stop_s": 0.25, "save_s": 0.5, "trace_bytes": 7}
    recordings = [
        {"profiler": name, "round": number, "step_ns": step_ns[name] + (0 if number else 9000), **seconds}
        for number in range(2)
        for name in profilers
    ]
    steps = {"step_ns_plain": plain_ns, "step_ns_before": 1000, "step_ns_after": after_ns}
    return {"recordings": recordings, **steps}


def test_costs_are_added_to_a_step_and_compared():
    costs = cost.of([answer(["torch", "stepscope"], {"torch": 1800, "stepscope": 1200})])
    assert costs["torch"]["added_step_ns"] == 800 and costs["stepscope"]["added_step_ns"] == 200
    assert costs["added_ratio"] == 0.25
    assert costs["stepscope"]["added_first_step_ns"] == 4000
    assert costs["stepscope"]["trace_s"] == 0.75
    # What is left after stop can only be told where nothing else has recorded.
    assert "left_ratio" not in costs["stepscope"]
    assert cost.missed_goals(costs) == []


def test_missed_goals_are_said():
    both = [answer(["torch"], {"torch": 1200}), answer(["stepscope"], {"stepscope": 1200}, after_ns=1500)]
    missed = cost.missed_goals(cost.of(both))
    assert len(missed) == 2 and "adds 1.00 of" in missed[0] and "after stop take 1.50" in missed[1]


def test_a_ratio_to_nothing_is_not_known():
    for step_ns in ({"torch": 900, "stepscope": 1200}, {"torch": 1200, "stepscope": 900}):
        assert "added_ratio" not in cost.of([answer(["torch", "stepscope"], step_ns)])


def row_of(name="gpt", way=runner.APART, runs=(), ours=None):
    theirs = rounds(MS)
    outcomes = checks.compare(theirs, ours or theirs)
    counts = {"torch": checks.counts(theirs), "stepscope": checks.counts(ours or theirs)}
    return runner.Row(name, way, outcomes, counts, runs=list(runs))


def test_the_table_shows_both_sides_and_what_fails():
    rows = [row_of(), row_of("graphs", ours=[trace.Trace()])]
    lines = report.table(rows).splitlines()
    assert lines[0].split()[:3] == ["workload", "way", "kernels"]
    assert "1 / 1" in lines[1] and "+0.00 %" in lines[1] and lines[1].endswith(f"{len(checks.CHECKS)} hold")
    assert "1 / 0" in lines[2] and "-100.00 %" in lines[2] and lines[2].endswith("fail")
    assert any(line.startswith("graphs (apart): kernels fails: kernels differ: gemm") for line in report.remarks(rows))


def test_all_numbers_are_written(tmp_path, capsys):
    def conclude(rows):
        options = Namespace(output=tmp_path / "numbers.json", fixtures=None)
        code = check.conclude(rows, options)
        return code, json.loads(options.output.read_text())

    code, document = conclude([row_of()])
    assert code == 0 and document["holds"] is True
    assert [found["check"] for found in document["rows"][0]["checks"]] == list(checks.CHECKS)
    code, document = conclude([row_of(), row_of(ours=[trace.Trace()])])
    assert code == 1 and document["holds"] is False
    assert conclude([])[0] == 1


def test_small_runs_become_fixtures(tmp_path):
    """A recorded run stands in for one of a GPU."""
    recorded = tmp_path / "recorded" / "stepscope" / "stepscope-0" / "run"
    theirs = tmp_path / "recorded" / "torch" / "torch-0"
    theirs.mkdir(parents=True)
    recorded.parent.mkdir(parents=True)
    (theirs / "trace.json").write_text("{}")
    subprocess.run(["cp", "-r", CHECKOUT / "tests/fixtures/gpt-cpu", recorded], check=True)
    assert fixtures.copy([row_of(runs=[recorded])], tmp_path / "too-large", {})[0].endswith("more than 200000")
    parts = sorted(recorded.glob("rank=*/*.parquet"), key=lambda part: part.stat().st_size)
    parts[-1].unlink()
    rows = [row_of(runs=[recorded]), row_of("graphs", runs=[recorded], ours=[trace.Trace()])]
    said = fixtures.copy(rows, tmp_path / "kept", {"gpu": "none", "torch": "2"})
    assert said == ["fixture gpt: copied", "fixture graphs: its checks do not hold"]
    kept = {str(path.relative_to(tmp_path / "kept")) for path in (tmp_path / "kept").rglob("*") if path.is_file()}
    assert {"README.md", "gpt/run/run.json", "gpt/torch.json.gz", f"gpt/run/rank=0/{parts[0].name}"} < kept
    assert gzip.decompress((tmp_path / "kept/gpt/torch.json.gz").read_bytes()) == b"{}"
    text = (tmp_path / "kept" / "README.md").read_text()
    assert "| `gpt` | 1 kernel |" in text and "| gpu | none |" in text and "graphs" not in text


def test_rows_are_chosen_by_name_and_way():
    assert check.wanted("gpt/turns,graphs") == [("gpt", "turns"), ("graphs", "turns"), ("graphs", "apart")]
    assert check.wanted("convnet/record") == [("convnet", "record")]
    assert len(check.wanted(None)) == 2 * len(workloads.NAMES) + 1
    for wrong in ("gtp", "gpt/beside", "gpt/turns/more"):
        with pytest.raises(ValueError, match="is no workload"):
            check.wanted(wrong)


def test_the_list_needs_no_gpu_and_no_torch(tmp_path):
    listed = run_check("--list", isolated=True)
    assert listed.returncode == 0
    assert [line.split()[0] for line in listed.stdout.splitlines()] == list(workloads.NAMES)


def test_the_self_test_needs_no_gpu_and_no_torch():
    tested = run_check("--self-test", isolated=True)
    assert tested.returncode == 0, tested.stdout
    assert "NOT SEEN" not in tested.stdout and "seen by" in tested.stdout


def test_without_a_gpu_it_says_so_and_does_not_begin(tmp_path):
    refused = run_check("--output", tmp_path / "numbers.json")
    assert refused.returncode == 2
    assert refused.stderr.startswith("gpu-check cannot begin: PyTorch sees no GPU")
    assert not (tmp_path / "numbers.json").exists()


@pytest.mark.slow
def test_the_whole_command_without_a_gpu_fails_for_want_of_kernels_alone(tmp_path):
    """Recorded in all three ways: operators are equal, and what only a GPU has is missed."""
    output = tmp_path / "numbers.json"
    chosen = "threads,threads/record,graphs/turns"
    done = run_check("--on-cpu", "--only", chosen, "--rounds", "2", "--output", output)
    assert done.returncode == 1, done.stderr
    rows = json.loads(output.read_text())["rows"]
    found = {(row["workload"], row["way"]): {of["check"]: of for of in row["checks"]} for row in rows}
    for way in ("turns", "apart", "record"):
        of_way = found["threads", way]
        assert of_way["ops"]["status"] == HOLDS and of_way["ops"]["numbers"]["torch"] > 20
        assert of_way["kernels"]["says"] == "neither has kernels, but this workload has them"
    assert found["graphs", "turns"]["recording"]["says"] == "turns: CUDA graphs need a GPU"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cc") is None, reason="the made-up GPU is built with a C compiler")
def test_the_whole_command_holds_on_a_made_up_gpu(tmp_path, stepscope):
    """Planted reports, through CUPTI's interface, the recorder and the exports, against what was planted."""
    output, kept = tmp_path / "numbers.json", tmp_path / "fixtures"
    done = run_check("--rehearse", "--rounds", "2", "--output", output, "--fixtures", kept)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(output.read_text())["rows"]
    assert [row["way"] for row in rows] == list(runner.WAYS)
    for row in rows:
        assert {check["check"] for check in row["checks"] if check["status"] == NOTHING} == {"collectives"}
        # Three steps, of each two kernels of operators and two of a graph.
        assert row["counts"]["stepscope"] == row["counts"]["torch"] == {"kernel": 12, "gpu_memcpy": 3, "gpu_memset": 3}
    # What is kept can be read again.
    stepscope("convert", kept / "rehearsal" / "run", "-o", tmp_path / "kept.json")
    again = compare(trace.read(kept / "rehearsal" / "torch.json.gz"), trace.read(tmp_path / "kept.json"))
    assert [outcome for outcome in again.values() if not outcome.is_good] == []


def run_check(*arguments, isolated=False):
    """Runs ``check.py`` with no GPU in sight; isolated: with no installed packages, either."""
    flags = ["-I", "-S"] if isolated else []
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *flags, CHECKOUT / "benches/gpu/check.py", *arguments]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=600, env=environment)
