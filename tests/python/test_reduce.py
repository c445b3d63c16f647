"""``stepscope.reduce``: ranks that the workers of an executor read give the same run as one process that reads them."""

import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path

import pytest
import reduce_workers
import runs
import stepscope as package

RECORDED = Path(__file__).parents[1] / "fixtures" / "ddp-cpu"


def write_rank(folder, rank, start_us=1_000_000, ranks=4, steps=3, note=""):
    """The trace of a rank, whose clock is off: steps of operators, kernels and a collective that all ranks end with."""
    events, clock_us = [], start_us + 137 * rank

    def add(kind, name, thread, at_us, dur_us, **arguments):
        event = {
            "ph": "X",
            "cat": kind,
            "name": name,
            "pid": rank,
            "tid": thread,
            "ts": clock_us + at_us,
            "dur": dur_us,
        }
        events.append({**event, "args": {**arguments, "note": note}} if note else {**event, "args": arguments})

    for step in range(steps):
        at_us, late_us, launch = 1_000 * step, 20 * rank, 10 * step
        add("user_annotation", f"ProfilerStep#{step}", 1, at_us, 1_000)
        add("cpu_op", "aten::mm", 1, at_us + 10, 60, **{"External id": step})
        add("cuda_runtime", "cudaLaunchKernel", 1, at_us + 20, 10, correlation=launch)
        add("kernel", "gemm", 7, at_us + 50, 300 + late_us, device=0, stream=7, correlation=launch)
        add("cuda_runtime", "cudaLaunchKernel", 1, at_us + 80, 10, correlation=launch + 1)
        collective = {
            "Collective name": "allreduce",
            "Process Group Name": "0",
            "Process Group Description": "default_pg",
            "Group size": ranks,
            "Process Group Ranks": str([*range(ranks)]),
            "dtype": "Float",
            "In msg nelems": 100,
            "Out msg nelems": 100,
            "Seq": step,
        }
        name, begin_us = "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 360 + late_us
        about = {"device": 0, "stream": 9, "correlation": launch + 1, **collective}
        add("kernel", name, 9, at_us + begin_us, 600 - begin_us, **about)
    info = {"backend": "nccl", "rank": rank, "world_size": ranks}
    path = folder / f"rank{rank}.json"
    path.write_text(json.dumps({"distributedInfo": info, "baseTimeNanoseconds": 0, "traceEvents": events}))
    return path


@pytest.fixture
def folder(tmp_path):
    """A folder with the traces of four ranks."""
    ranks = tmp_path / "ranks"
    ranks.mkdir()
    for rank in range(4):
        write_rank(ranks, rank)
    return ranks


def results(run):
    """All results of a run as JSON, and some of parts of it."""
    found = {name: run.analyze(name).to_json() for name in package._run._engine.analyses()}
    last = run.operators()["run"]["ranks"][-1]
    of_rank, of_window = run.operators(rank=last), run.kernels(start_ns=0, end_ns=1_000_000)
    return {**found, "of a rank": of_rank.to_json(), "of a window": of_window.to_json()}


def check(paths, executor, **options):
    """Compares a run that workers have read with one that this process has."""
    expected = results(package.reduce(paths, **options))
    if not isinstance(paths, list):
        assert expected == results(package.open(paths, **options))
    assert results(package.reduce(paths, executor, **options)) == expected
    return expected


def spawned(workers=2, **options):
    return ProcessPoolExecutor(workers, get_context("spawn"), **options)


@pytest.fixture(scope="module")
def processes():
    with spawned() as executor:
        yield executor


@pytest.fixture(scope="module")
def cluster():
    """Dask with two processes, as a cluster has them on many machines."""
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


def recorded(tmp_path):
    """A copy of a recorded run of two ranks."""
    return Path(shutil.copytree(RECORDED, tmp_path / "run"))


def test_without_an_executor_it_is_open(folder):
    run = package.reduce(folder)
    assert results(run) == results(package.open(folder))
    several = package.reduce([folder / "rank1.json", folder / "rank0.json"])
    assert several.operators()["run"]["ranks"] == [0, 1]
    assert repr(several).startswith("stepscope.reduce([")
    with pytest.raises(FileNotFoundError, match="gone"):
        package.reduce([folder, folder / "gone"])


