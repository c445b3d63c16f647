"""Ranges of NVTX, as a CUPTI of our own reports their ends; and names, however many there are."""

import fake_gpu
import runs
from gpu_programs import PRELUDE, execute, kernels, lost

RANGES = """
def marker(flags, number, name=None):
    gpu.put(fake_gpu.MARKER, flags=flags, at=time.monotonic_ns(), id=number, object=2, thread=fake_gpu.thread(), name=name)
def begin(number, name):
    marker(2, number, name)
def end(number):
    marker(4, number)
_recorder.open(run, {})
fake_gpu.start(ranges=True)
begin(1, "whole")
begin(2, "open")
end(1)
"""


def ranges(run):
    found = [row for row in runs.rows(run) if row["kind"] == "device_range"]
    return {row["name"]: row for row in found}, len(found)


def unfinished(run):
    return runs.findings(run).get("capture.unfinished_slices", {"count": 0, "examples": []})


def test_a_range_that_is_open_at_the_end_is_marked(libraries, tmp_path):
    run = tmp_path / "run"
    text = (
        RANGES
        + """
_recorder.device_flush()
begin(3, "told and ended")
_recorder.device_flush()
end(3)
stopped = time.monotonic_ns()
fake_gpu.stop()
time.sleep(0.3)
_recorder.close()
"""
    )
    execute(libraries, run, text)
    found, count = ranges(run)
    assert count == 3 and {name: row["is_unfinished"] for name, row in found.items()} == {
        "whole": False,
        "open": True,
        "told and ended": False,
    }
    # It reaches to where nobody listened any more, and not to the end of the process.
    closed = found["told and ended"]["start_ns"] + found["told and ended"]["dur_ns"]
    assert closed <= found["open"]["start_ns"] + found["open"]["dur_ns"] < closed + 250e6
    assert unfinished(run)["count"] == 1 and unfinished(run)["examples"][0].startswith("open in ")
    assert "capture.device_reports_lost" not in runs.findings(run)


def test_a_range_that_is_open_when_the_process_is_killed_is_marked(libraries, tmp_path):
    run = tmp_path / "run"
    text = (
        RANGES
        + """
plant(1)
_recorder.device_flush()
plant(1, first=7)
time.sleep(0.05)
token = _recorder.begin_label("host")
_recorder.end_label(token, "host")
os.kill(os.getpid(), 9)
"""
    )
    environment = runs.environment(**fake_gpu.environment(libraries))
    result = runs.run(*runs.new_script(PRELUDE + text, libraries, run), env=environment)
    assert result.returncode == -9, result.stderr
    found, count = ranges(run)
    assert count == 2 and {name: row["is_unfinished"] for name, row in found.items()} == {"whole": False, "open": True}
    last = max(row["start_ns"] + row["dur_ns"] for row in runs.rows(run))
    assert found["open"]["start_ns"] + found["open"]["dur_ns"] == last
    assert unfinished(run)["count"] == 1
    # That the range reaches to the end does not mean that the device is known of until then.
    assert runs.findings(run)["capture.device_unknown_after"]["count"] == 1


def test_a_range_that_began_before_recording_is_none(libraries, tmp_path):
    text = (
        RANGES
        + """
fake_gpu.stop()
fake_gpu.start(ranges=True)
end(2)
begin(5, "second")
end(5)
fake_gpu.stop()
_recorder.close()
"""
    )
    execute(libraries, tmp_path / "run", text)
    found, count = ranges(tmp_path / "run")
    assert (count, found["open"]["is_unfinished"], found["second"]["is_unfinished"]) == (3, True, False)
    assert lost(tmp_path / "run") == 0


def test_names_without_end_are_all_there(libraries, tmp_path):
    text = """
_recorder.open(run, {})
fake_gpu.start()
now = time.monotonic_ns()
results = [gpu.put(fake_gpu.KERNEL, start=now + n, end=now + n + 1, correlation=1 + n, stream=7, context=1,
                   name=f"triton_poi_fused_{n}") for n in range(70_000)]
fake_gpu.stop()
_recorder.close()
print(json.dumps(sum(results)))
"""
    assert execute(libraries, tmp_path / "run", text) == 70_000
    found = kernels(tmp_path / "run")
    assert all(row["name"] == f"triton_poi_fused_{row['correlation'] - 1}" for row in found) and len(found) == 70_000
    assert runs.findings(tmp_path / "run").keys() & {"capture.dropped_records", "capture.device_reports_lost"} == set()
