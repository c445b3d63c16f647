"""Page faults on mapped files: each major one that the system counts is recorded, with its file and its place."""

import ctypes
import json
import os
import struct
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import runs
import stepscope as package

PAGE = 4096
PAGES = 2_000
MAJOR = "major page fault"
MINOR = "minor page fault (one in 64)"
SAMPLED = "major page fault (place sampled)"

# Touches pages of a file that is in no memory, in an order in which nothing is read ahead, and prints how many faults the
# system counted meanwhile.
PROGRAM = """
import json, mmap, os, random, resource, sys, threading

path, how = sys.argv[1:3]
pages = int(sys.argv[3])


def evict(fd):
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def faults():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_majflt, usage.ru_minflt


def touch(mapped, order):
    mapped.madvise(mmap.MADV_RANDOM)
    for page in order:
        mapped[page * mmap.PAGESIZE]


order = list(range(pages))
random.Random(7).shuffle(order)
fd = os.open(path, os.O_RDWR)
evict(fd)
if how == "numpy":
    import numpy

    array = numpy.memmap(path, mode="r")
    mapped = array._mmap
else:
    mapped = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
mapped.madvise(mmap.MADV_RANDOM)
before = faults()
if how == "threads":
    parts = [order[at::4] for at in range(4)]
    threads = [threading.Thread(target=touch, args=(mapped, part)) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
elif how == "numpy":
    # Python itself touches each page.
    sum(int(array[page * mmap.PAGESIZE]) for page in order)
elif how == "fork":
    pid = os.fork()
    if pid == 0:
        # So that the child records something before: it is watched from then on.
        os.stat(path)
        before = faults()
        touch(mapped, order)
        print(json.dumps([*(now - then for now, then in zip(faults(), before)), os.getpid()]), flush=True)
        os._exit(0)
    os.waitpid(pid, 0)
    sys.exit()
elif how == "unmapped":
    # The same addresses are of one file after the other, each for a moment.
    for page in order:
        with mmap.mmap(fd, mmap.PAGESIZE, prot=mmap.PROT_READ, offset=page * mmap.PAGESIZE) as one:
            one.madvise(mmap.MADV_RANDOM)
            one[0]
else:
    touch(mapped, order)
print(json.dumps([*(now - then for now, then in zip(faults(), before)), os.getpid()]))
"""


def can_count():
    """Whether the system lets a process count its own page faults."""
    # Software, 112 bytes, major faults, each, thread and time and address, without those of the kernel.
    attributes = struct.pack("=IIQQQQQ64x", 1, 112, 6, 1, 14, 0, 1 << 5)
    descriptor = ctypes.CDLL(None).syscall(298, attributes, 0, -1, -1, 0)
    if descriptor >= 0:
        os.close(descriptor)
    return descriptor >= 0


needs_counting = pytest.mark.skipif(not can_count(), reason="the system does not let a process count its page faults")


@pytest.fixture
def data(tmp_path):
    """A file of which the tests know that it can be evicted."""
    path = tmp_path / "data.bin"
    path.write_bytes(os.urandom(PAGES * PAGE))
    with open(path, "rb+") as file:
        os.fsync(file.fileno())
    return path


def record(tmp_path, *command, wrap=(), environment=None):
    stepscope = Path(sys.executable).with_name("stepscope")
    command = [*wrap, stepscope, "record", "--io", "--output", tmp_path / "run", "--", *command]
    result = subprocess.run([*map(str, command)], capture_output=True, text=True, cwd=tmp_path, timeout=600)
    assert result.returncode == 0, result.stderr
    return result


def touch(tmp_path, data, how, **options):
    """Records the program, and gives the major and minor faults that the system counted, and its process."""
    (tmp_path / "program.py").write_text(PROGRAM)
    result = record(tmp_path, sys.executable, "program.py", data, how, str(PAGES), **options)
    return json.loads(result.stdout)


