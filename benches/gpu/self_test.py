"""``check.py --self-test``: a real trace of a GPU against itself, and against itself with differences planted."""

import gzip
import json
from copy import deepcopy
from decimal import Decimal
from pathlib import Path

from gpu import checks
from gpu.outcome import FAILS
from gpu.planted import PLANTED, PLANTED_IN_HEAD
from gpu.trace import rounds_of

FIXTURES = Path(__file__).resolve().parents[2] / "tests" / "fixtures" / "kineto"
# Real traces of torch.profiler: one has copies and many kernels, the other operators that are linked with kernels.
TRACES = ("a100_alexnet_sync.json.gz", "a100_event_sync_multi_stream.json.gz")


def document(name):
    with gzip.open(FIXTURES / name, "rt") as file:
        return json.load(file, parse_float=Decimal)


def failing(theirs, ours):
    """The names of the checks that fail for two documents."""
    outcomes = checks.compare(rounds_of(theirs), rounds_of(ours))
    return {outcome.check for outcome in outcomes if outcome.status == FAILS}


def planted(name):
    """For each difference that can be planted into a trace: its name, the checks that must fail, and those that do."""
    original = document(name)
    in_events = [(plant, expected, "traceEvents") for plant, expected in PLANTED.items()]
    in_head = [(plant, expected, None) for plant, expected in PLANTED_IN_HEAD.items()]
    for plant, expected, member in in_events + in_head:
        changed = deepcopy(original)
        try:
            plant(changed[member] if member else changed)
        except StopIteration:
            continue  # The trace has nothing of the kind.
        yield plant.__name__, set(expected), failing(original, changed)


def run():
    """Prints a line a difference; 0 when every one of them is seen, and every check fails once."""
    is_good, failed_once = True, set()
    for name in TRACES:
        original = document(name)
        with_itself = failing(original, original)
        print(f"{name}: with itself, {'all checks hold' if not with_itself else f'{sorted(with_itself)} fail'}")
        is_good &= not with_itself
        for difference, expected, found in planted(name):
            failed_once |= found
            seen = expected <= found
            is_good &= seen
            print(f"  {difference:<20} {'seen by' if seen else 'NOT SEEN by all, only'} {', '.join(sorted(found))}")
    never = checks.CHECKS.keys() - failed_once
    if never:
        print(f"no difference makes these fail: {sorted(never)}")
    return 0 if is_good and not never else 1
