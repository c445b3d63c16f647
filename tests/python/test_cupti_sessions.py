"""Sessions of a CUPTI of our own: what arrives when, what finds no room, and what is left behind."""

import signal

import fake_gpu
import pytest
import runs
from gpu_programs import PRELUDE, execute, kernels, lost


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
    result = runs.run(*runs.new_script(PRELUDE + text, libraries, tmp_path / "run"), env=environment)
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
    runs.run(*runs.new_script(PRELUDE + text, libraries, tmp_path / "run"), env=environment)
    assert len(kernels(tmp_path / "run")) == 100


@pytest.mark.parametrize("cuda", ["13.0", "13.5"])
def test_fifty_sessions_leave_nothing_behind(libraries, tmp_path, cuda):
    text = """
_recorder.open(run, {})
def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
def threads():
    return len(os.listdir("/proc/self/task"))
memory, first = [], 0
for session in range(50):
    fake_gpu.start()
    assert plant(20, first=1000 * session) == [1] * 20
    fake_gpu.stop()
    assert plant(1) == [0]
    memory.append(resident())
    first = first or threads()
# A thread that was told to end is there until it has run once more.
deadline = time.monotonic() + 60
while threads() > first + 1 and time.monotonic() < deadline:
    time.sleep(0.01)
left = threads() - first
_recorder.close()
print(json.dumps([memory[-1] - memory[9], left, gpu.cupti.fake_subscribers(),
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
    assert len(found) + lost(tmp_path / "run") == 12_000 and found == [
        10_000 * n + m for n in range(4) for m in range(3000)
    ]


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
print(json.dumps([took, why]), flush=True)
os._exit(0)
"""
    took, why = execute(libraries, tmp_path / "run", text)
    assert took < 20 and why == "the devices' profiler hangs"
    assert len(kernels(tmp_path / "run")) == 5