def faults_in(run, data, kind=MAJOR):
    rows = [row for part in sorted(Path(run).glob("rank=*/*.parquet")) for row in pq.read_table(part).to_pylist()]
    return [row for row in rows if row["name"] == kind and row["file"] == str(data)]


def lost(run):
    """What the system wrote of faults and mappings while the recorder had no processor to read it, as a finding says."""
    return runs.findings(run).get("capture.page_faults_lost", {"count": 0})["count"]


def check_pages(found):
    """Each page of the file has one fault, but for the few that the system has taken away again meanwhile."""
    offsets = Counter(row["offset"] for row in found)
    assert set(offsets) <= set(range(0, PAGES * PAGE, PAGE))
    assert len(offsets) >= 0.9 * len(found), offsets.most_common(5)


@needs_counting
@pytest.mark.parametrize("how", ["plain", "numpy", "threads", "fork"])
def test_each_major_fault_that_the_system_counts_is_recorded(tmp_path, data, how):
    major, _, pid = touch(tmp_path, data, how)
    if major < PAGES // 2:
        pytest.skip("the file system keeps evicted pages")
    found = faults_in(tmp_path / "run", data)
    # Beside those on the file the system counts a few of the program's own code, when that was not in memory.
    assert major - 20 - lost(tmp_path / "run") <= len(found) <= major
    assert {row["pid"] for row in found} == {pid}
    check_pages(found)
    threads = {row["tid"] for row in found}
    assert len(threads) == (4 if how == "threads" else 1)
    assert all(row["dur_ns"] == 0 and row["bytes"] is None for row in found)


@needs_counting
def test_addresses_are_of_the_file_that_was_mapped_there_then(tmp_path, data):
    major, _, _ = touch(tmp_path, data, "unmapped")
    if major < PAGES // 2:
        pytest.skip("the file system keeps evicted pages")
    found = faults_in(tmp_path / "run", data)
    # Where it is lost what was mapped, faults on it are without a file until all that is mapped was asked for.
    assert major - 20 - lost(tmp_path / "run") <= len(found) <= major
    check_pages(found)


@needs_counting
def test_faults_lie_between_the_calls_around_them(tmp_path, data):
    touch(tmp_path, data, "unmapped")
    rows = [row for part in (tmp_path / "run").glob("rank=*/*.parquet") for row in pq.read_table(part).to_pylist()]
    rows = [row for row in rows if row["file"] == str(data) and row["name"] in (MAJOR, "mmap")]
    rows.sort(key=lambda row: (row["start_ns"], row["name"] == MAJOR))
    # Before the fault of a page is the call that mapped it: both have its place in the file.
    pairs = [(before, row) for before, row in zip(rows, rows[1:]) if row["name"] == MAJOR]
    assert pairs
    in_order = sum(before["name"] == "mmap" and before["offset"] == row["offset"] for before, row in pairs)
    # Their times come from two clocks, which are read a few hundred nanoseconds apart.
    assert in_order >= 0.99 * len(pairs)


@needs_counting
def test_minor_faults_are_sampled(tmp_path, data):
    program = """
        import mmap, os, resource, sys
        fd = os.open(sys.argv[1], os.O_RDONLY)
        pages = os.fstat(fd).st_size // mmap.PAGESIZE
        while os.read(fd, 1 << 20):
            pass
        usage = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        before = usage()
        for _ in range(20):
            with mmap.mmap(fd, 0, prot=mmap.PROT_READ) as mapped:
                mapped.madvise(mmap.MADV_RANDOM)
                for page in range(pages):
                    mapped[page * mmap.PAGESIZE]
        print(usage() - before)
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    counted = int(record(tmp_path, sys.executable, "program.py", data).stdout)
    found = len(faults_in(tmp_path / "run", data, MINOR))
    # Of all that the system counts nearly all are on the file: some are of Python's own memory.
    assert 0.8 * counted / 64 - 2 - lost(tmp_path / "run") <= found <= counted / 64 + 1


@needs_counting
def test_analyses_show_them(tmp_path, data):
    major, _, _ = touch(tmp_path, data, "plain")
    if major < PAGES // 2:
        pytest.skip("the file system keeps evicted pages")
    (row,) = [row for row in package.open(tmp_path / "run").io_files()["results"] if row["file"] == str(data)]
    assert row["page_faults"] == row["reads"] == len(faults_in(tmp_path / "run", data))
    assert row["unsized"] == row["reads"] and row["read_bytes"] is None
    stepscope = Path(sys.executable).with_name("stepscope")
    command = [stepscope, "convert", tmp_path / "run", "-o", tmp_path / "trace.json"]
    subprocess.run(command, check=True, capture_output=True)
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {event["args"]["layer"] for event in events if event.get("name") == MAJOR} == {"page_fault"}


# Begins a program that the system forbids `perf_event_open`.
FORBID = """
import ctypes, os, struct, sys

