"""Files that are written of a recording."""

import os
import socket
import sys
import time

STACK_METRICS = (
    "self_cpu_time_total",
    "self_cuda_time_total",
    "self_xpu_time_total",
    "self_privateuse1_time_total",
)


def tensorboard_trace_handler(dir_name, worker_name=None, use_gzip=False, use_python_export=False):
    """What to give to ``profile(on_trace_ready=...)`` to write a Chrome trace of each cycle into a folder.

    Parameters
    ----------
    dir_name : str
        The folder; it is made when it is not there.
    worker_name : str, optional
        What the file's name begins with, another for each process; by default the host's name and the process's number.
    use_gzip : bool
        Write ``.json.gz``.
    use_python_export : bool
        Changes nothing here.

    Returns
    -------
    Callable[[profile], None]
    """

    def write(prof):
        try:
            os.makedirs(dir_name, exist_ok=True)
        except Exception as error:
            raise RuntimeError("Can't create directory: " + os.fspath(dir_name)) from error
        # Now, not before: a forked process is another worker.
        name = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        file_name = f"{name}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")
        prof.export_chrome_trace(os.path.join(dir_name, file_name), use_python_export=use_python_export)

    return write


def lacks_folder(on_trace_ready):
    """Whether it is what makes such a function, ours or PyTorch's, and not one that it has made."""
    of_torch = getattr(sys.modules.get("torch.profiler"), "tensorboard_trace_handler", None)
    return on_trace_ready is not None and on_trace_ready in (tensorboard_trace_handler, of_torch)


def device_free(attribute):
    """The name of an attribute that is the same for all devices: ``self_cuda_time_total`` is one of those."""
    for device in ("cuda", "xpu", "privateuse1"):
        attribute = attribute.replace(device, "device")
    return attribute


def is_host_metric(metric):
    """Whether a metric of stacks is the host's; ValueError when there is no such metric."""
    if metric not in STACK_METRICS:
        raise ValueError(f"metric should be one of: {list(STACK_METRICS)}")
    return metric == STACK_METRICS[0]


def write_stacks(events, path, metric):
    """Write one line an event that has a stack: its frames, the outermost first, and a number of microseconds."""
    is_host_metric(metric)
    unsafe = str.maketrans(" ;\t\n", "____")
    with open(path, "w", encoding="utf-8") as file:
        for event in events:
            # Times are whole nanoseconds; a difference of them as floats may lie just below a microsecond.
            value = int(round(getattr(event, device_free(metric)), 3)) if event.stack else 0
            if value > 0:
                frames = ";".join(frame.translate(unsafe) for frame in reversed(event.stack))
                file.write(f"{frames} {value}\n")


def write_chrome(events, path):
    """Write a list of events as Chrome JSON, without what only a recording knows; see ``profile.export_chrome_trace``."""
    import json

    def rows():
        for event in events:
            name = getattr(event, "trace_name", None)
            if name is not None:
                yield {
                    "name": name,
                    "ph": "X",
                    "ts": event.time_range.start,
                    "dur": event.time_range.elapsed_us(),
                    "tid": event.thread,
                    "pid": "CPU functions",
                    "args": {},
                }

    with open(path, "w", encoding="utf-8") as file:
        file.write("[" + ", ".join(json.dumps(row) for row in rows()) + "]")
