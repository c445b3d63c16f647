"""Data sets as jobs keep them: what libraries read of them is recorded, as the system sees it and page by page."""

import json
import os
import sys
from pathlib import Path

import pytest
import runs
from files_recorded import TRACED, can_trace, compared, record, recorded_in, rows_of, seen_by_system, succeed

PROGRAM = Path(__file__).with_name("programs") / "formats.py"
SAMPLES, SIZE = 64, 16 * 1024
# Those that are read in calls, and those of which a mapping is read.
IN_CALLS = ["image_folder", "npz", "parquet", "hdf5", "webdataset"]
MAPPED = ["memmap", "lmdb", "safetensors"]
# As `io_files` calls them.
FORMATS = {"image_folder": "image", "npz": "npz", "parquet": "parquet", "hdf5": "hdf5", "webdataset": "tar"}


def written(tmp_path, name):
    """The folder of a data set."""
    data = tmp_path / "data"
    data.mkdir()
    succeed([sys.executable, PROGRAM, "write", name, data], tmp_path)
    return data


def size_of(data):
    return sum(path.stat().st_size for path in data.rglob("*") if path.is_file())


@pytest.mark.parametrize("name", IN_CALLS)
def test_what_is_read_in_calls_is_what_the_system_sees(tmp_path, name):
    data = written(tmp_path, name)
    log = tmp_path / "strace.log"
    traced = [*TRACED, "-o", log] if can_trace() else []
    read = succeed([*traced, *record(tmp_path / "run"), sys.executable, PROGRAM, "read", name, data], tmp_path)
    assert int(read.stdout) == SAMPLES * SIZE
    ours = compared(recorded_in(tmp_path / "run", data))
    if traced:
        assert ours == compared(seen_by_system(log.read_text(), data))
    moved = sum(count * key[2] for key, count in ours.items() if key[2])
    # Images are compressed. Of a file that is read once, a library reads the beginning and the end once more.
    least = size_of(data) if name == "image_folder" else SAMPLES * SIZE
    assert least <= moved <= 2 * size_of(data)
    rows = runs.analyze("io_files", tmp_path / "run")["results"]
    rows = [row for row in rows if (row["file"] or "").startswith(f"{data}/")]
    assert all(row["format"] == FORMATS[name] for row in rows)
    of_files = sum(row["read_bytes"] or 0 for row in rows)
    if name == "hdf5":
        # A call of the library counts by what it gives; what else it reads for that is not given.
        assert SAMPLES * SIZE <= of_files < moved
    else:
        assert of_files == moved


@pytest.mark.parametrize("name", MAPPED)
def test_what_is_read_through_a_mapping_has_its_file_and_its_pages(tmp_path, name):
    data = written(tmp_path, name)
    (file,) = [path for path in data.rglob("*") if path.is_file() and path.stat().st_size > SAMPLES * SIZE / 2]
    descriptor = os.open(file, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)
    read = succeed([*record(tmp_path / "run"), sys.executable, PROGRAM, "read", name, data], tmp_path)
    assert int(read.stdout) == SAMPLES * SIZE
    rows = [row for row in rows_of(tmp_path / "run") if row["file"] == str(file)]
    calls = [row["name"] for row in rows]
    assert "mmap" in calls and any("open" in call for call in calls)
    # Nothing but what describes the data is read in calls.
    assert sum(row["bytes"] or 0 for row in rows if "read" in row["name"]) <= 64 * 1024
    if "capture.page_faults_not_recorded" in runs.findings(tmp_path / "run"):
        pytest.skip("the system does not let a process count its page faults")
    faults = [row for row in rows if row["name"] == "major page fault"]
    # LMDB reads its first page in a call, and from there the system reads ahead of what is touched.
    if not faults and name != "lmdb":
        pytest.skip("the file system keeps evicted pages")
    assert all(0 <= row["offset"] < file.stat().st_size for row in faults)


def test_a_loader_with_workers_says_which_file_made_a_batch_slow(tmp_path):
    data = written(tmp_path, "image_folder")
    # One sample is 40 MB, and not in memory.
    slow = data / "17.png"
    slow.write_bytes(slow.read_bytes() + bytes(40_000_000))
    text = f"""
import sys
import numpy as np
from torch.utils.data import DataLoader, Dataset

class Images(Dataset):
    def __len__(self):
        return {SAMPLES}

    def __getitem__(self, number):
        with open(f"{{sys.argv[1]}}/{{number}}.png", "rb") as file:
            return len(file.read())

for batch in DataLoader(Images(), batch_size=4, num_workers=2):
    pass
"""
    runs.stepscope("record", "--io", "-o", tmp_path / "run", "--", *runs.new_script(text, data))
    rows = runs.analyze("io_samples", tmp_path / "run")["results"]
    assert len(rows) == SAMPLES // 4
    by_file = {row["file"]: row for row in rows if row["file"]}
    row = by_file[str(slow)]
    assert 17 in json.loads(row["samples"]) and row["read_bytes"] > 40_000_000
    assert row["file_ns"] <= row["reading_ns"] <= row["total_ns"] and row["worker"] in (0, 1)
    assert row["file_ns"] == max(row["file_ns"] for row in by_file.values())
