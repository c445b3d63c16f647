"""SQL over runs: numbers are those of analyses and of DuckDB, in each form."""

import csv
import io
import json
import os
import pty
import subprocess

import duckdb
import pyarrow
import pyarrow.parquet
import pytest
import runs
from queries import CPU, GPU, PROGRAM, copies, environment, fails, needs_program, rows, sql, tables

pytestmark = needs_program


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    return copies(tmp_path_factory.mktemp("runs"))


def test_every_example_is_answered(sources):
    known = json.loads(sql(sources["gpu"], "--schema", "--json"))
    assert len(known["examples"]) >= 10
    for source in sources.values():
        for example in known["examples"]:
            answer = json.loads(sql(source, example["sql"], "--json"))
            assert answer["columns"], example["title"]
    assert rows(sources["gpu"], known["examples"][1]["sql"])


def test_the_schema_has_all_tables_and_each_column_a_meaning(sources):
    known = json.loads(sql(sources["cpu"], "--schema", "--json"))
    names = "slice track thread process step op kernel launch copy sync collective memory counter io_call sample finding flow"
    assert {*names.split()} <= {table["name"] for table in known["tables"]}
    for table in known["tables"]:
        assert table["row"], table["name"]
        assert all(column["doc"] for column in table["columns"]), table["name"]
    assert {"busy_ns", "span_union", "span_intersect", "step_of", "rank_of", "stack_text", "operators"} <= {
        function["name"] for function in known["functions"]
    }


@pytest.mark.parametrize("which", ["cpu", "ranks", "gpu"])
def test_numbers_are_those_of_analyses(sources, which):
    source = sources[which]
    asked = "select name, sum(self_ns) as ns from op where kind = 'op' group by name"
    found = {row["name"]: row["ns"] for row in rows(source, asked)}
    expected = runs.analyze("operators", source)["results"]
    assert found == {row["name"]: row["host_self_ns"] for row in expected}
    asked = "select name, count(*) as count, sum(dur_ns) as ns from kernel group by name"
    found = {row["name"]: (row["count"], row["ns"]) for row in rows(source, asked)}
    expected = runs.analyze("kernels", source)["results"]
    assert found == {row["name"]: (row["count"], row["total_ns"]) for row in expected}
    assert bool(found) == (which == "gpu")
    steps = [row for row in runs.analyze("step_breakdown", source)["results"] if row["is_complete"]]
    steps = [(row["rank"], row["step"], row["total_ns"]) for row in steps if row["source"] != "whole"]
    asked = "select rank, step, dur_ns from step where is_step order by rank, start_ns"
    assert [tuple(row.values()) for row in rows(source, asked)] == steps


def test_spans_are_those_of_the_account_of_a_device(sources):
    asked = """
        with spans as (select span_union(start_ns, dur_ns) as all_spans,
            span_union(start_ns, dur_ns) filter (where class = 'compute') as compute from kernel)
        select span_ns(all_spans) as busy, span_ns(compute) as compute,
            span_ns(span_intersect(all_spans, compute)) as both,
            (select busy_ns(start_ns, dur_ns) from kernel) as same, all_spans from spans"""
    (found,) = rows(sources["gpu"], asked)
    kernels = rows(sources["gpu"], "select start_ns, dur_ns, class from kernel")
    moments = sorted((row["start_ns"], row["start_ns"] + row["dur_ns"]) for row in kernels)
    union = []
    for start, end in moments:
        if union and start <= union[-1][1]:
            union[-1][1] = max(union[-1][1], end)
        else:
            union.append([start, end])
    assert found["all_spans"] == [{"start_ns": start, "dur_ns": end - start} for start, end in union]
    assert found["busy"] == found["same"] == sum(end - start for start, end in union)
    assert found["both"] == found["compute"] > 0


def test_steps_ranks_and_stacks_are_found_by_functions(sources):
    asked = "select count(*) as n from slice where (step is distinct from step_of(rank, start_ns)) and device is null"
    assert rows(sources["cpu"], asked) == [{"n": 0}]
    asked = "select distinct rank, rank_of(slice) as r, rank_of(track) as t from slice order by rank"
    assert rows(sources["ranks"], asked) == [{"rank": 0, "r": 0, "t": 0}, {"rank": 1, "r": 1, "t": 1}]
    asked = "select stack_text('a;b;c') as a, stack_text('a;b;c', 2) as b, stack_text(null) as c"
    assert rows(sources["cpu"], asked) == [{"a": "a\nb\nc", "b": "a\nb", "c": None}]


