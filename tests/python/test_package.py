"""The installed package: its two extension modules, its command, and what importing it costs."""

import errno
import os
import signal
import subprocess
import sys
import time
from importlib.metadata import version

HEAVY = ["torch", "numpy", "pandas", "pyarrow", "stepscope._engine", "stepscope._recorder"]


def test_importing_the_package_loads_nothing_heavy(python):
    script = f"import sys, stepscope; print([name for name in {HEAVY} if name in sys.modules])"
    assert python("-c", script).stdout.strip() == "[]"


def test_the_recorder_does_not_load_the_engine(python):
    script = f"import sys, stepscope._recorder; print([name for name in {HEAVY} if name in sys.modules])"
    assert python("-c", script).stdout.strip() == "['stepscope._recorder']"


def test_both_extension_modules_are_stable_abi():
    import stepscope._engine
    import stepscope._recorder

    for module in (stepscope._engine, stepscope._recorder):
        assert module.__file__.endswith(".abi3.so"), module.__file__


def test_the_recorder_is_small():
    import stepscope._recorder

    assert os.path.getsize(stepscope._recorder.__file__) < 2_000_000


def test_version():
    import stepscope

    assert stepscope.__version__ == version("stepscope")


def test_the_package_brings_what_a_recorded_python_runs_first():
    import stepscope

    assert os.path.isfile(os.path.join(os.path.dirname(stepscope.__file__), "_inject", "sitecustomize.py"))


def test_help(stepscope):
    shown = stepscope("--help").stdout
    assert "record" in shown and "report" in shown


def test_the_module_runs_the_command(python, stepscope):
    assert python("-m", "stepscope", "--help").stdout == stepscope("--help").stdout


def test_wrong_usage_is_exit_code_2(stepscope):
    assert "error" in stepscope("no-such-command", code=2).stderr


def test_an_interrupt_ends_a_command_at_once(tmp_path):
    pipe = tmp_path / "trace.json"
    os.mkfifo(pipe)
    child = subprocess.Popen([sys.executable, "-m", "stepscope", "report", str(pipe)], cwd=tmp_path)
    # Once the command has opened the pipe, it waits for what is never written.
    writer = open_for_writing(pipe)
    try:
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=600) == -signal.SIGINT
    finally:
        os.close(writer)


def open_for_writing(pipe):
    """Open a pipe when somebody has opened it to read."""
    for _ in range(600):
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            assert error.errno == errno.ENXIO
            time.sleep(0.05)
    raise AssertionError(f"nobody reads {pipe}")
