"""Two ranks with gloo and all options at once: the same step by torch.profiler and by Stepscope, in each process in turn.

What differs from torch.profiler: of gloo it tells no more than inputs; we add which collective of which group it is, under
the keys that torch.profiler has for those of NCCL. For NCCL's own announcements see ``test_collectives``.
"""

import contextlib
import json
import math
from collections import Counter
from types import SimpleNamespace

import pytest
import runs
from test_collectives import KEYS
from test_shapes import slices

RANKS = (0, 1)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    with contextlib.ExitStack() as stack:
        started = [
            stack.enter_context(
                runs.started(
                    *runs.new_program("all_options_ranks.py", folder),
                    env=runs.environment(RANK=rank, WORLD_SIZE=2),
                    timeout=600,
                )
            )
            for rank in RANKS
        ]
        printed = [process.communicate() for process in started]
    assert [process.returncode for process in started] == [0, 0], printed
    counts = [tuple(map(int, out.split()[-2:])) for out, _ in printed]
    return SimpleNamespace(folder=folder, counts=counts, rows=runs.rows(folder / "run"))


@pytest.mark.parametrize("rank", RANKS)
def test_the_same_slices_with_the_same_inputs(recorded, rank):
    theirs, ours = (list(slices(recorded.folder / f"{kind}-{rank}.json")) for kind in ("torch", "stepscope"))
    assert Counter(slice_[:-1] for slice_ in ours) == Counter(slice_[:-1] for slice_ in theirs)
    assert {keywords for *_, keywords in theirs} == {"{}"}
    added = {key for *_, keywords in ours for key in json.loads(keywords)}
    assert {"Collective name", "In msg nelems", "Group size", "Process Group Name"} <= added <= set(KEYS.values())
    works = Counter(name for name, *_ in theirs if name.startswith("gloo:"))
    assert works["gloo:all_reduce"] == 3 and works["gloo:send"] + works["gloo:recv"] == 1 and sum(works.values()) == 9


@pytest.mark.parametrize("rank", RANKS)
def test_numbers_are_those_that_the_group_counts(recorded, rank):
    before, after = recorded.counts[rank]
    assert after - before == 9
    for kind in ("op", "label"):
        rows = [row for row, _ in collectives(recorded, rank) if row["kind"] == kind]
        assert sorted(row["collective_sequence_number"] for row in rows) == list(range(before + 1, after + 1))


@pytest.mark.parametrize("rank", RANKS)
def test_sizes_are_those_that_torch_profiler_shows_as_inputs(recorded, rank):
    theirs = [
        (name, sum(map(math.prod, json.loads(dims))))
        for name, dims, *_ in slices(recorded.folder / f"torch-{rank}.json")
        if name.startswith("gloo:") and dims != "null"
    ]
    works = [
        (row["name"], said["input_elements"]) for row, said in collectives(recorded, rank) if "input_elements" in said
    ]
    assert Counter(works) == Counter(theirs)
    assert ("gloo:all_gather", 12) in works


def collectives(recorded, rank):
    """(row, what it says of its collective), all of the one group."""
    found = [(row, json.loads(row["collective"])) for row in recorded.rows if row["collective"]]
    found = [(row, said) for row, said in found if said["rank"] == rank]
    assert {(said["group"], said["group_size"], said["group_ranks"]) for _, said in found} == {("0", 2, "[0, 1]")}
    return found
