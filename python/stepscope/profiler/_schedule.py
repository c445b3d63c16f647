"""In which steps to record."""

import warnings

from stepscope import _sampling


def schedule(*, wait, warmup, active, repeat=0, skip_first=0, skip_first_wait=0):
    """Say in which steps to record.

    After ``skip_first`` steps the profiler waits, warms up and records for ``wait``, ``warmup`` and ``active`` steps,
    again and again; ``repeat`` cycles of it, or without end for 0.

    Parameters
    ----------
    wait, warmup, active : int
        Steps of each phase; ``active`` is at least 1.
    repeat : int
        Number of cycles; 0 is without end.
    skip_first : int
        Steps before the first cycle.
    skip_first_wait : int
        When not 0, the first cycle does not wait.

    Returns
    -------
    Callable[[int], ProfilerAction]
        What to do in the step with a number.
    """
    from torch.profiler import ProfilerAction

    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), "
            f"active={active} (need > 0), repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        warnings.warn("a schedule without warmup records the cost of starting to record", stacklevel=2)
    cycle = wait + warmup + active

    def action(step):
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait != 0:
            step += wait
        done, at = divmod(step, cycle)
        if (repeat > 0 and done >= repeat) or at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if at == cycle - 1 else ProfilerAction.RECORD

    return action


def sampled(*, every, active=5):
    """Say that a few steps are recorded now and then: a schedule without end.

    The first are steps 10 and following, when the program has warmed up, if ``every`` leaves room for that.

    Parameters
    ----------
    every, active : int
        Of each ``every`` steps ``active`` ones are recorded.

    Returns
    -------
    Callable[[int], ProfilerAction]
        What to do in the step with a number.
    """
    from torch.profiler import ProfilerAction

    keywords = _sampling.sampled(every=every, active=active)

    def action(step):
        if not _sampling.is_active(keywords, step)[0]:
            return ProfilerAction.NONE
        is_last = not _sampling.is_active(keywords, step + 1)[0]
        return ProfilerAction.RECORD_AND_SAVE if is_last else ProfilerAction.RECORD

    return action


def always(_step):
    """What a profiler without a schedule does."""
    from torch.profiler import ProfilerAction

    return ProfilerAction.RECORD