def test_threads(folder, tmp_path):
    with ThreadPoolExecutor(2) as executor:
        expected = check(folder, executor)
        assert json.loads(expected["stragglers"])["results"], "the ranks are compared"
        check(recorded(tmp_path), executor)
        check([folder / f"rank{rank}.json" for rank in (2, 0, 1)], executor)
        # One file has nothing to be divided.
        check(folder / "rank0.json", executor)


def test_processes(folder, tmp_path, processes):
    check(folder, processes)
    check(recorded(tmp_path), processes)
    check(folder, processes, align="none", offsets={1: 2_000}, memory=1 << 30)


def test_a_run_that_was_just_recorded(tmp_path, processes):
    run = tmp_path / "run"
    of_rank = 'RANK=$1 WORLD_SIZE=2; export RANK WORLD_SIZE; shift; exec "$@"'
    program = runs.script("import torch\nfor _ in range(20): torch.ones(64, 64) @ torch.ones(64, 64)")
    words = [str(word) for word in program]
    both = 'sh -c "$0" sh 0 "$@" & first=$!; sh -c "$0" sh 1 "$@" && wait $first'
    runs.record(run, ["sh", "-c", both, of_rank, *words])
    expected = check(run, processes)
    assert json.loads(expected["operators"])["run"]["ranks"] == [0, 1]


def test_dask(folder, tmp_path, cluster):
    executor = cluster.get_executor()
    check(folder, executor)
    check(recorded(tmp_path), executor)
    # Its client has the same interface.
    check(folder, cluster)


def test_a_worker_of_dask_that_is_killed_is_replaced(folder, tmp_path, cluster):
    killed = functools.partial(reduce_workers.killed, "rank2.json", str(tmp_path / "killed"))
    check(folder, reduce_workers.Through(cluster.get_executor(), killed))
    assert (tmp_path / "killed").exists()


def test_mpi(folder):
    pytest.importorskip("mpi4py")
    mpiexec = Path(sys.executable).with_name("mpiexec")
    if not mpiexec.exists() or subprocess.run([mpiexec, "-n", "1", "true"]).returncode:
        pytest.skip("there is no mpiexec")
    program = [sys.executable, "-m", "mpi4py.futures", runs.PROGRAMS / "reduce.py", "mpi", folder]
    told = runs.execute(mpiexec, "-n", 3, *program).stdout
    expected = results(package.open(folder))
    assert json.loads(told) == {name: expected[name] for name in package._run._engine.analyses()}


def test_programs_that_are_submitted(folder):
    """Their futures have no more than a result, and can be cancelled."""
    check(folder, reduce_workers.Programs())


def test_a_store(folder, tmp_path):
    pytest.importorskip("boto3")
    import stores

    with stores.s3() as (address, client):
        stores.upload(client, folder, "ranks")
        env = runs.environment(
            **stores.CREDENTIALS,
            AWS_ENDPOINT_URL=address,
            AWS_EC2_METADATA_DISABLED="true",
            XDG_CACHE_HOME=tmp_path,
        )
        told = runs.execute(sys.executable, runs.PROGRAMS / "reduce.py", "spawn", "s3://runs/ranks", env=env).stdout
    found = {name: json.loads(text) for name, text in json.loads(told).items()}
    run = package.open(folder)
    assert {name: result["results"] for name, result in found.items()} == {
        name: run.analyze(name)["results"] for name in found
    }


def test_files_of_two_days_are_joined_when_asked(tmp_path, processes):
    for rank in range(2):
        write_rank(tmp_path, rank, start_us=1_000_000 + rank * 86_400_000_000, ranks=2)
    apart = check(tmp_path, processes)
    joined = check(tmp_path, processes, join=True)
    ranks = [json.loads(found["operators"])["run"]["ranks"] for found in (apart, joined)]
    assert ranks == [[1], [0, 1]]


