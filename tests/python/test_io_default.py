"""Calls on files that ``stepscope record`` records without being asked: of each Python process that imports PyTorch."""

import sys
import textwrap
from collections import Counter

import pytest
import runs
from files_recorded import TRACED, can_trace, compared, recorded_in, rows_of, seen_by_system

LOADER = """
    import sys
    import torch

    class Files(torch.utils.data.Dataset):
        def __len__(self):
            return 120
        def __getitem__(self, at):
            with open(f"data/{at}", "rb") as file:
                return torch.frombuffer(bytearray(file.read()), dtype=torch.uint8).float()

    if __name__ == "__main__":
        import wsgiref.validate  # It reads a file of Python's own library.
        how = {"num_workers": 2, "multiprocessing_context": sys.argv[1]} if sys.argv[1] != "main" else {}
        model = torch.nn.Linear(1000, 1)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for batch in torch.utils.data.DataLoader(Files(), batch_size=4, **how):
            model(batch).sum().backward()
            optimizer.step()
        with open("data/done", "wb") as file:
            file.write(b"done")
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(textwrap.dedent(LOADER))
    (tmp_path / "data").mkdir()
    for at in range(120):
        (tmp_path / "data" / str(at)).write_bytes(bytes(1000))
    return tmp_path


def recorded(*options, how="main", run="run"):
    """The calls on files of the program, which starts its workers in this way."""
    runs.stepscope("record", "-o", run, *options, "--", sys.executable, "program.py", how)
    runs.stepscope("recover", run)
    return list(rows_of(run))


def read_once(calls, folder, files):
    """The bytes that were read of these files of the folder, where each was read in one piece."""
    read = [row for row in calls if row["name"] == "read" and row["bytes"]]
    return Counter((row["file"], row["bytes"]) for row in read) == {
        (str(folder / "data" / str(at)), 1000): 1 for at in files
    }


@pytest.mark.parametrize("how", ["main", "fork", "spawn", "forkserver"])
def test_files_are_recorded_in_each_process_and_those_of_packages_are_not(folder, how):
    calls = [row for row in recorded(how=how) if "page fault" not in row["name"]]
    assert read_once(calls, folder, range(120))
    written = [(row["file"], row["bytes"]) for row in calls if row["name"] == "write"]
    assert [row for row in written if row[0].startswith(str(folder))] == [(str(folder / "data/done"), 4)]
    assert len({row["pid"] for row in calls if row["name"] == "read" and row["bytes"]}) == (1 if how == "main" else 2)
    assert not [row["file"] for row in calls if row["file"].endswith(("validate.py", "validate.cpython-311.pyc"))]


def test_chosen_folders_may_be_those_of_packages(folder):
    import wsgiref

    calls = recorded("--io-include", wsgiref.__path__[0])
    assert {row["file"].rpartition("/wsgiref/")[2].split(".")[0] for row in calls} >= {"__pycache__/validate"}
    calls = recorded("--io-include", "data", "--io-exclude", "data/done", run="chosen")
    assert {row["file"] for row in calls} == {str(folder / "data" / str(at)) for at in range(120)}


def test_files_are_left_out(folder):
    assert recorded("--no-io") == []


@pytest.mark.parametrize("how", ["main", "fork"])
def test_files_of_some_steps_are_those_of_these_steps(folder, how):
    calls = recorded("--steps", "2..20", how=how)
    calls = [row for row in calls if row["name"] == "read" and row["bytes"]]
    if how == "main":
        # A step ends with the optimizer's: the batch of the next one is read after that.
        assert read_once(calls, folder, range(8, 84))
    else:
        # Two workers are four batches ahead.
        files = {int(row["file"].rpartition("/")[2]) for row in calls}
        assert files >= set(range(7 * 4, 21 * 4)) and files <= set(range(3 * 4, 25 * 4))


@pytest.mark.skipif(not can_trace(), reason="needs strace, which may trace programs")
def test_calls_are_those_that_strace_counts(folder):
    log = folder / "strace"
    runs.execute(*TRACED, "-o", log, sys.executable, "program.py", "fork")
    expected = compared(seen_by_system(log.read_text(), folder / "data"))
    recorded(how="fork")
    assert compared(recorded_in(folder / "run", folder / "data")) == expected
    assert sum(expected.values()) >= 360
