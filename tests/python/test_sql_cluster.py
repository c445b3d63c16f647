"""Queries that several workers answer: real processes, with the same rows as one process, and what happens when they die."""

import json
import signal
import socket
import ssl
import subprocess
import time
from pathlib import Path

import pytest
import runs
import stores
from certificates import certificates
from queries import PROGRAM, needs_program
from sql_workers import TOKEN, ask, cluster, environment, fails, rests, starts_to_compute, wait_until, workers

FIXTURES = Path(__file__).parents[1] / "fixtures"
OTHER_TOKEN = "a-token-that-nobody-else-has"
# So that the few rows of the fixtures are read by all workers.
SMALL_PARTS = ["--part", "1kB"]

pytestmark = needs_program

# Takes until it is ended.
SLOW = (
    "select sum((a.slice + b.slice + c.slice) % 7) as n from slice a "
    "join slice b on a.kind = b.kind join slice c on b.kind = c.kind"
)

QUERIES = {
    "a table as it is": "select rank, slice, name, start_ns, dur_ns from slice order by rank, slice",
    "groups": "select run, rank, name, count(*) as n, sum(self_ns) as ns, min(start_ns) as first from op "
    "group by run, rank, name order by rank, ns desc, name",
    "a join": "select o.name, count(*) as n, sum(i.dur_ns) as ns from op i join slice o on i.parent = o.slice "
    "group by o.name order by n desc, o.name",
    "spans": "select rank, busy_ns(start_ns, dur_ns) as ns, span_ns(span_union(start_ns, dur_ns)) as same from op "
    "group by rank order by rank",
    "steps of moments": "select rank, step_of(rank, start_ns) as step, count(*) as n, max(rank_of(slice)) as of from op "
    "group by rank, step_of(rank, start_ns) order by rank, step",
    "a window": "select rank, name, row_number() over (partition by rank order by dur_ns desc, slice) as place from op "
    "order by rank, place limit 50",
    "the most of each rank": "select distinct on (rank) rank, name, dur_ns from op order by rank, dur_ns desc, name",
    "a subquery": "select count(*) as n from op where dur_ns > (select avg(dur_ns) from op)",
    "a union": "select 'op' as kind, count(*) as n from op union all select 'step', count(*) from step order by kind",
    "an analysis of all ranks": "select name, count, host_self_ns from operators() order by host_self_ns desc, name",
    "an analysis of each rank": "select * from critical_path() order by rank, step, start_ns",
    "an analysis of all steps": "select * from step_breakdown() order by rank, step, source",
    "two analyses": "select rank, count(*) as n, (select count(*) from operators(rank => 1)) as all_of_one "
    "from collectives() group by rank order by rank",
    "no row": "select name from op where rank = 77 order by name",
    "the schema": "select table_name from information_schema.tables where table_schema = 'run' order by table_name",
}


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """The ranks of a job, whose tables are kept."""
    folder = tmp_path_factory.mktemp("job")
    subprocess.run(["cp", "-r", FIXTURES / "ddp-cpu", folder], check=True)
    runs.stepscope("sql", folder / "ddp-cpu", "select 1", env=environment())
    return folder / "ddp-cpu"


@pytest.mark.parametrize("count", [2, 4])
def test_rows_are_those_of_one_process(job, count):
    with workers(count) as started:
        for name, query in QUERIES.items():
            names, rows, said = ask(job, query, *cluster(*started), *SMALL_PARTS)
            assert (names, rows) == ask(job, query)[:2], name
            assert said == "", name


