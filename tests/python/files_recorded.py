"""Calls on files of a recorded program, and the same as ``strace`` saw them."""

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq

# The command that prints each call on a file.
TRACED = ["strace", "-f", "-qq", "-y", "-e", "trace=file,desc,mmap"]
# What system calls are called that have another name than the function, and the functions that make another one.
SAME = {
    "open": "openat",
    "opendir": "openat",
    "creat": "openat",
    "pread64": "pread",
    "pwrite64": "pwrite",
    "preadv2": "preadv",
    "newfstatat": "stat",
    "fstatat": "stat",
    "lstat": "stat",
    "fstat": "stat",
    "statx": "stat",
    "closedir": "close",
    "fclose": "close",
    "dup3": "dup2",
    "fadvise64": "posix_fadvise",
}
# The C library reads folders ahead of its callers, and asks what it opened is; programs begin and control by others.
NOT_COMPARED = {
    *("getdents64", "readdir", "execve", "ioctl", "fcntl", "getcwd", "chdir", "readlink", "access", "stat", "fflush"),
    # Those on addresses, of which the system does not say which file is there; and what is no call.
    *("munmap", "madvise", "msync"),
    *("major page fault", "minor page fault (one in 64)", "major page fault (place sampled)"),
}


def can_trace():
    return shutil.which("strace") is not None and subprocess.run(["strace", "-o", os.devnull, "true"]).returncode == 0


def record(run, *options):
    return [Path(sys.executable).with_name("stepscope"), "record", "--io", *options, "--output", run, "--"]


def succeed(command, folder):
    result = subprocess.run([*map(str, command)], capture_output=True, text=True, cwd=folder, timeout=600)
    assert result.returncode == 0, result.stderr
    return result


def system_calls(log):
    """Name, arguments, what was given back, and the rest of each call in a log of ``strace``."""
    unfinished = {}
    for line in log.splitlines():
        thread, _, rest = line.partition(" ")
        rest = rest.strip()
        if rest.endswith("<unfinished ...>"):
            unfinished[thread] = rest.removesuffix("<unfinished ...>")
            continue
        resumed = re.match(r"<\.\.\. \w+ resumed>(.*)", rest)
        if resumed:
            rest = unfinished.pop(thread) + resumed[1]
        call = re.match(r"(\w+)\((.*)\)\s+= (-?\d+|0x[0-9a-f]+)(.*)", rest)
        if call:
            yield call.groups()


def seen_by_system(log, data):
    """How often each call was made on each file below ``data``, and what came of it."""
    counts = Counter()
    for name, arguments, returned, _ in system_calls(log):
        path = path_in(name, arguments, data)
        if name == "fcntl" and "F_DUPFD" in arguments:
            name = "dup"
        if path is not None and (path == str(data) or path.startswith(f"{data}/")):
            counts[call_key(name, path, int(returned, 0))] += 1
    return counts


def path_in(name, arguments, data):
    """The first file that a call is about: what it names, else its first descriptor."""
    named = re.match(r'(?:AT_FDCWD|\d+)<([^>]*)>, "([^"]*)"', arguments)
    if named and named[2] and name.endswith("at"):
        return os.path.normpath(os.path.join(named[1], named[2]))
    if arguments.startswith('"'):
        # The program went there before it used such names.
        return os.path.normpath(os.path.join(data, arguments.split('"')[1]))
    descriptors = re.findall(r"\d+<([^>]*)>", arguments)
    if name == "sendfile":
        # The file that bytes come from is the second one.
        descriptors = descriptors[1:]
    return descriptors[0] if descriptors else None


def call_key(name, path, returned):
    name = SAME.get(name, name)
    bytes_moved = (
        returned if name in ("read", "pread", "preadv", "write", "pwrite", "sendfile", "copy_file_range") else None
    )
    return name, os.path.basename(path), None if bytes_moved is None else max(bytes_moved, 0), returned == -1


def rows_of(run):
    for part in sorted(Path(run).glob("rank=*/*.parquet")):
        for row in pq.read_table(part).to_pylist():
            if row["kind"] == "io":
                yield row


def recorded_in(run, data):
    counts = Counter()
    for row in rows_of(run):
        path = row["file"]
        if path is None or not (path == str(data) or path.startswith(f"{data}/")):
            continue
        name = SAME.get(row["name"], row["name"])
        counts[name, os.path.basename(os.path.normpath(path)), row["bytes"], row["errno"] is not None] += 1
    return counts


def compared(counts):
    """Of counts those that both have: the system does not know of libraries."""
    is_of_library = re.compile("H5|MPI_").match
    return Counter({key: n for key, n in counts.items() if key[0] not in NOT_COMPARED and not is_of_library(key[0])})
