"""What ``stepscope.profiler`` has after each cycle, and while collection is switched. torch.profiler is the oracle.

Names in brackets are those of PyTorch's own tests of the same thing.
"""

import pytest
import torch
import torch.profiler
from stepscope.profiler import ProfilerActivity, profile, record_function, schedule

X = torch.ones(4, 4)


def test_collection_is_switched_while_it_records(tmp_path):
    """[test_dynamic_toggle]"""
    with profile(run=tmp_path / "a") as prof:
        prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
        with record_function("label"):
            torch.erfinv(X)
    assert prof.events() == []
    with profile(run=tmp_path / "b") as prof:
        torch.erfinv(X)
        prof.toggle_collection_dynamic(False, [ProfilerActivity.CUDA, ProfilerActivity.CPU])
        torch.digamma(X)
        prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
        torch.lgamma(X)
        prof.toggle_collection_dynamic(False, [ProfilerActivity.CUDA])
        torch.erf(X)
    assert [event.name for event in prof.events()] == ["aten::erfinv", "aten::lgamma", "aten::erf"]


@pytest.mark.parametrize("asked", ["events", "key_averages"])
def test_what_was_asked_for_in_between_is_not_all(asked, tmp_path):
    with profile(run=tmp_path / "run") as prof:
        for number, op in enumerate((torch.erfinv, torch.digamma, torch.lgamma), start=1):
            op(X)
            prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
            assert len(getattr(prof, asked)()) == number
            prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
        torch.erf(X)
    names = ["aten::erfinv", "aten::digamma", "aten::lgamma", "aten::erf"]
    assert [event.name for event in prof.events()] == [average.key for average in prof.key_averages()] == names


def test_events_of_a_second_cycle_are_there_after_those_of_the_first(tmp_path):
    found = {}
    for kind, options in ((torch.profiler.profile, {}), (profile, {"run": tmp_path / "run"})):
        counts = found[kind] = []

        def count(prof):
            counts.append(sum(event.name == "aten::erfinv" for event in prof.events()))

        cycles = schedule(wait=0, warmup=1, active=2, repeat=2)
        cpu = [ProfilerActivity.CPU]
        with kind(activities=cpu, schedule=cycles, acc_events=True, on_trace_ready=count, **options) as prof:
            for step in range(6):
                torch.erfinv(X)
                if step >= 3 and kind is profile:
                    prof.events()
                prof.step()
        count(prof)
    assert found[profile] == found[torch.profiler.profile] == [2, 4, 4]


def test_events_of_all_cycles_are_kept_when_asked(tmp_path):
    counts = {}
    for keeps in (False, True):
        with profile(
            schedule=schedule(wait=0, warmup=1, active=1, repeat=3), acc_events=keeps, run=tmp_path / str(keeps)
        ) as prof:
            for _ in range(6):
                torch.erfinv(X)
                prof.step()
        counts[keeps] = [(average.key, average.count) for average in prof.key_averages()]
        assert len(prof.events()) == sum(count for _, count in counts[keeps])
        listed = [(average.key, average.count) for average in prof.events().key_averages()]
        assert listed == counts[keeps]
    assert counts == {
        False: [("ProfilerStep*", 1), ("aten::erfinv", 1)],
        True: [("ProfilerStep*", 3), ("aten::erfinv", 3)],
    }
