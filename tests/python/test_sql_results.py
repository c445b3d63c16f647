"""Results of SQL that are large, go elsewhere, or are wanted by nobody any more."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import runs
from queries import PROGRAM, needs_program

RUN = Path(__file__).parents[1] / "fixtures" / "gpt-cpu"
#: It has no row for longer than any test waits.
ENDLESS = "select count(*) from range(0, 1000000000000) a, range(0, 1000) b where a.value % 7 = b.value % 5"

pytestmark = needs_program


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A copy of a run, beside which tables may be kept."""
    folder = tmp_path_factory.mktemp("run")
    subprocess.run(["cp", "-r", RUN, folder], check=True)
    return folder / RUN.name


@pytest.fixture
def opened(run, monkeypatch):
    monkeypatch.setenv("STEPSCOPE_SQL", PROGRAM)
    import stepscope

    return stepscope.open(run)


def environment():
    return runs.environment(STEPSCOPE_SQL=PROGRAM)


def queries_of(run):
    """The processes that answer queries of a run."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_text(errors="replace").split("\0")
        except OSError:
            continue
        if "stepscope-sql" in command[0] and any(str(run) in word for word in command):
            found.append(process)
    return found


def until(wish):
    begun = time.monotonic()
    while not wish():
        assert time.monotonic() - begun < 120, "it does not come"
        time.sleep(0.02)


def test_batches_are_the_rows_of_the_whole(opened):
    query = "select slice, name, dur_ns from slice order by slice"
    whole = opened.sql(query).to_dicts()
    batches = [*opened.sql_batches(query)]
    assert [row for batch in batches for row in batch.to_dicts()] == whole and whole
    assert [batch.columns for batch in batches] == [["slice", "name", "dur_ns"]] * len(batches)
    assert sum(map(len, opened.sql_batches("select * from slice where false"))) == 0
    with pytest.raises(ValueError, match="there is no column nam"):
        next(opened.sql_batches("select nam from op"))
    late = opened.sql_batches("select 10 / (value - 99999) from range(0, 100000)")
    with pytest.raises(ValueError, match="(?i)divide by zero"):
        list(late)


def test_a_result_that_does_not_fit_into_memory_is_read_in_batches(run):
    # A process that may have 600 MB more than it begins with reads 1,280 MB.
    program = """
import resource, sys, stepscope
opened = stepscope.open(sys.argv[1])
batches = opened.sql_batches("select value as a, value + 1 as b, value + 2 as c, value + 3 as d from range(0, 40000000)")
rows = len(next(batches))
# Not before the other program has started, which would have it as well.
begun = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (begun + 600_000_000,) * 2)
for batch in batches:
    rows += len(batch)
print(rows)
"""
    told = subprocess.run(
        [sys.executable, "-c", program, run], env=environment(), capture_output=True, text=True, check=True
    )
    assert told.stdout.split() == ["40000000"], told.stderr


def test_what_is_not_read_any_more_ends(run, opened):
    batches = opened.sql_batches("select value from range(0, 1000000000000)")
    assert len(next(batches)) > 0
    assert queries_of(run)
    batches.close()
    assert not queries_of(run)


@pytest.mark.parametrize("asked_by", ["a pipe", "mcp"])
def test_a_query_ends_with_the_process_that_was_killed(run, asked_by):
    if asked_by == "a pipe":
        program = "import subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.PIPE)"
        command = [sys.executable, "-c", program, runs.COMMAND, "sql", run, ENDLESS]
        asking = subprocess.Popen(command, env=environment())
    else:
        asking = subprocess.Popen(
            [runs.COMMAND, "mcp", run], env=environment(), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        call = {"name": "sql", "arguments": {"run": str(run), "query": ENDLESS}}
        for message in (
            {"id": 1, "method": "initialize", "params": about},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": call},
        ):
            asking.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            asking.stdin.flush()
    try:
        until(lambda: queries_of(run))
        asking.send_signal(signal.SIGKILL)
        asking.wait()
        until(lambda: not queries_of(run))
    finally:
        asking.kill()
        for process in queries_of(run):
            os.kill(int(process.name), signal.SIGKILL)


def test_sql_is_read_from_a_file(run, tmp_path):
    (tmp_path / "question.sql").write_text(
        "-- two of them\nselect 1 as one;\nselect count(*) as n from step where is_step"
    )
    told = runs.stepscope("sql", run, "-f", tmp_path / "question.sql", "--csv", env=environment()).stdout
    asked = runs.stepscope(
        "sql", run, "select count(*) as n from step where is_step", "--csv", env=environment()
    ).stdout
    assert told == asked
    missing = runs.run(runs.COMMAND, "sql", run, "-f", tmp_path / "missing.sql", env=environment())
    assert missing.returncode == 1 and "missing.sql" in missing.stderr


def test_pages_are_lines_with_all_rows(run, tmp_path):
    runs.stepscope("convert", run, "-o", f"{tmp_path}/tables/")

    def pages(query, of):
        command = [PROGRAM, f"--tables=run={tmp_path}/tables", "--pages", of, query]
        return [json.loads(line) for line in runs.execute(*command).stdout.splitlines()]

    whole = runs.stepscope("sql", run, "select slice from slice", "--csv", env=environment()).stdout.split()[1:]
    for of in (1000, len(whole) - 1, len(whole), len(whole) + 1):
        found = pages("select slice from slice", of)
        assert sorted(str(row[0]) for page in found for row in page["rows"]) == sorted(whole)
        assert [len(page["rows"]) for page in found[:-1]] == [of] * (len(found) - 1)
        assert [page["is_complete"] for page in found] == [False] * (len(found) - 1) + [True]
    assert [page["rows"] for page in pages("select slice from slice where false", 7)] == [[]]
