"""Calls of Python beside other tools of ``sys.monitoring``, which there is from Python 3.12 on."""

import sys

import pytest
import runs

pytestmark = pytest.mark.skipif(sys.version_info < (3, 12), reason="this Python has no sys.monitoring")

# A tool of the program that counts every call of `work`, and a recording of some of them.
PROGRAM = """
import sys, torch
from stepscope.profiler import profile
monitoring, events = sys.monitoring, sys.monitoring.events
counts = {"start": 0, "return": 0, "call": 0}

def work():
    return torch.erfinv(torch.ones(2))

def counted(kind, code_of):
    def callback(*args):
        counts[kind] += code_of(*args) is work.__code__
    return callback

tools = [int(tool) for tool in sys.argv[2].split(",")]
for tool in tools:
    monitoring.use_tool_id(tool, "another")
first = tools[0]
monitoring.register_callback(first, events.PY_START, counted("start", lambda code, *_: code))
monitoring.register_callback(first, events.PY_RETURN, counted("return", lambda code, *_: code))
monitoring.register_callback(first, events.CALL, counted("call", lambda code, at, called, *_: getattr(called, "__code__", None)))
monitoring.set_events(first, events.PY_START | events.PY_RETURN | events.CALL)
work()
with profile(run=sys.argv[1], with_stack=True) as prof:
    for _ in range(10):
        work()
work()
assert counts == {"start": 12, "return": 12, "call": 12}, counts
assert [monitoring.get_tool(tool) for tool in tools] == ["another"] * len(tools)
print(*(tool for tool in range(6) if tool not in tools and monitoring.get_tool(tool)))
"""


def recorded(tmp_path, tools):
    run = tmp_path / "run"
    done = runs.execute(*runs.new_script(PROGRAM, run, ",".join(map(str, tools))))
    assert done.stdout == "\n", "no id is held after the recording"
    rows = runs.rows(run)
    assert len(runs.named(rows, "aten::erfinv")) == 10
    return run, [row for row in rows if row["kind"] == "python_call" and row["name"].endswith(": work")], done.stderr


# Of debuggers, of coverage, and one that nobody has for its own, of which there are two.
@pytest.mark.parametrize("tools", [[0], [1], [4], [3, 1]], ids=str)
def test_both_follow_every_call(tmp_path, tools):
    _, calls, said = recorded(tmp_path, tools)
    assert len(calls) == 10 and "not recording" not in said


def test_where_no_id_is_free_the_rest_is_recorded(tmp_path):
    run, calls, said = recorded(tmp_path, [3, 4])
    assert calls == []
    assert "other tools use all free ids of sys.monitoring" in said
    assert "other tools use all free ids" in runs.findings(run)["capture.option_not_recorded"]["examples"][0]


# Since Python 3.13 an extension in C may tell of calls of its own, with what is no code object.
CODE_LIKE = """
import sys, torch, _testcapi
from stepscope.profiler import profile
start, end = sys.monitoring.events.PY_START, sys.monitoring.events.PY_RETURN
like = _testcapi.CodeLike(2)

with profile(with_stack="calls", run=sys.argv[1]):
    _testcapi.monitoring_enter_scope(like, start, end)
    for _ in range(3):
        _testcapi.fire_event_py_start(like, 0)
        torch.erfinv(torch.ones(2))
        _testcapi.fire_event_py_return(like, 1, None)
    _testcapi.monitoring_exit_scope()
    old = [sys.monitoring.register_callback(tool, start, None) for tool in (3, 4)]
    print([callback(5, 0) for callback in old if callback], flush=True)
"""


def test_what_only_looks_like_code_is_left_alone(tmp_path):
    if not hasattr(pytest.importorskip("_testcapi"), "CodeLike"):
        pytest.skip("this Python lets nobody else tell of calls")
    done = runs.execute(*runs.new_script(CODE_LIKE, tmp_path / "run"))
    assert done.stdout == "[None]\n", done.stderr
    assert len(runs.named(runs.rows(tmp_path / "run"), "aten::erfinv")) == 3
