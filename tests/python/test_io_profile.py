"""``profile(io=True)``: calls on files of a program that runs already, by the import tables of what it has loaded."""

import os
import shutil
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest


def run_program(tmp_path, program, *arguments, before=()):
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STEPSCOPE_")}
    command = [*before, sys.executable, "program.py", *arguments]
    result = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=600
    )
    assert result.returncode == 0, result.stderr
    return result


def calls_in(run, folder):
    """The calls on files of a folder."""
    rows = [row for part in sorted(Path(run).glob("rank=*/*.parquet")) for row in pq.read_table(part).to_pylist()]
    return [row for row in rows if row["kind"] == "io" and row["file"] and row["file"].startswith(f"{folder}/")]


def compacted(run):
    stepscope = Path(sys.executable).with_name("stepscope")
    subprocess.run([stepscope, "recover", run], check=True, capture_output=True)
    return run


@pytest.mark.parametrize("workers", [0, 2])
def test_files_of_a_data_loader_are_recorded_while_the_profile_is_on(tmp_path, workers):
    program = """
        import os, sys
        import torch
        from stepscope.profiler import profile

        class Files(torch.utils.data.Dataset):
            def __init__(self, count):
                self.paths = [f"data/{at}" for at in range(count)]
                for at, path in enumerate(self.paths):
                    with open(path, "wb") as file:
                        file.write(bytes([at]) * 10_000)
            def __len__(self):
                return len(self.paths)
            def __getitem__(self, at):
                with open(self.paths[at], "rb") as file:
                    return torch.tensor(list(file.read()))

        os.makedirs("data")
        files = Files(20)
        def epoch():
            loader = torch.utils.data.DataLoader(files, batch_size=4, num_workers=int(sys.argv[1]))
            assert sum(int(batch[:, 0].sum()) for batch in loader) == sum(range(20))
        epoch()
        for at in range(2):
            with profile(io=True, run=f"run{at}"):
                epoch()
            epoch()
    """
    run_program(tmp_path, program, workers)
    for at in range(2):
        calls = calls_in(compacted(tmp_path / f"run{at}"), tmp_path / "data")
        counts = Counter((row["name"], row["file"]) for row in calls if row["bytes"] != 0)
        assert {name for name, _ in counts} >= {"read", "close"}
        for name in ("read", "close"):
            assert [counts[name, str(tmp_path / "data" / str(file))] for file in range(20)] == [1] * 20
        assert sum(row["bytes"] or 0 for row in calls if row["name"] == "read") == 20 * 10_000
        processes = {row["pid"] for row in calls}
        assert len(processes) == max(workers, 1)


@pytest.mark.parametrize("is_called_before", [False, True])
def test_functions_that_the_interpreter_takes_the_address_of_are_recorded(tmp_path, is_called_before):
    # Where it is not independent of its position, what all find under their names is its own entry for them.
    program = """
        import os, sys
        from stepscope.profiler import profile

        def flush():
            with open("data/a", "wb") as file:
                file.write(b"a")
                os.fsync(file.fileno())
                os.fdatasync(file.fileno())

        os.makedirs("data")
        if sys.argv[1] == "True":
            flush()
        for at in range(2):
            with profile(io=True, run=f"run{at}"):
                flush()
            flush()
    """
    run_program(tmp_path, program, is_called_before)
    for at in range(2):
        counts = Counter(row["name"] for row in calls_in(compacted(tmp_path / f"run{at}"), tmp_path / "data"))
        assert (counts["fsync"], counts["fdatasync"]) == (1, 1), counts


