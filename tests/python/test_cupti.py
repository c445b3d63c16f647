"""CUDA devices through CUPTI: what a CUPTI of our own reports, as it stands in the run."""

import json
import os
import signal
import subprocess

import fake_gpu
import pytest
import runs

# What every program below begins with: ``gpu`` is the fake GPU, ``plant(n)`` has it report so many kernels.
PRELUDE = """
import json, os, sys, threading, time
from pathlib import Path
import fake_gpu
from fake_gpu import Gpu
from stepscope import _recorder
gpu = Gpu(sys.argv[1], os.environ["FAKE_CUDA"])
gpu.use(0)
run = Path(sys.argv[2])
run.mkdir(exist_ok=True)
def plant(count, first=1, name="k", **values):
    now = time.monotonic_ns()
    return [gpu.put(fake_gpu.KERNEL, start=now + 100 * n, end=now + 100 * n + 50, stream=7, context=1,
                    correlation=first + n, name=name, **values) for n in range(count)]
def refused(**options):
    try:
        fake_gpu.start(**options)
    except RuntimeError as why:
        return str(why)
"""


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    try:
        return fake_gpu.build(tmp_path_factory.mktemp("fake_gpu"))
    except (OSError, subprocess.CalledProcessError) as why:
        pytest.skip(f"no C compiler: {why}")


def execute(libraries, run, text, cuda="13.0", **options):
    """Run a few lines after the prelude; gives what they print as JSON."""
    environment = {**fake_gpu.environment(libraries, cuda), **options.pop("variables", {})}
    result = runs.execute(*runs.script(PRELUDE + text, libraries, run), env=runs.environment(**environment), **options)
    return json.loads(result.stdout or "null")


def kernels(run):
    return [row for row in runs.rows(run) if row["kind"] == "kernel"]


def lost(run):
    return sum(row["value"] for row in runs.rows(run) if row["kind"] == "device_lost")


@pytest.fixture(scope="module", params=list(fake_gpu.CUDAS))
def recorded(request, libraries, tmp_path_factory):
    """The run of ``programs/gpu.py`` with the CUPTI of each CUDA: (CUDA, run, what the program says, rows)."""
    run = tmp_path_factory.mktemp("gpu") / "run"
    environment = runs.environment(**fake_gpu.environment(libraries, request.param))
    result = runs.record(run, runs.program("gpu.py", libraries), env=environment)
    return request.param, run, json.loads(result.stdout), runs.rows(run)


def test_what_ran_is_recorded_to_the_nanosecond(recorded):
    _, _, said, rows = recorded
    work = {row["correlation"]: row for row in rows if row["kind"] in ("kernel", "memcpy", "memset")}
    assert len(work) == len(said["planted"]) == 12
    names = {fake_gpu.MEMCPY: "memcpy", fake_gpu.MEMSET: "memset", "_Z6vecAddPKfS0_Pfi": None}
    offsets = set()
    for planted in said["planted"]:
        row = work[planted["correlation"]]
        name = "vecAdd(float const*, float const*, float*, int)" if planted["name"] == "_Z6vecAddPKfS0_Pfi" else None
        assert row["name"] == (name or planted["name"] or names[planted["kind"]])
        assert row["stream"] == planted["stream"] and row["device_index"] == 0 and row["device_type"] == 1
        # Straight lines between moments are rounded at both ends.
        assert abs(row["dur_ns"] - (planted["end"] - planted["start"])) <= 1
        offsets.add(row["start_ns"] - planted["start"])
    # One clock for all: the run has unix times, the program planted monotonic ones.
    assert max(offsets) - min(offsets) <= 2


