"""Where CUPTI's headers put the fields of its records, and where the recorder takes them from."""

import os
import re
import subprocess
import sysconfig
from pathlib import Path

# Folders of headers beside those of the environment, with colons between them: of extracted wheels, for example.
VARIABLE = "STEPSCOPE_CUPTI_HEADERS"

# Our records: their structure without its version, and the first version that is read.
STRUCTURES = {
    "kernel": ("Kernel", 8),
    "memcpy": ("Memcpy", 5),
    "memcpy_between": ("MemcpyPtoP", 4),
    "memset": ("Memset", 4),
    "graph": ("GraphTrace", 0),
    "call": ("API", 0),
    "overhead": ("Overhead", 0),
    "synchronization": ("Synchronization", 0),
    "event": ("CudaEvent", 0),
    "marker": ("Marker", 2),
}
# A thread stands in a union, and a keyword of Rust's is none of C's.
MEMBERS = {"thread": "objectId.pt.threadId", "r#type": "type"}
# Fields that older versions do not have.
LATER = {"cudaEventSyncId"}

# What the headers include of a package that they do not come with.
HOST_DEFINES = """
#define __device_builtin__
#define __device_builtin_texture_type__
#define __device_builtin_surface_type__
#define __cudart_builtin__
#define CUDARTAPI
#define __host__
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __align__(n)
"""


def ours(source):
    """Of each record of ``records.rs`` its fields: name, offset, bytes."""
    found = {}
    for record, body in re.findall(r"^    (\w+) \{\n(.*?)^    \}", source, re.MULTILINE | re.DOTALL):
        fields = re.findall(r"^ +((?:r#)?\w+) = (\d+) as u(\d+);", body, re.MULTILINE)
        if fields:
            found[record] = {name: (int(offset), int(bits) // 8) for name, offset, bits in fields}
    return found


def folders():
    """The folders with CUPTI's headers: of the environment, and those that a variable names."""
    packages = Path(sysconfig.get_paths()["purelib"]) / "nvidia"
    named = [Path(path) for path in os.environ.get(VARIABLE, "").split(":") if path]
    candidates = [*sorted(packages.glob("*/include")), *named]
    return [folder for folder in candidates if (folder / "cupti_activity.h").exists()]


def runtime():
    """The folder of the runtime's headers, which CUPTI's include."""
    packages = Path(sysconfig.get_paths()["purelib"]) / "nvidia"
    return next(folder for folder in sorted(packages.glob("*/include")) if (folder / "builtin_types.h").exists())


def theirs(headers, records, folder):
    """Of each version of each structure its fields: (record, structure, name) to (offset, bytes), as a C compiler has them."""
    texts = [
        headers / name for name in ("cupti_activity.h", "cupti_activity_deprecated.h") if (headers / name).exists()
    ]
    lines = [
        "#include <stdio.h>",
        "#include <stddef.h>",
        *(f"#include <{path.name}>" for path in texts),
        "int main(void) {",
    ]
    text = "".join(path.read_text() for path in texts)
    for record, fields in records.items():
        for structure, body in _versions(text, *STRUCTURES[record]):
            for name in fields:
                member = MEMBERS.get(name, name)
                if name in LATER and f"{name};" not in body:
                    continue
                place = f"offsetof({structure}, {member}), sizeof((({structure}*)0)->{member})"
                lines.append(f'printf("{record} {structure} {name} %zu %zu\\n", {place});')
    (folder / "crt").mkdir()
    (folder / "crt/host_defines.h").write_text(HOST_DEFINES)
    (folder / "fields.c").write_text("\n".join([*lines, "return 0; }"]))
    flags = ["-w", "-I", headers, "-I", runtime(), "-I", folder]
    subprocess.run(["cc", *flags, folder / "fields.c", "-o", folder / "fields"], check=True)
    printed = subprocess.run([folder / "fields"], check=True, capture_output=True, text=True).stdout
    words = (line.split() for line in printed.splitlines())
    return {(record, structure, name): (int(at), int(size)) for record, structure, name, at, size in words}


def _versions(text, name, first):
    """The structures of a name from a version on, each with the text of its definition."""
    for found in re.finditer(rf"^\}} (CUpti_Activity{name}(\d*));", text, re.MULTILINE):
        if int(found[2] or 0) >= first:
            yield found[1], text[text.rindex("typedef struct", 0, found.start()) : found.start()]


def differences(records, found):
    """What stands elsewhere in the headers than the recorder takes it from, or nowhere."""
    wrong = [
        f"{structure}.{name} is at {place}, here at {records[record][name]}"
        for (record, structure, name), place in found.items()
        if place != records[record][name]
    ]
    seen = {(record, name) for record, _, name in found}
    missing = [(record, name) for record, fields in records.items() for name in fields if name not in LATER]
    return wrong + [f"{record} has no {name}" for record, name in missing if (record, name) not in seen]
