"""What goes over sockets is counted for each process, as the programs and the system count it."""

import errno
import re
import signal
import subprocess
import sys
import textwrap
from collections import Counter

import pytest
import runs
from files_recorded import can_trace, record, rows_of, succeed

NAMES = ("network", "unix_socket")
KINDS = ("calls", "received_bytes", "sent_bytes")


def write(folder, program):
    (folder / "file").write_text("text")
    # What touches no file that is recorded has no row.
    (folder / "program.py").write_text("open('file').read()\n" + textwrap.dedent(program))
    return [sys.executable, "program.py"]


# Two sockets of a program, and what goes from one to the other.
PAIR = """
import os, socket
left, right = socket.socketpair()

def move(size):
    left.send(bytes(size))
    right.recv(size)
"""


def counted(run):
    """By process, in the order in which they began: calls, bytes received and bytes sent, over the network and else."""
    rows = runs.analyze("io_files", run, "--group-by", "process")["results"]
    rows.sort(key=lambda row: row["pid"])
    return [tuple(tuple(row[f"{name}_{kind}"] for kind in KINDS) for name in NAMES) for row in rows]


EACH = """
    import array, ctypes, os, socket
    libc = ctypes.CDLL(None)
    listening = socket.create_server(("127.0.0.1", 0))
    one = socket.create_connection(listening.getsockname())
    other, _ = listening.accept()
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    left, right = socket.socketpair()
    # Sent and received at once.
    both = ((one, other), (left, right))

    def whole(socket_, size, *flags):
        return socket_.recv(size, socket.MSG_WAITALL | sum(flags))

    for source, target in both:
        source.send(b"a" * 1)
        assert whole(target, 1, socket.MSG_PEEK) == whole(target, 1)
        source.sendmsg([b"b" * 10, b"c" * 20])
        assert target.recvmsg(30, 0, socket.MSG_WAITALL)[0] == b"b" * 10 + b"c" * 20
        os.write(source.fileno(), b"d" * 100)
        assert len(os.read(target.fileno(), 100)) == 100
        os.writev(source.fileno(), [b"e" * 300, b"f" * 700])
        buffers = [bytearray(500), bytearray(500)]
        assert os.readv(target.fileno(), buffers) == 1_000
        # A copy of a descriptor, and one that nobody saw being made.
        copy = os.dup(source.fileno())
        os.write(copy, b"g" * 10_000)
        os.close(copy)
        assert len(whole(target, 10_000)) == 10_000
        unseen = libc.syscall(32, target.fileno())
        left_over = 50_000 if source is left else 0
        source.sendall(b"h" * left_over)
        while left_over:
            left_over -= len(os.read(unseen, left_over))
        # Nothing is there.
        target.setblocking(False)
        try:
            target.recv(1)
            raise SystemExit("there was something")
        except BlockingIOError:
            pass
    # Datagrams, several at once, and a file.
    to, by = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    to.bind(("127.0.0.1", 0))
    by.sendto(b"i" * 1_000, to.getsockname())
    assert len(to.recvfrom(2_000)[0]) == 1_000
    by.connect(to.getsockname())

    class Vector(ctypes.Structure):
        _fields_ = [("base", ctypes.c_char_p), ("len", ctypes.c_size_t)]

    class Message(ctypes.Structure):
        _fields_ = [
            ("name", ctypes.c_void_p), ("name_len", ctypes.c_uint), ("vectors", ctypes.POINTER(Vector)),
            ("count", ctypes.c_size_t), ("control", ctypes.c_void_p), ("control_len", ctypes.c_size_t),
            ("flags", ctypes.c_size_t), ("len", ctypes.c_uint),
        ]

    vectors = [Vector(b"j" * 2_000, 2_000) for _ in range(3)]
    messages = (Message * 3)(*(Message(vectors=ctypes.pointer(vector), count=1) for vector in vectors))
    assert libc.sendmmsg(by.fileno(), messages, 3, 0) == 3
    assert libc.recvmmsg(to.fileno(), messages, 3, 0, None) == 3
    with open("file", "rb") as file:
        assert os.sendfile(one.fileno(), file.fileno(), 0, 4) == 4
    # Not counted: to the kernel itself, and pipes.
    kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    source, target = os.pipe()
    os.write(target, b"k" * 100)
    os.read(source, 100)
"""


def test_every_function_and_kind_of_socket_counts_once(tmp_path):
    command = write(tmp_path, EACH)
    succeed([*record("run"), *command], tmp_path)
    bytes_ = 1 + 30 + 100 + 1_000 + 10_000
    ((network, unix),) = counted(tmp_path / "run")
    assert network == (10 + 2 + 2 + 1, bytes_ + 7_000, bytes_ + 7_000 + 4)
    # In how many pieces the last ones come is the system's choice.
    assert unix[0] >= 10 + 2
    assert unix[1:] == (bytes_ + 50_000, bytes_ + 50_000)


