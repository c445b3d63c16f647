"""``stepscope mcp``, asked by the official client of the Model Context Protocol.

Every number is compared with what ``stepscope analyze --json`` and ``report --json`` print of the same run.
"""

import asyncio
import gzip
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
import runs

mcp = pytest.importorskip("mcp", reason="the client needs Python 3.10")

# Where a machine has them: the variable, or beside the checkout.
TRACES = Path(os.environ.get("STEPSCOPE_TRACES") or Path(__file__).parents[3] / "shared" / "traces") / "kineto"
FIXTURES = Path(__file__).parents[1] / "fixtures"
RECORDED = FIXTURES / "loader-cpu"
RANKS = FIXTURES / "ddp-cpu"
GPU = FIXTURES / "kineto" / "a100_alexnet_sync.json.gz"
TOOLS = ["verdict", "explain", "slowest", "lines", "compare", "table", "sql", "analyses"]
KINDS = {
    "operators": "operators",
    "kernels": "kernels",
    "steps": "step_breakdown",
    "modules": "modules",
    "collectives": "collectives",
    "files": "io_files",
}


class Client:
    """A server, and the official client that started it."""

    def __init__(self, client):
        self.client = client

    async def text(self, tool, **arguments):
        """The text that a tool answers."""
        result = await self.client.call_tool(tool, plain(arguments))
        [content] = result.content
        assert not result.is_error, content.text
        return content.text

    async def ask(self, tool, **arguments):
        """What a tool answers."""
        return json.loads(await self.text(tool, **arguments))

    async def failure(self, tool, **arguments):
        """What, where and the hint of a call that fails."""
        result = await self.client.call_tool(tool, plain(arguments))
        assert result.is_error, result.content
        [content] = result.content
        error = json.loads(content.text)["error"]
        assert list(error) == ["what", "where", "hint"]
        return error


def plain(arguments):
    return {name: str(value) if isinstance(value, Path) else value for name, value in arguments.items()}


def with_server(ask, *arguments, **environment):
    """What ``ask`` makes of a server that was started with these arguments, in an environment changed by the keywords."""

    async def main():
        server = mcp.StdioServerParameters(
            command=runs.COMMAND, args=["mcp", *map(str, arguments)], env=runs.environment(**environment)
        )
        async with mcp.Client(server) as client:
            return await ask(Client(client))

    return asyncio.run(main())


def analyzed(name, run, *options):
    """The rows that ``stepscope analyze`` prints."""
    return json.loads(runs.stepscope("analyze", name, run, "--json", *options).stdout)["results"]


def real_traces():
    traces = sorted(TRACES.glob("*.json.gz"))
    return traces or pytest.skip("no traces of other people on this machine")


def test_the_tools_are_few_and_their_list_is_small():
    async def ask(server):
        return (await server.client.list_tools()).tools

    tools = with_server(ask)
    assert [tool.name for tool in tools] == TOOLS
    listed = json.dumps([tool.model_dump(by_alias=True, exclude_none=True) for tool in tools], ensure_ascii=False)
    assert len(listed.encode()) <= 6 * 1024, f"{len(listed.encode())} bytes"
    assert all(tool.annotations.read_only_hint for tool in tools)


