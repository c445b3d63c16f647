"""Whether device work takes as long in both recordings: by name, medians over rounds."""

import statistics
from collections import defaultdict

from gpu.outcome import FAILS, HOLDS, NOT_RUN, NOTHING, Outcome

# Summed durations may differ by this much, or by twice as much as rounds of one profiler differ from one another.
DURATION_RATIO = 0.02
SPREADS = 2
# What rounds of torch.profiler differ in by more than this is not compared: everything would hold.
NOISY_RATIO = 0.125
# Names that take less of the whole are not compared one by one: of many that are short some differ by chance.
SMALLEST_RATIO = 0.01
# The key of the sum over all names.
ALL = ("all", "device work")


def durations(check, theirs, ours):
    """Summed durations of each name, and of all."""
    their_sums, our_sums = _sums(theirs), _sums(ours)
    if not their_sums and not our_sums:
        return Outcome(check, NOTHING, "neither has device work")
    their_sums[ALL], our_sums[ALL] = _of_all(theirs), _of_all(ours)
    total_ratio = _ratio(their_sums[ALL], our_sums[ALL])
    noisy = {key for key, sums in their_sums.items() if _spread(sums) > NOISY_RATIO}
    numbers = {
        "torch_total_ns": _median(their_sums[ALL]),
        "stepscope_total_ns": _median(our_sums[ALL]),
        "total_ratio": total_ratio,
        "total_spread_of_torch": _spread(their_sums[ALL]),
        "names": len(their_sums) - 1,
        "names_too_noisy": len(noisy - {ALL}),
    }
    if ALL in noisy:
        return Outcome(check, NOT_RUN, f"torch.profiler's own rounds differ by {_spread(their_sums[ALL]):.0%}", numbers)
    small = {key for key in their_sums.keys() | our_sums.keys() if _is_small(key, their_sums, our_sums)}
    numbers["names_too_small"] = len(small)
    compared = sorted((their_sums.keys() | our_sums.keys()) - noisy - small)
    wrong = [row for key in compared if (row := _wrong(key, their_sums, our_sums)) is not None]
    numbers["names_out_of_range"] = len(wrong)
    if not wrong:
        return Outcome(check, HOLDS, numbers=numbers)
    name, ratio, allowed = max(wrong, key=lambda row: abs(row[1] - 1) if row[1] is not None else float("inf"))
    differs = "only Stepscope has it" if ratio is None else f"{ratio:.4f} of torch.profiler's, allowed ±{allowed:.4f}"
    return Outcome(check, FAILS, f"{len(wrong)} differ, most of all {name}: {differs}", numbers)


def _wrong(key, their_sums, our_sums):
    """Name, ratio and what was allowed, where that is exceeded; no ratio where there is nothing to divide by."""
    ratio = _ratio(their_sums.get(key, [0]), our_sums.get(key, [0]))
    spread = max(_spread(their_sums.get(key, [])), _spread(our_sums.get(key, [])))
    allowed = max(DURATION_RATIO, SPREADS * min(spread, NOISY_RATIO))
    is_right = ratio is not None and abs(ratio - 1) <= allowed
    return None if is_right else (" ".join(key)[:70], ratio, allowed)


def _is_small(key, their_sums, our_sums):
    """Whether a name that both have takes little of the whole in each."""
    sides = (their_sums, our_sums)
    return all(key in sums and _median(sums[key]) < SMALLEST_RATIO * _median(sums[ALL]) for sums in sides)


def _sums(rounds):
    """By kind and name, the summed durations of each round."""
    sums = defaultdict(lambda: [0] * len(rounds))
    for index, trace in enumerate(rounds):
        for work in trace.work:
            sums[work.kind, work.name][index] += work.dur_ns
    return dict(sums)


def _of_all(rounds):
    return [sum(work.dur_ns for work in trace.work) for trace in rounds]


def _median(values):
    return statistics.median(values)


def _ratio(theirs, ours):
    theirs, ours = _median(theirs), _median(ours)
    return ours / theirs if theirs else None


def _spread(values):
    """How far rounds lie from their median, at most, as a part of it."""
    median = _median(values) if values else 0
    return max(abs(value - median) / median for value in values) if median else 0.0
