"""Programs that a recorded program starts, and that cannot be recorded: they run as they would, and it is said."""

import shutil
import subprocess
import sys
import textwrap

import pytest
import runs
from files_recorded import record, rows_of

SOURCE = """
    #include <fcntl.h>
    #include <stdio.h>
    #include <unistd.h>

    int main(int count, char **arguments) {
        char text[100];
        int fd = open(arguments[count - 1], O_RDONLY);
        long bytes = read(fd, text, sizeof text);
        close(fd);
        printf("%ld bytes\\n", bytes);
        return 7;
    }
"""
# By each of the ways in which a program begins another one.
STARTS = """
    import os, subprocess, sys

    program, *rest = sys.argv[1:]
    if program == "--env":
        codes = [subprocess.run(rest, env={}).returncode]
    else:
        arguments = [program, *rest]
        codes = [subprocess.run(arguments).returncode]
        codes.append(subprocess.run(arguments, preexec_fn=lambda: None).returncode)
        pid = os.posix_spawn(program, arguments, os.environ)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        pid = os.posix_spawnp(program, arguments, os.environ)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        codes.append(subprocess.run(["sh", "-c", '"$@"; exit $?', "sh", *arguments]).returncode)
        sys.stdout.flush()
        if os.fork() == 0:
            os.execvp(program, arguments)
        codes.append(os.waitstatus_to_exitcode(os.wait()[1]))
    print(codes)
"""


@pytest.fixture
def built(tmp_path):
    """Builds the program by a command line; gives its path."""
    (tmp_path / "program.c").write_text(textwrap.dedent(SOURCE))
    (tmp_path / "starts.py").write_text(textwrap.dedent(STARTS))
    (tmp_path / "data").write_bytes(bytes(64))

    def build(name, *compiler):
        subprocess.run([*compiler, "-o", name, "program.c"], cwd=tmp_path, check=True)
        return str(tmp_path / name)

    return build


def run_both(folder, *command):
    """What the command prints and how it ends, which is the same recorded; the findings of the run."""
    options = {"cwd": folder, "capture_output": True, "text": True, "timeout": 600}
    command = [sys.executable, "starts.py", *command]
    alone = subprocess.run(command, **options)
    recorded = subprocess.run([*map(str, record(folder / "run")), *command], **options)
    ours = [line for line in recorded.stderr.splitlines() if not line.startswith("stepscope: ")]
    assert (recorded.returncode, recorded.stdout, ours) == (alone.returncode, alone.stdout, alone.stderr.splitlines())
    assert alone.returncode == 0, alone.stderr
    assert "7" in alone.stdout.splitlines()[-1]
    findings = runs.findings(folder / "run").get("capture.io_programs_not_seen", {"examples": []})
    return {example.split(": ", 1)[1] for example in findings["examples"]}


@pytest.mark.skipif(shutil.which("musl-gcc") is None, reason="there is no musl here")
def test_a_program_of_another_c_library_runs_as_it_would(tmp_path, built):
    program = built("of-musl", "musl-gcc")
    assert run_both(tmp_path, program, "data") == {f"{program} has another C library than glibc"}


def test_a_program_without_libraries_runs_as_it_would(tmp_path, built):
    program = built("without", "cc", "-static")
    assert run_both(tmp_path, program, "data") == {f"{program} is linked statically"}


def test_the_interpreter_of_a_script_is_what_is_not_seen(tmp_path, built):
    program = built("interpreter", "cc", "-static")
    script = tmp_path / "script"
    script.write_text(f"#!{program}\n")
    script.chmod(0o755)
    assert run_both(tmp_path, str(script), "data") == {f"{script} is linked statically"}


def test_a_program_that_begins_in_another_environment(tmp_path, built):
    program = built("program", "cc")
    assert run_both(tmp_path, "--env", program, "data") == {f"{program} was begun without LD_PRELOAD"}


def test_nothing_is_said_of_programs_that_are_recorded(tmp_path, built):
    program = built("program", "cc")
    assert run_both(tmp_path, program, "data") == set()
    reads = [
        row for row in rows_of(tmp_path / "run") if row["name"] == "read" and row["file"] == str(tmp_path / "data")
    ]
    # As often as it was started.
    assert len(reads) == 6 and {row["bytes"] for row in reads} == {64}