def test_details_of_kernels_copies_and_fills_are_recorded(recorded):
    _, _, _, rows = recorded
    details = {(row["kind"], row["stream"]): json.loads(row["device"]) for row in rows if row["stream"] is not None}
    assert details["kernel", 7] == {
        "context": 1, "grid": [8, 2, 1], "block": [128, 1, 1], "registers": 40, "static_shared_bytes": 1024,
        "dynamic_shared_bytes": 2048,
    }
    assert details["memcpy", 7] == {
        "context": 1, "direction": "HtoD", "source": "Pageable", "destination": "Device",
    }
    assert details["memset", 7] == {"context": 1, "memory": "Device"}


def test_calls_lie_where_they_were_made(recorded):
    _, _, said, rows = recorded
    calls = [row for row in rows if row["kind"] == "runtime_call"]
    on_threads = [row for row in rows if row["kind"] in ("op", "label", "runtime_call")]
    labels = {id(row): parent["name"] for parent, row in runs.with_parents(on_threads) if parent is not None}
    # cudaGetDevice and calls of the driver that only ask are left out.
    found = [(labels.get(id(row)), row["name"]) for row in sorted(calls, key=lambda row: row["correlation"])]
    assert found == 3 * [
        ("load", "cudaMemcpyAsync"), ("gemm", "cudaLaunchKernel"), ("other", "cudaLaunchKernel"),
        (None, "cudaMemsetAsync"), (None, "cudaEventRecord"), (None, "cudaStreamSynchronize"),
    ]
    assert {row["dur_ns"] for row in calls} <= {2_999, 3_000, 3_001}


def test_waits_events_overhead_and_ranges_are_recorded(recorded):
    cuda, _, said, rows = recorded
    by_kind = {}
    for row in rows:
        by_kind.setdefault(row["kind"], []).append(row)
    assert [row["name"] for row in by_kind["synchronization"]] == 3 * ["Stream Sync"]
    # Which of an event's recordings it is, CUPTI says since CUDA 12.8.
    sync = {} if cuda in ("11.8", "12.4") else {"event_sync": 12}
    assert [json.loads(row["device"]) for row in by_kind["event_record"]] == 3 * [{"context": 1, "event": 3, **sync}]
    assert [row["name"] for row in by_kind["overhead"]] == 3 * ["Lazy Function Loading"]
    (marked,) = by_kind["device_range"]
    assert (marked["name"], marked["tid"]) == ("marked", by_kind["runtime_call"][0]["tid"])
    assert 499 <= marked["dur_ns"] <= 501


def test_what_cupti_threw_away_is_counted(recorded):
    _, run, _, rows = recorded
    assert [row["value"] for row in rows if row["kind"] == "device_lost"] == [5]
    assert runs.findings(run)["capture.device_reports_lost"]["count"] == 5


def test_every_cuda_is_listened_to_as_it_wants_to_be(recorded):
    cuda, _, said, _ = recorded
    is_many = cuda in ("13.3", "13.5")
    assert said["found"]["interface"] == ("v2, beside others" if is_many else "v1")
    assert said["found"]["remarks"] == ["no ranges of NVTX: NVTX_INJECTION64_PATH does not name CUPTI's library"]
    # Nothing stays on, the two interfaces are not mixed, and the recorder never initialised CUDA.
    assert (said["mixed"], said["subscribers"], said["enabled"], said["out"], said["init"]) == (0, 0, [], 0, 0)


def test_the_device_and_its_counters_are_in_the_run(recorded):
    _, run, _, rows = recorded
    (device,) = json.loads(runs.metadata(runs.parts(run)[0])["facts"]["devices"])
    assert device == {
        "type": "cuda", "index": 0, "name": "Fake GPU 0", "memory_bytes": 80000000100, "sm_count": 132,
        "compute_capability_major": 9, "compute_capability_minor": 0, "max_threads_per_sm": 2048, "warp_size": 32,
        "registers_per_sm": 65536, "shared_bytes_per_sm": 233472, "driver_version": "13.1", "runtime_version": "13.0",
    }
    counters = {row["name"]: row["value"] for row in rows if row["kind"] == "counter" and row["name"].startswith("GPU")}
    assert counters == {
        "GPU 0 utilization (%)": 40, "GPU 0 memory used (bytes)": 1 << 30, "GPU 0 SM clock (MHz)": 1980,
        "GPU 0 memory clock (MHz)": 2619, "GPU 0 power (mW)": 350000,
    }