SERVED = """
    import asyncio, http.server, socketserver, threading, urllib.request

    class Server(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    def serve():
        # Not the one for HTTP: that looks up its host's name, which the C library asks another process for.
        server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server

    server = serve()
    url = f"http://127.0.0.1:{server.server_address[1]}/data"
    for _ in range(5):
        assert len(urllib.request.urlopen(url).read()) == 1_000_000

    async def streams():
        async def echo(reader, writer):
            writer.write(await reader.readexactly(300_000))
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(bytes(300_000))
        assert len(await reader.read(-1)) == 300_000
        writer.close()

    asyncio.run(streams())
    server.shutdown()
"""
CALLS = "trace=read,write,readv,writev,sendto,recvfrom,sendmsg,recvmsg,sendfile"
STRACE = ["strace", "-f", "-qq", "-yy", "-s", "0", "-e", CALLS]
needs_tracing = pytest.mark.skipif(not can_trace(), reason="strace cannot trace here")
# What system calls are called that have another name than the function.
SYSTEM = {
    **{f"{name} (socket)": name for name in ("read", "readv", "write", "writev")},
    "recv": "recvfrom",
    "send": "sendto",
}
CALL = re.compile(r"^\d+ +(\w+)\(\d+<(TCP|UNIX)[^>]*>.*\) += (\d+)$")


def seen_by_system(folder):
    """Each call that moved bytes over a socket: its name, the kind of the socket, and the bytes."""
    unfinished = {}
    for line in (folder / "strace.log").read_text().splitlines():
        thread = line.split()[0]
        if line.endswith("<unfinished ...>"):
            unfinished[thread] = line.removesuffix("<unfinished ...>")
            continue
        resumed = re.match(r"\d+ +<\.\.\. \w+ resumed>(.*)", line)
        call = CALL.match(unfinished.pop(thread) + resumed[1] if resumed else line)
        if call and "MSG_PEEK" not in line and int(call[3]):
            yield call[1], call[2], int(call[3])


@needs_tracing
def test_servers_and_streams_move_what_the_system_sees(tmp_path):
    (tmp_path / "data").write_bytes(bytes(1_000_000))
    command = write(tmp_path, SERVED)
    succeed([*record("run"), *STRACE, "-o", tmp_path / "strace.log", *command], tmp_path)
    seen = {"TCP": [0, 0, 0], "UNIX": [0, 0, 0]}
    for name, kind, size in seen_by_system(tmp_path):
        sums = seen[kind]
        sums[0] += 1
        sums[1 if name.startswith("re") else 2] += size
    assert seen["TCP"][1] > 5_600_000
    # Beside the program there is `strace`, which moves nothing.
    moved = [sums for sums in counted(tmp_path / "run") if any(map(sum, sums))]
    assert moved == [(tuple(seen["TCP"]), tuple(seen["UNIX"]))]


def recorded(folder, command, *options):
    """The rows of calls on sockets."""
    stepscope = [runs.COMMAND, "record", "--io=net", *options, "--output", "run", "--"]
    succeed([*stepscope, *command], folder)
    return [row for row in rows_of(folder / "run") if row["file"].startswith(("tcp", "udp", "unix"))]


@needs_tracing
def test_calls_that_are_recorded_are_those_that_the_system_sees(tmp_path):
    (tmp_path / "data").write_bytes(bytes(1_000_000))
    command = write(tmp_path, SERVED)
    rows = recorded(tmp_path, [*STRACE, "-o", tmp_path / "strace.log", *command])
    moved = [row for row in rows if row["bytes"]]
    ours = Counter((SYSTEM.get(row["name"], row["name"]), row["file"][:3], row["bytes"]) for row in moved)
    theirs = Counter((name, {"TCP": "tcp", "UNIX": "uni"}[kind], size) for name, kind, size in seen_by_system(tmp_path))
    # What a file sends is a call on the file.
    assert ours == Counter({key: count for key, count in theirs.items() if key[0] != "sendfile"})
    connects = [row for row in rows if row["name"] == "connect"]
    assert len(connects) == 6 and all(re.fullmatch(r"tcp:127\.0\.0\.1:\d+", row["file"]) for row in connects)
    # Waiting for an answer takes time, and what lies between is in order.
    assert all(row["dur_ns"] > 0 for row in moved)