def test_with_one_worker_the_client_does_it_all(job):
    """Also where it reads: what is asked of a store is asked by the client."""
    with stores.s3() as (address, _), stores.proxy(address) as proxy:
        client = stores.variables(proxy.address, STEPSCOPE_SQL=PROGRAM, STEPSCOPE_CLUSTER_TOKEN=TOKEN)
        runs.stepscope("convert", job, "-o", "s3://runs/tables/", env=client)
        with workers(1, env={**client, "AWS_ACCESS_KEY_ID": "of-a-worker"}) as [worker]:
            words = [*cluster(worker), *SMALL_PARTS]
            for name in ("a join", "steps of moments", "spans", "a window"):
                proxy.requests.clear()
                found = ask("s3://runs/tables", QUERIES[name], *words, env=client)
                assert found == (*ask(job, QUERIES[name])[:2], ""), name
                assert {request["by"][0] for request in proxy.requests if request["range"]} == {"test"}, name
            for query in (QUERIES["groups"], "select * from critical_path()"):
                plan = runs.stepscope("sql", job, f"explain {query}", *words, env=environment()).stdout
                assert "DistributedExec" not in plan, plan
            query = QUERIES["an analysis of each rank"]
            assert ask(job, query, *words) == (*ask(job, query)[:2], "")


def test_a_plan_says_who_does_what(job):
    with workers(2) as started:
        plan = runs.stepscope(
            "sql", job, f"explain {QUERIES['groups']}", *cluster(*started), *SMALL_PARTS, env=environment()
        ).stdout
        assert "DistributedExec" in plan and "tasks=2" in plan, plan
        plan = runs.stepscope(
            "sql", job, "explain select * from critical_path()", *cluster(*started), env=environment()
        ).stdout
        assert "--rank=0]" in plan and "--rank=1]" in plan, plan
        verbose = f"explain verbose {QUERIES['groups']}"
        plan = runs.stepscope("sql", job, verbose, *cluster(*started), *SMALL_PARTS, env=environment()).stdout
        assert plan.index("logical_plan") < plan.index("DistributedExec"), plan
        drawn = f"explain format graphviz {QUERIES['groups']}"
        plan = runs.stepscope("sql", job, drawn, *cluster(*started), *SMALL_PARTS, env=environment()).stdout
        assert "digraph" in plan, plan
        told = runs.run(runs.COMMAND, "sql", job, "explain format tree select 1", *cluster(*started), env=environment())
        assert told.returncode == 1 and "indent or graphviz, not tree" in told.stderr, told.stderr


def test_a_worker_that_is_killed_in_the_middle_is_done_without(job, tmp_path):
    # The first part of an analysis that is begun never ends, and says which worker has it.
    begun = tmp_path / "begun"
    program = tmp_path / "stepscope"
    program.write_text(
        f"#!/bin/sh\nif (set -C; : > {begun}.lock) 2>/dev/null; then echo $PPID > {begun}.writing; "
        f'mv {begun}.writing {begun}; exec sleep 1000; fi\nexec {runs.COMMAND} "$@"\n'
    )
    program.chmod(0o755)
    query = "select *, (select count(*) from op) as ops from critical_path() order by rank, step, start_ns"
    expected = ask(job, query)
    with workers(3, stepscope=program) as started:
        command = [runs.COMMAND, "sql", job, query, "--json", *cluster(*started), *SMALL_PARTS]
        client = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            wait_until(begun.exists)
            [lost] = [worker for worker in started if worker.process.pid == int(begun.read_text())]
            lost.end()
            out, said = client.communicate(timeout=120)
        finally:
            client.kill()
        assert client.returncode == 0, out + said
        assert json.loads(out)["rows"] == expected[1]
        assert said == f"warning: worker {lost.address} was lost; the query is asked again, of 2 workers\n"


# Some seconds of scans, exchanged rows and joins.
LONG = (
    "select a.rank, count(*) as n, sum((a.slice + b.slice + c.slice) % 7) as sum from slice a "
    "join slice b on a.kind = b.kind and a.rank = b.rank join slice c on b.rank = c.rank and c.kind = 'module' "
    "group by a.rank order by a.rank"
)