def test_graphs_are_nodes_or_one_piece(libraries, tmp_path):
    text = """
_recorder.open(run, {})
for has_nodes in (True, False):
    fake_gpu.start(graph_nodes=has_nodes)
    now = time.monotonic_ns()
    print_ = gpu.put(fake_gpu.GRAPH, start=now, end=now + 900, graph=5, context=1, stream=7, correlation=3)
    assert print_ == (0 if has_nodes else 1)
    if has_nodes:
        plant(2, graph=5, graph_node=0x700000001)
    fake_gpu.stop()
_recorder.close()
"""
    execute(libraries, tmp_path / "run", text)
    found = [(row["kind"], json.loads(row["device"])) for row in runs.rows(tmp_path / "run") if row["device"]]
    assert [device["graph_node"] for kind, device in found if kind == "kernel"] == 2 * [0x700000001]
    assert [device for kind, device in found if kind == "graph"] == [{"context": 1, "graph": 5}]


def test_copies_between_devices_name_both(libraries, tmp_path):
    text = """
_recorder.open(run, {})
fake_gpu.start()
now = time.monotonic_ns()
gpu.put(fake_gpu.MEMCPY2, start=now, end=now + 900, direction=10, source=3, destination=3, from_device=0, to_device=1,
        bytes=512, device=1, context=1, stream=7, correlation=3)
fake_gpu.stop()
_recorder.close()
"""
    execute(libraries, tmp_path / "run", text)
    (row,) = [row for row in runs.rows(tmp_path / "run") if row["kind"] == "memcpy"]
    assert (row["device_index"], row["bytes"], json.loads(row["device"])["devices"]) == (1, 512, [0, 1])


def test_a_killed_process_keeps_what_was_flushed(libraries, tmp_path):
    text = """
_recorder.open(run, {})
fake_gpu.start()
plant(100)
_recorder.device_flush()
plant(50, first=1000)
os.kill(os.getpid(), 9)
"""
    environment = runs.environment(**fake_gpu.environment(libraries))
    result = runs.run(*runs.script(PRELUDE + text, libraries, tmp_path / "run"), env=environment)
    assert result.returncode == -signal.SIGKILL
    assert sorted(row["correlation"] for row in kernels(tmp_path / "run")) == list(range(1, 101))


def test_reports_arrive_once_a_second_without_being_asked_for(libraries, tmp_path):
    text = """
_recorder.open(run, {})
fake_gpu.start(flush_period_ms=20)
plant(100)
calls = gpu.cupti.fake_calls(b"cuptiActivityFlushAll")
while gpu.cupti.fake_calls(b"cuptiActivityFlushAll") < calls + 3:
    time.sleep(0.01)
os.kill(os.getpid(), 9)
"""
    environment = runs.environment(**fake_gpu.environment(libraries))
    runs.run(*runs.script(PRELUDE + text, libraries, tmp_path / "run"), env=environment)
    assert len(kernels(tmp_path / "run")) == 100


@pytest.mark.parametrize("cuda", ["13.0", "13.5"])
def test_fifty_sessions_leave_nothing_behind(libraries, tmp_path, cuda):
    text = """
_recorder.open(run, {})
def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
memory, threads = [], []
for session in range(50):
    fake_gpu.start()
    assert plant(20, first=1000 * session) == [1] * 20
    fake_gpu.stop()
    assert plant(1) == [0]
    memory.append(resident())
    threads.append(len(os.listdir("/proc/self/task")))
_recorder.close()
print(json.dumps([memory[-1] - memory[9], max(threads) - threads[0], gpu.cupti.fake_subscribers(),
                  gpu.cupti.fake_mixed(), gpu.cupti.fake_buffers_out()]))
"""
    grown, threads, *rest = execute(libraries, tmp_path / "run", text, cuda)
    expected = [1000 * session + n for session in range(50) for n in range(20)]
    assert sorted(row["correlation"] for row in kernels(tmp_path / "run")) == expected
    # A buffer is 4 MiB: not one may stay.
    assert grown < 2 << 20
    assert threads <= 1 and rest == [0, 0, 0]


