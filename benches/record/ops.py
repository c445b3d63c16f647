"""What recording adds to an op: three kinds of work, everything that can be recorded."""

import statistics

import torch

from record import workloads
from record.configurations import CONFIGURATIONS
from record.measuring import added, quartiles
from record.profilers import EmptyCallback, Stepscope, TorchProfiler

WORKLOADS = {
    "hot loop": (workloads.hot_loop, 1),
    "MLP step": (workloads.mlp_step, 3),
    "small GPT step": (workloads.small_gpt_step, 1),
    "GPT step": (workloads.example_gpt_step, 1 / 4),
}
# What needs no more of PyTorch than its callbacks.
HAS_FLOOR = ("plain", "shapes")


def jobs(_arguments):
    return [{"configuration": name, "workload": workload} for workload in WORKLOADS for name in CONFIGURATIONS]


def measure(job, arguments, folder):
    torch.set_num_threads(1)
    make, factor = WORKLOADS[job["workload"]]
    run, ops = make()
    [run() for _ in range(3)]
    profilers = [Stepscope(folder, job["configuration"]), TorchProfiler(job["configuration"])]
    if job["configuration"] in HAS_FLOOR:
        profilers.append(EmptyCallback(folder, job["configuration"]))
    plain, costs = added(run, profilers, max(4, int(arguments.rounds * factor)))
    base = statistics.median(plain)
    return {
        "ops": ops,
        "base_ns_per_op": base / ops,
        "profilers": {
            name: {
                "added_ns_per_op": {key: value / ops for key, value in quartiles(values).items()},
                "slowdown_ratio": statistics.median(values) / base,
            }
            for name, values in costs.items()
        },
    }


def line(job, result):
    texts = []
    for name, cost in result["profilers"].items():
        ns = cost["added_ns_per_op"]
        spread = f"[{ns['q1']:,.0f}..{ns['q3']:,.0f}]"
        texts.append(f"{name} {ns['median']:7,.0f} {spread:<15} {cost['slowdown_ratio']:+7.1%}")
    base = f"{result['ops']:>6,} ops, {result['base_ns_per_op']:>7,.0f} ns an op"
    return f"{job['workload']:<15} {job['configuration']:<7} {base}   added ns an op: {'   '.join(texts)}"
