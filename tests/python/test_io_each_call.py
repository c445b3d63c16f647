"""Each function of the C library that is recorded, called once by its name, with the error that it can give.

What `strace` shows of it is what is recorded; what it does not show is listed here.
"""

import errno
import os
import re
from collections import Counter
from pathlib import Path

import pytest
import runs
from files_recorded import SAME, TRACED, can_trace, record, rows_of, succeed, system_calls

SOURCE = Path(__file__).with_name("programs") / "each_call.c"
#: How the program is built, and functions that a compiler calls then.
BUILDS = {
    "plain": ([], ["open", "openat", "read", "pread", "fread", "fseeko", "fprintf", "mmap"]),
    "checked": (
        ["-O2", "-D_FORTIFY_SOURCE=2"],
        ["__openat_2", "__read_chk", "__pread_chk", "__readlink_chk", "__fread_chk", "__fgets_chk", "__fprintf_chk"],
    ),
    "wide": (
        ["-D_FILE_OFFSET_BITS=64"],
        ["open64", "openat64", "pread64", "pwrite64", "lseek64", "ftruncate64", "fseeko64", "mmap64", "fstat64"],
    ),
}
#: What is exported beside: other tests call it. It begins and ends processes, loads libraries, or uses no file.
ELSEWHERE = {
    *(
        "_exit",
        "execv",
        "execve",
        "execvp",
        "execvpe",
        "fexecve",
        "execveat",
        "posix_spawn",
        "posix_spawnp",
        "vfork",
        "_Fork",
    ),
    *("dlopen", "io_submit", "io_getevents", "io_pgetevents", "connect"),
    *("socket", "socketpair", "accept", "accept4", "pipe", "pipe2", "eventfd", "epoll_create", "epoll_create1"),
    *("memfd_create", "send", "sendto", "sendmsg", "sendmmsg", "recv", "__recv_chk", "recvfrom", "__recvfrom_chk"),
    *("recvmsg", "recvmmsg"),
}
#: Files that hooks need to be folders, links, or not there.
TEMPORARY = {f"{name}{width}" for name in ("mkstemp", "mkostemp", "mkstemps", "mkostemps") for width in ("", "64")}
#: Of these in the system's folder for files of that kind.
UNNAMED = {"tmpfile", "tmpfile64"}
FOLDERS = {*TEMPORARY, "rmdir", "opendir", "fdopendir", "readdir", "readdir64", "closedir", "getdents64", "folder"}
LINKS = {"readlink", "__readlink_chk", "readlinkat", "__readlinkat_chk"}
MADE = {"mkdir", "mkdirat", "symlink", "symlinkat"}

TEXT = len(f"text 7 1.5 {os.strerror(errno.EXDEV)}")
OPENED, CLOSED = ("fopen", None, None, None), ("fclose", None, None, None)
DESCRIPTOR = [("open", None, None, None)]


def stream(*calls):
    return [OPENED, *calls, CLOSED]


def mapped(*calls):
    return [*DESCRIPTOR, ("mmap", None, 8192, None), *calls, ("close", None, None, None)]


