"""Several profilers of one process: one inside another, side by side, left open, forgotten.

Each has what ran while it recorded, whatever else is open. torch.profiler ends the first of two that record at the same
time without a word; here both have their events.
"""

import gc
import os
import threading
import warnings

import pytest
import runs
import torch
import torch.profiler
from stepscope import _demand, _recorder, _recording
from stepscope.profiler import ProfilerActivity, _KinetoProfile, profile, record_function, schedule

X = torch.ones(4, 4)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Each test in a folder of its own, and nothing open after it."""
    monkeypatch.chdir(tmp_path)
    yield
    gc.collect()
    assert not _recorder.is_open() and not _recording.is_wanted() and "STEPSCOPE_RUN" not in os.environ


def names(prof):
    return [event.name for event in prof.events() if not event.is_python_function]


def recorded(op, **options):
    """What a profiler of its own sees of one operator."""
    with profile(**options) as prof:
        op(X)
    return names(prof), prof


LEFT_OPEN = {
    "waits": {"wait": 5, "warmup": 1, "active": 1},
    "warms up": {"wait": 0, "warmup": 5, "active": 1},
    "records": {"wait": 0, "warmup": 0, "active": 5},
    "is done": {"wait": 0, "warmup": 0, "active": 1, "repeat": 1},
}


@pytest.mark.filterwarnings("ignore:a schedule without warmup", "ignore:another profiler")
@pytest.mark.parametrize("state", LEFT_OPEN)
@pytest.mark.parametrize("is_alive", [True, False], ids=["alive", "collected"])
def test_a_profiler_that_is_left_open_takes_nothing_from_others(state, is_alive):
    first = profile(schedule=schedule(**LEFT_OPEN[state]), run="first")
    first.start()
    first.step()
    if not is_alive:
        del first
    joins = is_alive and state == "records"
    for _ in range(2):
        seen, other = recorded(torch.erfinv, run="other")
        assert seen == ["aten::erfinv"]
        assert os.path.basename(other.run) == ("first" if joins else "other")
        assert _recording.is_wanted() == joins
    if is_alive:
        first.stop()


def test_a_profiler_that_is_collected_while_it_records_ends(capfd):
    prof = profile(run="first")
    prof.start()
    torch.erfinv(X)
    assert _recording.is_on()
    del prof
    assert not _recording.is_on() and not _recorder.is_open()
    assert "a profiler was collected while it recorded" in capfd.readouterr().err
    torch.digamma(X)
    assert [row["name"] for row in runs.ops("first")] == ["aten::erfinv"]
    assert "capture.process_killed" not in runs.findings("first")


def test_a_cell_of_a_notebook_that_failed_is_run_again():
    """The name is bound anew while the profiler before still records; the exception is kept, as notebooks do."""
    kept = []
    for is_failing in (True, True, False):
        try:
            prof = profile(with_stack=True, on_trace_ready=lambda prof: None)
            prof.start()
            torch.erfinv(X)
            if is_failing:
                raise KeyboardInterrupt
            prof.stop()
        except KeyboardInterrupt as error:
            kept.append(error)
    assert names(prof) == ["aten::erfinv"]


def test_what_a_kept_exception_holds_open_takes_nothing_from_others():
    def cell():
        prof = profile()
        prof.start()
        raise ValueError

    with pytest.raises(ValueError) as kept:
        cell()
    assert recorded(torch.erfinv)[0] == ["aten::erfinv"]
    assert _recording.is_on(), "it still records, since nobody said that it is over"
    kept.value.__traceback__ = None
    del kept
    gc.collect()
    assert not _recording.is_on()


def test_a_collection_within_a_switch_ends_what_it_finds_afterwards():
    prof = profile()
    prof.start()
    with _demand.alone():
        del prof
        assert _recording.is_on()
    assert not _recording.is_on()


def test_the_low_level_profiler_need_not_be_stopped():
    prof = _KinetoProfile()
    prof.prepare_trace()
    prof.start_trace()
    torch.erfinv(X)
    prof.stop_trace()
    assert names(prof) == ["aten::erfinv"]
    assert recorded(torch.digamma)[0] == recorded(torch.digamma)[0] == ["aten::digamma"]
    prof.prepare_trace()
    prof.start_trace()
    torch.lgamma(X)
    prof.stop_trace()
    assert names(prof) == ["aten::lgamma"]


def test_a_profiler_in_each_step_of_another(tmp_path):
    """Each records; what runs at the same time is in one run, that of the outer one."""
    plan = schedule(wait=1, warmup=1, active=2, repeat=2)
    found, places = [], []
    with profile(schedule=plan, run="outer") as outer:
        for step in range(8):
            with record_function(f"step {step}"):
                seen, inner = recorded(torch.erfinv)
            found.append(seen)
            places.append(inner.run == outer.run)
            outer.step()
    assert found == [["aten::erfinv"]] * 8
    assert places == [False, False, True, True] * 2
    own = [name for name in names(outer) if not name.startswith("ProfilerStep")]
    assert own == ["step 6", "aten::erfinv", "step 7", "aten::erfinv"]
    rows = runs.rows("outer")
    assert sorted(row["step"] for row in rows if row["kind"] == "step") == [2, 3, 6, 7]
    assert len(runs.named(rows, "aten::erfinv")) == 4
    assert len(list((tmp_path / "outer" / "raw").glob("*.capture")) + list((tmp_path / "outer").glob("rank=*/*"))) <= 3


def test_two_that_overlap_each_have_their_own():
    first, second = (
        profile(record_shapes=True, run="first"),
        profile(profile_memory=True, with_stack=True, run="second"),
    )
    first.start()
    torch.erfinv(X)
    with pytest.warns(UserWarning, match="records already: events go to its run .*first"):
        second.start()
    torch.digamma(X)
    first.stop()
    torch.lgamma(X)
    assert first.run == second.run
    second.stop()
    assert names(first) == ["aten::erfinv", "aten::digamma"]
    assert names(second) == ["aten::digamma", "aten::lgamma"]
    assert all(
        event.cpu_memory_usage == 64 and event.stack for event in second.events() if event.name.startswith("aten")
    )
    assert [event.input_shapes for event in first.events()] == [[[4, 4]], [[4, 4]]]
    assert len(runs.ops("first")) == 3


def test_one_that_goes_on_after_that_which_it_recorded_with_has_a_run_of_its_own():
    plan = schedule(wait=0, warmup=1, active=1, repeat=2)
    first = profile(run="first")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        second = profile(schedule=plan, run="second", acc_events=True)
        first.start()
        second.start()
        second.step()
        torch.erfinv(X)
        first.stop()
        second.step()
        assert not _recording.is_wanted()
        second.step()
        torch.digamma(X)
        second.stop()
    assert sorted(name for name in names(second) if name.startswith("aten")) == ["aten::digamma", "aten::erfinv"]
    assert [row["name"] for row in runs.ops("first")] == ["aten::erfinv"]
    assert [row["name"] for row in runs.ops("second")] == ["aten::digamma"]


def test_an_inner_one_has_all_that_it_asks_for():
    """And the outer one what it asked for, of all the time."""
    everything = {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_flops": True}

    def work():
        torch.mm(X, X)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with profile() as outer:
            work()
            with profile(**everything) as inner:
                work()
            work()
    with torch.profiler.profile(activities=[ProfilerActivity.CPU], **everything) as theirs:
        work()

    def known(prof):
        mm = next(event for event in prof.events() if event.name == "aten::mm")
        return mm.input_shapes, mm.flops, mm.cpu_memory_usage, {event.is_python_function for event in prof.events()}

    assert known(inner) == known(theirs)
    assert all(len(event.stack) > 1 for event in inner.events() if event.name == "aten::mm")
    assert names(outer).count("aten::mm") == 3
    assert not any(event.is_python_function or event.cpu_memory_usage for event in outer.events())
    # What the inner one wanted is over with it.
    shapes = [event.input_shapes for event in outer.events() if event.name == "aten::mm"]
    assert (shapes[0], shapes[2]) == ([], [])


def test_what_cannot_be_as_asked_is_a_warning():
    with profile(ring=30, run="outer") as outer:
        with pytest.warns(UserWarning, match="only the last 30 s are kept"):
            seen, inner = recorded(torch.erfinv)
        assert seen == ["aten::erfinv"] and inner.run == outer.run
    with profile(), pytest.warns(UserWarning, match="there is no ring"):
        with profile(ring=5) as inner:
            torch.erfinv(X)
            assert not inner.keep()
    with profile(), pytest.warns(UserWarning, match='recorded with gpu="auto"'):
        recorded(torch.erfinv, gpu="torch")


def test_one_that_is_switched_off_for_a_while_keeps_its_capture():
    with profile(run="outer") as outer:
        torch.erfinv(X)
        outer.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
        assert not _recording.is_on()
        seen, inner = recorded(torch.digamma)
        outer.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
        torch.lgamma(X)
        outer.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
    assert seen == ["aten::digamma"] and inner.run == outer.run
    assert names(outer) == ["aten::erfinv", "aten::lgamma"]


def test_threads_that_each_have_a_profiler():
    begun, seen = threading.Barrier(4), {}

    def work(number):
        op = (torch.erfinv, torch.digamma, torch.lgamma, torch.erf)[number]
        for _ in range(5):
            with profile(record_shapes=number % 2 == 0) as prof:
                begun.wait(30)
                op(X)
            seen.setdefault(number, []).append(names(prof))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    ops = ["aten::erfinv", "aten::digamma", "aten::lgamma", "aten::erf"]
    assert seen == {number: [[op]] * 5 for number, op in enumerate(ops)}


def test_what_another_one_finds_open_is_not_closed_before_it_records():
    """Threads that begin and end as they like: the last to end closes, and none loses anything."""

    def work(number, seen):
        for _ in range(60):
            with profile() as prof:
                torch.erfinv(X)
            seen.append(names(prof))

    seen = [[] for _ in range(3)]
    threads = [threading.Thread(target=work, args=(number, seen[number])) for number in range(3)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert seen == [[["aten::erfinv"]] * 60] * 3


def test_profilers_of_processes_that_are_forked(tmp_path):
    """[test_forked_process] While another one of the parent waits, and while one records."""
    text = """
