"""What recording adds to a call of a Python function: Stepscope with every call, torch.profiler with stacks."""

import statistics

from record.measuring import added, quartiles
from record.profilers import Stepscope, TorchProfiler

CALLS = 100_000


def jobs(_arguments):
    return [{"configuration": "calls"}]


def measure(job, arguments, folder):
    def function():
        pass

    def run():
        for _ in range(CALLS):
            function()

    profilers = [Stepscope(folder, job["configuration"]), TorchProfiler(job["configuration"])]
    plain, costs = added(run, profilers, max(4, arguments.rounds // 2))
    per_call = {
        name: {key: value / CALLS for key, value in quartiles(values).items()} for name, values in costs.items()
    }
    return {"base_ns_per_call": statistics.median(plain) / CALLS, "added_ns_per_call": per_call}


def line(_job, result):
    texts = [
        f"{name} {ns['median']:,.0f} [{ns['q1']:,.0f}..{ns['q3']:,.0f}]"
        for name, ns in result["added_ns_per_call"].items()
    ]
    return f"Python call, {result['base_ns_per_call']:.0f} ns without   added ns a call: {'   '.join(texts)}"