#: Name, bytes, bytes asked for where those are others, and error of each call on a file of which the system sees others, or does not see the file.
LISTED = {
    "fopen": [OPENED, CLOSED],
    "fopen64": [OPENED, CLOSED],
    "freopen": [("freopen", None, None, None), ("read", 10, None, None), CLOSED],
    "freopen64": [("freopen", None, None, None), ("read", 10, None, None), CLOSED],
    "fdopen": [*DESCRIPTOR, ("fdopen", None, None, None), CLOSED],
    "fclose": [OPENED, CLOSED],
    "fread": stream(("fread", 70, None, None), ("fread", 9930, 20_000, None)),
    "fread_unlocked": stream(("fread", 70, None, None), ("fread", 9930, 20_000, None)),
    "__fread_unlocked_chk": stream(("fread", 70, None, None)),
    "__fread_chk": stream(("fread", 70, None, None)),
    "fwrite": stream(("fwrite", 70, None, None)),
    "fwrite_unlocked": stream(("fwrite", 70, None, None)),
    "fgets": stream(("fgets", 49, None, None), ("fgets", 51, None, None)),
    "fgets_unlocked": stream(("fgets", 49, None, None), ("fgets", 51, None, None)),
    "__fgets_unlocked_chk": stream(("fgets", 49, None, None)),
    "__fgets_chk": stream(("fgets", 49, None, None)),
    "fputs_unlocked": stream(("fputs", 7, None, None)),
    "fputs": stream(("fputs", 7, None, None)),
    "getline": stream(("getline", 100, None, None)),
    "getdelim": stream(("getdelim", 99, None, None)),
    "__getdelim": stream(("getdelim", 99, None, None)),
    "fflush_unlocked": stream(("fwrite", 7, None, None), ("fflush", None, None, None)),
    "fflush": stream(("fwrite", 7, None, None), ("fflush", None, None, None)),
    "fseek": stream(("fseek", None, None, None), ("fseek", None, None, errno.EINVAL)),
    "fseeko": stream(("fseek", None, None, None), ("fseek", None, None, errno.EINVAL)),
    "fseeko64": stream(("fseek", None, None, None), ("fseek", None, None, errno.EINVAL)),
    **{
        name: stream(("fprintf", TEXT, None, None))
        for name in ("fprintf", "__fprintf_chk", "vfprintf", "__vfprintf_chk")
    },
    **{name: stream(("fseek", None, None, None)) for name in ("fgetpos", "fgetpos64", "fsetpos", "fsetpos64")},
    "rewind": [
        OPENED,
        ("fseek", None, None, None),
        ("close", None, None, None),
        # The stream is of no file any more.
    ],
    "mremap": [
        *DESCRIPTOR,
        ("mmap", None, 8192, None),
        ("mremap", None, 12288, None),
        ("mremap", None, 4096, errno.EINVAL),
        ("mremap", None, 8192, None),
        ("madvise", None, 4096, None),
        ("mremap", None, 4096, None),
        ("munmap", None, 4096, None),
        ("munmap", None, 16384, None),
        ("close", None, None, None),
    ],
    "posix_madvise": mapped(
        ("madvise", None, 4096, None), ("madvise", None, 4096, errno.EINVAL), ("munmap", None, 8192, None)
    ),
    "munmap": mapped(("munmap", None, 4096, None), ("munmap", None, 4096, errno.EINVAL), ("munmap", None, 1, None)),
    "madvise": mapped(
        ("madvise", None, 4096, None), ("madvise", None, 4096, errno.EINVAL), ("munmap", None, 8192, None)
    ),
    "msync": mapped(("msync", None, 4096, None), ("msync", None, 4096, errno.EINVAL), ("munmap", None, 8192, None)),
    **{
        name: [("opendir", None, None, None), *3 * [("readdir", None, None, None)], ("closedir", None, None, None)]
        for name in ("readdir", "readdir64")
    },
}
#: Of these, too, the system sees more: a folder that is opened as one is asked what it is, and read ahead.
NOT_SEEN_ALIKE = {*LISTED, "stream", "opendir", "fdopendir", "closedir", "target"}
#: `stepscope record` looks for it, before the program begins.
NOT_SEEN_ALIKE |= {".deepspeed_env"}
#: What is called otherwise than in the other tests, in which these are left out.
NAMES = {
    **SAME,
    "fopen": "openat",
    "mkstemp": "openat",
    "dprintf": "write",
    "pwritev2": "pwritev",
    "renameat2": "renameat",
    "faccessat": "access",
    "faccessat2": "access",
}
MOVES = {
    "read",
    "pread",
    "readv",
    "preadv",
    "write",
    "pwrite",
    "writev",
    "pwritev",
    "sendfile",
    "copy_file_range",
    "splice",
}
#: Of calls on addresses the system does not say which file is there.
ON_ADDRESSES = {"munmap", "madvise", "msync", "mremap"}


def hooks():
    """The functions that the library stands for."""
    library = runs.package() / "libstepscope_files.so"
    symbols = succeed(["nm", "-D", "--defined-only", library], "/").stdout.split("\n")
    # Those of code: the linker's own are of data.
    names = {line.split()[-1].partition("@")[0] for line in symbols if line and line.split()[-2] in "TW"}
    return {name for name in names if not name.startswith("stepscope_")}


def prepare(folder, names):
    """A folder with a file for each function; in another folder there are some, too."""
    (folder / "folder").mkdir(parents=True)
    content = (98 * "y" + "x\n") * 100
    for name in names - MADE:
        if name in FOLDERS:
            (folder / name).mkdir(exist_ok=True)
        elif name in LINKS:
            (folder / name).symlink_to("target")
        else:
            (folder / name).write_text(content)


def seen_by_system(log, data):
    """Name, file, bytes and error of each call that ``strace`` shows of a file in a folder."""
    for name, arguments, returned, rest in system_calls(log):
        error = re.search(r" (E\w+) \(", rest)
        if name == "fcntl" and not re.search("F_DUPFD|LK", arguments):
            continue
        if name == "fcntl" and "F_DUPFD" in arguments:
            name = "dup"
        file = file_of(name, arguments, data)
        name = NAMES.get(name, name)
        bytes_moved = max(int(returned, 0), 0) if name in MOVES else None
        if file is not None:
            yield name, file, bytes_moved, getattr(errno, error[1]) if error else None