load, jump, back = 0x20, 0x15, 0x06
instructions = [(load, 0, 0, 0), (jump, 0, 1, 298), (back, 0, 0, 0x00050001), (back, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *each) for each in instructions))
program = struct.pack("=H6xQ", len(instructions), ctypes.addressof(code))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0, ctypes.get_errno()
os.execvp(sys.argv[1], sys.argv[1:])
"""


@pytest.mark.parametrize("how", ["plain", "threads", "fork"])
def test_where_they_are_not_permitted_as_many_are_sampled(tmp_path, data, how):
    (tmp_path / "forbid.py").write_text(FORBID)
    major, _, pid = touch(tmp_path, data, how, wrap=[sys.executable, tmp_path / "forbid.py"])
    (example, *_) = runs.findings(tmp_path / "run")["capture.page_faults_sampled"]["examples"]
    assert example.startswith("python") and "perf_event_open: Operation not permitted" in example
    if major < PAGES // 2:
        pytest.skip("the file system keeps evicted pages")
    found = faults_in(tmp_path / "run", data, SAMPLED)
    assert 0.9 * major <= len(found) <= major
    assert {row["pid"] for row in found} == {pid}
    offsets = Counter(row["offset"] for row in found)
    assert set(offsets) <= set(range(0, PAGES * PAGE, PAGE))
    assert len(offsets) >= 0.9 * len(found), offsets.most_common(5)
    assert all(row["dur_ns"] == 0 and row["bytes"] is None for row in found)
    if how == "plain":
        assert {row["tid"] for row in found} == {pid}
    assert not faults_in(tmp_path / "run", data)
    (row,) = [row for row in package.open(tmp_path / "run").io_files()["results"] if row["file"] == str(data)]
    assert row["page_faults"] == row["reads"] == len(found)


def test_pages_that_were_in_memory_are_not_sampled(tmp_path, data):
    program = """
        import mmap, os, resource, sys, time
        fd = os.open(sys.argv[1], os.O_RDONLY)
        while os.read(fd, 1 << 20):
            pass
        usage = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_majflt
        mapped = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
        time.sleep(0.5)
        before = usage()
        sum(mapped[at] for at in range(0, len(mapped), mmap.PAGESIZE))
        time.sleep(0.5)
        print(usage() - before)
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    (tmp_path / "forbid.py").write_text(FORBID)
    wrap = [sys.executable, tmp_path / "forbid.py"]
    counted = int(record(tmp_path, sys.executable, "program.py", data, wrap=wrap).stdout)
    assert len(faults_in(tmp_path / "run", data, SAMPLED)) <= counted + 20 < 100


@needs_counting
def test_the_program_finds_no_descriptor_of_it(tmp_path):
    program = "import os; os.stat('/'); print([os.readlink(each.path) for each in os.scandir('/proc/self/fd')][:-1])"
    found = record(tmp_path, sys.executable, "-c", program).stdout
    assert "pipe:" in found and "perf_event" not in found