@pytest.mark.slow
def test_a_worker_that_is_killed_while_it_exchanges_rows_is_done_without(job):
    expected = ask(job, LONG)[1]
    with workers(3) as started:
        plan = runs.stepscope("sql", job, f"explain {LONG}", *cluster(*started), *SMALL_PARTS, env=environment()).stdout
        assert "NetworkShuffleExec" in plan, plan
        before = [worker.cpu_seconds() for worker in started]
        command = [runs.COMMAND, "sql", job, LONG, "--json", *cluster(*started), *SMALL_PARTS]
        client = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            starts_to_compute(*started)
            worked = [worker.cpu_seconds() - was for worker, was in zip(started, before, strict=True)]
            lost = started[worked.index(max(worked))]
            assert client.poll() is None
            lost.end(signal.SIGKILL)
            out, said = client.communicate(timeout=300)
        finally:
            client.kill()
        assert client.returncode == 0, out + said
        assert json.loads(out)["rows"] == expected
        assert said == f"warning: worker {lost.address} was lost; the query is asked again, of 2 workers\n"


@pytest.mark.slow
def test_a_worker_whose_memory_does_not_suffice_uses_its_disk(job, tmp_path):
    # Nine million rows are put in order, those of a rank together.
    query = (
        "select rank, count(*) as n, max(place) as last, sum(place * (slice % 13)) as sum from ("
        "select a.rank, a.slice, row_number() over (partition by a.rank "
        "order by (a.slice * 7919 + b.slice) % 1000003, a.slice, b.slice) as place "
        "from slice a join slice b on a.rank = b.rank where a.kind = 'op' and b.kind = 'python_function') "
        "group by rank order by rank"
    )
    expected = ask(job, query)[1]
    with workers(2, "--memory", "192MiB", env=environment(TMPDIR=tmp_path)) as started:
        command = [runs.COMMAND, "sql", job, query, "--json", *cluster(*started), *SMALL_PARTS]
        client = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        on_disk = 0
        try:
            while client.poll() is None:
                on_disk = max(on_disk, sum(size_of(path) for path in tmp_path.rglob("*")))
                time.sleep(0.02)
            out, said = client.communicate(timeout=60)
        finally:
            client.kill()
        assert client.returncode == 0 and not said, out + said
        assert json.loads(out)["rows"] == expected
        assert on_disk > 10 << 20, on_disk
        # Of what a query had on the disk nothing is left.
        wait_until(lambda: not any(size_of(path) for path in tmp_path.rglob("*")))


def size_of(path):
    """The bytes of a file that may go away meanwhile; none of a folder."""
    try:
        return path.stat().st_size if path.is_file() else 0
    except FileNotFoundError:
        return 0


def test_a_worker_that_comes_later_is_asked(job):
    with workers(1) as [first]:
        with workers(1) as [gone]:
            port = gone.port
        absent = f"127.0.0.1:{port}"
        names, rows, said = ask(job, QUERIES["groups"], *cluster(first, absent), *SMALL_PARTS)
        assert f"worker {absent} does not answer, and is left out" in said
        with workers(1, port=port) as [second]:
            assert ask(job, QUERIES["groups"], *cluster(first, second), *SMALL_PARTS) == (names, rows, "")
            explain = f"explain {QUERIES['groups']}"
            plan = runs.stepscope("sql", job, explain, *cluster(first, second), *SMALL_PARTS, env=environment()).stdout
            assert "tasks=2" in plan, plan
        said = fails(job, "select 1", *cluster(absent))
        assert "no worker answers" in said and absent in said and "stepscope-sql worker --listen" in said


def test_a_worker_without_memory_says_so_and_goes_on(job):
    with workers(2, "--memory", "200kB") as started:
        # Of each rank all pairs: some 40 MB that no disk can take.
        query = "select a.rank, array_agg(a.name) as names from op a join op b on a.rank = b.rank group by a.rank"
        told = runs.run(runs.COMMAND, "sql", job, query, "--json", *cluster(*started), *SMALL_PARTS, env=environment())
        assert told.returncode == 1
        assert "not enough memory" in told.stdout and "--memory" in told.stdout, told.stdout
        assert ask(job, QUERIES["spans"], *cluster(*started))[1] == ask(job, QUERIES["spans"])[1]


