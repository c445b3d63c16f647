"""Memory in use over time, by category; that of ``torch.profiler`` is the oracle for bytes and forms.

What differs, and why:

- What was allocated before recording is not known, unless its free is recorded: what a tensor among an operator's
  inputs holds is not read. There, such tensors stand in front as ``PREEXISTING``.
- Categories follow from where memory is allocated and freed. There they follow from which tensors operators read and
  write, so that a category may differ; and a tensor that is written to may change it.
- The page is drawn here; there it needs matplotlib.
"""

import gc
import gzip
import json
import re
import warnings
from collections import Counter

import pytest
import torch
import torch.profiler
from stepscope.profiler import ProfilerActivity, profile

CPU = [ProfilerActivity.CPU]
ALL = {"activities": CPU, "record_shapes": True, "profile_memory": True, "with_stack": True}
PREEXISTING, CREATE, DESTROY = 1, 2, 4
CATEGORIES = "PARAMETER OPTIMIZER_STATE INPUT TEMPORARY ACTIVATION GRADIENT AUTOGRAD_DETAIL UNKNOWN".split()

MODEL = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 16))
OPTIMIZER = torch.optim.SGD(MODEL.parameters(), lr=0.01, momentum=0.9)


def step():
    x = torch.ones(32, 64)
    OPTIMIZER.zero_grad()
    loss = torch.nn.functional.mse_loss(MODEL(x), torch.zeros(32, 16))
    loss.backward()
    OPTIMIZER.step()


def recorded(kind, **options):
    step()
    # Nothing older may be freed meanwhile: its size is only known where a profiler before saw an allocation there.
    OPTIMIZER.zero_grad()
    gc.collect()
    gc.disable()
    try:
        with kind(**ALL, **options) as prof:
            step()
    finally:
        gc.enable()
    return prof


@pytest.fixture(scope="module")
def theirs():
    return recorded(torch.profiler.profile)


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    return recorded(profile, run=tmp_path_factory.mktemp("timeline") / "run")


def exported(prof, path, device="cpu"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        prof.export_memory_timeline(str(path), device=device)
    opener = gzip.open if str(path).endswith(".gz") else open
    with opener(path, "rt") as file:
        return json.load(file)


def totals(changes):
    """Bytes in use after each allocation and each free."""
    total, found = 0, []
    for _, action, nbytes, _ in changes:
        if action in (CREATE, DESTROY):
            total += nbytes
            found.append(total)
    return found


def test_bytes_over_time_are_the_same(theirs, ours, tmp_path):
    expected = exported(theirs, tmp_path / "theirs.raw.json.gz")
    found = exported(ours, tmp_path / "ours.raw.json.gz")
    assert totals(found) == totals(expected)
    assert len(totals(found)) > 40 and max(totals(found)) > 100_000
    times = [at for at, action, _, _ in found if action != PREEXISTING]
    assert times == sorted(times)
    # Unix time in both.
    assert abs(times[0] - max(at for at, *_ in expected)) < 3600 * 10**9


def test_categories_are_those_of_torch_where_they_can_be_told(theirs, ours, tmp_path):
    def allocated(changes):
        return [(nbytes, CATEGORIES[category]) for _, action, nbytes, category in changes if action == CREATE]

    expected = allocated(exported(theirs, tmp_path / "theirs.raw.json.gz"))
    found = allocated(exported(ours, tmp_path / "ours.raw.json.gz"))
    assert [nbytes for nbytes, _ in found] == [nbytes for nbytes, _ in expected]
    pairs = Counter()
    for (nbytes, ours_says), (_, theirs_says) in zip(found, expected):
        pairs[theirs_says, ours_says] += nbytes

    def share(category):
        return pairs[category, category] / sum(
            nbytes for (theirs_says, _), nbytes in pairs.items() if theirs_says == category
        )

    # The loss and what it is computed from are activations there, and lie in no module.
    assert share("ACTIVATION") > 0.95 and share("TEMPORARY") > 0.9 and share("AUTOGRAD_DETAIL") == 1
    gradients = sum(parameter.numel() * 4 for parameter in MODEL.parameters())
    assert pairs["GRADIENT", "GRADIENT"] == gradients
    assert sum(nbytes for (_, ours_says), nbytes in pairs.items() if ours_says == "GRADIENT") == gradients


def test_points_sum_to_what_changes_say(ours, tmp_path):
    changes = exported(ours, tmp_path / "a.raw.json.gz")
    times, sizes = exported(ours, tmp_path / "a.json")
    assert exported(ours, tmp_path / "a.json.gz") == [times, sizes]
    assert len(times) == len(sizes) and times == sorted(set(times))
    assert {len(row) for row in sizes} == {1 + len(CATEGORIES)} and {row[0] for row in sizes} == {0}
    first = min(at for at, action, _, _ in changes if action != PREEXISTING)
    by_time = {}
    in_use = [0] * len(CATEGORIES)
    for at, _, nbytes, category in changes:
        in_use[category] += nbytes
        by_time[(first if at == -1 else at) // 1000] = [0, *in_use]
    assert dict(zip(times, sizes)) == by_time


def test_the_forms_are_those_of_torch(theirs, ours, tmp_path):
    def form(value):
        return [form(value[0])] if isinstance(value, list) and value else type(value).__name__

    for name in ("a.json", "a.json.gz", "a.raw.json.gz"):
        assert form(exported(ours, tmp_path / name)) == form(exported(theirs, tmp_path / name)), name
    assert exported(ours, tmp_path / "none.json", "cuda:0") == exported(theirs, tmp_path / "none.json", "cuda:0")


def test_the_page_needs_nothing_else(ours, tmp_path):
    path = tmp_path / "memory.html"
    ours.export_memory_timeline(path, device="cpu")
    page = path.read_text()
    assert page.count("<path fill=") >= 3 and "gradient, at most" in page
    assert not re.search(r"https?://(?!www\.w3\.org)|<script|<img", page)


def test_what_it_needs_and_what_it_cannot_do(ours, tmp_path):
    with pytest.raises(RuntimeError):
        ours.export_memory_timeline(str(tmp_path / "x.json"), device="no such device")
    with pytest.raises(OSError, match="cannot write"):
        ours.export_memory_timeline(str(tmp_path / "no" / "such.json"))
