"""Every attribute of every event and average, ours beside those of ``torch.profiler`` for the same step."""

import threading
import warnings

import pytest
import torch
import torch.profiler
from stepscope.profiler import ProfilerActivity, profile

CPU = [ProfilerActivity.CPU]
functional = torch.nn.functional


def step():
    """Labels, a backward pass, all operators whose operations are counted, inputs of many kinds, memory outside."""
    torch.manual_seed(0)
    x = torch.ones(8, 8, requires_grad=True)
    with torch.profiler.record_function("outer", "7, 8"):
        with torch.profiler.record_function("inner"):
            y = functional.linear(x, x).relu() + torch.arange(8)
        z = torch.cat([y, y]).to(torch.float64).sum()
    z.backward()
    a, b = torch.ones(2, 3, 4), torch.ones(2, 4, 5)
    torch.bmm(a, b)
    torch.baddbmm(torch.ones(2, 3, 5), a, b, alpha=0.5)
    torch.addmm(torch.ones(5), torch.ones(3, 4), torch.ones(4, 5), beta=2)
    torch.mm(torch.eye(3).to_sparse(), torch.ones(3, 4))
    torch.mm(torch.ones(3, 0), torch.ones(0, 5))
    torch.add(torch.ones(8), torch.ones(4, 8), alpha=1.5)
    torch.add(torch.ones(()), torch.ones(4, 8))
    torch.mul(a, 2.0, out=torch.empty(2, 3, 4))
    torch.ones(0, 3) * torch.ones(3, 1).expand(3, 3)[:1]
    image, weight = torch.ones(2, 4, 9, 12), torch.ones(6, 4, 3, 2)
    functional.conv2d(image, weight, torch.ones(6), stride=(2, 1), padding=1, dilation=(1, 2))
    functional.conv2d(image, torch.ones(6, 2, 3, 3), groups=2)
    functional.conv2d(image, weight, padding="same")
    functional.conv2d(image[0], weight)
    torch.conv2d(image, weight, stride=[2])
    torch.conv1d(torch.ones(1, 1, 9), torch.ones(1, 1, 3))
    torch.full((3,), -0.1, dtype=torch.float64).clamp(float("-inf"), 1e300)
    torch.ones(3).fill_(1e-7).div(3, rounding_mode="floor").fill_(True)
    torch.full((2,), 1 + 2j)
    torch.ones(2, 2).sum(dim=[0, 1], keepdim=True).roll([1] * 2, [0, -1])
    torch.ones(*[1] * 31)


def config(**keywords):
    return {"experimental_config": torch.profiler._ExperimentalConfig(**keywords)}


OPTIONS = {
    "plain": {},
    "shapes": {"record_shapes": True},
    "flops": {"with_flops": True},
    "memory": {"profile_memory": True},
    "overloads": config(capture_overload_names=True),
    "all": {"record_shapes": True, "with_flops": True, "profile_memory": True, **config(capture_overload_names=True)},
}

# What differs, and why. All other attributes of all events are equal.
DIFFERENCES = {
    "time_range": "two recordings of one step",
    "id": "Kineto gives numbers in blocks of 512 a thread, also to what is not listed; ours follow one another",
    "external_id": "as id: the two are equal there and here, but for memory, where it is 0",
    "sequence_nr": "autograd counts on from one step to the next; the order of numbers is the same",
}
# They hold events: the tree is compared by positions.
TREE = {"cpu_parent", "cpu_children"}


@pytest.fixture(scope="module", params=OPTIONS)
def both(request, tmp_path_factory):
    """The step recorded with the same options, there and here."""
    found = []
    for kind, place in ((torch.profiler.profile, {}), (profile, {"run": tmp_path_factory.mktemp("run") / "run"})):
        step()
        with kind(activities=CPU, **OPTIONS[request.param], **place) as prof:
            step()
        found.append(prof)
    return found


def public(event):
    """The attributes of one of torch's events."""
    return {name for name in vars(event) if not name.startswith("_")} | {"metadata_json"}


