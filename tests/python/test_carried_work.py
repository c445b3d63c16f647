"""Work that PyTorch takes to other threads together with the profiler; what torch.profiler lists is the oracle."""

import asyncio
import json
import sys
import threading
import time
from collections import Counter

import carried_work
import pytest
import runs
import stepscope.profiler
import torch
import torch.distributed as dist
import torch.profiler


@pytest.fixture
def group():
    """A process group of gloo, of this process alone."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def both(program, tmp_path, **options):
    """What both profilers tell of a program that is given the ``record_function`` of each."""
    program(torch.profiler.record_function)
    found = []
    for of in (torch.profiler, stepscope.profiler):
        more = {"run": tmp_path / "run"} if of is stepscope.profiler else {}
        with of.profile(activities=[of.ProfilerActivity.CPU], **options, **more) as prof:
            with of.record_function("of the thread itself"):
                torch.ones(1)
            program(of.record_function)
        found.append(carried_work.told(prof, tmp_path))
    return found


def collectives(_):
    tensor = torch.ones(1000)
    dist.all_reduce(tensor)
    dist.all_reduce(tensor, async_op=True).wait()
    dist.all_gather([torch.zeros(1000)], tensor)
    dist.barrier()


@torch.jit.script
def scripted(x):
    future = torch.jit.fork(torch.mm, x, x)
    return torch.jit.wait(future) + 1


def forked(x):
    future = torch.jit._fork(inner, x)
    return torch.jit._wait(future) * 2


large = torch.ones(300, 300)
inner = torch.jit.trace(lambda x: x.sin().mm(x), large)
traced = torch.jit.trace(forked, large)


def forks(_):
    scripted(large)
    traced(large)


def by_name(counts):
    """Counts by name alone."""
    names = Counter()
    for (name, *_), count in counts.items():
        names[name] += count
    return names


# What torch.profiler lists of it. It is not asked here: it writes into memory that it has freed when a range of another
# thread ends behind its end, as that of a forked function does.
FORKS = Counter({"scripted": 1, "forked": 1, "<forked function>": 2, "aten::mm": 2, "aten::sin": 1, "aten::add": 1})
FORKS += Counter({"aten::mul": 1, "aten::resolve_conj": 6, "aten::to": 2, "aten::_to_copy": 2})
FORKS += Counter({"aten::empty_strided": 2, "aten::copy_": 2})


@pytest.mark.parametrize("all_threads", [False, True])
def test_what_is_forked_and_what_follows_it_is_listed(tmp_path, all_threads):
    config = torch.profiler._ExperimentalConfig(profile_all_threads=all_threads)
    forks(None)
    # A function that waits for one not done yet goes on in the thread that does it: repeated until that happened.
    for _ in range(50):
        with stepscope.profiler.profile(run=tmp_path / "run", experimental_config=config) as prof:
            with stepscope.profiler.record_function("of the thread itself"):
                pass
            forks(None)
        told = carried_work.told(prof, tmp_path)
        for what in ("averages", "trace", "events"):
            names = by_name(told[what])
            assert names.pop("of the thread itself") == 1
            # In a trace an operator that does nothing but call itself is there twice.
            assert names == FORKS + Counter(["aten::add", "aten::mul"] if what == "trace" else [])
        elsewhere = {name for name, is_own, *_ in told["events"] if not is_own}
        if {"<forked function>", "aten::add", "aten::mul"} <= elsewhere:
            return
    raise AssertionError("the thread was never late")


def test_what_others_do_for_themselves_is_not_listed(group, tmp_path):
    """Other threads ask for the same work of the same threads."""

    def program(_):
        for _ in range(2):
            thread = threading.Thread(target=collectives, args=(None,))
            thread.start()
            thread.join()
        collectives(None)

    theirs, ours = both(program, tmp_path)
    assert carried_work.differences(theirs, ours) == {}
    assert ours["averages"]["gloo:all_reduce", True] == 2 and ours["averages"]["gloo:barrier", True] == 1


def test_each_thread_that_profiles_has_its_own_work(tmp_path):
    x = torch.ones(4, 4)
    scripted(x)
    found = {}

    def work(name, times):
        with stepscope.profiler.profile(run=tmp_path / name) as prof:
            for _ in range(times):
                scripted(x)
                time.sleep(0.001)
        found[name] = forks_of(prof)

    with stepscope.profiler.profile(run=tmp_path / "outer") as outer:
        threads = [threading.Thread(target=work, args=arguments) for arguments in (("a", 3), ("b", 5))]
        for thread in threads:
            thread.start()
        scripted(x)
        for thread in threads:
            thread.join()
    assert found == {"a": 3, "b": 5}
    assert forks_of(outer) == 1
    # More than there are states that rest before they are used again.
    for _ in range(70):
        with stepscope.profiler.profile(run=tmp_path / "many") as prof:
            scripted(x)
    assert forks_of(prof) == 1


def forks_of(prof):
    return sum(event.name == "<forked function>" for event in prof.events())


def test_labels_that_overlap_are_as_in_torch_profiler(tmp_path):
    """[asyncio] Children go to the label that was entered last, and each has time of its own."""

    async def job(label, name):
        with label(name):
            torch.ones(2)
            await asyncio.sleep(0)
            torch.zeros(2)
            with label("inner"):
                await asyncio.sleep(0)
                torch.full((2,), 3)

    def program(label):
        async def main():
            await asyncio.gather(*(job(label, f"job {at}") for at in range(3)))

        asyncio.run(main())
        first, second = label("first"), label("second")
        first.__enter__()
        second.__enter__()
        torch.ones(1)
        first.__exit__(None, None, None)
        torch.zeros(1)
        second.__exit__(None, None, None)

    theirs, ours = both(program, tmp_path)
    assert carried_work.differences(theirs, ours) == {}
    assert ours["events"]["second", True, False, None] == 1
    assert ours["events"]["aten::zeros", True, False, "second"] == 1


def test_ranks_of_a_training_job_tell_the_same_as_torch_profiler(tmp_path):
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", 2]
    done = runs.execute(*launcher, runs.PROGRAMS / "carried_ranks.py", runs.PROGRAMS.parent)
    found = [json.loads(line.partition("FOUND ")[2]) for line in done.stdout.splitlines() if "FOUND " in line]
    assert len(found) == 2, done.stdout
    for of_rank in found:
        for elsewhere, differences in of_rank.values():
            assert differences == {}
            assert elsewhere > 10