@pytest.mark.parametrize("which", ["cpu", "ranks", "gpu"])
def test_duckdb_gives_the_same_rows(sources, tmp_path, which):
    folder = tables(sources[which], tmp_path / "tables")
    for table in sorted(path.name for path in folder.iterdir()):
        duckdb.sql(f"create or replace view {table} as select * from '{folder}/{table}/*.parquet'")
    asked = [
        "select * from slice order by slice",
        "select kind, count(*) as n, sum(dur_ns) as ns, min(start_ns) as first from slice group by kind order by kind",
        "select step, count(*) as n, sum(self_ns) as ns from op where step is not null group by step order by step",
        "select k.name as kernel, s.name as call, k.dur_ns from kernel k join slice s on k.launch = s.slice order by k.slice",
        "select parent.name as outer_name, child.name as inner_name, count(*) as n from slice child "
        "join slice parent on child.parent = parent.slice group by all_names order by 1, 2",
        "select device, max(allocated_bytes) as bytes from memory group by device order by device nulls last",
        "select name, dur_ns, rank() over (partition by kind order by dur_ns desc, slice) as place from slice order by slice",
        "select file, action, sum(bytes) as bytes from io_call group by file, action order by file, action",
        "select * from finding order by code",
        "select count(distinct name) as names, count(*) filter (where is_unfinished) as open from slice",
    ]
    for query in asked:
        query = query.replace("group by all_names", "group by parent.name, child.name")
        expected = duckdb.sql(query)
        expected = [dict(zip(expected.columns, row, strict=True)) for row in expected.fetchall()]
        found = [{name: value for name, value in row.items() if name != "run"} for row in rows(sources[which], query)]
        assert found == expected, query


def test_spans_of_any_list_and_at_the_limits_of_numbers(sources):
    asked = """
        with some as (select span_union(start_ns, dur_ns) as spans from (values (5, 10), (1, 10), (30, 5)) as t(start_ns, dur_ns))
        select span_ns(spans) as one, span_ns(array_concat(spans, spans)) as twice, span_ns(null) as none,
            span_intersect(spans, span_union_of) as both
        from some, (select span_union(start_ns, dur_ns) as span_union_of from (values (12, 20)) as t(start_ns, dur_ns))"""
    both = [{"start_ns": 12, "dur_ns": 3}, {"start_ns": 30, "dur_ns": 2}]
    assert rows(sources["cpu"], asked) == [{"one": 19, "twice": 19, "none": None, "both": both}]
    largest = 2**63 - 1
    limits = (
        f"select busy_ns(a, b) as n from (values (-{largest}, {largest}), (5, {largest}), (7, null), (9, 0)) as t(a, b)"
    )
    assert rows(sources["cpu"], limits) == [{"n": largest}]
    assert rows(
        sources["cpu"], "select busy_ns(start_ns, dur_ns) as n, span_union(start_ns, dur_ns) as s from op where false"
    ) == [{"n": None, "s": None}]


@pytest.mark.slow
@pytest.mark.parametrize("which", ["ranks", "gpu"])
def test_every_analysis_is_a_table(sources, tmp_path, which):
    """With the rows of ``stepscope analyze``, and the name of the run behind them."""
    names = [analysis["name"] for analysis in json.loads(runs.stepscope("analyze", "--json").stdout)]
    assert len(names) > 50
    for name in names:
        runs.stepscope("analyze", name, sources[which], "--parquet", tmp_path / f"{name}.parquet")
        expected = pyarrow.parquet.read_table(tmp_path / f"{name}.parquet")
        answer = json.loads(sql(sources[which], f"select * from {name}()", "--json", "--limit", "1000000"))
        assert [column["name"] for column in answer["columns"]] == [*expected.column_names, "run"], name
        assert len(answer["rows"]) == expected.num_rows, name
        for at, column in enumerate(expected.column_names):
            values = expected.column(column).to_pylist()
            if all(isinstance(value, (int, str, type(None))) for value in values):
                assert sorted(map(repr, values)) == sorted(repr(row[at]) for row in answer["rows"]), (name, column)


def test_examples_of_devices_are_what_analyses_say(sources):
    known = {
        example["title"]: example["sql"]
        for example in json.loads(sql(sources["gpu"], "--schema", "--json"))["examples"]
    }
    (busy,) = rows(sources["gpu"], known["How long each device was busy"])
    (account,) = [row for row in runs.analyze("temporal_breakdown", sources["gpu"])["results"]]
    assert busy["busy_ns"] == account["span_ns"] - account["idle_ns"]
    exposed = rows(sources["gpu"], known["Communication that no computation hides, by device"])
    assert [(row["comm_ns"], row["exposed_ns"]) for row in exposed] == [(0, 0)]


