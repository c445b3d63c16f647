"""What moves bytes from file to file counts on both: it reads the one and writes the other."""

import shutil
import sys
import textwrap

import pytest
import runs
from files_recorded import record, succeed

PROGRAM = """
    import os, shutil, subprocess, sys, tempfile

    subprocess.run(["cp", "--reflink=never", "data/weights", "data/by_cp"], check=True)
    shutil.copyfile("data/weights", "data/by_python")
    with open("data/weights", "rb") as source, open("data/by_range", "wb") as target:
        assert os.copy_file_range(source.fileno(), target.fileno(), 300_000) == 300_000
    # From and to what is no file that is recorded.
    outside = tempfile.TemporaryFile(dir=sys.argv[1])
    with open("data/weights", "rb") as source:
        assert os.sendfile(outside.fileno(), source.fileno(), 0, 200_000) == 200_000
    outside.seek(0)
    with open("data/from_outside", "wb") as target:
        assert os.sendfile(target.fileno(), outside.fileno(), 0, 100_000) == 100_000
    if hasattr(os, "splice"):
        reader, writer = os.pipe()
        os.write(writer, bytes(1000))
        with open("data/from_pipe", "wb") as target:
            assert os.splice(reader, target.fileno(), 1000) == 1000
"""
SIZE = 3_000_000


@pytest.mark.skipif(shutil.which("cp") is None, reason="there is no cp")
def test_a_copy_reads_one_file_and_writes_the_other(tmp_path, tmp_path_factory):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/weights").write_bytes(bytes(SIZE))
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM))
    outside = tmp_path_factory.mktemp("outside")
    succeed([*record("run", "--io-include", "data"), sys.executable, "program.py", outside], tmp_path)
    run = tmp_path / "run"
    rows = {row["file"].rpartition("/")[2]: row for row in runs.analyze("io_files", run)["results"]}
    moved = {name: (row["read_bytes"], row["write_bytes"]) for name, row in rows.items() if name != "data"}
    expected = {
        "weights": (2 * SIZE + 300_000 + 200_000, 0),
        "by_cp": (0, SIZE),
        "by_python": (0, SIZE),
        "by_range": (0, 300_000),
        "from_outside": (0, 100_000),
    }
    if "from_pipe" in moved:
        expected["from_pipe"] = (0, 1000)
    assert moved == expected
    processes = runs.analyze("io_files", run, "--group-by", "process")["results"]
    for at, key in enumerate(("read_bytes", "write_bytes")):
        assert sum(row[key] for row in processes) == sum(row[at] for row in expected.values())
    assert "capture.io_bytes_not_seen" not in runs.findings(run)