def test_what_finds_no_buffer_is_counted(libraries, tmp_path):
    text = """
_recorder.open(run, {})
fake_gpu.start(buffer_limit_bytes=0)
results = plant(150_000)
fake_gpu.stop()
_recorder.close()
print(json.dumps([results.count(1), results.count(-1)]))
"""
    reported, dropped = execute(libraries, tmp_path / "run", text)
    assert reported + dropped == 150_000
    assert (len(kernels(tmp_path / "run")), lost(tmp_path / "run")) == (reported, dropped)


def test_threads_report_side_by_side(libraries, tmp_path):
    text = """
_recorder.open(run, {})
fake_gpu.start(flush_period_ms=5)
threads = [threading.Thread(target=plant, args=(3000, 10_000 * n)) for n in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
fake_gpu.stop()
_recorder.close()
"""
    execute(libraries, tmp_path / "run", text)
    found = sorted(row["correlation"] for row in kernels(tmp_path / "run"))
    assert len(found) + lost(tmp_path / "run") == 12_000 and found == [10_000 * n + m for n in range(4) for m in range(3000)]


def test_work_that_has_not_ended_is_counted(libraries, tmp_path):
    text = """
_recorder.open(run, {})
fake_gpu.start()
plant(3)
gpu.put(fake_gpu.KERNEL, start=time.monotonic_ns(), end=0, name="runs")
fake_gpu.stop()
_recorder.close()
"""
    execute(libraries, tmp_path / "run", text)
    assert (len(kernels(tmp_path / "run")), lost(tmp_path / "run")) == (3, 1)


def test_a_buffer_that_comes_back_late_does_no_harm(libraries, tmp_path):
    text = """
_recorder.open(run, {})
fake_gpu.start()
plant(7)
gpu.cupti.fake_hold(1)
fake_gpu.stop()
gpu.cupti.fake_hold(0)
gpu.cupti.fake_complete()
assert gpu.cupti.fake_buffers_out() == 0
fake_gpu.start()
plant(2, first=100)
fake_gpu.stop()
_recorder.close()
"""
    execute(libraries, tmp_path / "run", text)
    assert [row["correlation"] for row in kernels(tmp_path / "run")] == [100, 101]
    assert lost(tmp_path / "run") == 7


def test_a_child_does_not_use_what_its_parent_set_up(libraries, tmp_path):
    text = """
_recorder.open(run, {})
fake_gpu.start()
plant(5)
child = os.fork()
if child == 0:
    why = refused()
    fake_gpu.stop()
    _recorder.device_flush()
    # The parent's callbacks are there, and give the child nothing.
    results = plant(3, first=500)
    os._exit(0 if "forked" in why and fake_gpu.__name__ and set(results) <= {1, -1} else 1)
assert os.waitpid(child, 0)[1] == 0
plant(5, first=100)
fake_gpu.stop()
_recorder.close()
"""
    execute(libraries, tmp_path / "run", text)
    assert sorted(row["correlation"] for row in kernels(tmp_path / "run")) == [1, 2, 3, 4, 5, 100, 101, 102, 103, 104]


def test_a_flush_that_hangs_is_not_waited_for(libraries, tmp_path):
    text = """
_recorder.open(run, {})
fake_gpu.start()
plant(5)
_recorder.device_flush()
gpu.cupti.fake_slow_flush(25_000)
begin = time.monotonic()
fake_gpu.stop()
took = time.monotonic() - begin
why = refused()
_recorder.close()
print(json.dumps([took, why]))
os._exit(0)
"""
    took, why = execute(libraries, tmp_path / "run", text)
    assert took < 20 and why == "the devices' profiler hangs"
    assert len(kernels(tmp_path / "run")) == 5


