"""What the Python tests share: the installed package, run as a user runs it."""

import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import fake_gpu
import pytest
import runs

# What starts programs: fixtures, and what modules with such functions are called.
STARTS_PROGRAMS = {"stepscope", "python", "training", "libraries", "runs", "subprocess", "multiprocessing"}


def pytest_collection_modifyitems(items):
    """Tests that start programs are marked. Files with slow tests come first: at the end, no processor waits for one."""
    for item in items:
        if STARTS_PROGRAMS & {*item.fixturenames, *vars(item.module)}:
            item.add_marker("starts_programs")
    runs.put_slow_files_first(items)


@pytest.fixture(scope="session")
def checkout():
    """The checkout's root folder."""
    return Path(__file__).resolve().parents[2]


@pytest.fixture
def stepscope(tmp_path):
    """The installed command: ``stepscope("report", run)`` runs it in a new folder and returns what came of it.

    A test that expects another exit code than 0 says so: ``code=2``.
    """
    return command_in(tmp_path, str(Path(sys.executable).with_name("stepscope")))


@pytest.fixture
def python(tmp_path):
    """This Python: ``python("-c", "print(1)")``, run like :func:`stepscope`."""
    return command_in(tmp_path, sys.executable)


def command_in(folder, program):
    def run(*arguments, code=0, timeout=600, **options):
        command = [program, *map(str, arguments)]
        options = {"cwd": folder, "capture_output": True, "text": True, "timeout": timeout, **options}
        result = subprocess.run(command, **options)
        assert result.returncode == code, (
            f"{' '.join(command)}: exit code {result.returncode}, expected {code}\n{result.stdout}\n{result.stderr}"
        )
        return result

    return run


@pytest.fixture
def both(tmp_path):
    """Records a work with torch.profiler and then with ours: (profiler, its trace) of each, decimals kept exact."""
    import torch.profiler
    from stepscope.profiler import ProfilerActivity, profile

    def record(work, **options):
        recorded = []
        for kind, added in ((torch.profiler.profile, {}), (profile, {"run": tmp_path / "run"})):
            with kind(activities=[ProfilerActivity.CPU], **options, **added) as prof:
                work()
            path = tmp_path / f"{kind.__module__}.json"
            prof.export_chrome_trace(str(path))
            recorded.append((prof, json.loads(path.read_text(), parse_float=Decimal)))
        return recorded

    return record


@pytest.fixture(scope="session")
def training(tmp_path_factory):
    """The run of ``programs/training.py``, recorded once as rank 3 of 8."""
    run = tmp_path_factory.mktemp("training") / "run"
    recorded = runs.record(run, runs.new_program("training.py"), env=runs.environment(RANK=3, WORLD_SIZE=8))
    assert recorded.stdout == "done\n"
    return run


@pytest.fixture(scope="session")
def libraries(tmp_path_factory):
    """The folder of a fake GPU's libraries: see ``fake_gpu``."""
    return fake_gpu.build(tmp_path_factory.mktemp("fake_gpu"))


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 2 MiB: some segments of a capture, with a few to spare for who comes first."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder], capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"a small file system cannot be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)
