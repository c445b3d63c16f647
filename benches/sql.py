"""How long questions in SQL take: ``stepscope-sql`` and DuckDB in turn, on the same Parquet.

Run by ``cargo xtask bench sql``. Ranks are generated, and their tables written, once. Each query runs in each round in a new
process of each, and again in one that has answered it already, both with as many threads as there are processors. Their rows
are compared. A row of the output is the median of the rounds. New processes of DuckDB need its command
(``pip install duckdb-cli``): ``--duckdb PROGRAM``.

``--perfetto FOLDER`` asks the same of the trace of one rank, and of Perfetto's engine, whose page is in FOLDER, in a browser.
"""

import argparse
import gzip
import json
import os
import shutil
import statistics
import subprocess
import time
from pathlib import Path

import duckdb

QUERIES = {
    "operators by own time": "select name, count(*) as calls, sum(self_ns) as ns from op where kind = 'op' "
    "group by name order by ns desc, name limit 20",
    "kernels by time": "select name, count(*) as calls, sum(dur_ns) as ns from kernel group by name order by ns desc, name limit 20",
    "kernels by operator": "select op_name, name, count(*) as calls, sum(dur_ns) as ns from kernel group by op_name, name "
    "order by ns desc, op_name, name limit 20",
    "longest steps": "select rank, step, dur_ns from step where is_step order by dur_ns desc, rank, step limit 20",
    "operators of each step": "select rank, step, count(*) as n, sum(self_ns) as ns from op where step is not null "
    "group by rank, step order by ns desc, rank, step limit 20",
    "one name": "select rank, count(*) as n, min(dur_ns) as least, max(dur_ns) as most from slice where name = 'aten::addmm' "
    "group by rank order by rank",
    "a window of one rank": "select kind, count(*) as n, sum(dur_ns) as ns from slice where rank = 3 and start_ns < 1000000000 "
    "group by kind order by kind",
    "kernels with their launches": "select s.name, count(*) as n, sum(k.start_ns - s.start_ns) as ns from kernel k "
    "join slice s on k.launch = s.slice group by s.name order by n desc, s.name",
    "median of kernels": "select name, median(dur_ns) as ns from kernel group by name order by ns desc, name limit 20",
    "longest slices": "select name, start_ns, dur_ns from slice order by dur_ns desc, slice limit 100",
}
#: What asks Perfetto's engine the same of the trace of the first rank. It has the arguments of slices in a table of their own.
_EXTERNAL = "left join args {0} on {0}.arg_set_id = {1}.arg_set_id and {0}.key = 'args.External id'"
PERFETTO = {
    "operators by own time": "select s.name, count(*) as calls, sum(s.dur - coalesce(c.dur, 0)) as ns from slice s "
    "left join (select parent_id, sum(dur) as dur from slice where category = 'cpu_op' group by parent_id) c on c.parent_id = s.id "
    "where s.category = 'cpu_op' group by s.name order by ns desc, s.name limit 20",
    "kernels by time": "select name, count(*) as calls, sum(dur) as ns from slice where category = 'kernel' group by name "
    "order by ns desc, name limit 20",
    "kernels by operator": "select o.name, k.name, count(*) as calls, sum(k.dur) as ns from slice k "
    f"{_EXTERNAL.format('i', 'k')} left join (select s.name, a.int_value as id from slice s "
    f"{_EXTERNAL.format('a', 's').removeprefix('left ')} where s.category = 'cpu_op') o on o.id = i.int_value "
    "where k.category = 'kernel' group by o.name, k.name order by ns desc, o.name, k.name limit 20",
    "longest steps": "select dur from slice where category = 'user_annotation' and name glob 'ProfilerStep#*' "
    "order by dur desc, ts limit 20",
    "operators of each step": "select count(*) as n from slice p join slice s on s.ts >= p.ts and s.ts < p.ts + p.dur "
    "where p.category = 'user_annotation' and p.name glob 'ProfilerStep#*' and s.category = 'cpu_op' group by p.name",
    "one name": "select count(*) as n, min(dur) as least, max(dur) as most from slice where name = 'aten::addmm'",
    "a window of one rank": "select category, count(*) as n, sum(dur) as ns from slice "
    "where ts < 1000000000 + (select min(ts) from slice) group by category",
    "kernels with their launches": "select s.name, count(*) as n, sum(k.ts - s.ts) as ns from flow f "
    "join slice k on k.id = f.slice_in join slice s on s.id = f.slice_out where k.category = 'kernel' group by s.name "
    "order by n desc, s.name",
    "median of kernels": "select name, percentile(dur, 50) as ns from slice where category = 'kernel' group by name "
    "order by ns desc, name limit 20",
    "longest slices": "select name, dur from slice order by dur desc, id limit 100",
}
#: How often a query is asked again.
AGAIN = 3
VIEWS = " ".join(
    f"create view {table} as select * from read_parquet('{{tables}}/{table}/*.parquet');"
    for table in ("slice", "op", "kernel", "step")
)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=16)
    parser.add_argument("--events", default="4M", help="rows of the trace of a rank")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--duckdb", default=shutil.which("duckdb"), help="DuckDB's command")
    parser.add_argument(
        "--perfetto", type=Path, help="the files of Perfetto's page: ask only of one rank, and its engine"
    )
    parser.add_argument("--folder", type=Path, default=Path(os.environ.get("STEPSCOPE_BENCH", "target/bench")) / "sql")
    arguments = parser.parse_args()
    if arguments.perfetto:
        beside_perfetto(arguments)
        return
    tables = made(arguments.folder, arguments.ranks, arguments.events)
    slices = count(tables)
    print(f"{slices:,} slices, {size(tables) / 1e9:.2f} GB of Parquet, {os.cpu_count()} processors")
    kinds = ["again"] if arguments.duckdb is None else ["new", "again"]
    print(f"{'median of ' + str(arguments.rounds):30}", *(f"{kind:>8}: ours   DuckDB   ratio" for kind in kinds))
    ratios = {kind: [] for kind in kinds}
    for name, query in QUERIES.items():
        rounds = [round_of(tables, query, arguments.duckdb) for _ in range(arguments.rounds)]
        cells = []
        for kind in kinds:
            mine, other = (statistics.median(seconds) for seconds in zip(*(each[kind] for each in rounds)))
            ratios[kind].append(mine / other)
            cells.append(f"{mine:13.3f}s {other:7.3f}s {mine / other:6.2f}x")
        print(f"{name:30}", *cells, flush=True)
    print(f"{'median of the ratios':30}", *(f"{statistics.median(ratios[kind]):30.2f}x" for kind in kinds))


