"""MPI's files and those of HDF5: each call is recorded with its file, its place and the bytes that it moved, and so are
the calls of the C library below it."""

import shutil
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import pytest
import runs
from files_recorded import record, rows_of, succeed

PROGRAMS = Path(__file__).with_name("programs")
# The error of a library that has numbers of its own.
UNKNOWN = 65535
KEYS = ("name", "bytes", "asked_bytes", "offset", "errno")


def found(run, file, prefix):
    rows = [row for row in rows_of(run) if row["file"] == str(file) and row["name"].startswith(prefix)]
    return [tuple(row[key] for key in KEYS) for row in rows]


def by_layer(run, file):
    """The bytes that each layer read of a file, and wrote to it."""
    sums = Counter()
    for row in rows_of(run):
        if row["file"] == str(file) and row["bytes"] is not None:
            layer = {"H5": "hdf5", "MP": "mpiio"}.get(row["name"][:2], "posix")
            sums[layer, "write" if "write" in row["name"] else "read"] += row["bytes"]
    return sums


HDF5 = """
    import sys
    import numpy as np

    def job():
        import h5py
        with h5py.File("data/set.h5", "w") as file:
            file.create_dataset("images", data=np.zeros((100, 50), np.float32))
            file.create_dataset("packed", data=np.zeros(1000), chunks=(100,), compression="gzip")
            file["images"].attrs["mean"] = np.zeros(3)
        with h5py.File("data/set.h5") as file:
            assert file["images"][7].shape == (50,)
            assert file["images"][:].shape == (100, 50)
            assert file["packed"][250:450].shape == (200,)
            assert file["images"].attrs["mean"].shape == (3,)
            assert len(file["packed"].id.read_direct_chunk((0,))[1]) < 800
            try:
                file["none"]
            except KeyError:
                pass
        try:
            h5py.File("data/none.h5")
        except FileNotFoundError as error:
            # What the library says of it is still there.
            assert "No such file" in str(error), error

    if sys.argv[1] == "profile":
        import torch
        from stepscope.profiler import profile
        import h5py
        with profile(io=True, run="run"):
            job()
    else:
        job()
"""


@pytest.mark.parametrize("how", ["record", "profile"])
def test_data_sets_are_recorded_above_what_the_file_has_of_them(tmp_path, how):
    pytest.importorskip("h5py")
    (tmp_path / "data").mkdir()
    (tmp_path / "program.py").write_text(textwrap.dedent(HDF5))
    before = record("run", "--io-include", "data") if how == "record" else []
    succeed([*before, sys.executable, "program.py", how], tmp_path)
    run, file = tmp_path / "run", tmp_path / "data/set.h5"
    runs.stepscope("recover", run)
    moved = [row[:2] for row in found(run, file, "H5") if row[1] is not None]
    assert Counter(moved) == Counter(
        {
            ("H5Dwrite", 20_000): 1,
            ("H5Dwrite", 8_000): 1,
            ("H5Awrite", 24): 1,
            ("H5Dread", 200): 1,
            ("H5Dread", 20_000): 1,
            ("H5Dread", 1_600): 1,
            ("H5Aread", 24): 1,
            **{row: 1 for row in moved if row[0] == "H5Dread_chunk"},
        }
    )
    chunks = [row for row in moved if row[0] == "H5Dread_chunk"]
    assert len(chunks) == 1 and 0 < chunks[0][1] < 800
    opened = [row for row in found(run, file, "H5F") if row[0] in ("H5Fcreate", "H5Fopen")]
    assert [row[0] for row in opened] == ["H5Fcreate", "H5Fopen"]
    assert found(run, tmp_path / "data/none.h5", "H5Fopen") == [("H5Fopen", None, None, None, UNKNOWN)]
    below = by_layer(run, file)
    # What is packed is smaller in the file.
    assert 20_000 < below["posix", "write"] < 28_024 == below["hdf5", "write"]
    layers = {row["layer"]: row for row in runs.analyze("io_summary", run, "--group-by", "layer")["results"]}
    assert layers["hdf5"]["read_bytes"] == below["hdf5", "read"]
    assert layers["posix"]["read_bytes"] == below["posix", "read"]
    assert "capture.io_bytes_not_seen" not in runs.findings(run)