def file_of(name, arguments, data):
    """The first file of a call, by its name in the folder; `None` where it lies in another one."""
    if name in ("symlink", "symlinkat"):
        # What it points at is not looked at.
        arguments = arguments.partition(", ")[2]
    named = re.match(r'(?:\w+<([^>]*)>, )?"([^"]*)"', arguments)
    if named and NAMES.get(name, name) not in MOVES:
        # Of this one the folder is the root.
        inside = named[2].lstrip("/") if name == "openat2" else named[2]
        path = os.path.normpath(os.path.join(named[1] or data, inside))
    else:
        descriptors = re.findall(r"\d+<(/[^>]*)>", arguments)
        if name == "sendfile":
            descriptors = descriptors[1:]
        path = descriptors[0] if descriptors else None
    return os.path.relpath(path, data) if path and path.startswith(f"{data}/") else None


@pytest.fixture(scope="module", params=BUILDS)
def called(request, tmp_path_factory):
    """Where the program ran, recorded: `data`, `run`, `strace.log` where there is one; the functions that it called."""
    folder = tmp_path_factory.mktemp(request.param)
    flags, imported = BUILDS[request.param]
    program = folder / "program"
    succeed(["cc", *flags, "-o", program, SOURCE, "-ldl"], folder)
    symbols = succeed(["nm", "-u", program], folder).stdout
    assert set(imported) <= set(re.findall(r" U (\w+)", symbols))
    names = hooks() - ELSEWHERE | {request.param, "target", "stream"}
    for data in ("alone", "data"):
        prepare(folder / data, names)
    alone = succeed([program, request.param], folder / "alone").stdout
    traced = [*TRACED, "-o", folder / "strace.log"] if can_trace() else []
    recorded = succeed([*traced, *record(folder / "run"), program, request.param], folder / "data").stdout
    # What each gave back, and which error it left.
    assert recorded == alone
    return folder, {line.split()[0] for line in alone.splitlines()}


def recorded_in(folder):
    """The rows of files in the folder of data, in order, by the file's name there."""
    data = f"{folder / 'data'}/"
    rows = [row for row in rows_of(folder / "run") if (row["file"] or "").startswith(data)]
    by_file = {}
    for row in sorted(rows, key=lambda row: row["start_ns"]):
        by_file.setdefault(row["file"].removeprefix(data), []).append(row)
    return by_file


def test_each_function_is_called_and_recorded(called):
    folder, names = called
    assert hooks() - ELSEWHERE - names == set()
    assert hooks() - ELSEWHERE - UNNAMED - {file.split("/")[0] for file in recorded_in(folder)} == set()


def test_what_the_system_sees_is_recorded(called):
    folder, _ = called
    if not (folder / "strace.log").exists():
        pytest.skip("strace cannot trace here")
    data = folder / "data"
    system = Counter(seen_by_system((folder / "strace.log").read_text(), str(data)))
    ours = Counter()
    for file, rows in recorded_in(folder).items():
        for row in rows:
            ours[NAMES.get(row["name"], row["name"]), file, row["bytes"], row["errno"]] += 1
    system, ours = (Counter({key: count for key, count in counts.items() if is_seen(key)}) for counts in (system, ours))
    assert ours - system == Counter()
    assert system - ours == Counter()
    assert len(system) > 250


def is_seen(key):
    name, file, *_ = key
    # A stream that is made for one call asks what it writes to.
    is_asked = "dprintf" in file and name in ("stat", "lseek")
    is_listed = file.rpartition("/")[2] in NOT_SEEN_ALIKE
    return not is_listed and not is_asked and name not in ON_ADDRESSES and "fault" not in name


def test_what_the_system_does_not_see_is_as_listed(called):
    folder, _ = called
    by_file = recorded_in(folder)
    found = {
        file: [
            (row["name"], row["bytes"], row["asked_bytes"], row["errno"])
            for row in by_file[file]
            if "fault" not in row["name"]
        ]
        for file in LISTED
    }
    assert found == LISTED


def test_files_without_a_name_are_of_the_folder_for_them(called):
    folder, _ = called
    rows = [row for row in rows_of(folder / "run") if row["name"] == "tmpfile"]
    assert len(rows) == 2 and all(row["file"].startswith("/tmp/") for row in rows)
    of_them = [row["name"] for row in rows_of(folder / "run") if row["file"] in {row["file"] for row in rows}]
    assert sorted(of_them) == 2 * ["fclose"] + 2 * ["fwrite"] + 2 * ["tmpfile"]