def beside_perfetto(arguments):
    """The questions of one trace, ours from the start of a process and asked again, theirs in an engine that has read it."""
    tables = made(arguments.folder, 1, arguments.events)
    trace = arguments.folder / f"traces-1-{arguments.events}" / "rank0.json.gz"
    print(f"{count(tables):,} slices, {os.cpu_count()} processors")
    script = Path(__file__).resolve().parent.parent / "web" / "bench" / "sql.mjs"
    command = ["node", script, trace, arguments.perfetto, str(1 + AGAIN)]
    queries = json.dumps(list(PERFETTO.values()))
    theirs = json.loads(subprocess.run(command, input=queries, check=True, capture_output=True, text=True).stdout)
    print(f"their engine reads the trace in {theirs['loaded_ms'] / 1e3:.1f} s, {theirs['peak_added'] / 1e6:,.0f} MB")
    print(f"{'':30}      new    again   theirs   again")
    for (name, query), answer in zip(QUERIES.items(), theirs["answers"]):
        new, again, rows = asked(tables, query.replace("rank = 3", "rank = 0"), arguments.rounds)
        first, *others = (ms / 1e3 for ms in answer["ms"])
        numbers = [int(cell) for row in rows for cell in row if isinstance(cell, (int, float))]
        same = "its numbers are in ours" if set(answer["numbers"]) <= set(numbers) else "other numbers"
        print(
            f"{name:30} {new:7.3f}s {again:7.3f}s {first:7.3f}s {statistics.median(others):7.3f}s  {same}", flush=True
        )


