"""``stepscope.profiler``: what is recorded in which step, in a process that records itself."""

import multiprocessing
import os
import threading
import time
import warnings

import pytest
import runs
import stepscope
import torch
from stepscope.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule

X = torch.zeros(4)


def loop(prof, steps):
    """Run ``steps`` steps of one op each."""
    for _ in range(steps):
        torch.erfinv(X)
        prof.step()


def steps_of(run):
    return [row["step"] for row in runs.rows(run) if row["kind"] == "step"]


def names_of(run):
    return [row["name"] for row in runs.ops(run)]


@pytest.mark.parametrize(
    "options, expected, cycles",
    [
        ({"wait": 1, "warmup": 1, "active": 2, "repeat": 2}, [2, 3, 6, 7], 2),
        ({"wait": 0, "warmup": 1, "active": 3, "repeat": 1}, [1, 2, 3], 1),
        ({"wait": 1, "warmup": 1, "active": 1, "repeat": 0}, [2, 5, 8, 11], 4),
        ({"wait": 1, "warmup": 1, "active": 1, "repeat": 1, "skip_first": 4}, [6], 1),
        ({"wait": 3, "warmup": 1, "active": 1, "repeat": 2, "skip_first": 2, "skip_first_wait": 1}, [3, 8], 2),
        # The loop ends in the middle of the second cycle: it is saved as far as it got.
        ({"wait": 5, "warmup": 1, "active": 3, "repeat": 2}, [6, 7, 8], 1),
        ({"wait": 2, "warmup": 1, "active": 5, "repeat": 2}, [3, 4, 5, 6, 7, 11], 2),
    ],
)
def test_exactly_the_active_steps_are_recorded(tmp_path, options, expected, cycles):
    saved = []
    with profile(schedule=schedule(**options), on_trace_ready=saved.append, run=tmp_path / "run") as prof:
        loop(prof, 12 if expected[-1] != 11 or options["active"] == 1 else 11)
    found = steps_of(prof.run)
    assert found == expected
    assert saved == [prof] * cycles
    # One op a step and nothing else: no op of a step that waits or warms up, none of the recorder's own. The step that
    # begins after the loop's last one ends empty.
    assert len(set(names_of(prof.run))) == 1
    assert len(names_of(prof.run)) == sum(number < prof.step_num for number in expected)


def test_the_schedule_acts_as_that_of_torch():
    for options in (
        {"wait": 1, "warmup": 2, "active": 3, "repeat": 2, "skip_first": 1},
        {"wait": 2, "warmup": 1, "active": 1, "repeat": 0},
        {"wait": 2, "warmup": 1, "active": 1, "repeat": 2, "skip_first": 3, "skip_first_wait": 1},
    ):
        ours, theirs = schedule(**options), torch.profiler.schedule(**options)
        assert [ours(step).name for step in range(40)] == [theirs(step).name for step in range(40)]


def test_a_schedule_without_warmup_warns():
    with pytest.warns(UserWarning, match="warmup"):
        schedule(wait=0, warmup=0, active=1)


def test_without_a_schedule_everything_is_recorded(tmp_path):
    with profile(run=tmp_path / "run") as prof:
        loop(prof, 3)
        torch.digamma(X)
    assert names_of(prof.run) == ["aten::erfinv"] * 3 + ["aten::digamma"]


def test_without_a_schedule_steps_are_marked_from_the_first_call_on(tmp_path):
    with profile(run=tmp_path / "run") as prof:
        loop(prof, 4)
    breakdown = stepscope.open(prof.run).step_breakdown()["results"]
    complete = [row["step"] for row in breakdown if row["step"] is not None and row["is_complete"]]
    cut = [row["step"] for row in breakdown if row["step"] is not None and not row["is_complete"]]
    assert complete == [1, 2, 3], "what ran before the first step() is not known to be a step"
    assert cut == [4], "what ran after the last step() is not a whole one"