LIBRARY = """
#include <fcntl.h>
#include <unistd.h>
int first_byte(const char *path) {
    char byte = 0;
    int file = open(path, O_RDONLY);
    int len = read(file, &byte, 1);
    close(file);
    return len == 1 ? byte : -1;
}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no compiler")
@pytest.mark.parametrize("flags", [["-Wl,-z,lazy"], ["-Wl,-z,now"], ["-Wl,-z,now", "-fno-plt"]])
def test_libraries_that_are_loaded_later_are_bound_too(tmp_path, flags):
    (tmp_path / "library.c").write_text(LIBRARY)
    command = ["cc", "-shared", "-fPIC", "-O2", *flags, "-o", tmp_path / "library.so", tmp_path / "library.c"]
    subprocess.run([*map(str, command)], check=True)
    program = """
        import ctypes, os, time
        import torch
        from stepscope.profiler import profile

        os.makedirs("data")
        open("data/file", "wb").write(b"a")
        def call(times):
            # From one call to the next, what was loaded is looked for several times.
            for _ in range(times):
                assert library.first_byte(b"data/file") == ord("a")
                time.sleep(0.05)
        with profile(io=True, run="run0"):
            library = ctypes.CDLL("./library.so")
            call(60)
        call(3)
        with profile(io=True, run="run1"):
            call(3)
        call(3)
    """
    run_program(tmp_path, program)
    counts = []
    for at in range(2):
        calls = calls_in(compacted(tmp_path / f"run{at}"), tmp_path / "data")
        assert all(row["bytes"] == 1 for row in calls if row["name"] == "read")
        counts.append(Counter(row["name"] for row in calls))
    # Of the first ones some may have come before the library was found.
    assert 1 <= counts[0]["read"] <= 60
    assert (counts[1]["open"], counts[1]["read"], counts[1]["close"]) == (3, 3, 3)


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no compiler")
def test_a_library_that_is_still_being_loaded_is_left_alone(tmp_path):
    # Functions that the loader looks up after those of files; only then it protects the table's pages.
    functions = [f"function{at}" for at in range(30000)]
    text = "".join(f"void {name}(void) {{}}\n" for name in functions)
    text += f"void all(void) {{ {''.join(f'{name}();' for name in functions)} }}\n"
    (tmp_path / "library.c").write_text(LIBRARY + text)
    command = ["cc", "-shared", "-fPIC", "-Wl,-z,now", "-o", tmp_path / "library.so", tmp_path / "library.c"]
    subprocess.run([*map(str, command)], check=True)
    program = """
        import ctypes, os, shutil
        import torch
        from stepscope.profiler import profile

        os.makedirs("data")
        open("data/file", "wb").write(b"a")
        for at in range(100):
            shutil.copy("library.so", f"library{at}.so")
        with profile(io=True, run="run0"):
            libraries = [ctypes.CDLL(f"./library{at}.so") for at in range(100)]
        # By now each is bound, or will be.
        with profile(io=True, run="run1"):
            assert all(library.first_byte(b"data/file") == ord("a") for library in libraries)
    """
    run_program(tmp_path, program)
    calls = calls_in(compacted(tmp_path / "run1"), tmp_path / "data")
    assert Counter(row["name"] for row in calls) == {"open": 100, "read": 100, "close": 100}


def test_threads_may_read_while_recording_begins_and_ends(tmp_path):
    program = """
        import os, threading, time
        import torch
        from stepscope.profiler import profile

        os.makedirs("data")
        for at in range(4):
            open(f"data/{at}", "wb").write(bytes([at]) * 100_000)
        is_over = threading.Event()
        counts = [0] * 4
        def read(at):
            while not is_over.is_set():
                with open(f"data/{at}", "rb", buffering=0) as file:
                    assert file.read(100_000) == bytes([at]) * 100_000
                fd = os.open(f"data/{at}", os.O_RDONLY)
                copy = os.dup(fd)
                assert os.pread(copy, 1, 5) == bytes([at])
                os.close(fd)
                os.close(copy)
                counts[at] += 1
        threads = [threading.Thread(target=read, args=(at,)) for at in range(4)]
        for thread in threads:
            thread.start()
        for at in range(10):
            with profile(io=True, run=f"run{at}"):
                before = list(counts)
                while any(now <= then + 3 for now, then in zip(counts, before)):
                    time.sleep(0.01)
        is_over.set()
        for thread in threads:
            thread.join()
        print(min(counts))
    """
    run_program(tmp_path, program)
    for at in range(10):
        calls = calls_in(compacted(tmp_path / f"run{at}"), tmp_path / "data")
        files = {row["file"] for row in calls if row["name"] == "pread" and row["bytes"] == 1}
        assert files == {str(tmp_path / "data" / str(file)) for file in range(4)}
        # Each read is of the file that it is recorded of: they are read whole.
        assert {row["bytes"] for row in calls if row["name"] == "read"} <= {100_000, 0}


def test_beside_the_command_each_call_is_recorded_once(tmp_path):
    program = """
        import os
        import torch
        from stepscope.profiler import profile

        os.makedirs("data")
        open("data/file", "wb").write(bytes(1_000))
        fd = os.open("data/file", os.O_RDONLY)
        os.pread(fd, 1, 0)
        with profile(io=True):
            os.pread(fd, 2, 0)
        os.pread(fd, 3, 0)
    """
    stepscope = Path(sys.executable).with_name("stepscope")
    run_program(tmp_path, program, before=[stepscope, "record", "--io", "--output", tmp_path / "run", "--"])
    calls = calls_in(tmp_path / "run", tmp_path / "data")
    assert [row["bytes"] for row in calls if row["name"] == "pread"] == [1, 2, 3]
