"""Batches of PyTorch's DataLoader: who makes which, of what samples, and which of them each ``next()`` gets."""

import json
import textwrap
from collections import Counter

import pyarrow.parquet as pq
import pytest
import runs

PROGRAM = """
import sys, torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, SequentialSampler

class Items(Dataset):
    def __len__(self):
        return 10
    def __getitem__(self, index):
        return torch.full((2,), float(index))

class Batched(Items):
    def __getitems__(self, indices):
        return [self[index] for index in indices]

class Stream(IterableDataset):
    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        first, step = (0, 1) if worker is None else (worker.id, worker.num_workers)
        return iter(torch.full((2,), float(index)) for index in range(first, 10, step))

def main():
    for epoch in range(EPOCHS):
        for batch in loader:
            seen.append(batch[:, 0].tolist() if batch.dim() > 1 else batch.tolist())

seen, EPOCHS = [], 1
"""


def recorded(tmp_path, lines, *options):
    """What the loop saw, the fetches and the nexts with batches, each with its process's id and name, by start."""
    path = tmp_path / "program.py"
    main = 'if __name__ == "__main__":\n' + textwrap.indent(textwrap.dedent(lines) + "\nmain()\nprint(seen)", "    ")
    path.write_text(PROGRAM + main)
    run = tmp_path / "run"
    result = runs.stepscope("record", "-o", run, *options, "--", *runs.new_program(path))
    rows = sorted(runs.rows(run), key=lambda row: row["start_ns"])
    said = []
    for row in rows:
        keywords = (json.loads(row["inputs"]) if row["inputs"] else {}).get("keywords", {})
        if "dataflow" in keywords:
            said.append({**keywords, "pid": row["pid"], "row": row, "process": row["process_name"]})
    fetches = [of for of in said if of["dataflow"] == "fetch"]
    nexts = [of for of in said if of["dataflow"] == "next"]
    assert all(of["row"]["name"] == "DataLoader.fetch" for of in fetches)
    assert all(of["row"]["name"].startswith("enumerate(DataLoader)#") for of in nexts)
    return json.loads(result.stdout.strip().splitlines()[-1]), fetches, nexts


def numbers(said):
    return [of["batch"] for of in said]


def check_matching(seen, fetches, nexts):
    """Each next gets the batch that the fetch with its number made before, in the process that it names."""
    made = {}
    for fetch in fetches:
        made.setdefault((fetch["pid"], fetch["batch"]), []).append(fetch)
    assert len(nexts) == len(seen)
    for values, got in zip(seen, nexts):
        end = got["row"]["start_ns"] + got["row"]["dur_ns"]
        of = made[got.get("worker_pid", got["pid"]), got["batch"]]
        of = [fetch for fetch in of if fetch["row"]["start_ns"] + fetch["row"]["dur_ns"] <= end]
        assert of[-1].get("worker") == got.get("worker")
        if "samples" in of[-1]:
            assert values == [float(sample) for sample in of[-1]["samples"]]


def test_without_workers_a_fetch_lies_in_the_next_that_gets_it(tmp_path):
    seen, fetches, nexts = recorded(tmp_path, "loader = DataLoader(Items(), batch_size=4)\nEPOCHS = 2")
    assert numbers(fetches) == numbers(nexts) == [0, 1, 2] * 2
    assert [fetch["samples"] for fetch in fetches[:3]] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert [fetch["count"] for fetch in fetches[:3]] == [4, 4, 2]
    assert not any("worker" in of for of in fetches + nexts)
    check_matching(seen, fetches, nexts)
    for fetch, got in zip(fetches, nexts):
        assert runs.contains(got["row"], fetch["row"]) and got["row"]["start_ns"] <= fetch["row"]["start_ns"]


@pytest.mark.slow
@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers_say_who_they_are(tmp_path, context):
    loader = f"loader = DataLoader(Items(), batch_size=2, num_workers=2, multiprocessing_context={context!r})"
    seen, fetches, nexts = recorded(tmp_path, loader)
    assert numbers(nexts) == [0, 1, 2, 3, 4] and sorted(numbers(fetches)) == [0, 1, 2, 3, 4]
    assert [got["worker"] for got in nexts] == [0, 1, 0, 1, 0]
    for fetch in fetches:
        assert fetch["process"] == f"DataLoader worker {fetch['worker']}"
    check_matching(seen, fetches, nexts)
    assert len({fetch["pid"] for fetch in fetches} | {nexts[0]["pid"]}) == 3


def test_workers_that_stay_count_anew_in_each_pass(tmp_path):
    loader = (
        "loader = DataLoader(Items(), batch_size=5, num_workers=1, persistent_workers=True, shuffle=True)\nEPOCHS = 3"
    )
    seen, fetches, nexts = recorded(tmp_path, loader)
    assert numbers(fetches) == numbers(nexts) == [0, 1] * 3
    assert len({fetch["pid"] for fetch in fetches}) == 1
    check_matching(seen, fetches, nexts)


def test_an_iterable_dataset_has_no_indices(tmp_path):
    seen, fetches, nexts = recorded(tmp_path, "loader = DataLoader(Stream(), batch_size=2, num_workers=2)")
    assert not any("samples" in fetch or "count" in fetch for fetch in fetches)
    # The last fetch of each worker finds that there is no more.
    assert Counter(fetch["worker"] for fetch in fetches) == {0: 4, 1: 4} and len(nexts) == 6
    check_matching(seen, fetches, nexts)
    assert all(got["worker"] == values[0] % 2 for got, values in zip(nexts, seen))