def test_two_clients_are_answered_at_once(job):
    with workers(2) as started:
        words = [*cluster(*started), *SMALL_PARTS]
        expected = {name: ask(job, query)[1] for name, query in QUERIES.items()}
        clients = {
            name: subprocess.Popen(
                [runs.COMMAND, "sql", job, query, "--json", "--limit", "1000000", *words],
                env=environment(),
                stdout=subprocess.PIPE,
                text=True,
            )
            for name, query in list(QUERIES.items())[:6]
        }
        for name, client in clients.items():
            assert json.loads(client.communicate(timeout=120)[0])["rows"] == expected[name], name


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_query_that_is_ended_is_ended_at_workers(job, how):
    with workers(2) as started:
        command = [runs.COMMAND, "sql", job, SLOW, *cluster(*started), *SMALL_PARTS]
        with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as client:
            try:
                starts_to_compute(*started)
                client.send_signal(how)
                client.communicate()
            finally:
                client.kill()
        assert client.returncode == (130 if how == signal.SIGINT else -how)
        rests(*started)
        assert ask(job, QUERIES["spans"], *cluster(*started))[1] == ask(job, QUERIES["spans"])[1]


def test_who_has_no_token_is_refused(job):
    with workers(1) as [worker]:
        said = fails(job, "select 1", *cluster(worker), env=environment(token=OTHER_TOKEN))
        assert "the worker has another token" in said and worker.address in said
        said = fails(job, "select 1", *cluster(worker), env=environment(token=""))
        assert "workers need a token" in said and "/dev/urandom" in said
        assert "16 letters" in fails(job, "select 1", *cluster(worker), env=environment(token="short"))
    for words, why in {
        ("--listen", "0.0.0.0:0"): "other machines are answered with TLS alone",
        ("--listen", "nowhere"): "no address to listen at",
    }.items():
        told = runs.run(PROGRAM, "worker", *words, env=environment())
        assert told.returncode == 1 and why in told.stderr, told.stderr
    assert "reached with TLS alone" in fails(job, "select 1", "--cluster", "192.0.2.1:7700")
    assert "write HOST:PORT" in fails(job, "select 1", "--cluster", "localhost")


def test_workers_speak_tls(job, tmp_path):
    certificates(tmp_path)
    own = ["--tls-authority", tmp_path / "ca.pem"]
    tls = ["--tls-certificate", tmp_path / "worker.pem", "--tls-key", tmp_path / "worker.key", *own]
    with workers(2, *tls) as started:
        names = [f"localhost:{worker.port}" for worker in started]
        _, rows, said = ask(job, QUERIES["a join"], *cluster(*names), *SMALL_PARTS, *own)
        assert (rows, said) == (ask(job, QUERIES["a join"])[1], "")
        # What passes is no plain text, and the certificate is looked at.
        context = ssl.create_default_context(cafile=tmp_path / "ca.pem")
        plain = socket.create_connection(("localhost", started[0].port))
        with context.wrap_socket(plain, server_hostname="localhost") as wrapped:
            assert wrapped.version() in ("TLSv1.3", "TLSv1.2")
        assert "no worker answers" in fails(job, "select 1", *cluster(*names))
        (tmp_path / "other").mkdir()
        certificates(tmp_path / "other")
        said = fails(job, "select 1", *cluster(*names), "--tls-authority", tmp_path / "other" / "ca.pem")
        assert "no worker answers" in said and "certificate" in said


def test_what_is_wrong_with_a_query_or_its_files_is_told(job, tmp_path):
    with workers(2) as started:
        words = [*cluster(*started), *SMALL_PARTS]
        said = fails(job, "select nam from op", *words)
        assert "line 1, column 8" in said and "name" in said
        said = fails(job, "select * from step_breakdown(rank => 77)", *words)
        assert "step_breakdown" in said and "77" in said
        said = fails(job, "select 1/(rank - rank) as n from op", *words)
        assert "divide by zero" in said.lower()
        runs.stepscope("convert", job, "-o", f"{tmp_path}/tables/")
        table = tmp_path / "tables" / "slice" / "rank-0.parquet"
        table.write_bytes(table.read_bytes()[:5000])
        assert "rank-0.parquet" in fails(tmp_path / "tables", "select * from slice", *words)
    with workers(2, stepscope="/no/such/program") as started:
        said = fails(job, "select * from critical_path()", *cluster(*started))
        assert "cannot start /no/such/program" in said


