"""What recording adds to a call of a Python function: Stepscope with every call, torch.profiler with stacks.

A call is two events, its begin and its end; per event is how others state such costs. The thread that makes the calls is
measured by itself, and so is the process: the difference is what Stepscope's helper thread does to prepare the capture's
memory. What the interpreter takes to call a profile function that does nothing is the floor under both. torch.profiler's
`start()` and `stop()` are not counted.
"""

import statistics
import time

from record.measuring import added, quartiles
from record.profilers import EmptyProfile, Stepscope, TorchProfiler

CALLS = 100_000
EVENTS_PER_CALL = 2
CLOCKS = {"thread": time.thread_time_ns, "process": time.process_time_ns}


def jobs(_arguments):
    return [{"configuration": "calls"}]


def measure(job, arguments, folder):
    def function():
        pass

    def run():
        for _ in range(CALLS):
            function()

    profilers = [Stepscope(folder, job["configuration"]), TorchProfiler(job["configuration"]), EmptyProfile(folder)]
    plain, costs = [], {profiler.name: {clock: [] for clock in CLOCKS} for profiler in profilers}
    for _ in range(max(4, arguments.rounds // 2)):
        for clock, read in CLOCKS.items():
            bursts, of_round = added(run, profilers, 1, read)
            plain += bursts
            for name, values in of_round.items():
                costs[name][clock] += [value / CALLS / EVENTS_PER_CALL for value in values]
    return {
        "base_ns_per_call": statistics.median(plain) / CALLS,
        "events_per_call": EVENTS_PER_CALL,
        "added_ns_per_event": {
            name: {clock: quartiles(values) for clock, values in clocks.items()} for name, clocks in costs.items()
        },
    }


def line(_job, result):
    def text(ns):
        return f"{ns['median']:,.0f} [{ns['q1']:,.0f}..{ns['q3']:,.0f}]"

    texts = [
        f"{name} {text(clocks['thread'])}, process {text(clocks['process'])}"
        for name, clocks in result["added_ns_per_event"].items()
    ]
    return (
        f"Python call, {result['base_ns_per_call']:.0f} ns without   "
        f"added ns an event, {result['events_per_call']} a call, of the calling thread: {'   '.join(texts)}"
    )