def test_ranks_are_found_in_names_as_asked(tmp_path, processes):
    for rank in range(2):
        path = write_rank(tmp_path, 0, ranks=2).rename(tmp_path / f"worker{rank + 5}.json")
        path.write_text(path.read_text().replace("distributedInfo", "ignored"))
    expected = check(tmp_path, processes, rank_from=r"worker(\d)")
    assert json.loads(expected["operators"])["run"]["ranks"] == [5, 6]


def test_a_broken_file_is_told_as_by_open(folder, processes):
    (folder / "rank2.json").write_text('{"traceEvents": 3')
    expected = check(folder, processes)
    [left_out] = [row for row in json.loads(expected["operators"])["findings"] if row["code"] == "import.file_left_out"]
    assert "rank2.json" in json.dumps(left_out)
    for rank in (0, 1, 3):
        (folder / f"rank{rank}.json").write_text("")
    said = []
    for executor in (None, processes):
        with pytest.raises(ValueError) as error:
            package.reduce(folder, executor)
        said.append(str(error.value))
    assert said[0] == said[1] and "rank0.json" in said[0]


def test_relative_paths_are_those_of_this_process(folder, tmp_path, monkeypatch):
    (folder / "rank2.json").write_text("{}")
    shutil.copytree(RECORDED, tmp_path / "run")
    (tmp_path / "run" / "run.json").unlink()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with spawned(initializer=os.chdir, initargs=(tmp_path / "elsewhere",)) as executor:
        for path, named in [("ranks", "ranks/rank2.json"), ("./run", "./run/run.json")]:
            expected = check(path, executor)
            assert f'"{path}"' in expected["operators"] or path == "ranks"
            assert named in expected["operators"] and str(tmp_path) not in expected["operators"]


def test_what_workers_made_is_kept_by_this_process_and_made_once(tmp_path, processes):
    for rank in range(2):
        write_rank(tmp_path, rank, ranks=2, steps=2_000, note="x" * 1_400)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) > 32 << 20
    through = reduce_workers.Through(processes, reduce_workers.killed)
    through.wrap = functools.partial(reduce_workers.killed, "nothing is called so", None)
    run = package.reduce(tmp_path, through)
    assert len(through.futures) == 2
    kept = {path.name: path.read_bytes() for path in (tmp_path / ".stepscope").iterdir()}
    assert sorted(kept) == ["rank0.json.parquet", "rank1.json.parquet"]
    found = results(run)
    assert results(package.reduce(tmp_path, through)) == results(package.open(tmp_path)) == found
    assert len(through.futures) == 2, "what is kept is no task"
    shutil.rmtree(tmp_path / ".stepscope")
    assert results(package.open(tmp_path)) == found
    assert {path.name: path.read_bytes() for path in (tmp_path / ".stepscope").iterdir()} == kept


def test_a_process_that_is_killed_is_an_error_that_names_its_file(folder):
    killed = functools.partial(reduce_workers.killed, "rank2.json", None)
    with spawned(workers=1) as executor:
        with pytest.raises(RuntimeError, match=r"no summary came .*BrokenProcessPool.*rank2\.json\nhint") as error:
            package.reduce(folder, reduce_workers.Through(executor, killed))
    assert isinstance(error.value.__cause__, BrokenProcessPool)


def test_an_executor_that_takes_no_tasks_is_an_error(folder):
    with ThreadPoolExecutor(1) as executor:
        pass
    with pytest.raises(RuntimeError, match=r"RuntimeError: cannot schedule .*rank0\.json\nhint"):
        package.reduce(folder, executor)


def test_a_worker_without_stepscope_is_an_error(folder):
    executor = reduce_workers.Programs("-S")
    with pytest.raises(RuntimeError, match=r"a worker cannot load stepscope .*rank0\.json\nhint: install") as error:
        package.reduce(folder, executor)
    assert isinstance(error.value.__cause__, ModuleNotFoundError)
    assert len(executor.cancelled) == 3, "those that nobody waits for"