def test_a_schedule_may_be_any_function(tmp_path):
    def only_the_third(step):
        return ProfilerAction.RECORD_AND_SAVE if step == 2 else ProfilerAction.NONE

    with profile(schedule=only_the_third, run=tmp_path / "run") as prof:
        loop(prof, 5)
    assert steps_of(prof.run) == [2]


def test_nothing_is_recorded_before_start_and_after_stop(tmp_path):
    prof = profile(run=tmp_path / "run")
    torch.digamma(X)
    prof.start()
    torch.erfinv(X)
    prof.stop()
    torch.digamma(X)
    prof.stop()
    assert names_of(prof.run) == ["aten::erfinv"]


def test_stopped_before_the_first_active_step(tmp_path):
    saved = []
    late = schedule(wait=9, warmup=1, active=1)
    with profile(schedule=late, on_trace_ready=saved.append, run=tmp_path / "run") as prof:
        loop(prof, 2)
    assert saved == []
    runs.stepscope("recover", prof.run)
    assert "Nothing was recorded" in runs.report(prof.run)


def test_starting_twice_is_an_error(tmp_path):
    prof = profile(run=tmp_path / "run")
    prof.start()
    with pytest.raises(RuntimeError, match="started already"):
        prof.start()
    prof.stop()


def test_a_step_while_not_started_is_only_counted_without_a_schedule(tmp_path):
    prof = profile(run=tmp_path / "run")
    prof.step()
    prof.stop()
    assert prof.step_num == 1
    assert not (tmp_path / "run").exists()


def test_steps_without_a_start_are_recorded_as_the_schedule_says(tmp_path):
    """[test_profiler_cache_lookup_profiler_step]"""
    saved = []
    plan = schedule(wait=2, warmup=2, active=2, repeat=1)
    prof = profile(schedule=plan, on_trace_ready=saved.append, run=tmp_path / "run")
    loop(prof, 10)
    assert saved == [prof]
    assert [event.trace_name for event in prof.events() if event.trace_name.startswith("Profiler")] == [
        "ProfilerStep#4",
        "ProfilerStep#5",
    ]
    prof.stop()
    assert steps_of(prof.run) == [4, 5]


def test_an_exception_in_on_trace_ready_passes_and_the_run_is_closed(tmp_path):
    def fail(_prof):
        raise ZeroDivisionError

    prof = profile(on_trace_ready=fail, run=tmp_path / "run")
    with pytest.raises(ZeroDivisionError), prof:
        torch.erfinv(X)
    torch.digamma(X)
    assert names_of(prof.run) == ["aten::erfinv"]
    assert "capture.process_killed" not in runs.findings(prof.run)


def test_an_exception_in_the_loop_closes_the_run_and_passes(tmp_path):
    with pytest.raises(ZeroDivisionError), profile(run=tmp_path / "run") as prof:
        torch.erfinv(X)
        with record_function("risky"):
            raise ZeroDivisionError
    rows = runs.ops(prof.run)
    assert [row["name"] for row in rows] == ["aten::erfinv", "risky"]
    assert not any(row["is_unfinished"] for row in rows)
    assert "capture.process_killed" not in runs.findings(prof.run)


def test_an_exception_in_an_op_ends_the_op(tmp_path):
    with profile(run=tmp_path / "run") as prof:
        with pytest.raises(RuntimeError), record_function("outer"):
            torch.ones(2, 3) @ torch.ones(2, 3)
        torch.erfinv(X)
    pairs = runs.with_parents(runs.ops(prof.run))
    nesting = {(parent and parent["name"], row["name"]) for parent, row in pairs}
    assert {("outer", "aten::matmul"), ("aten::matmul", "aten::mm"), (None, "aten::erfinv")} <= nesting
    assert not any(row["is_unfinished"] for _, row in pairs)


