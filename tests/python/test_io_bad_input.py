"""Programs that do with files what recorders trip over: they run as they would, and what they do is recorded."""

import ctypes.util
import errno
import os
import sys
import textwrap

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import runs
from files_recorded import record, rows_of, succeed

SIGNALS = """
    #define _GNU_SOURCE
    #include <fcntl.h>
    #include <signal.h>
    #include <stdio.h>
    #include <sys/time.h>
    #include <unistd.h>

    static int other, opened;
    static long handled;

    /* Reads what is open, and opens, reads and closes a file. */
    static void handle(int number) {
        char text[8];
        for (int more = 0; more < 3; more++)
            pread(other, text, 1, handled++);
        int new = open("data/third", O_RDONLY);
        opened += read(new, text, 2) == 2;
        close(new);
    }

    int main(void) {
        char text[8];
        int file = open("data/file", O_RDONLY);
        other = open("data/other", O_RDONLY);
        struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
        sigaction(SIGALRM, &action, NULL);
        struct itimerval time = {{0, 1000}, {0, 1000}}, none = {{0, 0}, {0, 0}};
        setitimer(ITIMER_REAL, &time, NULL);
        long count = 0;
        while (opened < 300)
            pread(file, text, 1, count++);
        setitimer(ITIMER_REAL, &none, NULL);
        printf("%ld %ld %d\\n", count, handled, opened);
        return 0;
    }
"""


def build(folder, source, name="program", *flags):
    """Builds a program in a folder that has three files of data."""
    (folder / "data").mkdir(exist_ok=True)
    for file in ("file", "other", "third"):
        (folder / "data" / file).write_text("0123456789\n" * 1_000)
    (folder / f"{name}.c").write_text(textwrap.dedent(source))
    succeed(["cc", *flags, "-o", name, f"{name}.c"], folder)


def rows_by_file(folder, run="run"):
    """The rows of files in the folder of data, in order, by the file's name."""
    by_file = {}
    for row in sorted(rows_of(folder / run), key=lambda row: row["start_ns"]):
        by_file.setdefault((row["file"] or "").removeprefix(f"{folder / 'data'}/"), []).append(row)
    return by_file


def offsets_of(folder, name, file):
    """Where the calls of a name on a file of the folder of data began, in order."""
    offsets = []
    for part in (folder / "run").glob("rank=*/*.parquet"):
        table = pq.read_table(part, columns=["name", "file", "offset"])
        is_one = pc.and_(pc.equal(table["name"], name), pc.equal(table["file"], str(folder / "data" / file)))
        offsets += table.filter(is_one)["offset"].to_pylist()
    return sorted(offsets, key=lambda offset: offset or 0)


def test_signal_handlers_that_read_in_the_middle(tmp_path):
    build(tmp_path, SIGNALS)
    said = succeed([*record("run", "--io-include", "data"), "./program"], tmp_path).stdout
    count, handled, opened = map(int, said.split())
    # Every call once, wherever the signal came.
    assert offsets_of(tmp_path, "pread", "file") == list(range(count))
    assert offsets_of(tmp_path, "pread", "other") == list(range(handled))
    assert [len(offsets_of(tmp_path, name, "third")) for name in ("open", "read", "close")] == 3 * [opened]
    assert "capture.io_calls_refused" not in runs.findings(tmp_path / "run")


def test_paths_that_are_not_utf_8_are_told_apart(tmp_path):
    (tmp_path / "data").mkdir()
    names = {
        b"M\xfcller": "M\\xfcller",
        b"M\xe4ller": "M\\xe4ller",
        "Müller".encode(): "Müller",
        rb"M\xfcller": r"M\x5cxfcller",
    }
    for size, name in enumerate(names, 1):
        with open(os.path.join(os.fsencode(tmp_path / "data"), name), "wb") as file:
            file.write(bytes(size))
    program = "import os; [open(b'data/' + name, 'rb').read() for name in os.listdir(b'data')]"
    succeed([*record("run", "--io-include", "data"), sys.executable, "-c", program], tmp_path)
    rows = rows_by_file(tmp_path)
    read = {file: max(row["bytes"] for row in rows[file] if row["name"] == "read") for file in names.values()}
    assert read == {text: size for size, text in enumerate(names.values(), 1)}


BAD_LISTS = """
    #define _GNU_SOURCE
    #include <errno.h>
    #include <fcntl.h>
    #include <stdio.h>
    #include <sys/socket.h>
    #include <sys/uio.h>
    #include <unistd.h>

    static void say(ssize_t returned) {
        printf("%zd %d ", returned, errno);
    }

    int main(void) {
        int file = open("data/file", O_RDONLY), ends[2];
        struct iovec *nowhere = (struct iovec *)8, one = {NULL, 0};
        socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
        say(readv(file, nowhere, 2));
        say(preadv(file, &one, 1 << 20, 0));
        say(readv(file, &one, -1));
        say(writev(ends[0], nowhere, 2));
        say(sendmsg(ends[0], (struct msghdr *)nowhere, 0));
        struct msghdr message = {.msg_iov = nowhere, .msg_iovlen = 2};
        say(recvmsg(ends[0], &message, MSG_DONTWAIT));
        return 0;
    }
"""


