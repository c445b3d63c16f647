"""What docs/sql.md shows of other engines gives the rows that our own SQL gives."""

import json
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
import runs

CHECKOUT = Path(__file__).parents[2]
GPU = CHECKOUT / "tests" / "fixtures" / "gpu" / "convnet" / "run"
PROGRAM = os.environ.get("STEPSCOPE_SQL", "")
DOCUMENT = (CHECKOUT / "docs" / "sql.md").read_text()


def block(engine):
    """The code under the heading of an engine."""
    return re.search(rf"### {engine}\n\n```\w+\n(.*?)```", DOCUMENT, re.DOTALL).group(1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with tables of a GPU's run, with operators and memory, as the document has it."""
    folder = tmp_path_factory.mktemp("engines")
    runs.stepscope("convert", GPU, "-o", f"{folder}/tables/")
    return folder


@pytest.fixture(scope="module")
def expected(folder):
    """The rows of the five questions, as our own SQL gives them where it is built, else as DuckDB does."""
    answers = []
    for query in re.findall(r"(SELECT.*?);", block("DuckDB")):
        found = duckdb.sql(query.replace("'tables/", f"'{folder}/tables/"))
        answers.append([tuple(row) for row in found.fetchall()])
    assert len(answers) == 5 and all(answers[:3]) and answers[4]
    if PROGRAM:
        ours = [
            re.sub(r"'tables/(\w+)/\*.parquet'", r"\1", query) for query in re.findall(r"(SELECT.*?);", block("DuckDB"))
        ]
        ours[3] = ours[3].replace("GROUP BY ALL ORDER BY ALL", "GROUP BY rank, device ORDER BY rank, device")
        for query, rows in zip(ours, answers, strict=True):
            told = runs.stepscope(
                "sql", folder / "tables", query, "--json", env=runs.environment(STEPSCOPE_SQL=PROGRAM)
            )
            assert [tuple(row) for row in json.loads(told.stdout)["rows"]] == rows
    return answers


def plain(rows):
    """Rows of plain values: what is not known is None in each engine."""
    known = [[None if isinstance(cell, float) and math.isnan(cell) else cell for cell in row] for row in rows]
    return [tuple(int(cell) if isinstance(cell, float) else cell for cell in row) for row in known]


def answers(code, folder, rows_of):
    """What each expression of the code that stands alone on its line gives."""
    here, found = Path.cwd(), []
    names = {}
    os.chdir(folder)
    try:
        lines, body = code.strip().splitlines(), []
        for line in lines:
            is_answer = re.match(r"(\w+\.|spark\.sql|pd\.)", line) and " = " not in line.split("(")[0]
            if is_answer and not line.startswith("    "):
                exec("\n".join(body), names)
                body = []
                found.append(plain(rows_of(eval(line, names))))
            else:
                body.append(line)
        exec("\n".join(body), names)
    finally:
        os.chdir(here)
    return found


def test_polars(folder, expected):
    assert answers(block("Polars"), folder, lambda frame: frame.rows()) == expected


def test_pandas(folder, expected):
    def rows(frame):
        if frame.index.names != [None]:
            frame = frame.reset_index()
        return frame.astype(object).itertuples(index=False) if frame.index.name is None else frame.itertuples()

    found = answers(block("pandas"), folder, lambda frame: [tuple(row) for row in rows(frame)])
    found = [[row for row in each] for each in found]
    assert [each if at != 2 else [row[-3:] for row in each] for at, each in enumerate(found)] == expected


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java")
def test_spark(folder, expected):
    pytest.importorskip("pyspark")
    script = block("Spark") + "\n"
    code = "import json\nanswers = []\n" + re.sub(
        r"^(spark\.sql\(.*\))$", r"answers.append(\1)", script, flags=re.MULTILINE
    )
    code += "print('ROWS ' + json.dumps([[list(row) for row in each.collect()] for each in answers]))\n"
    options = {"cwd": folder, "env": runs.environment(SPARK_LOCAL_IP="127.0.0.1"), "timeout": 300}
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, **options)
    (line,) = [line for line in told.stdout.splitlines() if line.startswith("ROWS ")]
    assert [plain(each) for each in json.loads(line.removeprefix("ROWS "))] == expected, told.stderr[-2000:]
