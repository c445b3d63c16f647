"""``stepscope.profiler`` acts as ``torch.profiler``: states, errors, metadata. The real one is the oracle.

Names in brackets are those of PyTorch's own tests of the same thing.
"""

import copy
import json
import pickle
import random
import warnings

import pytest
import runs
import stepscope.profiler
import torch
import torch.profiler
from stepscope.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule

X = torch.ones(4, 4)
RECORD = ProfilerAction.RECORD
ACTIONS = [ProfilerAction.NONE, ProfilerAction.WARMUP, ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE]


def test_devices_that_are_not_there_are_no_activity():
    if torch.cuda.is_available():
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in (profile, torch.profiler.profile):
            with pytest.raises(AssertionError, match="No activities specified for the profiler"):
                kind(activities=[ProfilerActivity.CUDA]).start()


def test_a_profiler_in_compiled_code_is_nothing():
    """Its function is one graph, as with that of PyTorch, which says so in its log."""
    graphs = []

    def backend(graph, _):
        graphs.append(graph)
        return graph.forward

    for kind in (torch.profiler.profile, profile):

        def compiled(x, kind=kind):
            with kind():
                y = x.sin()
            return y + 1

        assert torch.equal(torch.compile(compiled, backend=backend, fullgraph=True)(X), X.sin() + 1)
    assert len(graphs) == 2


def logged(kind):
    """A kind of profiler that notes what it would do, and does nothing."""

    class Logged(kind):
        def __init__(self, **options):
            self.log = []
            super().__init__(**options, on_trace_ready=lambda prof: prof.log.append("trace_ready"))

        def prepare_trace(self):
            self.log.append("prepare_trace")

        def start_trace(self):
            self.log.append("start_trace")

        def stop_trace(self):
            self.log.append("stop_trace")

        def _open(self):
            pass

    return Logged


