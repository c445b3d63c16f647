"""How long questions in SQL take: ``stepscope-sql`` and DuckDB in turn, on the same Parquet.

Run by ``cargo xtask bench sql``. Ranks are generated, and their tables written, once. Each query runs in each round in a new
process of each, and again in one that has answered it already, both with as many threads as there are processors. Their rows
are compared. A row of the output is the median of the rounds. New processes of DuckDB need its command
(``pip install duckdb-cli``): ``--duckdb PROGRAM``.
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
    parser.add_argument("--folder", type=Path, default=Path(os.environ.get("STEPSCOPE_BENCH", "target/bench")) / "sql")
    arguments = parser.parse_args()
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
    start = time.perf_counter()
    answer = ours(tables, "--json", "--limit", "1000", query)
    seconds_of_ours = time.perf_counter() - start
    if duckdb_program:
        command = [duckdb_program, "-json", "-c", f"{VIEWS.format(tables=tables)} {query}"]
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds["new"] = seconds_of_ours, time.perf_counter() - start
    start = time.perf_counter()
    ours(tables, "--csv", ";".join([query] * (1 + AGAIN)))
    again = (time.perf_counter() - start - seconds_of_ours) / AGAIN
    connection = duckdb.connect()
    connection.execute(VIEWS.format(tables=tables))
    rows = connection.execute(query).fetchall()
    start = time.perf_counter()
    for _ in range(AGAIN):
        connection.execute(query).fetchall()
    seconds["again"] = again, (time.perf_counter() - start) / AGAIN
    connection.close()
    assert [plain(row) for row in json.loads(answer)["rows"]] == [plain(row) for row in rows], query
    return seconds


def ours(tables, *words):
    command = [os.environ["STEPSCOPE_SQL"], "--tables", f"job={tables}", *words]
    return subprocess.run(command, check=True, capture_output=True).stdout


def plain(row):
    """Cells that both write alike: medians may be halves."""
    return [int(cell) if isinstance(cell, float) else cell for cell in row]


if __name__ == "__main__":
    main()
