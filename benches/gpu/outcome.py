"""What a check found."""

from dataclasses import asdict, dataclass, field

HOLDS, FAILS, NOTHING, NOT_RUN = "holds", "fails", "nothing to compare", "not run"


@dataclass
class Outcome:
    """One check of one workload.

    ``says`` is a sentence where the check does not hold; ``numbers`` is what was compared.
    """

    check: str
    status: str
    says: str = ""
    numbers: dict = field(default_factory=dict)

    @property
    def is_good(self):
        return self.status in (HOLDS, NOTHING)

    def as_dict(self):
        return asdict(self)


def equal_counts(check, theirs, ours, what):
    """Holds when two counters are equal; says which keys differ, the first three."""
    numbers = {"torch": sum(theirs.values()), "stepscope": sum(ours.values())}
    if not theirs and not ours:
        return Outcome(check, NOTHING, f"neither has {what}", numbers)
    differing = sorted((key for key in theirs.keys() | ours.keys() if theirs[key] != ours[key]), key=str)
    if not differing:
        return Outcome(check, HOLDS, numbers=numbers)
    listed = "; ".join(f"{_text(key)}: torch.profiler {theirs[key]}, Stepscope {ours[key]}" for key in differing[:3])
    more = f"; and {len(differing) - 3} more" if len(differing) > 3 else ""
    return Outcome(check, FAILS, f"{what} differ: {listed}{more}", {**numbers, "differing": len(differing)})


def _text(key):
    text = " ".join(map(str, key)) if isinstance(key, tuple) else str(key)
    return text if len(text) <= 80 else text[:77] + "..."