import os, sys, torch
from stepscope.profiler import profile, schedule
X = torch.ones(4)
def child_of(prof):
    child = os.fork()
    if child == 0:
        with profile() as own:
            torch.erfinv(X)
        assert [event.name for event in own.events()] == ["aten::erfinv"], own.events()
        print(os.path.basename(own.run) == prof.run.rpartition("/")[2], flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
with profile(schedule=schedule(wait=1, warmup=1, active=1, repeat=1), run="outer") as prof:
    for step in range(3):
        child_of(prof)
        torch.digamma(X)
        prof.step()
assert [event.name for event in prof.events()] == ["ProfilerStep*", "aten::digamma"], prof.events()
"""
    printed = runs.execute(*runs.script(text), cwd=tmp_path).stdout
    assert printed.split() == ["False", "False", "True"]


def test_below_stepscope_record_each_has_what_it_asks_for(tmp_path):
    """Also where the command records only some steps, and these are not among them."""
    text = """
import torch
from stepscope.profiler import profile, schedule
X = torch.ones(4, 4)
left = profile(schedule=schedule(wait=9, warmup=1, active=1), run="elsewhere")
left.start()
with profile(record_shapes=True, run="elsewhere") as prof:
    torch.erfinv(X)
print([(event.name, event.input_shapes) for event in prof.events()])
"""
    for number, options in enumerate(([], ["--steps", "5..6"])):
        run = tmp_path / f"run{number}"
        printed = runs.stepscope("record", "-o", run, *options, "--", *runs.script(text), cwd=tmp_path).stdout
        assert printed.strip() == "[('aten::erfinv', [[4, 4]])]"
        assert len(runs.named(runs.ops(run), "aten::erfinv")) == 1
    assert not (tmp_path / "elsewhere").exists()