def asked(tables, query, rounds):
    """The median seconds of ours, in a new process and asked again, with the rows."""
    seconds = {"new": [], "again": []}
    for _ in range(rounds):
        start = time.perf_counter()
        answer = ours(tables, "--json", "--limit", "1000", query)
        seconds["new"].append(time.perf_counter() - start)
        start = time.perf_counter()
        ours(tables, "--csv", ";".join([query] * (1 + AGAIN)))
        seconds["again"].append((time.perf_counter() - start - seconds["new"][-1]) / AGAIN)
    return *map(statistics.median, seconds.values()), json.loads(answer)["rows"]


def made(folder, ranks, events):
    """The tables of a job, made once."""
    tables = folder / f"tables-{ranks}-{events}"
    if tables.exists():
        return tables
    traces = folder / f"traces-{ranks}-{events}"
    traces.mkdir(parents=True, exist_ok=True)
    for rank in range(ranks):
        trace = traces / f"rank{rank}.json.gz"
        if not trace.exists():
            text = traces / "text.json"
            command = [os.environ["STEPSCOPE_BENCH_PROGRAM"], "generate", "--events", events, "--seed", str(rank + 1)]
            subprocess.run([*command, "-o", text], check=True, stdout=subprocess.DEVNULL)
            pack(text, trace, f'"rank": {rank}, "world_size": {ranks}')
            text.unlink()
    start = time.perf_counter()
    subprocess.run([shutil.which("stepscope"), "convert", traces, "--join", "-o", f"{tables}/"], check=True)
    print(f"tables written in {time.perf_counter() - start:.1f} s")
    return tables


def pack(text, trace, rank):
    """Writes the text of a trace, which is of the first of eight ranks, as that of another rank."""
    unfinished = trace.with_suffix(".unfinished")
    with open(text, "rb") as source, gzip.open(unfinished, "wb", compresslevel=1) as packed:
        begin = source.read(1 << 16)
        changed = begin.replace(b'"rank": 0, "world_size": 8', rank.encode())
        assert changed != begin, "the trace says its rank otherwise"
        packed.write(changed)
        shutil.copyfileobj(source, packed, 1 << 20)
    unfinished.rename(trace)


def count(tables):
    return duckdb.sql(f"select count(*) from '{tables}/slice/*.parquet'").fetchall()[0][0]


def size(folder):
    return sum(path.stat().st_size for path in folder.rglob("*.parquet"))


def round_of(tables, query, duckdb_program):
    """The seconds that a query takes in ours and in DuckDB, whose rows are the same: in a new process, and when it is asked
    again."""
    seconds = {}
    new, again, answer = asked(tables, query, rounds=1)
    if duckdb_program:
        command = [duckdb_program, "-json", "-c", f"{VIEWS.format(tables=tables)} {query}"]
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds["new"] = new, time.perf_counter() - start
    connection = duckdb.connect()
    connection.execute(VIEWS.format(tables=tables))
    rows = connection.execute(query).fetchall()
    start = time.perf_counter()
    for _ in range(AGAIN):
        connection.execute(query).fetchall()
    seconds["again"] = again, (time.perf_counter() - start) / AGAIN
    connection.close()
    assert [plain(row) for row in answer] == [plain(row) for row in rows], query
    return seconds


def ours(tables, *words):
    command = [os.environ["STEPSCOPE_SQL"], "--tables", f"job={tables}", *words]
    return subprocess.run(command, check=True, capture_output=True).stdout


def plain(row):
    """Cells that both write alike: medians may be halves."""
    return [int(cell) if isinstance(cell, float) else cell for cell in row]


if __name__ == "__main__":
    main()
