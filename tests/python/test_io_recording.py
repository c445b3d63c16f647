"""Calls on files: each that the system sees is recorded, with its file, its bytes and its error."""

import json
import os
import re
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import pytest
import runs
from files_recorded import TRACED, can_trace, compared, record, recorded_in, rows_of, seen_by_system, succeed


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The folder of a program that was recorded, under `strace` where the system lets it: `data`, `run`, `strace.log`."""
    folder = tmp_path_factory.mktemp("io")
    (folder / "data").mkdir()
    program = Path(__file__).with_name("programs") / "files.py"
    log = folder / "strace.log"
    traced = [*TRACED, "-o", log] if can_trace() else []
    command = [*traced, *record(folder / "run"), sys.executable, program, folder / "data"]
    limits = ["sh", "-c", 'ulimit -n 4096; exec "$@"', "sh"]
    succeed([*limits, *command], folder)
    return folder


def calls_on(run, name):
    """The calls on files of a name, by thread and start."""
    rows = [row for row in rows_of(run) if row["file"] and os.path.basename(row["file"]) == name]
    return sorted(rows, key=lambda row: (row["pid"], row["tid"], row["start_ns"]))


def test_every_call_that_the_system_sees_is_recorded(recorded):
    if not (recorded / "strace.log").exists():
        pytest.skip("strace cannot trace here")
    data = recorded / "data"
    system = compared(seen_by_system((recorded / "strace.log").read_text(), data))
    ours = compared(recorded_in(recorded / "run", data))
    assert sum(system.values()) > 9_000
    assert ours - system == Counter()
    # Where a program reads what it inherited, the recorder asks once where that stands.
    assert system - ours == Counter({("lseek", "data.bin", None, False): 1})


def test_counts_bytes_and_errors_are_those_of_the_program(recorded):
    counts = recorded_in(recorded / "run", recorded / "data")
    assert counts["pread", "data.bin", 512, False] == 100
    assert counts["read", "data.bin", 10, False] == 3_000
    # Of four threads, a forked child and the program itself, 90,000 bytes each.
    whole, rest = divmod(90_000, 700)
    assert counts["read", "data.bin", 700, False] == 6 * whole
    assert counts["read", "data.bin", rest, False] == 6
    assert counts["openat", "missing", None, True] == 1
    assert counts["sendfile", "data.bin", 50_000, False] == 1
    assert counts["write", "data.bin", 100_000, False] == 1


def test_offsets_follow_the_descriptors_and_their_copies(recorded):
    reads = [row for row in calls_on(recorded / "run", "data.bin") if row["name"] == "read"]
    assert [row["offset"] for row in reads if row["bytes"] == 1_000] == [5_000, 6_000, 7_000]
    of_threads = {}
    for row in (row for row in reads if row["asked_bytes"] == 700 or row["bytes"] == 700):
        of_threads.setdefault((row["pid"], row["tid"]), []).append(row["offset"])
    # The main thread reads all of it at the end, as the others do.
    assert len(of_threads) == 6
    assert all(offsets == [*range(0, 90_000, 700), 90_000] for offsets in of_threads.values())


def test_what_is_done_with_files_lies_within_what_the_thread_does(tmp_path):
    program = """
        import torch
        with open("weights.bin", "wb") as file:
            file.write(bytes(4_000_000))
        with torch.profiler.record_function("load"):
            torch.from_file("weights.bin", size=1_000_000).sum()
            open("weights.bin", "rb").read()
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    succeed([*record("run"), sys.executable, "program.py"], tmp_path)
    found = succeed([Path(sys.executable).with_name("stepscope"), "convert", "run", "-o", "trace.json"], tmp_path)
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    (label,) = [event for event in events if event.get("name") == "load" and event.get("ph") == "X"]
    reads = [event for event in events if event.get("name") == "read" and "weights.bin" in str(event.get("args"))]
    inside = [
        event
        for event in reads
        if (event["pid"], event["tid"]) == (label["pid"], label["tid"])
        and label["ts"] <= event["ts"] <= label["ts"] + label["dur"]
    ]
    assert inside and len(inside) == len(reads), found.stderr
    # One process, although two parts of the recorder wrote of it.
    assert len({event["pid"] for event in events if event.get("name") == "process_name"}) == 1


def test_only_the_folders_that_are_asked_for(tmp_path):
    for folder in ("data", "data/cache", "database"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "file").write_text("text")
    options = ["--io-include", "data", "--io-exclude", "data/cache"]
    command = ["cat", "data/file", "data/cache/file", "database/file"]
    assert succeed([*record("run", *options), *command], tmp_path).stdout == "text" * 3
    assert {row["file"] for row in rows_of(tmp_path / "run")} == {str(tmp_path / "data/file")}