def check_verdict(text, run):
    """A verdict has the first answers of ``report --json``, with the numbers of ``analyze advice --json``."""
    assert len(text.encode()) <= 2048, f"{run}: {len(text.encode())} bytes"
    verdict = json.loads(text)
    report = json.loads(runs.stepscope("report", run, "--json").stdout)
    advice = {row["id"]: row for row in analyzed("advice", run)}
    assert verdict["answers_total"] == len(advice), run
    assert bool(verdict["answers"]) == bool(advice), run
    told = [row["id"] for row in verdict["answers"]]
    assert told == [row["id"] for row in report["advice"]][: len(told)], run
    for answer in verdict["answers"]:
        row = advice[answer["id"]]
        for column in ("rule", "gain_ns", "gain_ratio", "gain_estimate", "evidence"):
            assert answer[column] == row[column], (run, column)
        assert answer.get("rank") == row["rank"], run
        start = answer["to_do"].removesuffix("…")
        assert start and row["to_do"].startswith(start), run
    assert verdict["run"]["ranks"] == len(report["run"]["ranks"]), run
    assert verdict["run"]["step_mean_ns"] == (report["steps"] and report["steps"]["mean_ns"]), run
    assert verdict["coverage"]["rules_judged"] == report["coverage"]["rules_judged"], run
    assert verdict["coverage"]["rules_not_judged"] == report["coverage"]["rules_not_judged"], run
    lacking = [rule for reason in report["coverage"]["not_judged"] for rule in reason["rules"]]
    assert verdict["coverage"]["rules_not_judged"] == len(lacking) == len(set(lacking)), run
    counts = {"severe": 0, "suspect": 0, "info": 0}
    for finding in report["findings"]:
        counts[finding["severity"]] += 1
    assert {severity: verdict["findings"][severity] for severity in counts} == counts, run
    is_faulty = any(
        row["priority"] != "low" if row["gain_ratio"] is None else row["gain_ratio"] >= 0.04 for row in report["advice"]
    )
    # What passes outside of operators, and has no name, may be all that there is to gain.
    parts = report["step_breakdown"]["parts"] if report["step_breakdown"] else []
    other = sum(part["ratio"] for part in parts if part["class"] == "other")
    is_known = verdict["coverage"]["rules_judged"] > 0 and not (other >= 0.04 and "host.python" in lacking)
    is_healthy = verdict["says"][0].startswith("Nothing above 4 % to gain, by ")
    assert is_healthy == (not is_faulty and is_known), run


def test_the_verdict_on_recorded_runs_and_on_traces():
    async def ask(server):
        for run in (RECORDED, RANKS, FIXTURES / "gpt-cpu", GPU, FIXTURES / "kineto"):
            check_verdict(await server.text("verdict", run=run), run)

    with_server(ask)


@pytest.mark.slow
def test_the_verdict_on_traces_of_other_people():
    traces = real_traces()

    async def ask(server):
        for run in traces:
            check_verdict(await server.text("verdict", run=run), run)

    with_server(ask)


def test_each_answer_is_explained_by_all_its_columns_and_the_first_rows_of_its_evidence():
    async def ask(server):
        seen = 0
        for run in (RANKS, GPU):
            for row in analyzed("advice", run):
                told = await server.ask("explain", run=run, id=row["id"])
                assert told["answer"] == row
                rank = [] if row["rank"] is None else ["--rank", row["rank"]]
                rows = analyzed(row["evidence"], run, *rank)
                evidence = told["evidence"]
                assert (evidence["analysis"], evidence["rank"]) == (row["evidence"], row["rank"])
                assert evidence["rows_total"] == len(rows)
                assert evidence["shortened"] or evidence["rows"] == rows[:5]
                seen += 1
        return seen

    assert with_server(ask) > 3


def test_what_was_not_judged_is_told_rule_by_rule():
    async def ask(server):
        return await server.ask("explain", id="not_judged")

    coverage = with_server(ask, RECORDED)["coverage"]
    report = json.loads(runs.stepscope("report", RECORDED, "--json").stdout)
    assert coverage == report["coverage"]
    assert any("device" in reason["lacks"] for reason in coverage["not_judged"])


@pytest.mark.parametrize("run", [RECORDED, RANKS, GPU], ids=["recorded", "ranks", "gpu"])
def test_what_is_slowest_is_what_analyze_sorts_first(run):
    async def ask(server):
        return {kind: await server.ask("slowest", run=run, what=kind, limit=3) for kind in KINDS}

    for kind, told in with_server(ask).items():
        rows = analyzed(KINDS[kind], run)
        if kind == "steps":
            rows = [row for row in rows if row["step"] is not None]
        by = told["sorted_by"]
        rows.sort(key=lambda row: -1 if row[by] is None else row[by], reverse=True)
        assert told["rows_total"] == len(rows), kind
        assert not told["shortened"]
        assert told["rows"] == [{name: row[name] for name in told["rows"][0]} for row in rows[:3]], kind
        assert told["next_offset"] == (3 if len(rows) > 3 else None), kind


