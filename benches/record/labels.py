"""What a label costs while nothing records."""

import statistics

import torch

from record.measuring import burst

USES = 20_000


def jobs(_arguments):
    return [{}]


def measure(_job, arguments, _folder):
    import stepscope
    from stepscope.profiler import record_function

    labels = {"torch.profiler.record_function": torch.profiler.record_function}
    labels["stepscope.profiler.record_function"] = record_function
    if hasattr(stepscope, "annotate"):
        labels["stepscope.annotate"] = stepscope.annotate

    def nothing():
        for _ in range(USES):
            pass

    def use(label):
        def run():
            for _ in range(USES):
                with label("name"):
                    pass

        return run

    costs = {name: [] for name in labels}
    for _ in range(max(4, arguments.rounds // 2)):
        for name, label in labels.items():
            costs[name].append((burst(use(label)) - burst(nothing)) / USES)
    return {name: statistics.median(values) for name, values in costs.items()}


def line(_job, result):
    return "label while nothing records, ns: " + "   ".join(f"{name} {ns:,.0f}" for name, ns in result.items())
