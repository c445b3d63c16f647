"""The recorder's descriptors and the program's: neither closes, overwrites or holds the other's."""

import os

import pytest
import runs

# Closes all but its standard streams, as a daemon does, and takes each number for a file of its own.
CLOSES_ALL = """
import os, sys, torch
torch.ones(4).add(1)
os.closerange(3, 1 << 16)
files = [open(f"{sys.argv[1]}/{at}", "w+b", buffering=0) for at in range(1_000)]
for file in files:
    file.write(b"x" * 100)
x = torch.ones(4)
for _ in range(40_000):
    x.neg()
for file in files:
    file.seek(0)
    assert file.read() == b"x" * 100, file.name
"""

# What the recorder's threads have open, and which of it is the program's.
LOOKS = """
import os, pathlib, torch
torch.ones(4).add(1)
reading, writing = os.pipe()
pipe = os.readlink(f"/proc/self/fd/{reading}")
seen = []
for task in pathlib.Path("/proc/self/task").iterdir():
    if (task / "comm").read_text() == "stepscope\\n":
        seen.append({os.readlink(path) for path in (task / "fd").iterdir()})
for of_thread in seen:
    assert pipe not in of_thread and "/dev/null" in of_thread, of_thread
    assert any(path.endswith(".capture") for path in of_thread), of_thread
# The next descriptors are the lowest ones, as without a recorder.
os.close(reading)
assert os.dup(writing) == reading
print(len(seen))
"""


@pytest.mark.parametrize("options", [[], ["--io"], ["--ring", "10s"]], ids=["plain", "io", "ring"])
def test_a_program_that_closes_all_keeps_its_files(options, tmp_path):
    run, files = tmp_path / "run", tmp_path / "files"
    files.mkdir()
    runs.stepscope("record", "-o", run, *options, "--", *runs.new_script(CLOSES_ALL), files)
    assert {path.read_bytes() for path in files.iterdir()} == {b"x" * 100}
    assert len(list(files.iterdir())) == 1_000
    if "--ring" not in options:
        assert runs.counts_of_operators(run)["aten::neg"] == 40_000


@pytest.mark.skipif(
    tuple(int(number) for number in os.uname().release.split(".")[:2]) < (5, 9), reason="Linux before 5.9 cannot do so"
)
@pytest.mark.parametrize("options", [[], ["--io"]], ids=["plain", "io"])
def test_the_recorders_thread_has_descriptors_of_its_own(options, tmp_path):
    said = runs.stepscope("record", "-o", tmp_path / "run", *options, "--", *runs.new_script(LOOKS)).stdout
    # One of operators, one of files.
    assert said == "2\n"
