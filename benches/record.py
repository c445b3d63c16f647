"""What recording costs: Stepscope and torch.profiler in turn, in one process, against nothing.

Run by ``cargo xtask bench record``. Three workloads, all on one thread of PyTorch:

- *hot loop*: ``a.add_(one)`` on one element, one op a call, nothing but dispatch;
- *small GPT step*: a training step of the example's model, so small that PyTorch's own overhead is most of it: the
  worst case of a real step;
- *GPT step*: the same at the example's own size.

Each round runs a burst without any profiler, one with each profiler, and one without again; a profiler's cost is its
burst minus the mean of the two plain ones around the round. All times are CPU time of the process, since wall time on a
shared machine measures the neighbours. The time that torch.profiler spends in ``start()`` and ``stop()`` is not
counted. Medians over rounds are printed, with the quartiles.
"""

import argparse
import gc
import importlib.util
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # torch.profiler would print a line at each start and stop.

import torch  # noqa: E402

cpu_ns = time.process_time_ns


def hot_loop():
    """The workload and its number of ops."""
    a, one = torch.zeros(1), torch.ones(1)
    ops = 20_000

    def run():
        for _ in range(ops):
            a.add_(one)

    return run, ops


def gpt_step(window, width, heads, layers, batch):
    """A training step of the example's model, and its number of ops, counted once with torch.profiler."""
    path = Path(__file__).resolve().parent.parent / "examples" / "gpt" / "train.py"
    spec = importlib.util.spec_from_file_location("gpt_train", path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    torch.manual_seed(0)
    model = example.GPT(window, width, heads, layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    inputs = torch.randint(example.BYTES, (batch, window))

    def run():
        scores = model(inputs)
        loss = torch.nn.functional.cross_entropy(scores.view(-1, example.BYTES), inputs.view(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    run()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
        run()
    return run, len(prof.profiler.kineto_results.events())


def workloads(rounds):
    """Name, maker and number of rounds of each workload."""
    return [
        ("hot loop", hot_loop, rounds),
        ("small GPT step", lambda: gpt_step(window=16, width=64, heads=4, layers=4, batch=8), 3 * rounds),
        ("GPT step", lambda: gpt_step(window=128, width=192, heads=6, layers=4, batch=16), rounds // 4),
    ]


class Stepscope:
    """Records into a throw-away run."""

    name = "stepscope"

    def __init__(self, folder):
        from stepscope import _recording
        from stepscope._options import Options

        self._recording = _recording
        _recording.open_capture(folder, torch, Options(modules=False, gc=False, counters=False))

    def start(self):
        self._recording.start_hook(torch)

    def stop(self):
        self._recording.stop_hook()


class StepscopeShapes(Stepscope):
    """The same with what each operator is called with."""

    name = "stepscope, shapes"

    def __init__(self):
        from stepscope import _recorder, _recording, _shapes

        assert _shapes.are_proven(torch)
        self._recording, self._hook = _recording, _recorder.hook

    def start(self):
        self._hook(shapes=True)


class TorchProfiler:
    """Recording of the CPU, as its defaults do."""

    name = "torch.profiler"
    options = {}

    def start(self):
        self._prof = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **self.options)
        self._prof.start()

    def stop(self):
        self._prof.stop()
        self._prof = None


class TorchProfilerShapes(TorchProfiler):
    """The same with shapes, types, strides and values."""

    name = "torch.profiler, shapes"
    options = {"record_shapes": True}


def measure(run, profilers, rounds):
    """CPU ns of the plain bursts, and what each profiler adds to one, a list of rounds each."""
    plain, added = [], {profiler.name: [] for profiler in profilers}
    for _ in range(rounds):
        for profiler in profilers:
            before = burst(run)
            profiler.start()
            with_profiler = burst(run)
            profiler.stop()
            after = burst(run)
            plain += [before, after]
            added[profiler.name].append(with_profiler - (before + after) / 2)
    return plain, added


def burst(run):
    gc.collect()
    gc.disable()
    start = cpu_ns()
    run()
    spent = cpu_ns() - start
    gc.enable()
    return spent


def quartiles(values):
    low, median, high = statistics.quantiles(values, n=4)
    return {"median": median, "q1": low, "q3": high}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40, help="rounds of the hot loop; the GPT step runs half as many")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    folder = tempfile.mkdtemp(prefix="stepscope-bench-")
    profilers = [Stepscope(folder)]
    profilers[0].start()  # Proves the hook, which shapes rest on.
    profilers[0].stop()
    profilers += [StepscopeShapes(), TorchProfiler(), TorchProfilerShapes()]
    results = {"torch": torch.__version__, "python": sys.version.split()[0], "cpus": os.cpu_count(), "workloads": {}}
    try:
        for name, workload, rounds in workloads(args.rounds):
            run, ops = workload()
            [run() for _ in range(3)]
            plain, added = measure(run, profilers, rounds)
            base = statistics.median(plain)
            results["workloads"][name] = {
                "ops": ops,
                "base_ns_per_op": base / ops,
                "profilers": {
                    profiler: {
                        "added_ns_per_op": {key: value / ops for key, value in quartiles(costs).items()},
                        "slowdown_ratio": quartiles(costs)["median"] / base,
                    }
                    for profiler, costs in added.items()
                },
            }
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(results, indent=2) if args.json else table(results))


def table(results):
    """The results as text."""
    lines = [f"torch {results['torch']}, Python {results['python']}, {results['cpus']} CPUs; medians [quartiles]"]
    for name, workload in results["workloads"].items():
        lines.append(f"\n{name}: {workload['ops']:,} ops, {workload['base_ns_per_op']:,.0f} ns an op without a profiler")
        for profiler, cost in workload["profilers"].items():
            added = cost["added_ns_per_op"]
            spread = f"[{added['q1']:.0f}..{added['q3']:.0f}]"
            slowdown = f"{cost['slowdown_ratio']:+.1%}"
            lines.append(f"  {profiler:<22} {added['median']:7.0f} ns an op {spread:<14} {slowdown:>8}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