@pytest.mark.parametrize("which", ["cpu", "gpu"])
@pytest.mark.parametrize("table", ["op", "slice"])
def test_own_time_is_what_is_left_without_what_lies_in_it(sources, which, table):
    (row,) = rows(
        sources[which],
        f"""
        with inner_ns as (select parent, sum(dur_ns) as ns from {table} where parent is not null group by parent)
        select count(*) as n, sum(cast(self_time(o.dur_ns, i.ns) = o.self_ns as int)) as same, sum(o.self_ns) as own
        from {table} o left join inner_ns i on i.parent = o.slice""",
    )
    assert row["n"] == row["same"] > 0 and row["own"] > 0


def test_several_runs_are_told_apart_by_a_column(sources, tmp_path):
    asked = "select run, count(*) as n from slice group by run order by run"
    found = json.loads(sql(sources["cpu"], sources["gpu"], asked, "--json"))["rows"]
    alone = [rows(sources[which], asked)[0] for which in ("cpu", "gpu")]
    assert found == sorted([*row.values()] for row in alone)
    assert [name for name, _ in found] == [GPU.name, CPU.name]
    # The same run twice has two names, and an analysis is of each.
    twice = json.loads(
        sql(sources["cpu"], sources["cpu"], "select run, count(*) from operators() group by 1", "--json")
    )
    assert sorted(name for name, _ in twice["rows"]) == [CPU.name, f"{CPU.name} (2)"]
    said = fails(sources["cpu"], sources["gpu"], "select step_of(rank, start_ns) from op")
    assert "step_of(run, rank, time_ns)" in said
    assert sql(sources["cpu"], sources["gpu"], "select max(step_of(run, rank, start_ns)) from op", "--csv")


def test_an_analysis_is_a_table(sources):
    asked = "select * from operators(group_by => 'module', rank => 1)"
    found = [{name: value for name, value in row.items() if name != "run"} for row in rows(sources["ranks"], asked)]
    assert found == runs.analyze("operators", sources["ranks"], "--group-by", "module", "--rank", "1")["results"]
    joined = "select count(*) as n from operators() as a join op on op.name = a.name"
    assert rows(sources["cpu"], joined)[0]["n"] > 0
    said = fails(sources["cpu"], "select * from operatrs()")
    assert 'there is no analysis called "operatrs"' in said and 'did you mean "operators"?' in said
    view = "create view v as select name from operators(); select count(*) as n from v"
    assert rows(sources["cpu"], view) == rows(sources["cpu"], "select count(*) as n from operators()")
    assert "NAME => VALUE" in fails(sources["cpu"], "select * from operators('module')")
    assert "group" in fails(sources["cpu"], "select * from kernels(group_by => 'colour')")