def acted(kind, actions, calls):
    """What a profiler does when ``calls`` are made, whose schedule gives ``actions``."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        prof = logged(kind)(schedule=lambda step: actions[step], activities=[ProfilerActivity.CPU])
        states = [prof.current_action]
        for call in calls:
            prof.log.append(call)
            getattr(prof, call)()
            states.append((prof.current_action, prof.step_num))
    incorrect = [str(warning.message) for warning in said if "schedule" in str(warning.message)]
    return prof.log, states, incorrect


def test_what_is_done_in_which_step_for_any_schedule():
    """[test_kineto_profiler_api] The state machine of torch.profiler, step by step."""
    chance = random.Random(7)
    seen = set()
    for _ in range(300):
        actions = chance.choices(ACTIONS, k=12)
        steps = chance.randint(0, 10)
        # Without a start() it does what the schedule says, too.
        calls = [*["start"] * (chance.random() < 0.7), *["step"] * steps]
        # Started again: it goes on where it was; after the end, too, it does what the schedule says.
        if "start" in calls and chance.random() < 0.5:
            calls += ["stop", *["start"] * (chance.random() < 0.7), *["step"] * (10 - steps)]
        assert acted(profile, actions, calls) == acted(torch.profiler.profile, actions, calls), (actions, calls)
        seen.update(zip(actions, actions[1:]))
    assert len(seen) == 16


def test_random_schedules_give_the_same_actions():
    """[test_skip_first_wait, test_schedule_function_count]"""
    chance = random.Random(3)
    for _ in range(200):
        options = {name: chance.randint(0, 4) for name in ("wait", "warmup", "repeat", "skip_first", "skip_first_wait")}
        options["active"] = chance.randint(1, 4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours, theirs = schedule(**options), torch.profiler.schedule(**options)
        assert [ours(step) for step in range(40)] == [theirs(step) for step in range(40)], options


@pytest.mark.parametrize(
    "options", [{"wait": -1}, {"warmup": -1}, {"active": 0}, {"repeat": -1}, {"skip_first": -1}], ids=str
)
def test_impossible_schedules(options):
    options = {"wait": 1, "warmup": 1, "active": 1, **options}
    messages = []
    for make in (schedule, torch.profiler.schedule):
        with pytest.raises(AssertionError) as raised:
            make(**options)
        messages.append(str(raised.value))
    assert messages[0] == messages[1]


def test_a_schedule_must_not_stop_the_device(tmp_path):
    def stop_at_2(step):
        return ProfilerAction.DEVICE_STOPPED if step == 2 else ProfilerAction.RECORD

    with pytest.raises(ValueError, match="DEVICE_STOPPED"):
        profile(schedule=lambda step: ProfilerAction.DEVICE_STOPPED)
    with profile(schedule=stop_at_2, run=tmp_path / "run") as prof:
        prof.step()
        with pytest.raises(ValueError, match="DEVICE_STOPPED"):
            prof.step()
        assert (prof.step_num, prof.current_action) == (1, ProfilerAction.RECORD)


def test_a_schedule_is_asked_once_a_step(tmp_path):
    """[test_kineto_profiler_api] 8 steps with two cycles: two calls back, each with its own events."""
    asked, saved = [], []
    plan = schedule(wait=1, warmup=1, active=2, repeat=2)

    def noted(step):
        asked.append(step)
        return plan(step)

    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=noted,
        on_trace_ready=lambda prof: saved.append([event.trace_name for event in prof.events()]),
        run=tmp_path / "run",
    ) as prof:
        for _ in range(8):
            torch.erfinv(X)
            prof.step()
    assert asked == list(range(9))
    steps = [[name for name in names if name.startswith("ProfilerStep#")] for names in saved]
    assert steps == [["ProfilerStep#2", "ProfilerStep#3"], ["ProfilerStep#6", "ProfilerStep#7"]]
    assert [names.count("aten::erfinv") for names in saved] == [2, 2]
    assert len(prof.events()) == 4, "those of the last cycle stay"


def test_several_profilers_one_after_another_each_have_their_own(tmp_path):
    """[test_kineto_profiler_multiple_steppers]"""
    profilers = []
    for number in range(3):
        with profile(run=tmp_path / "run", schedule=schedule(wait=0, warmup=1, active=2, repeat=1)) as prof:
            for _ in range(3):
                with record_function(f"of {number}"):
                    torch.erfinv(X)
                prof.step()
        profilers.append(prof)
    for number, prof in enumerate(profilers):
        assert {event.name for event in prof.events()} == {"ProfilerStep*", f"of {number}", "aten::erfinv"}
    ids = [event.id for prof in profilers for event in prof.events()]
    assert len(set(ids)) == len(ids) and max(ids) < 2**32, "[test_profiler_correlation_id]"


@pytest.mark.parametrize(
    "activities, error, match",
    [
        ([ProfilerActivity.CPU, ProfilerActivity.CPU], ValueError, "specified more than once"),
        ([ProfilerActivity.CPU, {ProfilerActivity.CPU: ["CPU_OP"]}], ValueError, "specified more than once"),
        ([{ProfilerActivity.CPU: ["cpu_op"]}], RuntimeError, "Unknown or non-member activity type name: 'cpu_op'"),
        ([{ProfilerActivity.CPU: ["KERNEL"]}], RuntimeError, "Unknown or non-member activity type name: 'KERNEL'"),
        ([ProfilerActivity.CPU, "CPU"], TypeError, "Expected ProfilerActivity or dict"),
        ([], AssertionError, "No valid profiler activities found"),
        (["cpu"], AssertionError, "No valid profiler activities found"),
    ],
    ids=str,
)
def test_activities_that_are_none(activities, error, match):
    """[test_activity_filter_*]"""
    for kind in (profile, torch.profiler.profile):
        with pytest.raises(error, match=match):
            kind(activities=activities).start()


@pytest.mark.parametrize("types", [["CPU_OP"], ["USER_ANNOTATION"], ["CPU_OP", "USER_ANNOTATION"], []], ids=str)
def test_only_the_types_that_are_asked_for(tmp_path, types):
    """[test_activity_filter_*] They say what a trace shows; events() has all."""
    shown = {}
    for kind in (profile, torch.profiler.profile):
        options = {"run": tmp_path / "run"} if kind is profile else {}
        label = record_function if kind is profile else torch.profiler.record_function
        with kind(activities=[{ProfilerActivity.CPU: types}], schedule=lambda _: RECORD, **options) as prof:
            with label("label"):
                torch.erfinv(X)
        prof.export_chrome_trace(str(tmp_path / "trace.json"))
        rows = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
        categories = {row.get("cat") for row in rows} & {"cpu_op", "user_annotation"}
        shown[kind] = ({event.name for event in prof.events()}, categories)
    assert shown[profile] == shown[torch.profiler.profile]


def test_before_anything_is_recorded():
    prof, theirs = profile(), torch.profiler.profile()
    calls = [
        lambda prof: prof.key_averages(),
        lambda prof: prof.events(),
        lambda prof: prof.export_chrome_trace("x.json"),
        lambda prof: prof.export_stacks("x"),
        lambda prof: prof.stop_trace(),
        lambda prof: prof.start_trace(),
    ]
    for call in calls:
        messages = []
        for of in (prof, theirs):
            with pytest.raises(AssertionError) as raised:
                call(of)
            messages.append(str(raised.value))
        assert messages[0] == messages[1]
    assert prof.get_trace_id() is None and prof._stats() is None
    prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])


def test_while_it_records_there_is_nothing_yet(tmp_path):
    with profile(run=tmp_path / "run") as prof:
        torch.erfinv(X)
        assert prof.events() == [] and prof.key_averages() == [] and prof.key_averages().table() == ""
    assert len(prof.events()) == 1


def test_metadata_is_in_the_trace_and_in_the_run(tmp_path):
    """[test_profiler_metadata]"""
    prof = profile(run=tmp_path / "run")
    prof.preset_metadata_json("preset", "[1, 2]")
    with prof:
        torch.erfinv(X)
        prof.add_metadata("text", "v1")
        prof.add_metadata("quoted", 'a "b" \\ c')
        prof.add_metadata_json("json", '{"k": [1, null]}')
        prof.add_metadata_json("broken", "[1, ")
    assert (prof.events()[0].name, len(prof.events())) == ("aten::erfinv", 1)
    expected = {"preset": [1, 2], "text": "v1", "quoted": 'a "b" \\ c', "json": {"k": [1, None]}, "broken": "[1, "}
    prof.export_chrome_trace(str(tmp_path / "own.json"))
    runs.stepscope("convert", prof.run, "-o", tmp_path / "run.json")
    for name in ("own.json", "run.json"):
        trace = json.loads((tmp_path / name).read_text())
        assert {key: trace[key] for key in expected} == expected
        assert trace["trace_id"] == prof.get_trace_id()


def test_what_was_asked_for_stands_in_the_trace(tmp_path):
    """[test_profiler_metadata: flags]"""
    options = {"record_shapes": True, "profile_memory": True, "with_modules": True}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prof = profile(run=tmp_path / "run", **options)
    with prof:
        torch.erfinv(X)
    prof.export_chrome_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert {name: trace.get(name) for name in (*options, "with_stack")} == dict.fromkeys(options, 1) | {
        "with_stack": None
    }


def test_every_cycle_has_an_id(tmp_path):
    ids, given = [], iter(["A", "B", "C"])
    options = {
        "schedule": schedule(wait=0, warmup=1, active=1),
        "on_trace_ready": lambda p: ids.append(p.get_trace_id()),
    }
    with profile(run=tmp_path / "a", **options) as prof:
        [prof.step() for _ in range(4)]
    assert len(set(ids)) == 2 and all(len(text) == 32 and int(text, 16) >= 0 for text in ids)
    ids.clear()
    with profile(run=tmp_path / "b", custom_trace_id_callback=lambda: next(given), **options) as prof:
        prof.step()
        prof.set_custom_trace_id_callback(lambda: "later")
        [prof.step() for _ in range(3)]
    assert ids == ["A", "later"]


def test_options_without_effect_are_named_once():
    config = stepscope.profiler._ExperimentalConfig(
        verbose=True, profiler_metrics=["x"], performance_events=["y"], profile_all_threads=True
    )
    with pytest.warns(UserWarning, match="does not record profiler_metrics, performance_events yet") as said:
        profile(experimental_config=config)
    assert len(said) == 1


def test_an_experimental_config_is_copied_and_pickled():
    """[test_experimental_config_pickle]"""
    config = stepscope.profiler._ExperimentalConfig(trace_only=True)
    for again in (pickle.loads(pickle.dumps(config)), copy.copy(config)):
        assert again.trace_only


def test_trace_only_has_no_events(tmp_path):
    config = stepscope.profiler._ExperimentalConfig(trace_only=True)
    with profile(experimental_config=config, run=tmp_path / "run") as prof:
        torch.erfinv(X)
    for call in (prof.events, prof.key_averages):
        with pytest.raises(RuntimeError, match="trace_only=True"):
            call()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))


@pytest.mark.parametrize("timeout_s, expected", [(None, 1), (600.0, 1), (0, 0)])
def test_a_list_of_events_may_take_no_longer(tmp_path, caplog, timeout_s, expected):
    """[test_*_timeout_{none,large,zero}]"""
    with profile(post_processing_timeout_s=timeout_s, run=tmp_path / "run") as prof:
        torch.erfinv(X)
    with caplog.at_level("WARNING", logger="torch.autograd.profiler"):
        assert len(prof.events()) == expected
    assert all(said.name == "torch.autograd.profiler" for said in caplog.records)
    assert ("partial results" in caplog.text) == (expected == 0)
    assert len(prof.key_averages()) == expected


def test_a_negative_timeout_fails():
    """[test_*_timeout_fails]"""
    for kind in (profile, torch.profiler.profile):
        with pytest.raises(ValueError, match="must be non-negative"):
            kind(post_processing_timeout_s=-1).start()


def test_an_execution_trace_observer_runs_with_the_recording(tmp_path):
    """[test_execution_trace_with_kineto]"""
    calls = []

    class Observer:
        def __getattr__(self, name):
            return lambda: calls.append(name)

    plan = schedule(wait=1, warmup=1, active=1, repeat=1)
    with profile(schedule=plan, execution_trace_observer=Observer(), run=tmp_path / "run") as prof:
        for _ in range(4):
            calls.append(prof.step_num)
            prof.step()
    assert calls == [0, 1, "start", 2, "stop", 3, "cleanup"]


def test_pytorchs_own_execution_trace_is_written(tmp_path):
    observer = stepscope.profiler.ExecutionTraceObserver().register_callback(str(tmp_path / "trace.json"))
    with profile(execution_trace_observer=observer, run=tmp_path / "run"):
        torch.erfinv(X)
    nodes = json.loads((tmp_path / "trace.json").read_text())["nodes"]
    assert "aten::erfinv" in {node["name"] for node in nodes}


def test_use_cuda_is_deprecated():
    with pytest.warns(FutureWarning, match="use_cuda"):
        profile(use_cuda=False)


def test_the_low_level_profiler(tmp_path):
    prof = stepscope.profiler._KinetoProfile(run=tmp_path / "run")
    prof.start()
    torch.erfinv(X)
    prof.stop()
    assert [event.name for event in prof.events()] == ["aten::erfinv"]


def test_a_label_that_ends_with_a_future(tmp_path):
    """[test_record_function_async]"""
    future = torch.futures.Future()
    with profile(run=tmp_path / "run") as prof:
        with record_function("waits") as label:
            after = label._call_end_callbacks_on_future(future)
            with pytest.raises(RuntimeError, match="only be called once"):
                label._call_end_callbacks_on_future(future)
        torch.erfinv(X)
        future.set_result(5)
        assert after.wait() == 5
        torch.digamma(X)
    times = {event.name: event.time_range for event in prof.events()}
    assert times["aten::erfinv"].end <= times["waits"].end <= times["aten::digamma"].start