FAILING = ["cuptiGetVersion", "cuptiSubscribe", "cuptiSetThreadIdType", "cuptiActivityRegisterCallbacks"]


@pytest.mark.parametrize("function", [*FAILING, "cuptiActivityEnable"])
def test_what_fails_is_said_and_leaves_nothing_on(libraries, tmp_path, function):
    text = f"""
gpu.cupti.fake_fail(b"{function}", 8, 1)
why = refused()
left = [gpu.cupti.fake_subscribers(), sum(gpu.cupti.fake_is_enabled(kind) for kind in gpu.sizes)]
fake_gpu.start()
fake_gpu.stop()
print(json.dumps([why, left]))
"""
    why, left = execute(libraries, tmp_path / "run", text)
    assert why.startswith("CUPTI says CUPTI_ERROR_NUMBER_8 when ") and left == [0, 0]


def test_a_user_who_may_not_profile_is_told_what_to_do(libraries, tmp_path):
    text = """
gpu.cupti.fake_fail(b"cuptiActivityEnable", 35, 1)
why = refused()
gpu.cupti.fake_fail(b"cuptiActivityEnable", 35, 1)
print(json.dumps([why, _recorder.device_find("cuda", [], may_initialize=True)]))
"""
    why, found = execute(libraries, tmp_path / "run", text)
    assert "NVreg_RestrictProfilingToAdminUsers=0" in why and "CAP_SYS_ADMIN" in why and found == {"refused": why}


@pytest.mark.parametrize("cuda, who", [("13.0", "another tool"), ("13.5", "CUPTI for somebody")])
def test_another_listener_is_not_disturbed(libraries, tmp_path, cuda, who):
    text = """
gpu.cupti.fake_other(1)
why = refused()
_recorder.open(run, {})
found = fake_gpu.start(others_are_idle=True)
plant(3)
fake_gpu.stop()
_recorder.close()
print(json.dumps([why, found["interface"], gpu.cupti.fake_subscribers()]))
"""
    why, interface, subscribers = execute(libraries, tmp_path / "run", text, cuda)
    assert why == f"{who} listens to CUPTI already, and CUPTI has one listener a process"
    # Beside somebody idle there is no second handle, and theirs is left alone.
    assert (interface, subscribers) == ("v1, unsubscribed", 1)
    assert len(kernels(tmp_path / "run")) == 3


def test_times_before_and_after_another_profiler_are_of_one_clock(libraries, tmp_path):
    text = """
_recorder.open(run, {})
planted = []
def kernel():
    planted.append(time.monotonic_ns())
    assert gpu.put(fake_gpu.KERNEL, start=planted[-1], end=planted[-1] + 50, correlation=len(planted), name="k") == 1
for is_other_over in (False, True, True):
    fake_gpu.start(others_are_idle=is_other_over)
    kernel()
    _recorder.device_flush()
    kernel()
    fake_gpu.stop()
    # Who listens in between sets a clock of its own.
    gpu.cupti.fake_other(0 if is_other_over else 1)
_recorder.close()
print(json.dumps(planted))
"""
    planted = execute(libraries, tmp_path / "run", text)
    found = {row["correlation"]: row["start_ns"] for row in kernels(tmp_path / "run")}
    offsets = [found[number] - at_ns for number, at_ns in enumerate(planted, 1)]
    # What readings of several clocks differ by.
    assert len(found) == 6 and max(offsets) - min(offsets) < 1_000_000


def test_the_second_interface_is_left_where_the_first_was_used(libraries, tmp_path):
    text = """
gpu.cupti.fake_fail(b"cuptiSubscribe_v2", 14, 1)
found = fake_gpu.start()
fake_gpu.stop()
print(json.dumps(found["interface"]))
"""
    assert execute(libraries, tmp_path / "run", text, "13.5") == "v1"


