"""The PEP 517 backend: maturin, with a second extension module.

maturin packs one Rust library a wheel. Stepscope has two: `stepscope._engine`, everything, which maturin builds, and
`stepscope._recorder`, small, which is all that a recorded process loads. The hooks below build the second one first
and put it into the package folder, from where maturin takes it along.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import maturin
from maturin import (  # noqa: F401  (hooks that need nothing added)
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

CHECKOUT = Path(__file__).resolve().parent.parent
RECORDER = CHECKOUT / "python" / "stepscope" / "_recorder.abi3.so"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Build both extension modules and pack them."""
    build_recorder(config_settings)
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """Build both extension modules for a package that stays in the checkout."""
    build_recorder(config_settings)
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def build_recorder(config_settings):
    """Build the recorder's extension module, as maturin is told to build the other, and put it into the package folder."""
    arguments = maturin.get_maturin_pep517_args(config_settings)
    command = [
        "cargo",
        "rustc",
        "--release",
        "--package=stepscope-recorder-python",
        "--message-format=json-render-diagnostics",
        *(argument for argument in arguments if argument.startswith("--config=")),
        "--",
        "-Cstrip=symbols",
    ]
    result = subprocess.run(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True)
    if result.returncode != 0:
        sys.exit(f"error: cargo could not build the recorder (exit code {result.returncode})")
    # Into a new file: a process that has the old one mapped keeps it unchanged.
    fresh = RECORDER.with_name(f"{RECORDER.name}.{os.getpid()}")
    shutil.copyfile(extension_module(result.stdout), fresh)
    os.replace(fresh, RECORDER)


def extension_module(messages):
    """The path of the recorder's library in cargo's messages."""
    for line in messages.splitlines():
        message = json.loads(line)
        if message["reason"] == "compiler-artifact" and message["target"]["name"] == "stepscope_recorder_python":
            return message["filenames"][0]
    sys.exit("error: cargo built no recorder library")
