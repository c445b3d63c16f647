"""What events, averages and an exported trace say of work, by name and by whether the profiled thread ran it."""

import json
import os
import threading
from collections import Counter


def told(prof, folder):
    """Counts of one profile: of its events, of its averages, and of the rows of its trace, which is told apart by threads
    of the system."""
    averages = Counter({(row.key, row.is_async): row.count for row in prof.key_averages()})
    by_shapes = Counter()
    for row in prof.key_averages(group_by_input_shape=True):
        by_shapes[row.key, str(row.input_shapes)] += row.count
    path = os.path.join(folder, "trace.json")
    prof.export_chrome_trace(path)
    with open(path) as file:
        rows = [row for row in json.load(file)["traceEvents"] if row.get("cat") in ("cpu_op", "user_annotation")]
    os.remove(path)
    own = threading.get_native_id()
    # Made last: averages alone are added up without a list of events.
    events = prof.events()
    thread = next(event.thread for event in events if event.name == "of the thread itself")
    listed = Counter((event.name, event.thread == thread, event.is_async, parent(event)) for event in events)
    return {
        "averages": averages,
        "averages by shapes": by_shapes,
        "trace": Counter((row["name"], row["cat"], row["tid"] == own) for row in rows),
        "events": listed,
        "self times": Counter((event.name, event.self_cpu_time_total == 0) for event in events if event.is_async),
        "threads": len({event.thread for event in events}),
    }


def parent(event):
    """The name of the event around it."""
    return event.cpu_parent.name if event.cpu_parent else None


def differences(theirs, ours):
    """Where two such say something else, with what only each of them has; the number of threads is left to chance."""
    return {
        what: (dict(theirs[what] - ours[what]), dict(ours[what] - theirs[what]))
        for what in theirs
        if what != "threads" and theirs[what] != ours[what]
    }