def test_forms_have_the_same_rows(sources, tmp_path):
    query = "select name, kind, dur_ns, is_unfinished, step from slice order by slice"
    expected = rows(sources["cpu"], query)
    read = csv.DictReader(io.StringIO(sql(sources["cpu"], query, "--csv"), newline=""))
    text = {None: "", True: "true", False: "false"}
    assert [*read] == [
        {name: text.get(value, str(value)) if not isinstance(value, int) or isinstance(value, bool) else str(value)
         for name, value in row.items()} for row in expected
    ]  # fmt: skip
    sql(sources["cpu"], query, "--parquet", tmp_path / "rows.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "rows.parquet").to_pylist() == expected
    assert [path.name for path in tmp_path.iterdir()] == ["rows.parquet"]
    arrow = subprocess.run(
        [runs.COMMAND, "sql", sources["cpu"], query, "--arrow"], env=environment(), capture_output=True
    )
    assert pyarrow.ipc.open_stream(arrow.stdout).read_all().to_pylist() == expected
    lines = sql(sources["cpu"], "select null as a union all select 1", "--csv").split("\n")
    assert sorted(line.strip() for line in lines[1:3]) == ['""', "1"]
    numbers = "select 0.0 / 0.0 as a, 1.0 / 0.0 as b, '12345678901234567.89'::decimal(38, 2) as c"
    assert sql(sources["cpu"], numbers, "--csv").split() == ["a,b,c", "NaN,inf,12345678901234567.89"]
    shown = sql(sources["cpu"], "select name, dur_ns from op order by slice", "--limit", "3")
    assert shown.splitlines()[0].split() == ["name", "dur_ns"]
    assert "the first 3 rows" in shown
    assert len(sql(sources["cpu"], query).splitlines()) < 1010, "text is cut"
    assert sql(sources["cpu"], "select 1 as one; select 2 as two").split() == "one 1 1 row two 2 1 row".split()


def test_python_gets_tables(sources, monkeypatch):
    monkeypatch.setenv("STEPSCOPE_SQL", PROGRAM)
    import polars
    import stepscope

    query = "select name, count(*) as n from op group by name order by name"
    expected = rows(sources["cpu"], query)
    found = stepscope.open(sources["cpu"]).sql(query)
    assert found.to_dicts() == found.to_arrow().to_pylist() == expected
    assert polars.DataFrame(found).to_dicts() == found.to_pandas().to_dict("records") == expected
    assert (len(found), found.columns) == (len(expected), ["name", "n"])
    with pytest.raises(ValueError, match="there is no column nam"):
        stepscope.open(sources["cpu"]).sql("select nam from op")
    with open(GPU, "rb") as file:
        assert stepscope.open(file).sql("select count(*) as n from kernel").to_dicts()[0]["n"] > 0


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A trace of two ranks and 600,000 operators, in steps, of which the last one of each rank has a name of its own."""
    folder = tmp_path_factory.mktemp("large")
    for rank in range(2):
        events = []
        for at in range(300_000):
            name = f"aten::op3 of {rank}" if at == 299_999 else f"aten::op{at % 50}"
            events.append(f'{{"ph":"X","cat":"cpu_op","name":"{name}","pid":1,"tid":1,"ts":{at * 10},"dur":7}}')
        about = f'"baseTimeNanoseconds":0,"distributedInfo":{{"rank":{rank},"world_size":2}}'
        (folder / f"{rank}.json").write_text(f'{{{about},"traceEvents":[{",".join(events)}]}}')
    return folder


def pruned(source, condition):
    """Groups of rows that a scan left out, and read: by limits, and by names."""
    plan = sql(source, f"explain analyze select sum(dur_ns) from slice where {condition}")
    found = {}
    for kind in ("statistics", "bloom_filter"):
        (text,) = {part for part in plan.replace(",", "\n").splitlines() if f"row_groups_pruned_{kind}=" in part}
        numbers = [int(word) for word in text.replace("=", " ").split() if word.isdigit()]
        found[kind] = (numbers[0], numbers[1])
    return found


def test_groups_that_have_no_answer_are_not_read(large):
    assert pruned(large, "dur_ns >= 0")["statistics"] == (6, 6)
    # Files that have no answer are left out before their groups are counted.
    total, matched = pruned(large, "start_ns < 1000000")["statistics"]
    assert matched == 2 and total >= matched
    assert pruned(large, "rank = 1 and start_ns < 1000000")["statistics"][1] == 1
    total, matched = pruned(large, "name = 'aten::op3 of 1'")["bloom_filter"]
    assert matched == 1 and total > 1
    assert rows(large, "select rank, dur_ns from slice where name = 'aten::op3 of 1'") == [{"rank": 1, "dur_ns": 7000}]


def test_a_prompt_answers_completes_and_remembers(sources, tmp_path):
    env = environment(XDG_STATE_HOME=str(tmp_path), TERM="xterm")
    main, other = pty.openpty()
    with runs.started(runs.COMMAND, "sql", sources["cpu"], env=env, stdin=other, stdout=other, stderr=other) as process:
        os.close(other)
        seen = ""

        def until(text):
            nonlocal seen
            while text not in seen:
                seen += os.read(main, 4096).decode(errors="replace")
            seen = seen.split(text, 1)[1]

        until("sql> ")
        os.write(main, b"select 40 + 2 as answer\r")
        os.write(main, b";\r")
        until("42")
        until("sql> ")
        os.write(main, b"select nam from op;\r")
        until("did you mean name?")
        os.write(main, b".schema fin\t")
        until(".schema finding")
        os.write(main, b"\r")
        until("info, suspect, severe")
        os.write(main, b".quit\r")
        while process.poll() is None:
            try:
                os.read(main, 4096)
            except OSError:
                break
        assert process.wait(30) == 0
    os.close(main)
    assert "select 40 + 2" in (tmp_path / "stepscope" / "sql_history").read_text()
