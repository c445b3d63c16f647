"""Programs that compile their model are recorded too."""

import json
import shutil

import pytest
import runs

TEXT = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
compiled = torch.compile(model, backend={backend!r})
x = torch.ones(4, 8)
for _ in range(3):
    with torch.profiler.record_function("forward"):
        loss = compiled(x).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(round(loss.item(), 3))
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Variables with a cache that is empty for the first program: that one compiles, others find what they share."""
    return runs.environment(TORCHINDUCTOR_CACHE_DIR=tmp_path_factory.mktemp("cache"))


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_compiled_model_trains_as_without_us(tmp_path, environment, backend):
    if backend == "inductor" and not (shutil.which("g++") or shutil.which("clang++")):
        pytest.skip("torch.compile needs a C++ compiler, and there is none")
    text = TEXT.format(backend=backend)
    run = tmp_path / "run"
    recorded = runs.record(run, runs.new_script(text), env=environment, timeout=600)
    assert recorded.stdout == runs.execute(*runs.script(text), env=environment, timeout=600).stdout
    rows = runs.ops(run)
    assert len(runs.named(rows, "forward")) == 3
    assert any(row["name"].startswith("CompiledFunction") for row in rows)
    assert len([row for row in runs.rows(run) if row["kind"] == "optimizer_step"]) == 3


RANGES = """
import json, sys, torch, torch.profiler
torch.manual_seed(0)
torch.set_num_threads(1)
counters = torch._dynamo.utils.counters
compiled = torch.compile(lambda x: torch.nn.functional.gelu(x @ x).sum())
x = torch.randn(16, 16, requires_grad=True)

def work():
    loss = compiled(x)
    loss.backward()
    return loss.item()

def seen():
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
        work()
    ops = ("aten::", "[memory]")
    return sorted(event.name for event in prof.events() if not event.name.startswith(ops))

if sys.argv[1] == "torch":
    losses = [work(), work()]
    names = seen()
else:
    from stepscope.profiler import profile
    losses = [work()]
    with profile(run=sys.argv[2]):
        pass
    with profile(run=sys.argv[1], profile_memory=True):
        losses.append(work())
    names = None
stats = {key: counters["stats"][key] for key in ("unique_graphs", "calls_captured")}
print(json.dumps({"losses": losses, "names": names, "breaks": counters["graph_break"], "stats": stats}))
"""


@pytest.mark.slow
def test_the_ranges_of_compiled_code_are_those_that_torch_profiler_sees(tmp_path, environment):
    if not (shutil.which("g++") or shutil.which("clang++")):
        pytest.skip("torch.compile needs a C++ compiler, and there is none")
    run = tmp_path / "run"
    options = {"env": environment, "timeout": 300}
    theirs = json.loads(runs.execute(*runs.script(RANGES, "torch"), **options).stdout)
    ours = json.loads(runs.execute(*runs.script(RANGES, run, tmp_path / "first"), **options).stdout)
    for what in ("losses", "breaks", "stats"):
        assert ours[what] == theirs[what], what
    names = [row["name"] for row in runs.ops(run) if not row["name"].startswith("aten::")]
    assert sorted(names) == theirs["names"]
    assert any(name.startswith("## Call CompiledFxGraph") for name in names)
