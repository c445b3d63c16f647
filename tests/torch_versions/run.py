"""Does recording work with other releases of PyTorch and Python? Not part of the tests: it downloads gigabytes.

    cargo xtask test python                     # builds the wheel
    python tests/torch_versions/run.py 2.5.1 2.8.0@3.9 2.13.0@3.12 [--only ops,inputs] [--delete]

Each argument is a release of PyTorch, with @ and a Python where that is not the one that runs this. An environment is
made for each in the checkout (`.venv-torch-*`, used again while it is there, gone with `--delete`), the wheel is
installed, PyTorch's internals are probed, and each feature of `features.py` is recorded by the release's own profiler and
by Stepscope, in turn, and compared.
"""

import argparse
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
FEATURES = HERE / "features.py"
OFFSETS = ["sequence number", "scope", "forward thread", "inputs"]
COLUMNS = ["PyTorch", "Python", "probe", *(f"{name} at" for name in OFFSETS)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("requests", nargs="*", default=DEFAULT)
    parser.add_argument("--only", help="features, with commas between")
    parser.add_argument("--delete", action="store_true", help="delete each environment after its result")
    asked = parser.parse_args()
    wheels = sorted(CHECKOUT.glob("target/python/stepscope-*.whl"))
    if len(wheels) != 1:
        sys.exit("no wheel in target/python: run `cargo xtask test python` first")
    rows = [row_of(request, wheels[0], asked) for request in asked.requests]
    print("\n" + table(rows))
    sys.exit(any(row["is_bad"] for row in rows))


def row_of(request, wheel, asked):
    """Try one release; what came of it."""
    release, _, python = request.partition("@")
    environment = ready_environment(release, python or "{}.{}".format(*sys.version_info), wheel)
    probed = json.loads(run(environment, "python", "-m", "stepscope._hook"))
    row = {"PyTorch": release, "Python": run(environment, "python", "-V").split()[1], "is_bad": not probed["is_usable"]}
    if probed["is_usable"]:
        row.update({f"{name} at": probed["offsets"][name.replace(" ", "_")] for name in OFFSETS}, probe="certain")
        check_command(environment)
        for said in compared(environment, asked.only.split(",") if asked.only else ()):
            print(f"{request}: {said}", flush=True)
            row[said["feature"]] = cell(said)
            row["is_bad"] |= not is_equal(said)
    else:
        row["probe"] = probed["reason"]
    if asked.delete:
        shutil.rmtree(environment)
    return row


def compared(environment, features):
    """What `features.py` prints, a dict each feature."""
    with tempfile.TemporaryDirectory() as folder:
        printed = run(environment, "python", FEATURES, folder, *features, timeout=1800)
    return [json.loads(line) for line in printed.splitlines() if line.startswith("{")]


def is_equal(said):
    return "error" not in said and not said["different"] and said["ours"] > 0


def cell(said):
    """How many there are when ours are theirs, or else how many of ours and of theirs."""
    if "error" in said:
        return "failed"
    return f"{said['ours']:,}" if is_equal(said) else f"{said['ours']:,} ≠ {said['theirs']:,}"


def check_command(environment):
    """`stepscope record` sees the program's main thread and the other one."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder) / "run"
        run(environment, "stepscope", "record", "-o", folder, "--", environment / "bin" / "python", PROGRAM)
        found = operators(environment, folder)
    assert (found["aten::conv1d"], found["aten::erfinv"]) == (5, 1), found


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
        # What reads and compares runs, beside PyTorch.
        pip(program, "--no-compile", "--progress-bar=off", f"torch=={release}", "numpy", "pyarrow", "pytest")
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


def run(environment, program, *arguments, timeout=300):
    """What a program of an environment prints."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    command = [environment / "bin" / program, *arguments]
    with tempfile.TemporaryDirectory() as elsewhere:
        result = subprocess.run(command, capture_output=True, text=True, env=clean, cwd=elsewhere, timeout=timeout)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{result.stdout}\n{result.stderr}")
    return result.stdout


def table(rows):
    """The rows as Markdown."""
    known = {*COLUMNS, "is_bad"}
    columns = [*COLUMNS, *dict.fromkeys(name for row in rows for name in row if name not in known)]
    lines = [columns, ["---"] * len(columns), *([str(row.get(column, "")) for column in columns] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + f"\n\n{time.strftime('%Y-%m-%d')}"


if __name__ == "__main__":
    main()
