"""Does recording work with other releases of PyTorch and Python? Not part of the tests: it downloads gigabytes.

    cargo xtask test python                     # builds the wheel
    python tests/torch_versions/run.py 2.5.1 2.8.0@3.9 2.13.0@3.12

Each argument is a release of PyTorch, with @ and a Python where that is not the one that runs this. An environment is
made for each in the checkout (`.venv-torch-*`, used again while it is there), the wheel is installed, PyTorch's
internals are probed, a small training is recorded by `stepscope record`, and one by the program itself, which is
counted against the release's own profiler.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
PROGRAM = HERE / "program.py"
DEFAULT = ["2.5.1", "2.8.0", "2.13.0"]
OFFSETS = ["sequence number", "scope", "forward thread", "inputs"]
COLUMNS = ["PyTorch", "Python", "probe", *OFFSETS, "ops", "by torch.profiler"]
# Labels of PyTorch's own: slices for us, not operators.
LABELS = ("Optimizer.",)


def main():
    wheels = sorted(CHECKOUT.glob("target/python/stepscope-*.whl"))
    if len(wheels) != 1:
        sys.exit("no wheel in target/python: run `cargo xtask test python` first")
    rows = [row_of(request, wheels[0]) for request in sys.argv[1:] or DEFAULT]
    print("\n" + table(rows))
    sys.exit(any(row["is_bad"] for row in rows))


def row_of(request, wheel):
    """Try one release; what came of it."""
    release, _, python = request.partition("@")
    environment = ready_environment(release, python or "{}.{}".format(*sys.version_info), wheel)
    probed = json.loads(run(environment, "python", "-m", "stepscope._hook"))
    row = {"PyTorch": release, "Python": run(environment, "python", "-V").split()[1], "is_bad": not probed["is_usable"]}
    if not probed["is_usable"]:
        return {**row, "probe": probed["reason"]}
    row.update({"probe": "certain", **{name: probed["offsets"][name.replace(" ", "_")] for name in OFFSETS}})
    check_command(environment)
    ours, theirs = counts(environment)
    different = {name: (ours.get(name, 0), theirs.get(name, 0)) for name in sorted({*ours, *theirs})}
    different = {name: pair for name, pair in different.items() if pair[0] != pair[1]}
    print(f"{request}: differences (ours, theirs): {different}", flush=True)
    row.update({"ops": sum(ours.values()), "by torch.profiler": sum(theirs.values())})
    row["is_bad"] = bool(different)
    return row


def check_command(environment):
    """`stepscope record` sees the program's main thread and the other one."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder) / "run"
        run(environment, "stepscope", "record", "-o", folder, "--", environment / "bin" / "python", PROGRAM)
        found = operators(environment, folder)
    assert (found["aten::conv1d"], found["aten::erfinv"]) == (5, 1), found


def counts(environment):
    """How often each op ran: in our recording, and in that of the release's own profiler."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder) / "run"
        printed = json.loads(run(environment, "python", PROGRAM, folder))
        theirs = {name: count for name, count in printed.items() if not name.startswith(LABELS)}
        return operators(environment, folder), theirs


def operators(environment, folder):
    envelope = json.loads(run(environment, "stepscope", "analyze", "operators", folder, "--json"))
    return {row["name"]: row["count"] for row in envelope["results"]}


def ready_environment(release, python, wheel):
    """An environment with this release on this Python, and the wheel."""
    folder = CHECKOUT / f".venv-torch-{release}-py{python}"
    program = folder / "bin" / "python"
    if not (folder / "ready").exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([interpreter(python), "-m", "venv", folder], check=True)
        pip(program, "--no-compile", "--progress-bar=off", f"torch=={release}")
        (folder / "ready").touch()
    pip(program, "--no-index", "--no-deps", "--force-reinstall", wheel)
    return folder


def interpreter(version):
    """The Python of a version: in PATH, or among pyenv's."""
    if version == "{}.{}".format(*sys.version_info):
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    of_pyenv = sorted(pyenv.glob(f"versions/{version}.*/bin/python"))
    found = str(of_pyenv[-1]) if of_pyenv else shutil.which(f"python{version}")
    return found or sys.exit(f"there is no Python {version} here")


def pip(program, *arguments):
    command = [program, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", *arguments]
    print("$", *command, flush=True)
    subprocess.run(command, check=True)


def run(environment, program, *arguments):
    """What a program of an environment prints."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    command = [environment / "bin" / program, *arguments]
    with tempfile.TemporaryDirectory() as elsewhere:
        result = subprocess.run(command, capture_output=True, text=True, env=clean, cwd=elsewhere, timeout=300)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{result.stdout}\n{result.stderr}")
    return result.stdout


def table(rows):
    """The rows as Markdown."""
    lines = [COLUMNS, ["---"] * len(COLUMNS), *([str(row.get(column, "")) for column in COLUMNS] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + f"\n\n{time.strftime('%Y-%m-%d')}"


if __name__ == "__main__":
    main()