def value(event, name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return getattr(event, name)


def test_every_attribute_of_every_event_is_equal(both):
    theirs, ours = (prof.events() for prof in both)
    assert [event.name for event in ours] == [event.name for event in theirs]
    for one, other in zip(ours, theirs):
        for name in public(other) - set(DIFFERENCES) - TREE:
            expected, found = value(other, name), value(one, name)
            assert (found, type(found)) == (expected, type(expected)), (other.name, name)


def test_what_differs_differs_in_its_value_alone(both):
    theirs, ours = (prof.events() for prof in both)
    for events in (theirs, ours):
        ids = [event.id for event in events]
        assert len(set(ids)) == len(ids)
        assert all(event.external_id == (0 if event.activity_type is None else event.id) for event in events)

    def positions(events):
        at = {id(event): place for place, event in enumerate(events)}
        return [(at.get(id(event.cpu_parent)), [at[id(child)] for child in event.cpu_children]) for event in events]

    assert positions(ours) == positions(theirs)

    def numbers(events):
        known = sorted({event.sequence_nr for event in events} - {-1})
        return [known.index(event.sequence_nr) if event.sequence_nr >= 0 else None for event in events]

    assert numbers(ours) == numbers(theirs)
    assert len(set(numbers(ours))) > 5


def test_every_attribute_of_every_average_is_equal(both):
    times = {"cpu_time_total", "self_cpu_time_total"}
    for grouping in ((), (True,), (False, 0, True), (True, 0, True)):
        theirs, ours, listed = (
            list(averages)
            for averages in (
                both[0].key_averages(*grouping),
                both[1].key_averages(*grouping),
                both[1].events().key_averages(*grouping),
            )
        )
        assert [average.key for average in ours] == [average.key for average in theirs]
        assert [average.key for average in listed] == [average.key for average in theirs]
        for expected, one, other in zip(theirs, ours, listed):
            for name in set(vars(expected)) - times - TREE:
                assert getattr(one, name) == getattr(expected, name), (expected.key, name)
                assert getattr(other, name) == getattr(expected, name), (expected.key, name)


def test_tables_have_the_same_columns_and_rows(both):
    """But for times."""
    for grouping in ((), (True,), (False, 0, True)):
        theirs, ours = (prof.key_averages(*grouping).table(row_limit=-1).splitlines() for prof in both)
        assert ours[:3] == theirs[:3]
        assert len(ours) == len(theirs)
        for one, other in zip(ours[3:-2], theirs[3:-2]):
            ends = theirs[1].index("# of Calls") if "# of Calls" in theirs[1] else 0
            assert one[ends:] == other[ends:]
            assert one.split("  ")[0] == other.split("  ")[0]


def test_the_step_has_what_is_compared(both, request):
    """A comparison of nothing would hold too."""
    options = OPTIONS[request.node.callspec.params["both"]]
    events = both[1].events()
    assert any(event.flops for event in events) == ("with_flops" in options)
    assert any(event.overload_name for event in events) == ("experimental_config" in options)
    assert any(event.name == "[memory]" for event in events) == ("profile_memory" in options)
    shown = "record_shapes" in options or "with_flops" in options
    values = [value for event in events for value in event.concrete_inputs or ()]
    assert {float, int, bool, list} <= {type(value) for value in values} if shown else not values
    assert any(event.fwd_thread for event in events)
    assert ("Total" in both[1].key_averages().table()) == ("with_flops" in options)


OUT_OF_MEMORY = 10**15


def test_what_cannot_be_allocated_is_a_row(tmp_path):
    """Inside of an event too."""

    def fail():
        with torch.profiler.record_function("too much"), pytest.raises(RuntimeError):
            torch.empty(OUT_OF_MEMORY, dtype=torch.uint8)
        with pytest.raises(RuntimeError):
            torch.empty(OUT_OF_MEMORY + 1, dtype=torch.uint8)

    found = []
    for kind, place in ((torch.profiler.profile, {}), (profile, {"run": tmp_path / "run"})):
        with kind(activities=CPU, profile_memory=True, **place) as prof:
            fail()
        found.append(prof)

    def rows(events):
        return [
            (
                event.name,
                event.cpu_parent and event.cpu_parent.name,
                event.cpu_memory_usage,
                event.self_cpu_memory_usage,
            )
            for event in events
        ]

    theirs, ours = (rows(prof.events()) for prof in found)
    assert ours == theirs
    assert [row[0] for row in ours].count("[OutOfMemory]") == 2
    theirs, ours = (
        [(average.key, average.count, average.cpu_memory_usage) for average in prof.key_averages()] for prof in found
    )
    assert ours == theirs


def test_what_ends_on_another_thread_is_async(tmp_path):
    """It is nobody's parent, and has no time of its own."""

    def label_of_a_future():
        future = torch.futures.Future()
        with torch.profiler.record_function("label") as label:
            torch.digamma(torch.ones(3))
            done = label._call_end_callbacks_on_future(future)
        thread = threading.Thread(target=future.set_result, args=(1,))
        thread.start()
        thread.join()
        done.wait()
        torch.erfinv(torch.ones(3))

    found = []
    for kind, place in ((torch.profiler.profile, {}), (profile, {"run": tmp_path / "run"})):
        with kind(activities=CPU, profile_memory=True, **place) as prof:
            label_of_a_future()
        found.append(prof)

    def rows(events):
        of = [event for event in events if not event.name.startswith("profiler::")]
        return [
            (event.name, event.is_async, event.cpu_parent and event.cpu_parent.name, event.cpu_memory_usage)
            for event in of
        ]

    theirs, ours = (rows(prof.events()) for prof in found)
    assert ours == theirs
    (label,) = [event for event in found[1].events() if event.name == "label"]
    assert label.is_async and label.self_cpu_time_total == 0 and label.cpu_time_total > 0 and not label.cpu_children
    (average,) = [average for average in found[1].key_averages() if average.key == "label"]
    assert average.is_async and average.self_cpu_time_total == 0 and average.cpu_time_total > 0
