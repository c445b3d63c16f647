"""Programs that compile their model are recorded too."""

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


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_compiled_model_trains_as_without_us(tmp_path, backend):
    if backend == "inductor" and not (shutil.which("g++") or shutil.which("clang++")):
        pytest.skip("torch.compile needs a C++ compiler, and there is none")
    environment = runs.environment(TORCHINDUCTOR_CACHE_DIR=tmp_path / "cache")
    text = TEXT.format(backend=backend)
    run = tmp_path / "run"
    recorded = runs.record(run, runs.script(text), env=environment, timeout=300)
    assert recorded.stdout == runs.execute(*runs.script(text), env=environment, timeout=300).stdout
    rows = runs.ops(run)
    assert len(runs.named(rows, "forward")) == 3
    assert any(row["name"].startswith("CompiledFunction") for row in rows)
    assert len([row for row in runs.rows(run) if row["kind"] == "optimizer_step"]) == 3
