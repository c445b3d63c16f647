"""The end of a stream is no error, and an error of a stream is one: both give back the same."""

import errno
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from files_recorded import record, rows_of, succeed

SOURCE = Path(__file__).with_name("programs") / "stream_ends.c"


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no compiler")
def test_the_end_is_no_error_and_an_error_is_one(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/lines").write_text("one\ntwo\n")
    subprocess.run(["cc", "-o", tmp_path / "ends", SOURCE], check=True)
    alone = succeed(["./ends"], tmp_path).stdout
    # A limit is an error of this process, which the recorder must not have.
    recorded = succeed([*record("run", "--io-include", "data"), "./ends"], tmp_path).stdout
    assert recorded == alone
    assert (tmp_path / "data/reason").read_text() == os.strerror(errno.EACCES)
    rows = [(row["name"], row["bytes"], row["errno"]) for row in rows_of(tmp_path / "run") if row["file"]]
    assert [row for row in rows if row[0] not in ("fopen", "fclose", "fseek")] == [
        ("fgets", 4, None),
        ("getline", 4, None),
        ("fgets", 0, None),
        ("getline", 0, None),
        ("fread", 0, None),
        ("fread", 8, None),
        ("fwrite", 0, errno.EBADF),
        ("fread", 0, errno.EISDIR),
        ("fgets", 0, errno.EISDIR),
        ("getline", 0, None),
        ("fprintf", len(os.strerror(errno.EACCES)), None),
        ("fwrite", 8, None),
        ("fwrite", 2, errno.EFBIG),
        ("fputs", 0, errno.EFBIG),
        ("fprintf", 0, errno.EFBIG),
    ]
