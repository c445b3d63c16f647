"""CUDA devices through CUPTI: what a CUPTI of our own reports, as it stands in the run."""

import json

import fake_gpu
import pytest
import runs
from gpu_programs import execute


@pytest.fixture(scope="module", params=list(fake_gpu.CUDAS))
def recorded(request, libraries, tmp_path_factory):
    """The run of ``programs/gpu.py`` with the CUPTI of each CUDA: (CUDA, run, what the program says, rows)."""
    run = tmp_path_factory.mktemp("gpu") / "run"
    environment = runs.environment(**fake_gpu.environment(libraries, request.param))
    result = runs.record(run, runs.new_program("gpu.py", libraries), env=environment)
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
        "context": 1,
        "grid": [8, 2, 1],
        "block": [128, 1, 1],
        "registers": 40,
        "static_shared_bytes": 1024,
        "dynamic_shared_bytes": 2048,
    }
    assert details["memcpy", 7] == {
        "context": 1,
        "direction": "HtoD",
        "source": "Pageable",
        "destination": "Device",
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
        ("load", "cudaMemcpyAsync"),
        ("gemm", "cudaLaunchKernel"),
        ("other", "cudaLaunchKernel"),
        (None, "cudaMemsetAsync"),
        (None, "cudaEventRecord"),
        (None, "cudaStreamSynchronize"),
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
        "type": "cuda",
        "index": 0,
        "name": "Fake GPU 0",
        "memory_bytes": 80000000100,
        "sm_count": 132,
        "compute_capability_major": 9,
        "compute_capability_minor": 0,
        "max_threads_per_sm": 2048,
        "warp_size": 32,
        "registers_per_sm": 65536,
        "shared_bytes_per_sm": 233472,
        "driver_version": "13.1",
        "runtime_version": "13.0",
    }
    counters = {row["name"]: row["value"] for row in rows if row["kind"] == "counter" and row["name"].startswith("GPU")}
    assert counters == {
        "GPU 0 utilization (%)": 40,
        "GPU 0 memory used (bytes)": 1 << 30,
        "GPU 0 SM clock (MHz)": 1980,
        "GPU 0 memory clock (MHz)": 2619,
        "GPU 0 power (mW)": 350000,
        "GPU 0 temperature (°C)": 61,
        "GPU 0 clock event reasons (bits)": 0x24,
        "GPU 0 PCIe generation": 4,
        "GPU 0 PCIe width (lanes)": 8,
        "GPU 0 SM clock highest (MHz)": 2100,
        "GPU 0 power limit (mW)": 350000,
        "GPU 0 power limit highest (mW)": 700000,
        "GPU 0 PCIe generation highest": 5,
        "GPU 0 PCIe width highest (lanes)": 16,
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
