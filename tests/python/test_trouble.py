"""What can be wrong with the disk, the run folder and PyTorch: the program goes on, the report says what happened."""

import json
import os
import shutil
import subprocess
import sys
import textwrap

import pyarrow
import pyarrow.parquet
import pytest
import runs
from stepscope.profiler import profile, record_function

OPS = 150_000
KIB = 1024
MANY_OPS = f"""
import torch
x = torch.zeros(4)
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(10):
    for _ in range({OPS // 10}):
        torch.erfinv(x)
    model(x).sum().backward()
    optimizer.step()
print("done")
"""


def check_full_disk(run, recorded):
    """The program ended as it would have; what was recorded first is there, and the rest is known to be missing."""
    assert recorded.stdout == "done\n"
    found = runs.findings(run)
    assert found["capture.disk_full"]["severity"] == "severe"
    assert found["capture.dropped_records"]["count"] > 1_000
    assert 1_000 < runs.counts_of_operators(run)["aten::erfinv"] < OPS
    assert "disk was full" in " ".join(runs.report(run).split())


def test_a_file_that_may_not_grow(tmp_path):
    """A limit of the file size stands for a full disk."""
    run = tmp_path / "run"
    limit = 'ulimit -f 1024; exec "$@"'
    check_full_disk(run, runs.record(run, ["bash", "-c", limit, "bash", *runs.new_script(MANY_OPS)]))


def test_a_full_disk(small_disk):
    run = small_disk / "run"
    check_full_disk(run, runs.record(run, runs.new_script(MANY_OPS)))


def test_a_disk_without_room_for_anything(small_disk):
    (small_disk / "fill").write_bytes(bytes(shutil.disk_usage(small_disk).free - 8 * KIB))
    recorded = runs.record(small_disk / "run", runs.new_script(MANY_OPS))
    assert recorded.stdout == "done\n"
    assert "No space left on device" in recorded.stderr
    assert "capture.disk_full" in runs.findings(small_disk / "run")


def test_a_run_folder_that_is_deleted_while_recording(tmp_path):
    run = tmp_path / "run"
    text = f"import shutil\nshutil.rmtree({str(run)!r})\n" + MANY_OPS
    recorded = runs.record(run, runs.new_script("import torch\ntorch.zeros(1)\n" + text))
    assert recorded.stdout == "done\n"
    assert "Traceback" not in recorded.stderr
    assert "error: " in recorded.stderr


def test_a_run_folder_that_is_gone_before_a_child_records(tmp_path):
    run = tmp_path / "run"
    text = f"""
import multiprocessing, shutil, torch
def child():
    torch.erfinv(torch.zeros(4))
torch.zeros(1)
shutil.rmtree({str(run)!r})
process = multiprocessing.get_context("fork").Process(target=child)
process.start()
process.join()
assert process.exitcode == 0
print("done")
"""
    assert runs.record(run, runs.new_script(text)).stdout == "done\n"
    assert not run.exists()