# Of each rank, after it has written its half of 8,000 bytes.
MPI = [
    ("MPI_File_set_size", None, None, None, None),
    ("MPI_File_sync", None, None, None, None),
    ("MPI_File_read_at", 40, None, 4, None),
    ("MPI_File_read_at", 200, 400, 7_800, None),
    ("MPI_File_set_view", None, None, None, None),
    ("MPI_File_read_at", 20, None, 24, None),
    ("MPI_File_seek", None, None, None, None),
    ("MPI_File_read", 100, None, 56, None),
    ("MPI_File_read_all", 100, None, 156, None),
    ("MPI_File_iread_at", None, 20, 24, None),
    ("MPI_File_iread", None, 20, 256, None),
    ("MPI_File_iread_all", None, 20, 276, None),
    ("MPI_File_iwrite_at", None, 20, 296, None),
    ("MPI_File_read_at_all_begin", None, 20, 24, None),
    ("MPI_File_read_at_all_end", 20, None, 24, None),
    ("MPI_File_read_all_begin", None, 20, 296, None),
    ("MPI_File_read_all_end", 20, None, 296, None),
    ("MPI_File_write_at_all_begin", None, 20, 376, None),
    ("MPI_File_write_at_all_end", 20, None, 376, None),
    ("MPI_File_write_all_begin", None, 20, 316, None),
    ("MPI_File_write_all_end", 20, None, 316, None),
    ("MPI_File_read_ordered_begin", None, 20, None, None),
    ("MPI_File_read_ordered_end", 20, None, None, None),
    ("MPI_File_write_ordered_begin", None, 20, None, None),
    ("MPI_File_write_ordered_end", 20, None, None, None),
    ("MPI_File_close", None, None, None, None),
    ("MPI_File_open", None, None, None, None),
]


def test_files_of_mpi_are_recorded_with_the_bytes_that_it_says(tmp_path):
    pytest.importorskip("mpi4py")
    mpiexec = Path(sys.executable).with_name("mpiexec")
    program = [mpiexec, "-n", "2", sys.executable, PROGRAMS / "mpi_files.py"]
    if not mpiexec.exists() or subprocess.run([mpiexec, "-n", "1", "true"]).returncode:
        pytest.skip("there is no mpiexec")
    (tmp_path / "data").mkdir()
    succeed([*record("run", "--io-include", "data"), *program], tmp_path)
    file = tmp_path / "data/file"
    rows = Counter(found(tmp_path / "run", file, "MPI_"))
    expected = Counter({row: 2 for row in MPI})
    expected["MPI_File_write_at_all", 4_000, None, 0, None] = 1
    expected["MPI_File_write_at_all", 4_000, None, 4_000, None] = 1
    expected["MPI_File_delete", None, None, None, None] = 1
    assert rows == expected
    assert found(tmp_path / "run", tmp_path / "data/none", "MPI_") == [("MPI_File_open", None, None, None, UNKNOWN)]
    below = by_layer(tmp_path / "run", file)
    # What both ranks write at the same place of two collective calls is written once.
    assert below["mpiio", "write"] == 8_120 and below["posix", "write"] == 8_080


LOADER = """
    #include <dlfcn.h>
    #include <stdio.h>
    #include <unistd.h>
    int main(void) {
        // It is only in the folder that this program names.
        void *found = dlopen("libloaded.so", RTLD_NOW);
        int (*reads)(void) = found ? (int (*)(void))dlsym(found, "reads") : NULL;
        // What the loader says of it is there until it is asked something else, whatever is called first meanwhile.
        dlopen("libnone.so", RTLD_NOW);
        fprintf(stdout, "%s\\n", dlerror());
        fprintf(stdout, "%d\\n", reads ? reads() : -1);
        dlsym(NULL, "none");
        fflush(stdout);
        close(0);
        fprintf(stdout, "%s\\n", dlerror());
        return 0;
    }
"""
LOADED = """
    #include <fcntl.h>
    #include <unistd.h>
    int reads(void) {
        char bytes[8];
        int fd = open("data/file", O_RDONLY);
        return fd < 0 ? -1 : (int)read(fd, bytes, 8);
    }
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no compiler")
@pytest.mark.parametrize("tags", ["--enable-new-dtags", "--disable-new-dtags"])
def test_a_library_is_found_in_the_folders_of_who_loads_it(tmp_path, tags):
    for name in ("data", "libraries"):
        (tmp_path / name).mkdir()
    (tmp_path / "data/file").write_bytes(bytes(8))
    (tmp_path / "loader.c").write_text(textwrap.dedent(LOADER))
    (tmp_path / "loaded.c").write_text(textwrap.dedent(LOADED))
    where = f"-Wl,{tags},-rpath,$ORIGIN/libraries"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "libraries/libloaded.so", "loaded.c"], cwd=tmp_path, check=True)
    subprocess.run(["cc", "-o", "loader", "loader.c", "-ldl", where], cwd=tmp_path, check=True)
    alone = succeed(["./loader"], tmp_path).stdout
    assert alone.startswith("libnone.so: ") and "undefined symbol: none" in alone and "\n8\n" in alone
    assert succeed([*record("run", "--io-include", "data"), "./loader"], tmp_path).stdout == alone
    assert [row[:2] for row in found(tmp_path / "run", tmp_path / "data/file", "")] == [("open", None), ("read", 8)]
