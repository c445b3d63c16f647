"""What recording costs: added to a step, until there is a trace, and left behind after stop."""

import statistics

from gpu.profilers import STEPSCOPE, TORCH

# Goals: of the time that torch.profiler adds to a step, and how much slower steps may be afterwards.
ADDED_RATIO_GOAL = 0.5
LEFT_RATIO_GOAL = 1.02


def of(answers):
    """Numbers of a workload from what its processes measured; what was not measured is left out."""
    found = {name: of_profiler(name, answers) for name in (TORCH, STEPSCOPE)}
    theirs, ours = (found[name].get("added_step_ns") for name in (TORCH, STEPSCOPE))
    # Below zero it is noise: steps that wait for the device take no longer when the host has a little more to do.
    if theirs is not None and ours is not None and theirs > 0 and ours >= 0:
        found["added_ratio"] = ours / theirs
    return found


def of_profiler(name, answers):
    """Medians over rounds. The first round of a process also pays for loading the device's profiler."""
    numbers = {}
    for answer in answers:
        rounds = [row for row in answer["recordings"] if row["profiler"] == name and "step_ns" in row]
        if not rounds:
            continue
        later = [row for row in rounds if row["round"] > 0] or rounds
        step_ns = statistics.median(row["step_ns"] for row in later)
        numbers["plain_step_ns"] = answer["step_ns_plain"]
        numbers["step_ns"] = step_ns
        numbers["added_step_ns"] = step_ns - answer["step_ns_plain"]
        numbers["added_first_step_ns"] = (
            statistics.median(row["first_step_ns"] for row in later) - answer["step_ns_plain"]
        )
        numbers["first_start_s"] = rounds[0]["start_s"]
        numbers["stop_s"] = statistics.median(row["stop_s"] for row in later)
        numbers["trace_s"] = statistics.median(row["stop_s"] + row["save_s"] for row in later)
        numbers["trace_bytes"] = later[0]["trace_bytes"]
        alone = {row["profiler"] for row in answer["recordings"]} == {name}
        if alone:
            numbers["left_ratio"] = answer["step_ns_after"] / answer["step_ns_before"]
    return numbers


def missed_goals(costs):
    """Goals that were not reached, as text. They are measurements: they fail nothing."""
    missed = []
    if costs.get("added_ratio", 0) > ADDED_RATIO_GOAL:
        missed.append(f"recording adds {costs['added_ratio']:.2f} of what torch.profiler adds, goal {ADDED_RATIO_GOAL}")
    left = costs.get(STEPSCOPE, {}).get("left_ratio", 0)
    if left > LEFT_RATIO_GOAL:
        missed.append(f"steps after stop take {left:.2f} of those before, goal {LEFT_RATIO_GOAL}")
    return missed