def test_labels_as_context_manager_decorator_and_nested(tmp_path):
    @record_function("decorated")
    def decorated(depth):
        return depth if depth == 0 else decorated(depth - 1)

    again = record_function("again")
    with profile(run=tmp_path / "run") as prof:
        with record_function("outer"), record_function("inner"):
            torch.erfinv(X)
        with again, again:
            pass
        assert decorated(2) == 0
    assert decorated.__name__ == "decorated"
    nesting = [(parent and parent["name"], row["name"]) for parent, row in runs.with_parents(runs.ops(prof.run))]
    assert nesting == [
        (None, "outer"),
        ("outer", "inner"),
        ("inner", "aten::erfinv"),
        (None, "again"),
        ("again", "again"),
        (None, "decorated"),
        ("decorated", "decorated"),
        ("decorated", "decorated"),
    ]


def test_labels_while_nothing_records_do_nothing(tmp_path):
    with record_function("before"):
        torch.erfinv(X)
    with profile(schedule=schedule(wait=1, warmup=1, active=1, repeat=1), run=tmp_path / "run") as prof:
        for step in range(4):
            with record_function(f"step {step}"):
                pass
            prof.step()
    assert names_of(prof.run) == ["step 2"]


def test_a_label_that_recording_begins_inside_of(tmp_path):
    prof = profile(run=tmp_path / "run")
    with record_function("cut"):
        prof.start()
        torch.erfinv(X)
    prof.stop()
    assert names_of(prof.run) == ["aten::erfinv"]


def test_names_of_labels_that_are_no_text(tmp_path):
    """Bytes are taken as text, as by torch.profiler; what is an error there is shown as Python prints it."""
    with profile(run=tmp_path / "run") as prof:
        for name in (b"bytes", b"\xff", 5, None):
            label_once(name)
    assert [event.name for event in prof.events()] == ["bytes", "\ufffd", "5", "None"]


def test_labels_of_torch_and_of_long_or_strange_names(tmp_path):
    names = ["torch's own", "größer → 数", "", "x" * 5_000, "two\nlines"]
    with profile(run=tmp_path / "run") as prof:
        with torch.profiler.record_function(names[0]):
            pass
        for name in names[1:]:
            with record_function(name):
                pass
    found = names_of(prof.run)
    assert found[:3] + found[4:] == names[:3] + names[4:]
    assert names[3].startswith(found[3]) and len(found[3]) > 200


def test_many_different_names(tmp_path):
    names = [f"label {number}" for number in range(20_000)]
    with profile(run=tmp_path / "run") as prof:
        for name in names:
            with record_function(name):
                pass
    assert names_of(prof.run) == names


def test_deep_nesting(tmp_path):
    def nest(depth):
        if depth > 0:
            with record_function(f"depth {depth}"):
                nest(depth - 1)

    with profile(run=tmp_path / "run") as prof:
        nest(300)
        torch.erfinv(X)
    pairs = runs.with_parents(runs.ops(prof.run))
    assert [parent and parent["name"] for parent, _ in pairs[:-1]] == [None, *(f"depth {n}" for n in range(300, 1, -1))]
    assert pairs[-1][0] is None
    assert not any(row["is_unfinished"] for _, row in pairs)


def test_options_that_are_not_recorded_warn_and_are_a_finding(tmp_path):
    with pytest.warns(UserWarning, match="does not record MTIA yet"):
        prof = profile(
            activities=[ProfilerActivity.CPU, torch.profiler.ProfilerActivity.MTIA],
            run=tmp_path / "run",
        )
    with prof:
        torch.erfinv(X)
    finding = runs.findings(prof.run)["capture.option_not_recorded"]
    assert finding["count"] == 1
    assert "options" in runs.report(prof.run)


