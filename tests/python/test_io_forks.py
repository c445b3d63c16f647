"""Processes that a program forks in other ways than by `fork`: what the program itself does is recorded once."""

import textwrap

import pytest
from files_recorded import record, rows_of, succeed

HEADER = """
    #define _GNU_SOURCE
    #include <fcntl.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <sys/wait.h>
    #include <unistd.h>

    static char text[64];
"""
# The child, and what it begins, reads other lengths than its parent.
SOURCES = {
    "_Fork": """
        int main(void) {
            int file = open("data/file", O_RDONLY), status;
            for (int at = 0; at < 1000; at++) {
                read(file, text, 7);
                if (at % 100 != 50)
                    continue;
                pid_t pid = _Fork();
                if (pid == 0) {
                    for (int more = 0; more < 1000; more++)
                        pread(file, text, 9, 0);
                    if (at > 900)
                        execl("/bin/head", "head", "-c", "11", "data/other", NULL);
                    _exit(3);
                }
                waitpid(pid, &status, 0);
                if (WEXITSTATUS(status) != (at > 900 ? 0 : 3))
                    return 1;
            }
            return 0;
        }
    """,
    "vfork": """
        int main(void) {
            int file = open("data/file", O_RDONLY), status;
            for (int at = 0; at < 1000; at++) {
                read(file, text, 7);
                if (at % 100 != 50)
                    continue;
                pid_t pid = vfork();
                if (pid == 0) {
                    /* All that a child may do, and more. */
                    int other = open("data/other", O_RDONLY);
                    for (int more = 0; more < 1000; more++)
                        pread(other, text, 9, 0);
                    dup2(other, 0);
                    close(other);
                    close(file);
                    execl("/bin/head", "head", "-c", "11", NULL);
                    _exit(3);
                }
                waitpid(pid, &status, 0);
                if (status != 0)
                    return 1;
            }
            return 0;
        }
    """,
}


def run_both(folder, source):
    """Runs the program alone and recorded, which gives the same; the rows of files."""
    (folder / "data").mkdir()
    for name in ("file", "other"):
        (folder / "data" / name).write_text("0123456789\n" * 1_000)
    (folder / "program.c").write_text(textwrap.dedent(HEADER + source))
    succeed(["cc", "-o", "program", "program.c"], folder)
    alone = succeed(["./program"], folder).stdout
    assert succeed([*record("run", "--io-include", "data"), "./program"], folder).stdout == alone
    return sorted(rows_of(folder / "run"), key=lambda row: row["start_ns"])


@pytest.mark.parametrize("way", SOURCES)
def test_what_the_parent_does_is_recorded_once(tmp_path, way):
    rows = run_both(tmp_path, SOURCES[way])
    parent = next(row["pid"] for row in rows if row["name"] == "open")
    ours = [row for row in rows if row["pid"] == parent]
    reads = [row for row in ours if row["name"] == "read"]
    assert [(row["bytes"], row["offset"]) for row in reads] == [(7, 7 * at) for at in range(1_000)]
    assert {row["name"] for row in ours} == {"open", "read"}
    # The programs that children begin are recorded as any.
    others = [row for row in rows if row["pid"] != parent and row["name"] == "read"]
    assert {row["file"] for row in others} == {str(tmp_path / "data/other")}