def test_paths_may_be_relative_and_runs_many(job, monkeypatch, tmp_path):
    monkeypatch.chdir(job.parent)
    with workers(2) as started:
        words = [*cluster(*started), *SMALL_PARTS]
        assert ask(job.name, QUERIES["steps of moments"], *words)[1] == ask(job, QUERIES["steps of moments"])[1]
        assert (
            ask(job.name, QUERIES["an analysis of each rank"], *words)[1]
            == ask(job, QUERIES["an analysis of each rank"])[1]
        )
        runs.stepscope("convert", job, "-o", f"{tmp_path}/tables/")
        named = [word for at in range(200) for word in ("--tables", f"läuft {at}={tmp_path}/tables")]
        query = (
            "select count(distinct run) as runs, count(*) as n, min(step_of(run, rank, start_ns)) as first from step"
        )
        command = [PROGRAM, *named, "--csv", query]
        alone, together = (runs.run(*command, *more, env=environment()) for more in ([], words))
        assert together.returncode == 0, together.stderr
        assert together.stdout == alone.stdout and alone.stdout.splitlines()[1].startswith("200,")


def test_a_worker_that_is_told_to_end_ends_what_it_has_begun(job, tmp_path):
    program = tmp_path / "stepscope"
    program.write_text(f"#!/bin/sh\necho $$ >> {tmp_path}/begun\nexec sleep 1000\n")
    program.chmod(0o755)
    with workers(2, stepscope=program) as started:
        query = QUERIES["an analysis of each rank"]
        command = [runs.COMMAND, "sql", job, query, "--json", *cluster(*started)]
        client = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            wait_until(lambda: (tmp_path / "begun").exists() and len((tmp_path / "begun").read_text().split()) == 2)
            for worker in started:
                worker.end(signal.SIGTERM)
                assert worker.process.returncode == 0
                # Of a cluster that is gone as a whole nothing is asked again.
                if worker is started[0]:
                    assert "was lost" in client.stderr.readline()
            pids = (tmp_path / "begun").read_text().split()
            wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
            # With one worker left, the client does it all.
            out, said = client.communicate(timeout=60)
            assert client.returncode == 0, out + said
            assert json.loads(out)["rows"] == ask(job, query)[1]
        finally:
            client.kill()


def test_tables_in_a_store_are_read_by_the_workers(job):
    """Each with its own credentials, and none with those of the client."""
    with stores.s3() as (address, _), stores.proxy(address) as proxy:
        client = stores.variables(proxy.address, STEPSCOPE_SQL=PROGRAM, STEPSCOPE_CLUSTER_TOKEN=TOKEN)
        runs.stepscope("convert", job, "-o", "s3://runs/tables/", env=client)
        with workers(2, env={**client, "AWS_ACCESS_KEY_ID": "of-a-worker"}) as started:
            for name in ("a join", "spans", "steps of moments", "a window"):
                proxy.requests.clear()
                words = [*cluster(*started), *SMALL_PARTS]
                assert ask("s3://runs/tables", QUERIES[name], *words, env=client)[1] == ask(job, QUERIES[name])[1], name
                read = [request["by"][0] for request in proxy.requests if request["range"]]
                assert read.count("of-a-worker") > 0, name
        unknown = {name: value for name, value in client.items() if not name.startswith("AWS_ACCESS")}
        with workers(2, env=unknown) as started:
            said = fails("s3://runs/tables", QUERIES["spans"], *cluster(*started), *SMALL_PARTS, env=client)
            assert "there are no credentials for s3://runs" in said and "hint: " in said, said
