"""SQL through ``stepscope mcp``: rows are those of ``stepscope sql``, few at a time, and what is wrong has its place."""

import json
import shutil
from pathlib import Path

import pytest
import runs
from queries import PROGRAM, needs_program

test_mcp = pytest.importorskip("test_mcp", reason="the client needs Python 3.10")

FIXTURES = Path(__file__).parents[1] / "fixtures"

pytestmark = needs_program


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """Two ranks, beside which tables may be kept."""
    return shutil.copytree(FIXTURES / "ddp-cpu", tmp_path_factory.mktemp("job") / "ddp-cpu")


def environment(program=PROGRAM):
    return runs.environment(STEPSCOPE_SQL=program)


def answers(ask, job, program=PROGRAM):
    """What ``ask`` makes of a server that has the job at hand."""
    return test_mcp.with_server(ask, job, STEPSCOPE_SQL=program)


def test_rows_are_those_of_the_command(job):
    query = "select rank, name, count(*) as n, sum(self_ns) as ns from op group by rank, name order by ns desc, name"
    printed = json.loads(runs.stepscope("sql", job, query, "--json", "--limit", "500", env=environment()).stdout)

    async def ask(server):
        return [
            await server.ask("sql", query=query),
            await server.ask("sql", query=query, limit=3),
            await server.ask("sql", run=str(job), query="select count(*) as n from collectives()"),
            await server.ask(
                "sql", query="select repeat('x', 400) as a, repeat('y', 20) as b from range(0, 200)", limit=200
            ),
        ]

    first, three, analysis, long = answers(ask, job)
    assert first["columns"] == [column["name"] for column in printed["columns"]] == ["rank", "name", "n", "ns"]
    assert first["rows"] == printed["rows"][:20]
    assert (first["is_complete"], first["shortened"]) == (False, [])
    assert three["rows"] == printed["rows"][:3]
    assert analysis["rows"] == [[len(runs.analyze("collectives", job)["results"])]]
    assert long["shortened"] == ["a"] and "…" in long["rows"][0][0] and long["rows"][0][1] == "y" * 20
    assert 0 < len(long["rows"]) < 200 and not long["is_complete"]
    assert len(json.dumps(long, ensure_ascii=False).encode()) < 26 << 10


def test_without_a_query_it_says_what_there_is(job):
    async def ask(server):
        return await server.text("sql")

    text = answers(ask, job)
    assert len(text.encode()) < 16 << 10
    told = json.loads(text)
    assert {"slice", "op", "kernel", "step", "finding"} <= told["tables"].keys()
    assert "self_ns" in told["tables"]["op"]["columns"].split(", ")
    assert any(call.startswith("busy_ns(") for call in told["functions"])

    async def ask_examples(server):
        return [await server.ask("sql", query=example) for example in told["examples"]]

    assert all(answer["columns"] for answer in answers(ask_examples, job))


def test_what_is_wrong_has_its_place(job):
    async def ask(server):
        return [
            await server.failure("sql", query="select nam from op"),
            await server.failure("sql", query="select * from critical_path(rank => 77)"),
            await server.failure("sql", query="select 1 / (rank - rank) from op"),
            await server.failure("sql", query="copy (select 1) to '/tmp/x.csv'"),
            await server.failure("sql", run="/no/such/run", query="select 1"),
        ]

    column, rank, zero, copy, missing = answers(ask, job)
    assert column["where"] == "line 1, column 8" and column["hint"] == "did you mean name?"
    assert "77" in rank["what"]
    assert "zero" in zero["what"]
    assert "only read" in copy["what"]
    assert missing["where"] == "/no/such/run"

    async def ask_without(server):
        return await server.failure("sql", query="select 1")

    assert "the program that runs SQL failed" in answers(ask_without, job, "/no/such/program")["what"]