def test_nothing_is_lost_when_the_program_is_killed(tmp_path):
    (tmp_path / "file").write_bytes(bytes(50_000))
    program = (
        "import os; fd = os.open('file', 0); [os.pread(fd, 10, at) for at in range(20_000)]; os.kill(os.getpid(), 9)"
    )
    command = [*record("run"), sys.executable, "-c", program]
    result = subprocess.run([*map(str, command)], capture_output=True, text=True, cwd=tmp_path, timeout=600)
    assert result.returncode == 128 + 9
    reads = [row for row in calls_on(tmp_path / "run", "file") if row["name"] == "pread"]
    assert [row["offset"] for row in reads] == list(range(20_000))


def test_programs_of_every_kind_run_as_they_would(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a/file").write_text("text\n" * 1_000)
    script = """
        set -e
        tar cf a.tar a && tar tf a.tar | sort > list
        cp a/file b && cmp a/file b
        perl -e 'open(F, "<", "a/file"); @l = <F>; print scalar(@l), "\\n"' > lines
        sort a/file | uniq -c > counts
        (exec 7< a/file; read -r line <&7; echo "$line" > first)
    """
    (tmp_path / "script.sh").write_text(textwrap.dedent(script))
    succeed([*record("run"), "bash", "script.sh"], tmp_path)
    outputs = {name: (tmp_path / name).read_text().split() for name in ("list", "lines", "counts", "first")}
    assert outputs == {"list": ["a/", "a/file"], "lines": ["1000"], "counts": ["1000", "text"], "first": ["text"]}
    names = {os.path.basename(row["file"]) for row in rows_of(tmp_path / "run") if row["file"]}
    assert {"a.tar", "file", "list", "lines", "counts", "first"} <= names


def test_calls_on_addresses_are_of_the_file_that_is_mapped_there(tmp_path):
    program = """
        import mmap, os
        fd = os.open("file", os.O_RDWR | os.O_CREAT)
        os.ftruncate(fd, 40_960)
        for _ in range(2):
            mapped = mmap.mmap(fd, 12_288, offset=4_096)
            mapped.madvise(mmap.MADV_WILLNEED, 4_096, 4_096)
            mapped[5_000] = 1
            mapped.flush()
            mapped.flush(8_192, 4_096)
            mapped.close()
            # The same addresses, most likely, but no file.
            memory = mmap.mmap(-1, 12_288)
            memory.madvise(mmap.MADV_DONTNEED)
            memory.close()
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    succeed([*record("run"), sys.executable, "program.py"], tmp_path)
    names = ("mmap", "madvise", "msync", "munmap")
    found = [row for row in calls_on(tmp_path / "run", "file") if row["name"] in names]
    once = [
        ("mmap", 12_288, 4_096),
        ("madvise", 4_096, 8_192),
        ("msync", 12_288, 4_096),
        ("msync", 4_096, 12_288),
        ("munmap", 12_288, 4_096),
    ]
    assert [(row["name"], row["asked_bytes"], row["offset"]) for row in found] == once * 2
    assert len([row for row in rows_of(tmp_path / "run") if row["name"] in names[1:]]) == 2 * len(once[1:])


def test_text_that_is_formatted_into_a_stream_is_recorded(tmp_path):
    program = """
        import ctypes
        libc = ctypes.CDLL(None)
        libc.fopen.restype = ctypes.c_void_p
        stream = ctypes.c_void_p(libc.fopen(b"file", b"w"))
        numbers = [ctypes.c_double(number + 0.5) for number in range(10)]
        form = b"%d %s %ld" + 10 * b" %.1f" + b" %d %d\\n"
        print(libc.fprintf(stream, form, 1, b"two", ctypes.c_long(3 << 40), *numbers, 4, 5))
        print(libc.__fprintf_chk(stream, 1, b"%s %d\\n", b"six", 7))
        libc.fclose(stream)
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    counts = [int(count) for count in succeed([*record("run"), sys.executable, "program.py"], tmp_path).stdout.split()]
    lines = [f"1 two {3 << 40} 0.5 1.5 2.5 3.5 4.5 5.5 6.5 7.5 8.5 9.5 4 5\n", "six 7\n"]
    assert (tmp_path / "file").read_text() == "".join(lines)
    assert counts == [len(line) for line in lines]
    assert [row["bytes"] for row in calls_on(tmp_path / "run", "file") if row["name"] == "fprintf"] == counts


def not_seen(run):
    return runs.findings(run).get("capture.io_bytes_not_seen", {"examples": []})["examples"]


def test_what_goes_past_the_c_library_is_said(tmp_path):
    program = """
        import ctypes, os
        libc = ctypes.CDLL(None)
        buffer = ctypes.create_string_buffer(1 << 20)
        fd = os.open("data/file", os.O_RDWR)
        for at in range(4):
            os.pread(fd, 1 << 20, at << 20)
            os.pwrite(fd, buffer, at << 20)
        # System calls of its own.
        for _ in range(4):
            libc.syscall(0, fd, buffer, ctypes.c_long(1 << 20))
        for _ in range(12):
            libc.syscall(1, fd, buffer, ctypes.c_long(1 << 20))
    """
    (tmp_path / "data").mkdir()
    (tmp_path / "data/file").write_bytes(bytes(8 << 20))
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    succeed([*record("run", "--io-include", "data"), sys.executable, "program.py"], tmp_path)
    read, written = not_seen(tmp_path / "run")
    # The loader reads a little of each library by itself.
    assert re.fullmatch(r"python\S* \(pid \d+\): (49|50)\.\d % of the 8\.0\d MiB that were read are recorded", read)
    assert written.endswith("25.0 % of the 16.0 MiB that were written are recorded")


def test_what_threads_did_that_ended_is_compared_too(tmp_path):
    program = """
        import ctypes, os, socket, sys, threading
        libc = ctypes.CDLL(None)
        fd = os.open("data/file", os.O_RDWR)
        raw = sys.argv[1] == "raw"

        def work():
            # Their own first calls: what has not made one is not known.
            os.pread(fd, 1 << 20, 0)
            left, right = socket.socketpair()
            for _ in range(10):
                left.send(bytes(10_000))
                right.recv(10_000)
            buffer = ctypes.create_string_buffer(1 << 20)
            for number in (17, 18) if raw else ():
                # pread64 and pwrite64, as the processor numbers them.
                libc.syscall(number, fd, buffer, ctypes.c_long(1 << 20), ctypes.c_long(0))

        def run(count):
            threads = [threading.Thread(target=work) for _ in range(count)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        for _ in range(10):
            run(5)
        if os.fork() == 0:
            # It has moved nothing yet.
            run(20)
            os._exit(0)
        os.wait()
    """
    (tmp_path / "data").mkdir()
    (tmp_path / "data/file").write_bytes(bytes(1 << 20))
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    command = [sys.executable, "program.py"]
    succeed([*record("seen", "--io-include", "data"), *command, "seen"], tmp_path)
    assert not_seen(tmp_path / "seen") == []
    succeed([*record("run", "--io-include", "data"), *command, "raw"], tmp_path)
    form = r"(\d+\.\d) % of the ([\d.]+) MiB that were (\w+)"
    said = [re.search(form, text).groups() for text in not_seen(tmp_path / "run")]
    # 20 threads of the child and 50, 2 MiB each; the loader and this library's own threads read a little by themselves, more in
    # a process that lives longer.
    assert sorted((way, float(mib), float(share)) for share, mib, way in said) == [
        ("read", pytest.approx(40, rel=0.05), pytest.approx(50, abs=3)),
        ("read", pytest.approx(100, rel=0.05), pytest.approx(50, abs=3)),
        ("written", pytest.approx(20, rel=0.05), 0),
        ("written", pytest.approx(50, rel=0.05), 0),
    ]


@pytest.mark.parametrize("options", [[], ["--io-include", "data"]])
def test_nothing_is_said_of_pipes_sockets_and_other_processes(tmp_path, options):
    program = """
        import os, socket, subprocess, threading

        def move(source, target, count):
            def feed():
                for _ in range(count):
                    os.write(target, bytes(60_000))
            thread = threading.Thread(target=feed)
            thread.start()
            left = count * 60_000
            while left:
                left -= len(os.read(source, left))
            thread.join()

        move(*os.pipe(), 50)
        left, right = socket.socketpair()
        move(left.fileno(), right.fileno(), 50)
        with open("data/file", "rb") as file, open("/dev/null", "wb") as null:
            null.write(file.read())
            os.sendfile(null.fileno(), file.fileno(), 0, 8 << 20)
        subprocess.run(["cp", "data/file", "data/copy"], check=True)
        subprocess.run("cat data/file data/file | cat > /dev/null; cat data/file > data/third", shell=True, check=True)
        if os.fork() == 0:
            with open("data/copy", "rb") as file:
                file.read()
            os._exit(0)
        os.wait()
        os.execvp("cp", ["cp", "data/file", "data/last"])
    """
    (tmp_path / "data").mkdir()
    (tmp_path / "data/file").write_bytes(bytes(8 << 20))
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    succeed([*record("run", *options), sys.executable, "program.py"], tmp_path)
    assert not_seen(tmp_path / "run") == []
    assert sum(row["bytes"] or 0 for row in rows_of(tmp_path / "run")) >= 64 << 20
