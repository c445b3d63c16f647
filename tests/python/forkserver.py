"""Python programs that begin with PyTorch imported: importing it takes longer than most of the tests' programs.

A server has imported PyTorch and forks for each program. A program's command starts a client, which hands its files,
folder and environment to the server, passes on signals and ends as the program does::

    test ── starts ──▶ client ── asks ──▶ server ── forks ──▶ keeper ── forks ──▶ program

What sees a difference to a program started by itself (its command line, its parent, when PyTorch was imported) must be
tested without. Where the environment says what only a new process can heed, the client becomes the program instead.
"""

import marshal
import os
import signal
import sys

# The rest of the imports is the server's: a client begins at once.
PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP, signal.SIGQUIT)
# Variables that are read when they are needed, not when a process begins or imports PyTorch.
READ_LATER = ("STEPSCOPE_", "PYTEST_", "TRAIN_", "OMPI_", "PMI_", "SLURM_", "TORCHELASTIC_")
READ_LATER_NAMES = {
    "DS_ENV_FILE", "GROUP_RANK", "HOME", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "OLDPWD", "PATH", "PWD",
    "PYTHONPATH", "RANK", "TMPDIR", "TORCHINDUCTOR_CACHE_DIR", "WORLD_SIZE", "XDG_CACHE_HOME", "_",
}  # fmt: skip


def client(path, words):
    """Has the server at ``path`` run the program ``words``: ``-c`` and a text, or a file; then its arguments."""
    import _socket

    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    connection.connect(path)
    request = marshal.dumps((words, dict(os.environ), os.getcwd()))
    files = b"".join(file.to_bytes(4, sys.byteorder) for file in (0, 1, 2))
    length = len(request).to_bytes(8, sys.byteorder)
    connection.sendmsg([length], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
    connection.sendall(request)
    pid = int.from_bytes(connection.recv(8), sys.byteorder)
    if pid == 0:
        os.execv(sys.executable, [sys.executable, *words])
    for number in PASSED_ON:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda number, frame: os.kill(pid, number))
    status = int.from_bytes(connection.recv(8), sys.byteorder)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status))


def serve(path):
    """Serves requests at ``path`` until the program that started it ends. Returns in each program's process: its words."""
    import gc
    import select
    import socket

    own = dict(os.environ)
    import torch
    import torch._dynamo  # noqa: F401  # The first optimizer of a program imports it.

    added = {name: value for name, value in os.environ.items() if name not in own}
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(path)
        server.listen(16)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        gc.collect()
        gc.freeze()
        while True:
            # Its input ends with the program that started it.
            if 0 in select.select([server, 0], [], [])[0]:
                os._exit(0)
            connection, _ = server.accept()
            if os.fork() == 0:
                break
            connection.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    words, environment, folder, files = request_of(connection)
    if not is_heeded(own, environment):
        connection.sendall((0).to_bytes(8, sys.byteorder))
        os._exit(0)
    pid = os.fork()
    if pid > 0:
        keep(connection, pid, files)
    connection.close()
    os.setsid()
    for file, own_file in zip(files, (0, 1, 2)):
        os.dup2(file, own_file)
        os.close(file)
    os.environ.clear()
    os.environ.update({**added, **environment})
    os.chdir(folder)
    return words


def request_of(connection):
    import socket

    length, files, _, _ = socket.recv_fds(connection, 8, 3)
    request = b""
    while len(request) < int.from_bytes(length, sys.byteorder):
        request += connection.recv(1 << 20)
    return *marshal.loads(request), files


def is_heeded(own, wanted):
    """True when the variables that differ are read later."""
    names = {name for name in {*own, *wanted} if own.get(name) != wanted.get(name)}
    return all(name in READ_LATER_NAMES or name.startswith(READ_LATER) for name in names)


def keep(connection, pid, files):
    """Tells the client how its program ends. Ends the program, with what is in its session, when the client is gone."""
    import select

    for file in files:
        os.close(file)
    connection.sendall(pid.to_bytes(8, sys.byteorder))
    process = os.pidfd_open(pid)
    ready, _, _ = select.select([process, connection], [], [])
    if process not in ready:
        os.killpg(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    try:
        connection.sendall(status.to_bytes(8, sys.byteorder))
    except OSError:
        pass
    os._exit(0)


def begin(words):
    """Makes this process one that Python has just started for ``words``; its program and the namespace that it runs in."""
    import types

    unbuffered = words[0] == "-u"
    words = words[unbuffered:]
    if unbuffered:
        sys.stdout.reconfigure(write_through=True)
    main = types.ModuleType("__main__")
    if words[0] == "-c":
        folder, text, name, sys.argv = "", words[1], "<string>", ["-c", *words[2:]]
    else:
        folder, name, sys.argv = os.path.dirname(os.path.abspath(words[0])), words[0], list(words)
        main.__file__ = os.path.abspath(name)
        with open(name, encoding="utf-8") as file:
            text = file.read()
    main.__builtins__ = __builtins__
    added = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    sys.path[:1] = [folder, *added]
    sys.modules["__main__"] = main
    sys.modules.pop("sitecustomize", None)
    if any(os.path.exists(os.path.join(entry, "sitecustomize.py")) for entry in added):
        import sitecustomize  # noqa: F401
    return compile(text, name, "exec"), vars(main)


def end(code):
    """Ends as Python does, but that the modules are not taken apart, which takes half a second."""
    import atexit
    import threading

    if not isinstance(code, (int, type(None))):
        print(code, file=sys.stderr)
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code or 0)


if __name__ == "__main__":
    if sys.argv[1] != "serve":
        client(sys.argv[1], sys.argv[2:])
    words = serve(sys.argv[2])
    try:
        exec(*begin(words))
    except SystemExit as ending:
        end(ending.code)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        end(1)
    end(0)
