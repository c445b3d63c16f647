"""What SQL refuses, with its place, and where a query ends: at its memory, at Ctrl-C, at tables that are cut."""

import json
import signal
import sys
import time
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
import runs
from queries import copies, environment, fails, needs_program, rows, sql, tables

pytestmark = needs_program


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    return copies(tmp_path_factory.mktemp("runs"))


def test_what_is_wrong_has_a_place_and_a_hint(sources):
    said = fails(sources["cpu"], "select name\nfrom")
    assert "line 2, column" in said
    said = fails(sources["cpu"], "select nam from op")
    assert "there is no column nam" in said and "did you mean name?" in said and "line 1, column 8" in said
    said = fails(sources["cpu"], "select 1 from ops")
    assert "there is no table ops" in said and "did you mean op?" in said
    said = fails(sources["cpu"], "select busyns(start_ns, dur_ns) from op")
    assert "there is no function busyns" in said and "did you mean busy_ns?" in said
    answer = runs.run(runs.COMMAND, "sql", sources["cpu"], "select nam from op", "--json", env=environment())
    error = json.loads(answer.stdout)["error"]
    assert answer.returncode == 1
    assert error == {"what": "there is no column nam", "where": "line 1, column 8", "hint": "did you mean name?"}
    assert "no such" in fails("not/there", "select 1")
    said = fails(sources["cpu"], 'select 1 from op where name = "aten::mm"')
    assert "single quotes: 'aten::mm'" in said
    assert "the last statement gives no rows" in fails(sources["cpu"], "create view v as select 1 as x", "--csv")


@pytest.mark.parametrize(
    "query, at",
    [
        ("select dur_ns,\n       name + 1 from op", "line 2, column 8"),
        ("select kind,\nbusy_ns(name, dur_ns) from op group by kind", "line 2, column 9"),
        ("select sum(dur_ns) from op group by name having\n stack_text(dur_ns, dur_ns, 1) = 'x'", "line 2"),
    ],
)
def test_types_that_do_not_fit_have_a_place(sources, query, at):
    said = fails(sources["cpu"], query)
    assert f"at: {at}" in said, said


@pytest.mark.parametrize(
    "query, what, at",
    [
        ("select 1\nfrom ops", "there is no table ops", "line 2, column 6"),
        ("select name,\n busyns(start_ns, dur_ns) from op", "there is no function busyns", "line 2, column 2"),
        ("select *\nfrom operatrs()", 'there is no analysis called "operatrs"', "line 2, column 6"),
        ("select 1 from op, operators(groupby => 'name')", "operators has no option groupby", "line 1, column 29"),
        ("select * from operators('module')", "options are written NAME => VALUE", "line 1, column 25"),
        ("select *\nfrom op, (select * from operators(rank => 77)) as o", "77", "line 2, column 25"),
    ],
)
def test_what_is_not_there_has_a_place(sources, query, what, at):
    said = fails(sources["cpu"], query)
    assert what in said and f"at: {at}" in said, said
    answer = runs.run(runs.COMMAND, "sql", sources["cpu"], query, "--json", env=environment())
    assert json.loads(answer.stdout)["error"]["where"] == at


@pytest.mark.parametrize(
    "query",
    [
        "insert into op select * from op",
        "copy (select 1) to '{folder}/x.csv'",
        "create external table t stored as csv location '/etc/passwd'",
        "delete from op",
        "select * from '/etc/passwd'",
        "explain analyze copy (select 1) to '{folder}/x.csv'",
        "explain analyze insert into op select * from op",
        "set datafusion.runtime.memory_limit = '100G'",
        "create table t as select 1",
        "drop table op",
        "select * from operators(output => '{folder}/x')",
    ],
)
def test_queries_only_read_the_tables(sources, query, tmp_path):
    said = fails(sources["cpu"], query.format(folder=tmp_path))
    assert "only read" in said or "there is no table" in said or "no option output" in said, said
    assert list(tmp_path.iterdir()) == []


def test_memory_has_a_limit_beyond_which_the_disk_is_used(sources):
    sort = "select row_number() over (order by (value * 7919) % 1000003) as place from range(0, 4000000)"
    limits = ("--memory", "40MiB", "--threads", "2")
    assert rows(sources["cpu"], f"select max(place) as n from ({sort})", *limits) == [{"n": 4_000_000}]
    plan = sql(sources["cpu"], f"explain analyze select max(place) as n from ({sort})", *limits)
    spilled = [int(part.split("=")[1]) for part in plan.replace(",", " ").split() if part.startswith("spill_count=")]
    assert sum(spilled) > 0
    said = fails(sources["cpu"], "select array_agg(value) from range(0, 20000000)", "--memory", "30MiB")
    assert "not enough memory" in said and "--memory" in said
    # Rows that nobody reads take none.
    assert sql(
        sources["cpu"], "select * from range(0, 50000000); select 1 as one", "--csv", "--memory", "30MiB"
    ).split() == ["one", "1"]


def test_ctrl_c_ends_a_query(sources):
    endless = "select count(*) from range(0, 1000000000000) a, range(0, 1000) b where a.value % 7 = b.value % 5"
    with runs.started(runs.COMMAND, "sql", sources["cpu"], endless, env=environment()) as process:
        status = Path(f"/proc/{process.pid}")
        while "stepscope-sql" not in (status / "cmdline").read_text().split("\0")[0]:
            time.sleep(0.02)
        # It has threads once it works.
        while len([*(status / "task").iterdir()]) < 3:
            time.sleep(0.02)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130


def test_a_table_that_is_cut_is_named(sources, tmp_path):
    folder = tables(sources["cpu"], tmp_path / "tables")
    file = folder / "op" / "rank-0.parquet"
    file.write_bytes(file.read_bytes()[:-100])
    assert "op/rank-0.parquet" in fails(folder, "select count(*) from op")


def test_tables_of_different_versions_are_asked_together(sources, tmp_path):
    new = tables(sources["cpu"], tmp_path / "new")
    old = tables(sources["cpu"], tmp_path / "old")
    for path in (old / "op").iterdir():
        whole = pyarrow.parquet.read_table(path)
        pyarrow.parquet.write_table(whole.drop_columns(["self_ns"]), path)
    for path in (old / "sample").iterdir():
        path.unlink()
    asked = "select run, count(*) as n, count(self_ns) as known from op group by run order by run"
    (first, second) = json.loads(sql(new, old, asked, "--json"))["rows"]
    assert (first[0], second[0], first[1]) == ("new", "old", second[1])
    assert (first[2], second[2]) == (first[1], 0)
    assert sql(new, old, "select count(*) from sample", "--csv")


def test_the_program_that_is_not_there_is_named(sources, tmp_path):
    bare = tmp_path / "stepscope"
    bare.write_text(Path(runs.COMMAND).read_text())
    env = runs.environment(PATH=str(tmp_path))
    told = runs.run(sys.executable, bare, "sql", sources["cpu"], "select 1", env=env)
    assert told.returncode == 127 and "stepscope[sql]" in told.stderr