def test_another_stepscope_is_an_error(folder):
    def other(function, program, task):
        return function(program ^ 1, task)

    with pytest.raises(RuntimeError, match=r"runs another stepscope .*rank0\.json\nhint: install the same"):
        package.reduce(folder, reduce_workers.AtOnce(other))


def test_a_file_that_changes_or_is_not_there_for_a_worker_is_an_error(folder):
    file, hidden = folder / "rank1.json", folder / "hidden"

    def changed(function, program, task):
        file.write_text(file.read_text() + " ")
        return function(program, task)

    with pytest.raises(RuntimeError, match=r"sees another file .*rank1\.json\nhint: each worker needs the same"):
        package.reduce(folder, reduce_workers.AtOnce(changed))

    def not_there(function, program, task):
        file.rename(hidden)
        try:
            return function(program, task)
        finally:
            hidden.rename(file)

    said = r"cannot read what this process can: No such file or directory: .*rank1\.json\nhint: each worker needs"
    with pytest.raises(RuntimeError, match=said):
        package.reduce(folder, reduce_workers.AtOnce(not_there))
    # The files are as they were.
    check(folder, reduce_workers.AtOnce(lambda function, *task: function(*task)))


def test_an_interrupt_cancels_what_has_not_begun(folder):
    begun, may_end = threading.Event(), threading.Event()
    waiting = threading.get_ident()

    def held_up(function, *task):
        begun.set()
        assert may_end.wait(600)
        return function(*task)

    def interrupt():
        assert begun.wait(600)
        while sys._current_frames()[waiting].f_code.co_name != "_as_they_end":
            pass
        signal.pthread_kill(waiting, signal.SIGINT)

    with ThreadPoolExecutor(1) as executor:
        through = reduce_workers.Through(executor, held_up)
        interrupting = threading.Thread(target=interrupt)
        # What starts the tests may have them ignore it.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        interrupting.start()
        try:
            with pytest.raises(KeyboardInterrupt):
                package.reduce(folder, through)
        finally:
            signal.signal(signal.SIGINT, before)
            may_end.set()
            interrupting.join()
    assert [future.cancelled() for future in through.futures] == [False, True, True, True]
    check(folder, None)


def test_a_process_that_still_records_is_read_here(tmp_path):
    """What is written meanwhile has no sum: no worker is asked for it."""
    run, ready, end = tmp_path / "run", tmp_path / "ready", tmp_path / "end"
    program = "import os, sys, time, torch\ntorch.ones(2)\nopen(sys.argv[1], 'w').close()\n"
    program += "while not os.path.exists(sys.argv[2]): time.sleep(0.01)"
    command = [runs.COMMAND, "record", "-o", run, "--", *runs.script(program, ready, end)]
    with runs.started(*command, env=runs.environment(RANK=1, WORLD_SIZE=2)) as process:
        while not ready.exists():
            assert process.poll() is None
        shutil.copytree(RECORDED / "rank=0", run / "rank=0")
        through = reduce_workers.AtOnce(lambda function, *task: function(*task))
        live = package.reduce(run, through)
        assert live.operators()["run"]["ranks"] == [0, 1] and len(through.futures) == 1
        end.touch()
        assert process.wait() == 0


@pytest.mark.skipif("STEPSCOPE_SQL" not in os.environ, reason="cargo xtask test builds the program")
def test_several_paths_are_one_run_in_sql(folder, processes):
    run = package.reduce([folder / "rank0.json", folder / "rank3.json"], processes)
    counts = run.sql("SELECT rank, count(*) AS n FROM slice GROUP BY rank ORDER BY rank").to_dicts()
    assert [row["rank"] for row in counts] == [0, 3] and counts[0]["n"] == counts[1]["n"] > 0


def test_several_paths_are_not_shown_as_pages(folder, processes):
    run = package.reduce([folder / "rank0.json", folder / "rank3.json"], processes)
    with pytest.raises(ValueError, match="one folder"):
        run.view()


def test_importing_what_workers_run_loads_nothing_else(python):
    program = "import sys, stepscope._reduce; print(sorted(set(sys.modules) & {'stepscope._engine', 'torch', 'numpy'}))"
    assert python("-c", program).stdout == "[]\n"