@pytest.mark.parametrize("options", [[], ["--io=net"]], ids=["files", "net"])
def test_lists_of_buffers_that_the_system_does_not_take_are_not_read(tmp_path, options):
    build(tmp_path, BAD_LISTS)
    alone = succeed(["./program"], tmp_path).stdout
    stepscope = [runs.COMMAND, "record", *(options or ["--io"]), "--io-include", "data", "--output", "run", "--"]
    assert succeed([*stepscope, "./program"], tmp_path).stdout == alone
    fault, invalid = errno.EFAULT, errno.EINVAL
    assert alone.split()[1::2] == [*map(str, (fault, invalid, invalid, fault, fault, fault))]
    found = [(row["name"], row["errno"]) for row in rows_by_file(tmp_path)["file"]]
    assert found == [("open", None), ("readv", fault), ("preadv", invalid), ("readv", invalid)]


def test_descriptors_that_come_over_a_socket(tmp_path):
    program = """
        import contextlib, os, socket
        left, right = socket.socketpair()
        if os.fork() == 0:
            for name, start in ("file", 100), ("other", 0):
                fd = os.open(f"data/{name}", os.O_RDONLY)
                os.read(fd, start)
                socket.send_fds(left, [b"x"], [fd])
            os._exit(0)
        os.wait()
        free = os.dup(0)
        os.close(free)
        for length in 11, 9:
            # Nothing is open there yet, or any more.
            with contextlib.suppress(OSError):
                os.read(free, 1)
            _, received, _, _ = socket.recv_fds(right, 1, 1)
            assert received == [free]
            os.read(free, length)
            os.close(free)
    """
    (tmp_path / "data").mkdir()
    for name in ("file", "other"):
        (tmp_path / "data" / name).write_bytes(bytes(1_000))
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    succeed([*record("run", "--io-include", "data"), sys.executable, "program.py"], tmp_path)
    rows = rows_by_file(tmp_path)
    found = [(file, row["name"], row["offset"], row["bytes"]) for file in ("file", "other") for row in rows[file]]
    expected = [("file", "read", 100, 11), ("file", "close", None, None)]
    expected += [("other", "read", 0, 9), ("other", "close", None, None)]
    assert [call for call in found if call[1] in ("read", "close") and call[3] not in (0, 100)] == expected


def test_descriptors_that_are_closed_twice(tmp_path):
    source = """
        #include <errno.h>
        #include <fcntl.h>
        #include <stdio.h>
        #include <unistd.h>

        #define SAY(call) do { errno = 0; int got = (int)(call); printf("%d %d\\n", got, errno); } while (0)

        int main(void) {
            char text[8];
            int file = open("data/file", O_RDONLY);
            SAY(close(file));
            SAY(close(file));
            SAY(read(file, text, 8));
            int other = open("data/other", O_RDONLY);
            SAY(other == file);
            /* It is the other one's by now. */
            SAY(close(file));
            SAY(read(other, text, 8));
            FILE *stream = fdopen(open("data/third", O_RDONLY), "r");
            SAY(close(fileno(stream)));
            SAY(fclose(stream));
            SAY(dup2(file, file));
            return 0;
        }
    """
    build(tmp_path, source)
    alone = succeed(["./program"], tmp_path).stdout
    assert succeed([*record("run", "--io-include", "data"), "./program"], tmp_path).stdout == alone
    assert alone.count(f"-1 {errno.EBADF}\n") == 5
    names = {file: [row["name"] for row in rows] for file, rows in rows_by_file(tmp_path).items()}
    assert names == {"file": ["open", "close"], "other": ["open", "close"], "third": ["open", "fdopen", "close"]}


def test_a_file_that_is_removed_while_it_is_open(tmp_path):
    program = """
        import os, subprocess
        fd = os.open("data/file", os.O_RDWR)
        os.unlink("data/file")
        os.read(fd, 10)
        copy = os.dup(fd)
        os.close(fd)
        os.write(copy, b"more")
        # Another one of the same name, and a program that only has the descriptor.
        open("data/file", "w").close()
        subprocess.run(["head", "-c", "7"], stdin=copy, check=True, stdout=subprocess.DEVNULL)
    """
    (tmp_path / "data").mkdir()
    (tmp_path / "data/file").write_bytes(bytes(1_000))
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    succeed([*record("run", "--io-include", "data"), sys.executable, "program.py"], tmp_path)
    moved = [(row["name"], row["offset"]) for row in rows_by_file(tmp_path)["file"] if row["bytes"]]
    assert moved == [("read", 0), ("write", 10), ("read", 14)]


READS = """
    #include <fcntl.h>
    #include <stdio.h>
    #include <unistd.h>

    int main(void) {
        char text[8];
        int file = open("data/file", O_RDONLY), left = 0;
        for (int at = 0; at < 200000; at++)
            left += pread(file, text, 1, at % 1000) != 1;
        FILE *stream = fopen("data/new", "w");
        for (int at = 0; at < 1000; at++)
            left += fputs("text", stream) < 0;
        printf("%d %d\\n", left, fclose(stream));
        return 0;
    }
"""