@pytest.mark.parametrize(
    "arguments, samples",
    [
        ("Batched(), batch_size=4", [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]),
        ("Items(), batch_sampler=BatchSampler(SequentialSampler(range(6)), 3, False)", [[0, 1, 2], [3, 4, 5]]),
        ("Items(), batch_size=None, sampler=[7, 1]", [[7], [1]]),
        # What is no whole number is no index.
        ("{'a': torch.ones(2), 'b': torch.ones(2)}, batch_size=1, sampler=['a', 'b']", [None, None]),
    ],
)
def test_samples_of_other_loaders(tmp_path, arguments, samples):
    seen, fetches, nexts = recorded(tmp_path, f"loader = DataLoader({arguments}, num_workers=1)")
    assert [fetch.get("samples") for fetch in fetches] == samples and len(nexts) == len(seen) == len(samples)


def test_only_the_first_samples_of_a_large_batch_are_told(tmp_path):
    loader = "Items.__len__ = lambda self: 40\nloader = DataLoader(Items(), batch_size=40)"
    _, fetches, _ = recorded(tmp_path, loader)
    assert [(fetch["samples"], fetch["count"]) for fetch in fetches] == [([*range(16)], 40)]


# What a release that nobody knows may lack, or do otherwise.
UNKNOWN = {
    "tasks that are no dictionary": """
        class Tasks:
            def __init__(self): self.all = {}
            def __getattr__(self, name): return getattr(self.all, name)
            def __getitem__(self, key): return self.all[key]
            def __setitem__(self, key, value): self.all[key] = value
            def __delitem__(self, key): del self.all[key]
            def __len__(self): return len(self.all)
        kind = torch.utils.data.dataloader._MultiProcessingDataLoaderIter
        reset = kind._reset
        def changed(self, *args, **kwargs):
            put, self._try_put_index = self._try_put_index, lambda: None
            reset(self, *args, **kwargs)
            self._task_info, self._try_put_index = Tasks(), put
            for _ in range(self._prefetch_factor * self._num_workers): put()
        kind._reset = changed
    """,
    "no numbers of batches": """
        kind = torch.utils.data.dataloader._BaseDataLoaderIter
        kind._num_yielded = property(lambda self: None, lambda self, value: None)
        kind.__next__ = lambda self: self._next_data()
    """,
}


@pytest.mark.parametrize("change", UNKNOWN)
@pytest.mark.parametrize("workers", [0, 2])
def test_a_release_that_does_otherwise_is_not_disturbed(tmp_path, change, workers):
    lines = textwrap.dedent(UNKNOWN[change]) + f"\nloader = DataLoader(Items(), batch_size=4, num_workers={workers})"
    seen, _, _ = recorded(tmp_path, lines)
    assert seen == [[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0], [8.0, 9.0]]


def test_a_dataset_that_fails_fails_as_ever(tmp_path):
    lines = """
        def fail(self, index): raise RuntimeError("broken sample")
        Items.__getitem__ = fail
        for workers in (0, 1):
            try:
                next(iter(DataLoader(Items(), num_workers=workers)))
            except RuntimeError as error:
                assert "broken sample" in str(error), error
                seen.append([workers])
        loader = []
    """
    seen, fetches, nexts = recorded(tmp_path, lines)
    assert seen == [[0], [1]] and nexts == [] and {fetch["batch"] for fetch in fetches} >= {0}


def test_analyses_of_workers_and_batches(tmp_path):
    lines = "import time\nloader = DataLoader(Items(), batch_size=2, num_workers=2)"
    seen, fetches, nexts = recorded(tmp_path, lines)
    run = tmp_path / "run"
    rows = runs.analyze("io_workers", run)["results"]
    assert [(row["worker"], row["batches"], row["workers"]) for row in rows] == [(0, 3, 2), (1, 2, 2)]
    for row in rows:
        parts = ("reading_ns", "decoding_ns", "waiting_ns", "idle_ns")
        assert sum(row[part] for part in parts) == row["total_ns"]
        of_worker = [fetch["row"]["dur_ns"] for fetch in fetches if fetch["worker"] == row["worker"]]
        assert row["reading_ns"] + row["decoding_ns"] == sum(of_worker)
        of_nexts = [got["row"]["dur_ns"] for got in nexts if got["worker"] == row["worker"]]
        assert row["waited_for_ns"] == sum(of_nexts)
    rows = runs.analyze("io_samples", run)["results"]
    assert sorted(row["total_ns"] for row in rows) == sorted(fetch["row"]["dur_ns"] for fetch in fetches)
    assert all(row["waited_ns"] is not None and row["ready_ns"] >= 0 for row in rows)
    assert {row["samples"] for row in rows} == {"[0,1]", "[2,3]", "[4,5]", "[6,7]", "[8,9]"}
    runs.stepscope("convert", run, "-o", f"{tmp_path / 'tables'}/")
    table = {name: pq.read_table(tmp_path / "tables" / name).to_pylist() for name in ("slice", "flow")}
    slices = {row["slice"]: row for row in table["slice"]}
    batches = [flow for flow in table["flow"] if flow["kind"] == "batch"]
    assert len(batches) == len(seen)
    for flow in batches:
        made, taken = slices[flow["from_slice"]], slices[flow["to_slice"]]
        assert made["name"] == "DataLoader.fetch" and made["process"].startswith("DataLoader worker ")
        assert taken["kind"] == "dataloader" and made["process"] != taken["process"]
        assert made["start_ns"] + made["dur_ns"] <= taken["start_ns"] + taken["dur_ns"]