def test_options_that_are_recorded_do_not_warn(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        profile(activities=[ProfilerActivity.CPU], run=tmp_path / "run")
        options = {
            "record_shapes": True,
            "profile_memory": True,
            "with_stack": True,
            "with_flops": True,
            "with_modules": True,
        }
        prof = profile(activities=[torch.profiler.ProfilerActivity.CPU], **options, run=tmp_path / "run")
        with prof:
            torch.erfinv(X)
    assert "capture.option_not_recorded" not in runs.findings(prof.run)


def test_two_runs_one_after_the_other(tmp_path):
    for name, op in (("a", torch.erfinv), ("b", torch.digamma)):
        with profile(run=tmp_path / name) as prof:
            op(X)
        assert prof.run == str(tmp_path / name)
    assert (names_of(tmp_path / "a"), names_of(tmp_path / "b")) == (["aten::erfinv"], ["aten::digamma"])


def test_two_recordings_into_one_run(tmp_path):
    for op in (torch.erfinv, torch.digamma):
        with profile(run=tmp_path / "run"):
            op(X)
    assert sorted(names_of(tmp_path / "run")) == ["aten::digamma", "aten::erfinv"]


def test_starting_again_after_a_stop(tmp_path):
    prof = profile(run=tmp_path / "run")
    for _ in range(2):
        prof.start()
        torch.erfinv(X)
        prof.stop()
    assert names_of(prof.run) == ["aten::erfinv"] * 2


def test_the_default_run_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with profile() as prof:
        torch.erfinv(X)
    (run,) = (tmp_path / "stepscope-runs").iterdir()
    assert prof.run == str(run)
    assert names_of(run) == ["aten::erfinv"]


def test_the_environment_is_as_before(tmp_path):
    before = dict(os.environ)
    with profile(run=tmp_path / "run") as prof:
        assert os.environ["STEPSCOPE_RUN"] == prof.run
    assert dict(os.environ) == before


def test_threads_that_start_before_and_while_recording(tmp_path):
    def work(begin, end):
        begin.wait()
        torch.digamma(X)
        end.wait()

    begin, end = threading.Event(), threading.Event()
    early = threading.Thread(target=work, args=(begin, end), name="early")
    early.start()
    with profile(run=tmp_path / "run") as prof:
        late = threading.Thread(target=work, args=(begin, end), name="late")
        late.start()
        begin.set()
        time.sleep(0.05)
        end.set()
        early.join()
        late.join()
    places = {(row["thread_name"], row["name"]) for row in runs.ops(prof.run)}
    assert ("late", "aten::digamma") in places
    assert {name for _, name in places} == {"aten::digamma"} and len(runs.ops(prof.run)) == 2


def label_once(name):
    with record_function(name):
        pass


def test_forked_workers_of_a_program_that_records_itself(tmp_path):
    with profile(run=tmp_path / "run") as prof:
        process = multiprocessing.get_context("fork").Process(target=label_once, args=("in the child",), name="child")
        process.start()
        process.join()
    assert process.exitcode == 0
    (row,) = runs.named(runs.ops(prof.run), "in the child")
    assert row["process_name"] == "child"
    assert "capture.process_killed" not in runs.findings(prof.run)


def test_below_stepscope_record_it_marks_steps_of_that_run(tmp_path):
    text = """
import torch
from stepscope.profiler import profile, schedule, record_function
saved = []
two = schedule(wait=1, warmup=1, active=2, repeat=1)
with profile(schedule=two, run="elsewhere", on_trace_ready=saved.append) as prof:
    for step in range(6):
        with record_function(f"label {step}"):
            torch.erfinv(torch.zeros(4))
        prof.step()
torch.digamma(torch.zeros(4))
print(prof.run, len(saved))
"""
    run = tmp_path / "run"
    recorded = runs.record(run, runs.script(text), cwd=tmp_path)
    assert recorded.stdout.split() == [str(run), "1"]
    assert not (tmp_path / "elsewhere").exists()
    assert steps_of(run) == [2, 3]
    # The command records all of the program.
    names = names_of(run)
    assert names.count("aten::erfinv") == 6 and names.count("aten::digamma") == 1
    assert [name for name in names if name.startswith("label")] == [f"label {step}" for step in range(6)]


def test_a_program_that_ends_without_stop(tmp_path):
    text = """
import sys, torch
from stepscope.profiler import profile
prof = profile(run=sys.argv[1])
prof.start()
torch.erfinv(torch.zeros(4))
"""
    run = tmp_path / "run"
    runs.execute(*runs.script(text, run))
    assert names_of(run)[-1] == "aten::erfinv"
    assert "capture.process_killed" not in runs.findings(run)