def test_what_is_not_needed_may_fail(libraries, tmp_path):
    text = """
gpu.cupti.fake_size(fake_gpu.WAIT, 0)
found = fake_gpu.start(calls=False)
results = [plant(1), gpu.put(fake_gpu.RUNTIME, call=fake_gpu.LAUNCH_KERNEL)]
fake_gpu.stop()
print(json.dumps([found["remarks"], results]))
"""
    remarks, results = execute(libraries, tmp_path / "run", text)
    assert remarks == ["no waits: CUPTI says CUPTI_ERROR_NUMBER_21 when waits are asked for"]
    assert results == [[1], 0]


def test_too_old_a_cupti_and_none_at_all_are_refused(libraries, tmp_path):
    old = {"FAKE_CUPTI_VERSION": 17}
    assert "CUPTI 17 is too old" in execute(libraries, tmp_path / "run", "print(json.dumps(refused()))", variables=old)
    none = {"STEPSCOPE_CUPTI": tmp_path / "none.so"}
    why = execute(libraries, tmp_path / "run", "print(json.dumps(refused()))", variables=none)
    assert why.startswith("CUPTI (libcupti.so) cannot be loaded: ") and "none.so" in why


def test_without_a_driver_nothing_is_loaded(libraries, tmp_path):
    text = """
import sys
from stepscope import _recorder
found = _recorder.device_find("cuda", [])
maps = open("/proc/self/maps").read()
print(found["refused"].startswith("there is no NVIDIA driver (libcuda.so.1)"), "cupti" in maps)
"""
    environment = runs.environment(STEPSCOPE_CUPTI=libraries / "libcupti.so")
    if "True False" not in (said := runs.execute(*runs.script(text), env=environment).stdout):
        assert "no NVIDIA driver" not in said, said
        pytest.skip("there is a driver here")


def test_the_driver_is_asked_and_not_started(libraries, tmp_path):
    text = """
gpu.cuda.fake_use(0)
found = _recorder.device_find("cuda", ["no-such.so", sys.argv[1] + "/libcupti.so"])
_recorder.open(run, {})
started = fake_gpu.start(flush_period_ms=10, sample_period_ms=0)
gpu.use(1)
time.sleep(0.1)
fake_gpu.stop()
_recorder.close()
told = _recorder.device_find("cuda", [], may_initialize=True)
print(json.dumps([found, started, told, gpu.cuda.fake_calls_of_init()]))
"""
    variables = {"STEPSCOPE_CUPTI": None}
    found, started, told, inits = execute(libraries, tmp_path / "run", text, variables=variables)
    assert (found["devices"], found["version"], found["interface"]) == ("[]", "13.0", "v1")
    assert started["devices"] == "[]"
    # What is used later is learnt later.
    (device,) = json.loads(runs.metadata(runs.parts(tmp_path / "run")[0])["facts"]["devices"])
    assert (device["index"], device["name"]) == (1, "Fake GPU 1")
    assert [device["index"] for device in json.loads(told["devices"])] == [0, 1] and inits == 1


def test_a_driver_that_does_not_start_says_why(libraries, tmp_path):
    text = 'print(json.dumps(_recorder.device_find("cuda", [], may_initialize=True)))'
    found = execute(libraries, tmp_path / "run", text, variables={"FAKE_CUDA_FAILS": 100})
    assert found == {"refused": "the NVIDIA driver does not start: no CUDA-capable device is detected"}


def test_one_session_at_a_time(libraries, tmp_path):
    text = """
fake_gpu.start()
print(json.dumps(refused()))
fake_gpu.stop()
fake_gpu.stop()
_recorder.device_flush()
assert os.environ["FAKE_CUDA"]
"""
    assert execute(libraries, tmp_path / "run", text) == "devices are recorded already"
