"""The files of a run are plain Parquet: other programs read them and agree with ours."""

import duckdb
import pyarrow.dataset
import pyarrow.parquet
import runs

OPERATORS = """
    SELECT name, count(*) AS count, sum(dur_ns)::BIGINT AS ns
    FROM read_parquet('{run}/rank=*/*.parquet', hive_partitioning = true)
    WHERE kind = 'op' {which}
    GROUP BY name
"""


def ours(run, *arguments):
    results = runs.analyze("operators", run, *arguments)["results"]
    return {row["name"]: (row["count"], row["host_total_ns"]) for row in results}


def of_simple(run, theirs):
    """Both sides without operators that call themselves: the analysis counts an only such call as one with its caller,
    as ``key_averages()`` does, and a plain sum does not.
    """
    found = [row for row in runs.rows(run) if row["kind"] == "op"]
    nested = {row["name"] for parent, row in runs.with_parents(found) if parent and parent["name"] == row["name"]}
    simple = [{name: row for name, row in side.items() if name not in nested} for side in (theirs, ours(run))]
    assert len(simple[0]) > 40
    return simple


def test_duckdb_agrees_with_the_command_line(training):
    rows = duckdb.sql(OPERATORS.format(run=training, which="")).fetchall()
    theirs, own = of_simple(training, {name: (count, ns) for name, count, ns in rows})
    assert theirs == own


def test_the_rank_is_a_column(training):
    ranks = duckdb.sql(
        f"SELECT DISTINCT rank FROM read_parquet('{training}/rank=*/*.parquet', hive_partitioning = true)"
    ).fetchall()
    assert ranks == [(3,)]
    which = "AND rank = 3"
    assert duckdb.sql(OPERATORS.format(run=training, which=which)).fetchall()
    assert not duckdb.sql(OPERATORS.format(run=training, which="AND rank = 0")).fetchall()


def test_pyarrow_agrees_with_the_command_line(training):
    files = [str(part) for part in runs.parts(training)]
    dataset = pyarrow.dataset.dataset(files, partitioning="hive", partition_base_dir=str(training))
    table = dataset.to_table(filter=pyarrow.dataset.field("kind") == "op")
    assert table.schema.field("name").type == pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    assert set(table.column("rank").to_pylist()) == {3}
    table = table.set_column(table.schema.get_field_index("name"), "name", table.column("name").cast(pyarrow.string()))
    grouped = table.group_by("name").aggregate([("dur_ns", "sum"), ("dur_ns", "count")]).to_pylist()
    theirs = {row["name"]: (row["dur_ns_count"], row["dur_ns_sum"]) for row in grouped}
    theirs, own = of_simple(training, theirs)
    assert theirs == own


def test_times_are_unix_time_in_order(training):
    for part in runs.parts(training):
        table = pyarrow.parquet.read_table(part, partitioning=None)
        starts = table.column("start_ns").to_pylist()
        threads = table.column("thread").to_pylist()
        assert sorted(zip(threads, starts)) == list(zip(threads, starts))
        created_ns = part.stat().st_mtime_ns
        assert all(created_ns - 600e9 < start <= created_ns for start in starts)


def test_a_run_holds_nothing_but_its_parts_and_their_summary_when_it_is_closed(training):
    names = sorted(str(path.relative_to(training)) for path in training.rglob("*") if path.is_file())
    assert (names[0], names[-1]) == (".stepscope/rank=3.parquet", "run.json")
    assert all(name.startswith("rank=3/part-") and name.endswith(".parquet") for name in names[1:-1])
