"""Bursts of CPU time, quartiles, and memory at its peak."""

import gc
import resource
import statistics
import time


def cpu_ns():
    """CPU time of this process and of the children that it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time_ns() + int((children.ru_utime + children.ru_stime) * 1e9)


def burst(run, clock=time.process_time_ns):
    """CPU ns of one run, of the process or what else `clock` reads, undisturbed by Python's garbage collector."""
    gc.collect()
    gc.disable()
    start = clock()
    run()
    spent = clock() - start
    gc.enable()
    return spent


def added(run, profilers, rounds, clock=time.process_time_ns):
    """CPU ns of the plain bursts, and what each profiler adds to one, a list of rounds each.

    Each round runs a burst with each profiler between two without, and takes the mean of these two away.
    """
    plain, costs = [], {profiler.name: [] for profiler in profilers}
    for _ in range(rounds):
        for profiler in profilers:
            before = burst(run, clock)
            profiler.start()
            with_profiler = burst(run, clock)
            profiler.stop()
            after = burst(run, clock)
            plain += [before, after]
            costs[profiler.name].append(with_profiler - (before + after) / 2)
    return plain, costs


def quartiles(values):
    """Median and quartiles, as a dict."""
    low, median, high = statistics.quantiles(values, n=4)
    return {"median": median, "q1": low, "q3": high}


def forget_peak():
    """Let the peak begin anew; the memory that is resident now, in bytes."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return _status("VmRSS")


def peak():
    """The most memory that was resident since, in bytes."""
    return _status("VmHWM")


def _status(key):
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith(key))
    return int(line.split()[1]) * 1024
