"""A recording with rows of devices planted into it, and what Kineto would hand over of them."""

import os
import shutil
import threading
import warnings
from types import SimpleNamespace

import torch
import torch.profiler
from kineto_results import KinetoEvent, event_list
from planted import Planted
from stepscope.profiler import ProfilerActivity, profile, record_function, schedule
from torch.autograd import DeviceType

BOTH = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
wanted = torch.profiler._ExperimentalConfig
DEVICE_KINDS = {"kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation", "cuda_sync"}


def recorded(run, activities=BOTH, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return profile(activities=activities, run=run, **options)


def work():
    x = torch.ones(64, 64, requires_grad=True)
    with record_function("outer"):
        with record_function("inner"):
            y = torch.nn.functional.linear(x, x).relu()
        torch.cat([y, y]).sum().backward()
    return torch.ones(300, 300) @ torch.ones(300, 300)


class Scenario:
    """A step, what is planted into it, and the same as Kineto's events."""

    def __init__(self, run, planted=None, **options):
        work()
        self.prof = recorded(run, schedule=schedule(wait=0, warmup=0, active=1, repeat=1), **options)
        with self.prof:
            work()
            thread = threading.Thread(target=self.elsewhere)
            thread.start()
            thread.join()
            self.prof.step()
        self.window = self.prof.profiler._windows[-1]
        # A copy stays as it is, whatever the run becomes.
        self.path = str(run.parent / "copied" / "raw" / "copy.capture")
        os.makedirs(os.path.dirname(self.path))
        shutil.copyfile(self.window.capture, self.path)
        self.window._kept = SimpleNamespace(path=lambda: self.path)
        events = self.prof.events(all_threads=True)
        self.host = [event for event in events if not event.is_python_function]
        self.forget()
        self.zero_ns = self.calibrate()
        self.planted = planted or Planted()
        self.kineto = []
        self.plant()
        self.planted.write(self.path)

    def elsewhere(self):
        self.other = threading.get_ident()
        torch.ones(9).add_(1)

    def forget(self):
        self.window._read = {}
        self.prof.profiler._lists, self.prof.profiler._averages = {}, {}

    def calibrate(self):
        """The moment that times count from, by a kernel whose own time is known."""
        at_ns = self.window.spans[0][0] + 1000
        before = os.path.getsize(self.path)
        marker = Planted()
        marker.kernel("marker", at_ns, at_ns + 5, 0)
        marker.write(self.path)
        (event,) = [event for event in self.prof.events(all_threads=True) if event.name == "marker"]
        os.truncate(self.path, before)
        self.forget()
        return at_ns - round(event.time_range.start * 1000)

    def plant(self):
        spans = {}
        for number, event in enumerate(self.host):
            start_ns, end_ns = round(event.time_range.start * 1000), round(event.time_range.end * 1000)
            spans[number] = (start_ns, end_ns)
            self.kineto.append(
                KinetoEvent(
                    event.trace_name,
                    start_ns,
                    end_ns,
                    event.thread,
                    correlation_id=1_000_000 + number,
                    external_id=1_000_000 + number,
                    device_index=event.device_index,
                    device_resource_id=event.device_resource_id,
                    scope=event.scope,
                    sequence_nr=event.sequence_nr,
                    fwd_thread_id=event.fwd_thread,
                    shapes=event.input_shapes,
                    concrete_inputs=event.concrete_inputs,
                    is_user_annotation=event.is_user_annotation,
                    activity_type=event.activity_type,
                    flow_id=event.flow_id,
                    flow_type=event.flow_type,
                    flow_start=event.flow_start,
                )
            )
        self.spans = spans
        self.gpu = {}
        self.correlation = 0
        main, main_id = threading.get_ident(), self.host[0].thread
        for number, event in enumerate(self.host):
            start_ns, end_ns = spans[number]
            thread = main if event.thread == main_id else self.other
            # Every second operator that has room for it launches something, before its first child.
            first = min([round(child.time_range.start * 1000) for child in event.cpu_children] or [end_ns])
            room = first - start_ns
            if number % 2 or room < 400 or event.scope == 7 or event.thread != main_id:
                if event.scope != 7 or room < 400:
                    continue
            kind = ("kernel", "copy", "fill")[number % 3]
            self.launch(kind, start_ns + room // 4, start_ns + room // 2, thread, event, stream=7 + number % 2)
        # On the program's other thread.
        (inside,) = [event for event in self.host if (event.name, event.thread != main_id) == ("aten::add_", True)]
        start_ns, end_ns = spans[self.host.index(inside)]
        self.launch("kernel", start_ns + (end_ns - start_ns) // 3, end_ns - 1, self.other, inside)
        # What no operator launched: behind the step, and a call that is left out, and others that launch nothing.
        end_ns = max(end for _, end in spans.values())
        last = end_ns + 1000
        self.call("cudaDeviceSynchronize", last, last + 700, main, None)
        self.call("cudaStreamWaitEvent", last + 720, last + 740, main, None)
        self.call("cudaEventSynchronize", last + 760, last + 780, main, None)
        self.planted.call("cudaGetDevice_v3020", last + 800, last + 810, main, 9001)
        self.planted.call("cuCtxGetCurrent", last + 820, last + 830, main, 9002, is_runtime=False)
        self.planted.wait(3, last, last + 600, 9003, 7)
        self.overhead("Buffer Flush", last + 100, last + 300, main)
        # Times of reports are those of the device's clock.
        self.planted.shift(self.zero_ns)
        self.annotate()

    def around(self, thread, at_ns, is_label):
        """The innermost of the host's operators, or labels, at a moment: all of them are looked at."""
        found = None
        for number, event in enumerate(self.host):
            start_ns, end_ns = self.spans[number]
            inside = start_ns <= at_ns < end_ns and event.thread == thread and (event.scope == 7) == is_label
            if inside and (found is None or (start_ns, -end_ns) > (self.spans[found][0], -self.spans[found][1])):
                found = number
        return found

    def call(self, name, start_ns, end_ns, thread, event, is_runtime=True):
        self.correlation += 1
        self.planted.call(name, start_ns, end_ns, thread, self.correlation, is_runtime)
        thread_id, resource = (self.host[0].thread, self.host[0].device_resource_id)
        if event is not None:
            thread_id, resource = event.thread, event.device_resource_id
        operator = self.around(thread_id, (start_ns + end_ns) // 2, False)
        linked = 0 if operator is None else 1_000_000 + operator
        self.kineto.append(
            KinetoEvent(
                name,
                start_ns,
                end_ns,
                thread_id,
                correlation_id=self.correlation,
                linked_correlation_id=linked,
                external_id=linked,
                device_index=os.getpid(),
                device_resource_id=resource,
                activity_type="cuda_runtime" if is_runtime else "cuda_driver",
                flow_id=self.correlation,
                flow_type=2,
                flow_start=name != "cudaEventSynchronize",
            )
        )
        return linked, thread_id

    def launch(self, kind, start_ns, end_ns, thread, event, stream=7):
        name = {"kernel": "cudaLaunchKernel", "copy": "cudaMemcpyAsync", "fill": "cudaMemsetAsync"}[kind]
        linked, thread_id = self.call(name, start_ns, end_ns, thread, event)
        # Whole microseconds, so that sums of torch's floats are exact.
        from_ns = (end_ns // 1000 + 1 + self.correlation % 3) * 1000
        to_ns = from_ns + (1 + self.correlation * 7 % 30) * 1000
        if kind == "kernel":
            text, activity = f"void kernel<{self.correlation % 4}>(float*)", "kernel"
            self.planted.kernel(text, from_ns, to_ns, self.correlation, 0, stream)
        elif kind == "copy":
            text, activity = "Memcpy HtoD (Pinned -> Device)", "gpu_memcpy"
            self.planted.copy(from_ns, to_ns, self.correlation, 0, stream)
        else:
            text, activity = "Memset (Device)", "gpu_memset"
            self.planted.fill(from_ns, to_ns, self.correlation, 0, stream)
        label = self.around(thread_id, (start_ns + end_ns) // 2, True)
        if label is not None:
            first, last = self.gpu.get((label, stream), (from_ns, to_ns))
            self.gpu[label, stream] = (min(first, from_ns), max(last, to_ns))
        values = {"linked_correlation_id": linked, "external_id": linked, "activity_type": activity}
        self.on_device(text, from_ns, to_ns, thread_id, stream, correlation_id=self.correlation, **values)

    def on_device(self, name, start_ns, end_ns, thread_id, stream, **values):
        values.setdefault("flow_id", values["correlation_id"])
        values.setdefault("flow_type", 2)
        place = {"device_type": DeviceType.CUDA, "device_index": 0, "device_resource_id": stream}
        self.kineto.append(KinetoEvent(name, start_ns, end_ns, thread_id, **place, **values))

    def overhead(self, name, start_ns, end_ns, thread):
        self.planted.overhead(name, start_ns, end_ns, thread)
        values = {"correlation_id": 0, "device_index": -1, "device_resource_id": 0, "flow_type": 2}
        self.kineto.append(KinetoEvent(name, start_ns, end_ns, self.host[0].thread, activity_type="overhead", **values))

    def annotate(self):
        for (label, stream), (start_ns, end_ns) in self.gpu.items():
            values = dict.fromkeys(("correlation_id", "external_id"), 1_000_000 + label)
            values.update(activity_type="gpu_user_annotation", is_user_annotation=True, flow_id=0, flow_type=0)
            event = self.host[label]
            self.on_device(event.trace_name, start_ns, end_ns, event.thread, stream, **values)

    def theirs(self, **shown):
        return event_list(self.kineto, "cuda", **shown)


def span_ns(event):
    return round(event.time_range.start * 1000), round(event.time_range.end * 1000)


def told(events):
    """What stands for each id: where the event with it lies."""
    known = {}
    for event in events:
        if event.device_type == DeviceType.CPU and event.activity_type in ("cpu_op", "user_annotation"):
            known[event.id] = (event.name, span_ns(event))
    return known
