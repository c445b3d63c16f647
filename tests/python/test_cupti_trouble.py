"""A CUPTI of our own that does not do what it should, and what is said of it."""

import json

import pytest
import runs
from gpu_programs import execute, kernels

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
    told = f"{who} listens to CUPTI already, and CUPTI has one listener a process"
    assert why == f"{told}: end it, or begin to record before it does"
    # Beside somebody idle there is no second handle, and theirs is left alone.
    assert (interface, subscribers) == ("v1, unsubscribed", 1)
    assert len(kernels(tmp_path / "run")) == 3


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
    old = {"CUDA_FAKE_CUPTI_VERSION": 17}
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
    if "True False" not in (said := runs.execute(*runs.new_script(text), env=environment).stdout):
        assert "no NVIDIA driver" not in said, said
        pytest.skip("there is a driver here")


def test_the_driver_is_asked_and_not_started(libraries, tmp_path):
    text = """
gpu.cuda.fake_use(0)
found = _recorder.device_find("cuda", ["no-such.so", sys.argv[1] + "/libcupti.so"])
_recorder.open(run, {})
started = fake_gpu.start(flush_period_ms=3_600_000, sample_period_ms=0)
gpu.use(1)
fake_gpu.stop()
_recorder.close()
told = _recorder.device_find("cuda", [], may_initialize=True)
print(json.dumps([found, started, told, gpu.cuda.fake_calls_of_init()]))
"""
    variables = {"STEPSCOPE_CUPTI": None}
    found, started, told, inits = execute(libraries, tmp_path / "run", text, variables=variables)
    assert (found["devices"], found["version"], found["interface"]) == ("[]", "13.0", "v1")
    assert started["devices"] == "[]"
    # What is used later is learnt later, at the end at last.
    (device,) = json.loads(runs.metadata(runs.parts(tmp_path / "run")[0])["facts"]["devices"])
    assert (device["index"], device["name"]) == (1, "Fake GPU 1")
    assert [device["index"] for device in json.loads(told["devices"])] == [0, 1] and inits == 1


def test_a_driver_that_does_not_start_says_why(libraries, tmp_path):
    text = 'print(json.dumps(_recorder.device_find("cuda", [], may_initialize=True)))'
    found = execute(libraries, tmp_path / "run", text, variables={"CUDA_FAKE_FAILS": 100})
    assert found == {"refused": "the NVIDIA driver does not start: no CUDA-capable device is detected"}


def test_one_session_at_a_time(libraries, tmp_path):
    text = """
fake_gpu.start()
print(json.dumps(refused()))
fake_gpu.stop()
fake_gpu.stop()
_recorder.device_flush()
"""
    assert execute(libraries, tmp_path / "run", text) == "devices are recorded already"