def test_a_folder_that_may_not_be_written():
    """The loop runs as without us; only a warning says that nothing is recorded."""
    prof = profile(run="/proc/stepscope")
    with pytest.warns(UserWarning, match="stepscope does not record: .*/proc/stepscope"):
        prof.start()
    with record_function("label"):
        prof.step()
    prof.stop()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of two parts, to be copied and spoilt."""
    run = tmp_path_factory.mktemp("finished") / "run"
    for number in range(2):
        with profile(run=run), record_function(f"label {number}"):
            pass
    assert len(runs.parts(run)) == 2
    return run


@pytest.fixture
def spoilt(finished, tmp_path):
    # What a reader of the run before is still writing is no part of it.
    return shutil.copytree(finished, tmp_path / "spoilt", ignore=shutil.ignore_patterns(".*.new"))


def error_of(run):
    """What ``stepscope report`` says of a run that it cannot read: one error, no traceback, no panic."""
    told = runs.stepscope("report", run, code=1).stderr
    assert told.startswith("error: ") and told.count("error: ") == 1
    assert "panicked" not in told and "Traceback" not in told
    return " ".join(told.split())


def test_a_folder_that_is_no_run(tmp_path):
    assert "not a run" in error_of(tmp_path)


def test_a_run_in_which_nothing_was_recorded(tmp_path):
    runs.record(tmp_path / "run", ["true"])
    assert "nothing was recorded in this run" in error_of(tmp_path / "run")
    assert "hint:" in error_of(tmp_path / "run")


def test_a_run_without_its_manifest(spoilt):
    (spoilt / "run.json").unlink()
    assert len(runs.analyze("operators", spoilt)["run"]["ranks"]) == 1
    assert "run.json" in str(runs.analyze("findings", spoilt))


def test_a_manifest_that_is_half_written(spoilt):
    text = (spoilt / "run.json").read_text()
    (spoilt / "run.json").write_text(text[: len(text) // 2])
    assert "run.json" in str(runs.analyze("findings", spoilt))


@pytest.mark.parametrize("keep", [0, 3, 0.5, -4])
def test_a_truncated_part(spoilt, keep):
    part = runs.parts(spoilt)[0]
    whole = part.read_bytes()
    part.write_bytes(whole[: int(len(whole) * keep) if isinstance(keep, float) else keep])
    finding = runs.findings(spoilt)["capture.damaged_segment"]
    assert finding["count"] == 1
    assert part.name in str(runs.analyze("findings", spoilt))
    assert "severe" in runs.report(spoilt)
    assert "1 file not readable" in runs.stepscope("recover", spoilt).stdout


def test_a_part_of_another_program(spoilt):
    part = runs.parts(spoilt)[0]
    pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), part)
    assert "not written by stepscope" in str(runs.analyze("findings", spoilt))


def record_without_closing(run, text):
    """Run a script as ``stepscope record`` would, but leave its capture as it is when the script ends."""
    environment = runs.environment(STEPSCOPE_RUN=run, PYTHONPATH=runs.package() / "_inject")
    runs.execute(*runs.new_script(text), env=environment)


def test_a_truncated_capture(tmp_path):
    run = tmp_path / "run"
    text = "import os, torch\n[torch.erfinv(torch.zeros(4)) for _ in range(30_000)]\nos._exit(0)"
    runs.record(run, ["true"])
    record_without_closing(run, text)
    (capture,) = run.glob("raw/*.capture")
    whole = capture.read_bytes()
    for bytes_kept in (len(whole) // 2, 10 * KIB, 4 * KIB):
        copy = shutil.copytree(run, tmp_path / f"cut-{bytes_kept}")
        next(copy.glob("raw/*.capture")).write_bytes(whole[:bytes_kept])
        assert runs.counts_of_operators(copy).get("aten::erfinv", 0) < 30_000
        if bytes_kept == len(whole) // 2:
            assert "aten::erfinv" in runs.report(copy)
    (header,) = shutil.copytree(run, tmp_path / "header").glob("raw/*.capture")
    header.write_bytes(whole[:100])
    assert "capture.damaged_segment" in runs.findings(tmp_path / "header")
    newer = shutil.copytree(run, tmp_path / "newer")
    next(newer.glob("raw/*.capture")).write_bytes(whole[:8] + (99).to_bytes(4, "little") + whole[12:])
    assert "version 99" in error_of(newer) and "upgrade" in error_of(newer)
    assert list(newer.glob("raw/*.capture")), "a capture that cannot be read must stay"


def test_a_newer_run(spoilt):
    manifest = json.loads((spoilt / "run.json").read_text())
    (spoilt / "run.json").write_text(json.dumps({**manifest, "version": 99}))
    assert "version 99" in error_of(spoilt) and "upgrade" in error_of(spoilt)


def test_a_newer_part(spoilt):
    part = runs.parts(spoilt)[0]
    table = pyarrow.parquet.read_table(part, partitioning=None)
    facts = json.loads(pyarrow.parquet.read_metadata(part).metadata[b"stepscope"])
    newer = {b"stepscope": json.dumps({**facts, "version": 99, "something": "new"})}
    pyarrow.parquet.write_table(table.replace_schema_metadata(newer), part)
    assert "version 99" in error_of(spoilt) and "upgrade" in error_of(spoilt)


def test_a_run_that_may_only_be_read(tmp_path):
    """As root, rights do not stop anybody: then the folder is mounted to be read only."""
    run = tmp_path / "run"
    with profile(run=run):
        pass
    runs.parts(run)
    record_without_closing(run, "import os, torch\ntorch.erfinv(torch.zeros(4))\nos._exit(0)")
    assert list(run.glob("raw/*.capture"))
    with read_only(run):
        assert runs.counts_of_operators(run)["aten::erfinv"] == 1
        assert "capture.process_killed" in runs.findings(run)
    assert list(run.glob("raw/*.capture"))


class read_only:
    """Takes the right to write a folder away, for a while."""

    def __init__(self, folder):
        self.folder = folder
        self.is_root = os.geteuid() == 0

    def __enter__(self):
        if not self.is_root:
            self.folder.chmod(0o555)
            (self.folder / "raw").chmod(0o555)
            return
        for options in (["--bind"], ["-o", "remount,ro,bind"]):
            mounted = subprocess.run(["mount", *options, self.folder, self.folder], capture_output=True, text=True)
            if mounted.returncode != 0:
                subprocess.run(["umount", self.folder], capture_output=True)
                pytest.skip(f"a folder cannot be mounted read-only here: {mounted.stderr.strip()}")

    def __exit__(self, *_):
        if self.is_root:
            subprocess.run(["umount", self.folder], check=True)
        else:
            self.folder.chmod(0o755)
            (self.folder / "raw").chmod(0o755)


BREAK_THE_PROBE = """
from importlib.machinery import SourceFileLoader
exec_module = SourceFileLoader.exec_module
def exec_module_and_break(self, module):
    exec_module(self, module)
    if module.__name__ == "torch":
        module._C._autograd._get_sequence_nr = lambda: 5
SourceFileLoader.exec_module = exec_module_and_break
"""


def test_a_torch_that_is_not_as_we_know_it(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(BREAK_THE_PROBE)
    run = tmp_path / "run"
    text = """
    import torch
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        model(torch.ones(4)).sum().backward()
        optimizer.step()
    print(model.weight.grad.sum().item())
    """
    environment = runs.environment(PYTHONPATH=tmp_path)
    recorded = runs.record(run, runs.new_script(textwrap.dedent(text)), env=environment)
    assert recorded.stdout == "48.0\n"
    assert "not recording operators" in recorded.stderr and "doctor" in recorded.stderr
    rows = runs.rows(run)
    # Steps and modules need no hook.
    kinds = [row["kind"] for row in rows if row["kind"] not in ("counter", "garbage_collection")]
    assert kinds == ["module", "optimizer_step"] * 3
    assert runs.findings(run)["capture.hook_refused"]["severity"] == "severe"
    assert "could not be proven safe" in " ".join(runs.report(run).split())
    probe = runs.execute(*runs.new_script("from stepscope._hook import main; main()"), env=environment)
    assert json.loads(probe.stdout)["is_usable"] is False


def test_the_probe_succeeds_here():
    found = json.loads(runs.execute(sys.executable, "-m", "stepscope._hook").stdout)
    assert found["is_usable"] and found["offsets"]["sequence_number"] > 0