def test_every_function_is_recorded_with_its_peer(tmp_path):
    rows = recorded(tmp_path, write(tmp_path, EACH))
    moved = {row["name"] for row in rows if row["bytes"]}
    names = {"recv", "recvfrom", "recvmsg", "recvmmsg", "send", "sendto", "sendmsg", "sendmmsg"}
    assert moved == names | {f"{name} (socket)" for name in ("read", "readv", "write", "writev")}
    assert {row["file"].split(":")[0] for row in rows} == {"tcp", "udp", "unix"}
    (several,) = [row for row in rows if row["name"] == "recvmmsg"]
    assert several["bytes"] == 6_000
    (empty, *_) = [row for row in rows if row["name"] == "recv" and row["errno"]]
    assert (empty["errno"], empty["bytes"]) == (errno.EAGAIN, 0)
    # They are counted as without.
    ((network, unix),) = counted(tmp_path / "run")
    assert network[1] == 1 + 30 + 100 + 1_000 + 10_000 + 7_000 and unix[1] == 1 + 30 + 100 + 1_000 + 10_000 + 50_000
    files = runs.analyze("io_files", tmp_path / "run")["results"]
    datagrams = [row for row in files if (row["file"] or "").startswith("udp:")]
    assert sum(row["write_bytes"] or 0 for row in datagrams) == 6_000
    layers = [
        row
        for row in runs.analyze("io_summary", tmp_path / "run", "--group-by", "layer")["results"]
        if row["layer"] == "net"
    ]
    assert sum(row["read_bytes"] for row in layers) == network[1] + unix[1]


def test_each_process_has_its_own_and_threads_that_ended_count(tmp_path):
    program = """
        import threading
        for _ in range(20):
            threads = [threading.Thread(target=move, args=(100,)) for _ in range(3)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
        if os.fork() == 0:
            open("file").read()
            move(7)
            os._exit(0)
        os.wait()
    """
    succeed([*record("run"), *write(tmp_path, PAIR + textwrap.dedent(program))], tmp_path)
    nothing = (0, 0, 0)
    assert counted(tmp_path / "run") == [(nothing, (120, 6_000, 6_000)), (nothing, (2, 7, 7))]


def test_a_process_that_is_killed_loses_no_more_than_a_second(tmp_path):
    program = """
        import pathlib, time
        move(1_000)
        while not any(b"2 1000 1000" in path.read_bytes() for path in pathlib.Path("run/raw").iterdir()):
            time.sleep(0.1)
        os.kill(os.getpid(), 9)
    """
    command = [*record("run"), *write(tmp_path, PAIR + textwrap.dedent(program))]
    result = subprocess.run([*map(str, command)], capture_output=True, text=True, cwd=tmp_path, timeout=600)
    assert result.returncode == 128 + signal.SIGKILL
    assert counted(tmp_path / "run") == [((0, 0, 0), (2, 1_000, 1_000))]


def test_a_profile_counts_what_is_moved_while_it_is_on(tmp_path):
    program = """
        import torch
        from stepscope.profiler import profile
        move(5)
        for at in range(2):
            with profile(io=True, run=f"run{at}"):
                open("file").read()
                move(100 + at)
            move(7)
    """
    succeed(write(tmp_path, PAIR + textwrap.dedent(program)), tmp_path)
    for at in range(2):
        runs.stepscope("recover", tmp_path / f"run{at}")
        ((network, unix),) = counted(tmp_path / f"run{at}")
        assert (network, unix) == ((0, 0, 0), (2, 100 + at, 100 + at))


def test_a_process_that_uses_no_file_counts_too(tmp_path):
    program = """
        import pathlib, sys, time
        for at in range(3):
            if os.fork() == 0:
                # The first two move nothing.
                move(100) if at == 2 else None
                os._exit(0)
            os.wait()
        if sys.argv[1] == "killed":
            move(1_000)
            # The sums are written once a second.
            while not any(b"2 1000 1000" in path.read_bytes() for path in pathlib.Path("killed/raw").iterdir()):
                time.sleep(0.1)
            os.kill(os.getpid(), 9)
    """
    (tmp_path / "program.py").write_text(PAIR + textwrap.dedent(program))
    nothing, by_child, by_parent = ((calls, size, size) for calls, size in ((0, 0), (2, 100), (2, 1_000)))
    for how, expected in (("ends", [by_child]), ("killed", [by_parent, by_child])):
        run = tmp_path / how
        command = [*record(how, "--io-include", "data"), sys.executable, "program.py", how]
        result = subprocess.run([*map(str, command)], capture_output=True, text=True, cwd=tmp_path, timeout=600)
        assert result.returncode == (128 + signal.SIGKILL if how == "killed" else 0), result.stderr
        assert counted(run) == [(nothing, sums) for sums in expected]
        assert len(list(run.glob("rank=*/*.parquet"))) == len(expected)
