"""Records some steps now and then, as ``stepscope record --every``, ``--steps`` and ``--schedule`` say.

Between them there is no callback, and no feature is on: a step then costs one call of a Python function.
"""

from stepscope import _recorder, _recording, _steps


def sampled(*, every, active=5, first=10):
    """The schedule that records ``active`` steps of each ``every``, from step ``first`` on if there is room."""
    assert 0 < active <= every, "of each `every` steps at most as many can be active"
    first = min(first, every - active)
    return {"wait": every - active, "warmup": 0, "active": active, "skip_first": first, "skip_first_wait": 1}


def is_active(schedule, step):
    """Whether ``schedule``, the keywords of ``torch.profiler.schedule``, records a step; and in which cycle."""
    waiting = schedule.get("wait", 0) + schedule.get("warmup", 0)
    length = waiting + schedule["active"]
    step -= schedule.get("skip_first", 0)
    if step < 0:
        return False, 0
    if schedule.get("skip_first_wait", 0):
        step += schedule.get("wait", 0)
    cycle, at = divmod(step, length)
    repeat = schedule.get("repeat", 0)
    return at >= waiting and not (repeat and cycle >= repeat), cycle


def is_warmup(schedule, step):
    """Whether ``schedule`` warms up in a step."""
    ahead = schedule.get("warmup", 0)
    cycles = [is_active(schedule, step + later) for later in range(1, ahead + 1)]
    return not is_active(schedule, step)[0] and any(is_on for is_on, _ in cycles)


def start(torch, options):
    """Record the active steps of the options' schedule from now on, which is in step 0."""
    schedule = options.schedule
    # Now, since it runs a few operators, and not between two steps.
    _recording.prove_hook(torch)
    _recorder.set_fact("schedule", ", ".join(f"{name}={value}" for name, value in schedule.items() if value))
    state = {"is_on": False, "cycle": 0}

    def switch(step):
        is_on, cycle = is_active(schedule, step)
        if is_on and not state["is_on"]:
            _recording.want("schedule", options)
            _recorder.set_window(True, cycle)
            _recording.tell_children(cycle)
        elif state["is_on"] and not is_on:
            _recording.settle_devices()
            _recorder.set_window(False, state["cycle"])
            _recording.leave("schedule")
            _recording.tell_children(state["cycle"])
        if not is_on and is_warmup(schedule, step):
            _recording.warm_up(options)
        state.update(is_on=is_on, cycle=cycle)

    switch(0)
    _steps.listen(switch)