def test_a_run_by_its_device_and_one_by_its_operators_are_ordered_as_the_report_orders_them():
    async def ask(server):
        return [(await server.ask("slowest", run=run, what="operators"))["sorted_by"] for run in (RECORDED, GPU)]

    reports = [json.loads(runs.stepscope("report", run, "--json").stdout) for run in (RECORDED, GPU)]
    assert with_server(ask) == [report["operators"]["by"] for report in reports]


SLEEPY = """
import time, torch

weight = torch.nn.Parameter(torch.randn(64, 64))
optimizer = torch.optim.SGD([weight], lr=0.01)

def pause():
    time.sleep(0.02)

for _ in range(40):
    pause()
    (weight @ weight).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_a_line_that_sleeps_is_the_first_answer_and_its_samples_the_evidence(tmp_path):
    program, run = tmp_path / "train.py", tmp_path / "run"
    program.write_text(SLEEPY)
    runs.record(run, runs.new_program(program))

    async def ask(server):
        verdict = await server.ask("verdict")
        first = verdict["answers"][0]
        return first, await server.ask("explain", id=first["id"]), await server.ask("lines", limit=200)

    first, told, lines = with_server(ask, run)
    assert (first["id"], first["rule"]) == ("host.sleep@0", "host.sleep")
    assert first["line"].startswith("train.py(") and first["line"].endswith(": pause")
    assert 0.5 < first["gain_ratio"] <= 1 and first["gain_estimate"] == "removal"
    rows = analyzed("host_lines", run)
    assert told["evidence"]["analysis"] == "host_lines" and told["evidence"]["rows"] == rows[:5]
    assert (lines["rows"], lines["rows_total"]) == (rows, len(rows)) and rows
    assert "sampled" in lines["note"]


def test_a_run_without_samples_has_no_lines_and_a_note():
    async def ask(server):
        return await server.ask("lines")

    told = with_server(ask, RECORDED)
    assert (told["rows"], told["rows_total"]) == ([], 0)
    assert "no stacks were sampled" in told["note"]


def test_two_runs_side_by_side():
    async def ask(server):
        return await server.ask("compare", a=FIXTURES / "gpt-cpu", b=RANKS, limit=4)

    told = with_server(ask)
    compared = lambda what: json.loads(  # noqa: E731
        runs.stepscope("compare", FIXTURES / "gpt-cpu", RANKS, "--what", what, "--json").stdout
    )["results"]
    assert told["steps"] == compared("steps")
    assert told["says"] == [row["says"] for row in told["steps"] if row["says"]]
    rows = compared("operators")
    measure = told["operators"]["measure"]
    expected = [(row["name"], row[f"a_{measure}"], row[f"b_{measure}"], row[f"change_{measure}"]) for row in rows[:4]]
    changed = told["operators"]["rows"]
    assert [(row["name"], row["before_ns"], row["now_ns"], row["change_ns"]) for row in changed] == expected
    assert told["operators"]["rows_total"] == len(rows)
    assert told["kernels"] is None
    # The difference of the mean steps is a sum of classes, each of which is one of its parts.
    difference, breakdown = told["difference"], compared("step_breakdown")
    total = breakdown[-1]
    names = ("before_ns", "now_ns", "change_ns")
    assert total["row"] == "total" and total["change_ns"] != 0
    assert [difference[name] for name in names] == [total["a_ns"], total["b_ns"], total["change_ns"]]
    classes, parts = [], []
    for row in difference["rows"]:
        if row["is_part"]:
            parts[-1].append(row)
        else:
            classes.append(row)
            parts.append([])
    shown = [row for row in breakdown if row["row"] == "class" and (row["a_ns"], row["b_ns"]) != (0, 0)]
    assert [[row[name] for name in names] for row in classes] == [
        [row["a_ns"], row["b_ns"], row["change_ns"]] for row in shown
    ]
    assert any(parts) and len(difference["rows"]) <= 50
    for name in names:
        assert sum(row[name] for row in classes) == difference[name]
        assert all(sum(part[name] for part in of) == row[name] for row, of in zip(classes, parts) if of)


def test_a_table_is_read_to_its_end_page_by_page():
    async def ask(server):
        rows, offset = [], 0
        while offset is not None:
            page = await server.ask("table", run=RECORDED, analysis="io_curve", limit=200, offset=offset)
            assert page["offset"] == offset and len(page["rows"]) <= 200 and len(json.dumps(page)) < 32_000
            rows += page["rows"]
            offset = page["next_offset"]
        return rows, page["rows_total"]

    rows, total = with_server(ask)
    assert rows == analyzed("io_curve", RECORDED) and len(rows) == total > 200


def test_a_table_of_a_rank_and_a_step_with_chosen_columns_in_another_order():
    async def ask(server):
        first = await server.ask("table", analysis="step-breakdown", rank=1, step=3)
        chosen = await server.ask(
            "table", analysis="operators", columns=["count", "name"], sort="host-total-ns", limit=5, rank=0
        )
        grouped = await server.ask("table", analysis="operators", group_by="category")
        return first, chosen, grouped

    first, chosen, grouped = with_server(ask, RANKS)
    assert first["rows"] == analyzed("step_breakdown", RANKS, "--rank", 1, "--step", 3)
    rows = analyzed("operators", RANKS, "--rank", 0, "--sort", "host_total_ns")
    assert chosen["rows"] == [{"count": row["count"], "name": row["name"]} for row in rows[:5]]
    assert (chosen["sorted_by"], chosen["rows_total"]) == ("host_total_ns", len(rows))
    assert grouped["rows"] == analyzed("operators", RANKS, "--group-by", "category")[:20]


def test_the_analyses_are_listed_and_the_columns_of_one():
    async def ask(server):
        return await server.ask("analyses"), await server.ask("analyses", analysis="kernels")

    listed, kernels = with_server(ask)
    printed = runs.stepscope("analyze").stdout
    names = [line.split(":")[0] for line in listed["analyses"]]
    assert names == [line.split()[0] for line in printed.splitlines() if not line.startswith(" ")]
    assert [column["name"] for column in kernels["columns"]] == list(analyzed("kernels", GPU)[0])
    assert {"name": "total_ns", "unit": "ns"}.items() <= kernels["columns"][2].items()


def test_what_cannot_be_answered_is_an_error_of_the_tool_and_the_server_goes_on(tmp_path):
    text = tmp_path / "text.json"
    text.write_text("no trace")
    torn = tmp_path / "torn.json.gz"
    torn.write_bytes(gzip.compress(b'{"traceEvents": [')[:-12])

    async def ask(server):
        gone = await server.failure("verdict", run=tmp_path / "gone")
        assert (gone["what"], gone["where"]) == ("no such file or folder", str(tmp_path / "gone"))
        for run in (text, torn, tmp_path):
            error = await server.failure("verdict", run=run)
            assert error["what"] and str(run) in error["where"], error
        misspelt = await server.failure("table", analysis="kernel_names")
        assert "kernel_names" in misspelt["what"] and misspelt["hint"]
        assert "kernels" in (await server.failure("table", analysis="kernel"))["hint"]
        rank = await server.failure("table", analysis="operators", rank=9)
        assert (rank["what"], rank["hint"]) == ("rank 9 is not in this run", "its ranks are 0, 1")
        unknown = await server.failure("explain", id="nothing.such@0")
        assert "not_judged" in unknown["hint"] or "its ids are" in unknown["hint"]
        for arguments in ({"limit": "many"}, {"color": 1}, {"offset": -1}):
            error = await server.failure("table", **{"analysis": "operators", **arguments})
            assert error["what"].startswith("arguments: ") and "analysis" in error["hint"]
        return await server.ask("verdict")

    assert with_server(ask, RANKS)["run"]["ranks"] == 2


def test_with_only_other_files_are_not_opened(tmp_path):
    (tmp_path / "link").symlink_to(GPU)

    async def ask(server):
        for run in (GPU, tmp_path / "link", RANKS / ".." / "kineto"):
            error = await server.failure("verdict", run=run)
            assert "--only" in error["what"] and error["where"] == str(run)
        return await server.ask("verdict", run=FIXTURES / "gpt-cpu" / ".." / "ddp-cpu")

    assert with_server(ask, "--only", RANKS)["run"]["ranks"] == 2
    refused = runs.stepscope("mcp", "--only", code=2)
    assert "RUN" in refused.stderr
    gone = runs.stepscope("mcp", tmp_path / "gone", code=1)
    assert "no such file or folder" in gone.stderr and not gone.stdout


def test_a_run_that_changes_is_read_again(tmp_path):
    path = tmp_path / "trace.json"
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 5}
    write = lambda count: path.write_text(json.dumps({"traceEvents": [{**event, "ts": 9 * i} for i in range(count)]}))  # noqa: E731

    async def ask(server):
        counts = []
        for count in (3, 40):
            write(count)
            counts += [row["count"] for row in (await server.ask("table", analysis="operators"))["rows"]]
        return counts

    write(1)
    assert with_server(ask, path) == [3, 40]


class Lines:
    """A server that is spoken to line by line."""

    def __init__(self, process):
        self.process = process

    def send(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def request(self, number, method, **params):
        self.send(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}))

    def receive(self):
        return json.loads(self.process.stdout.readline())

    def begin(self):
        client = {"name": "test", "version": "1"}
        self.request(1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        answer = self.receive()
        assert answer["id"] == 1 and answer["result"]["serverInfo"]["name"] == "stepscope"
        self.send(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        return answer["result"]


def spoken_to(*arguments):
    return runs.started(runs.COMMAND, "mcp", *arguments, stdin=subprocess.PIPE, timeout=120)


def test_a_broken_line_is_survived_and_the_end_of_the_input_is_the_end():
    with spoken_to(RANKS) as process:
        server = Lines(process)
        server.send("no JSON")
        told = server.begin()
        assert str(RANKS) in told["instructions"] and len(told["instructions"]) < 1_000
        for line in ('{"jsonrpc":', "", "\x00\xff", '{"jsonrpc":"2.0","id":7,"method":'):
            server.send(line)
        server.request(2, "ping")
        assert server.receive() == {"jsonrpc": "2.0", "id": 2, "result": {}}
        server.request(3, "tools/call", name="verdict", arguments={})
        answer = server.receive()
        assert answer["id"] == 3 and "ranks" in answer["result"]["content"][0]["text"]
        rest, errors = process.communicate(timeout=60)
    assert (process.returncode, rest, errors) == (0, "", "")


def test_an_input_that_ends_at_once_is_no_error():
    ended = runs.stepscope("mcp", input="")
    assert (ended.stdout, ended.stderr) == ("", "")


def large_trace(path):
    """A trace that takes a while to read."""
    event = '{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":%d,"dur":5}'
    path.write_text('{"traceEvents":[' + ",".join(event % (9 * i) for i in range(600_000)) + "]}")
    return path


def test_a_ping_is_answered_while_a_run_is_read_and_a_cancelled_call_is_not(tmp_path):
    path = str(large_trace(tmp_path / "large.json"))
    with spoken_to() as process:
        server = Lines(process)
        server.begin()
        server.request(2, "tools/call", name="verdict", arguments={"run": path})
        server.request(3, "ping")
        assert server.receive()["id"] == 3, "the ping does not wait"
        assert server.receive()["id"] == 2
        os.utime(path, (1, 1))
        server.request(4, "tools/call", name="verdict", arguments={"run": path})
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 4}}
        server.send(json.dumps(cancelled))
        server.request(5, "tools/call", name="table", arguments={"run": path, "analysis": "operators"})
        answer = server.receive()
        assert answer["id"] == 5, "nothing is answered to the call that was cancelled"
        assert '"count":600000' in answer["result"]["content"][0]["text"]
        # Nobody waits for what is still being worked on.
        os.utime(path, (2, 2))
        server.request(6, "tools/call", name="verdict", arguments={"run": path})
        rest, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")


def test_ctrl_c_ends_it():
    with spoken_to() as process:
        Lines(process).begin()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
