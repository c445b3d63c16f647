"""The PEP 517 backend: maturin, with more libraries.

maturin packs one Rust library a wheel. Stepscope has three: `stepscope._engine`, everything, which maturin builds;
`stepscope._recorder`, small, which is all that a recorded Python loads; and the one that records calls on files, which the
system loads into any process, by way of an empty one. The hooks below build these first and put them into the package
folder, from where maturin takes them along.
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
PACKAGE = CHECKOUT / "python" / "stepscope"
# The libraries that cargo builds apart from the engine, by crate: their names in the package folder.
LIBRARIES = {
    "stepscope-recorder-python": "_recorder.abi3.so",
    "stepscope-recorder-posix": "libstepscope_files.so",
}
# What the system is told to load. glibc loads the other one with it; any other C library could not, and would refuse to
# run the program, but finds an empty library here.
PRELOADED = "libstepscope_preload.so"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Build all libraries and pack them."""
    build_libraries(config_settings)
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """Build all libraries for a package that stays in the checkout."""
    build_libraries(config_settings)
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def build_libraries(config_settings):
    """Build the recorder's libraries, as maturin is told to build the engine, and put them into the package folder."""
    for crate, name in LIBRARIES.items():
        build_library(crate, name, config_settings)
    build_preloaded()


def build_library(crate, name, config_settings):
    """Build the library of one crate, and put it into the package folder under a name."""
    arguments = maturin.get_maturin_pep517_args(config_settings)
    command = [
        "cargo",
        "rustc",
        "--release",
        f"--package={crate}",
        "--message-format=json-render-diagnostics",
        *(argument for argument in arguments if argument.startswith("--config=")),
        "--",
        "-Cstrip=symbols",
    ]
    result = subprocess.run(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True)
    if result.returncode != 0:
        sys.exit(f"error: cargo could not build {crate} (exit code {result.returncode})")
    # Into a new file: a process that has the old one mapped keeps it unchanged.
    library = PACKAGE / name
    fresh = library.with_name(f"{name}.{os.getpid()}")
    shutil.copyfile(built_library(result.stdout, crate.replace("-", "_")), fresh)
    os.replace(fresh, library)


def build_preloaded():
    """Link the empty library into the package folder."""
    auxiliary = f"$ORIGIN/{LIBRARIES['stepscope-recorder-posix']}"
    linked = [f"-Wl,-soname,{PRELOADED}", f"-Wl,--auxiliary={auxiliary}", "-Wl,--hash-style=both"]
    fresh = PACKAGE / f"{PRELOADED}.{os.getpid()}"
    compiler = os.environ.get("CC", "cc").split()
    command = [*compiler, "-shared", "-nostdlib", "-s", *linked, "-o", str(fresh), "-x", "c", os.devnull]
    if subprocess.run(command).returncode != 0:
        sys.exit("error: the C compiler could not link an empty library")
    os.replace(fresh, PACKAGE / PRELOADED)


def built_library(messages, target):
    """The path of a target's library in cargo's messages."""
    for line in messages.splitlines():
        message = json.loads(line)
        if message["reason"] == "compiler-artifact" and message["target"]["name"] == target:
            return message["filenames"][0]
    sys.exit(f"error: cargo built no library {target}")