def test_a_disk_that_is_full_for_the_recorder_alone(tmp_path, small_disk):
    build(tmp_path, READS)
    run = small_disk / "run"
    assert succeed([*record(run, "--io-include", "data"), "./program"], tmp_path).stdout == "0 0\n"
    found = runs.findings(run)
    assert found["capture.disk_full"]["severity"] == "severe"
    assert found["capture.dropped_records"]["count"] > 1_000
    (file,) = runs.analyze("io_files", run)["results"]
    # No error of the recorder's is one of the program's.
    assert (file["file"], file["errors"], file["opens"]) == (str(tmp_path / "data/file"), 0, 1)
    assert 1_000 < file["reads"] < 200_000


@pytest.mark.slow
def test_more_paths_than_there_is_room_for(tmp_path):
    source = """
        #include <stdio.h>
        #include <unistd.h>

        int main(void) {
            char path[32];
            long missing = 0;
            for (int at = 0; at < 1060000; at++) {
                sprintf(path, "data/%x", at);
                missing += access(path, F_OK) != 0;
            }
            printf("%ld %d\\n", missing, access("data/0", F_OK));
            return 0;
        }
    """
    build(tmp_path, source, "program", "-O2")
    said = succeed([*record("run", "--io-include", "data"), "./program"], tmp_path).stdout
    assert said == "1060000 -1\n"
    found = runs.findings(tmp_path / "run")["capture.io_calls_refused"]
    recorded = sum(
        pc.sum(pc.equal(pq.read_table(part, columns=["name"])["name"], "access")).as_py()
        for part in (tmp_path / "run").glob("rank=*/*.parquet")
    )
    # Those are known that came first, and stay so.
    assert recorded + found["count"] == 1_060_001 and recorded > 1_000_000
    assert "calls on files whose paths there was no room for" in found["examples"][0]


WRAPPER = """
    #define _GNU_SOURCE
    #include <dlfcn.h>
    #include <fcntl.h>
    #include <stdarg.h>
    #include <string.h>
    #include <sys/types.h>

    static int opened = -1;
    int wrapped_opens, wrapped_reads;

    int open(const char *path, int flags, ...) {
        static int (*next)(const char *, int, ...);
        if (next == NULL)
            next = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
        va_list arguments;
        va_start(arguments, flags);
        int file = next(path, flags, va_arg(arguments, mode_t));
        va_end(arguments);
        if (strcmp(path, "data/file") == 0) {
            opened = file;
            wrapped_opens++;
        }
        return file;
    }

    ssize_t read(int file, void *to, size_t len) {
        static ssize_t (*next)(int, void *, size_t);
        if (next == NULL)
            next = (ssize_t (*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
        wrapped_reads += file == opened;
        return next(file, to, len);
    }
"""
WRAPPED = """
    #define _GNU_SOURCE
    #include <dlfcn.h>
    #include <fcntl.h>
    #include <stdio.h>
    #include <unistd.h>

    int main(void) {
        char text[8];
        int file = open("data/file", O_RDONLY);
        for (int at = 0; at < 500; at++)
            read(file, text, 3);
        printf("%d %d\\n", *(int *)dlsym(RTLD_DEFAULT, "wrapped_opens"), *(int *)dlsym(RTLD_DEFAULT, "wrapped_reads"));
        return 0;
    }
"""


@pytest.mark.parametrize("place", ["before", "behind"])
def test_another_library_that_stands_between(tmp_path, place):
    build(tmp_path, WRAPPER, "wrapper.so", "-shared", "-fPIC", "-ldl")
    build(tmp_path, WRAPPED, "program", "-ldl")
    wrapper = tmp_path / "wrapper.so"
    # What is there before comes first.
    given, more = (str(wrapper), "$LD_PRELOAD") if place == "before" else (None, f"$LD_PRELOAD:{wrapper}")
    command = [*map(str, record("run", "--io-include", "data")), "sh", "-c", f"LD_PRELOAD={more} exec ./program"]
    said = runs.execute(*command, cwd=tmp_path, env=runs.environment(LD_PRELOAD=given)).stdout
    assert said == "1 500\n"
    rows = rows_by_file(tmp_path)["file"]
    assert [row["name"] for row in rows] == ["open"] + 500 * ["read"]
    assert [row["offset"] for row in rows[1:]] == list(range(0, 1_500, 3))


def test_another_memory_allocator(tmp_path):
    library = ctypes.util.find_library("jemalloc")
    if library is None:
        pytest.skip("there is no jemalloc here")
    build(tmp_path, READS)
    command = [*map(str, record("run", "--io-include", "data")), "./program"]
    assert runs.execute(*command, cwd=tmp_path, env=runs.environment(LD_PRELOAD=library)).stdout == "0 0\n"
    assert len(offsets_of(tmp_path, "pread", "file")) == 200_000
