"""Three steps of a job with a fake GPU: copies, kernels on two streams, a fill, waits, an event, a graph. Prints what it
planted, with times of the monotonic clock."""

import json
import sys
import time

import fake_gpu
import torch
from fake_gpu import Gpu
from stepscope import _recorder

planted = []
correlations = iter(range(1, 1 << 30))


def work(gpu, kind, call, name, **values):
    """A call on this thread, inside of whatever runs, and what it enqueues: that runs for 20 to 30 us, later."""
    correlation, start = next(correlations), time.monotonic_ns()
    end = start + 3_000
    while time.monotonic_ns() < end:
        pass
    begin = end + 5_000 + 7 * correlation
    finish = begin + 20_000 + 13 * correlation
    assert gpu.put(fake_gpu.RUNTIME, call=call, start=start, end=end, thread=fake_gpu.thread(), correlation=correlation)
    if kind is not None:
        text = {"name": name} if kind == fake_gpu.KERNEL else {}
        assert gpu.put(kind, start=begin, end=finish, context=1, correlation=correlation, **text, **values) == 1
        planted.append(
            {"kind": kind, "name": name, "start": begin, "end": finish, "correlation": correlation, **values}
        )
    return correlation, start, end


def step(gpu):
    with torch.profiler.record_function("load"):
        work(
            gpu,
            fake_gpu.MEMCPY,
            fake_gpu.MEMCPY_ASYNC,
            None,
            direction=1,
            source=1,
            destination=3,
            bytes=4096,
            stream=7,
        )
    with torch.profiler.record_function("forward"):
        with torch.profiler.record_function("gemm"):
            work(
                gpu,
                fake_gpu.KERNEL,
                fake_gpu.LAUNCH_KERNEL,
                "_Z6vecAddPKfS0_Pfi",
                stream=7,
                grid=(8, 2, 1),
                block=(128, 1, 1),
                registers=40,
                static=1024,
                dynamic=2048,
            )
        with torch.profiler.record_function("other"):
            work(gpu, fake_gpu.KERNEL, fake_gpu.LAUNCH_KERNEL, "triton_poi_fused_add_0", stream=9)
    work(gpu, fake_gpu.MEMSET, fake_gpu.MEMSET_ASYNC, None, memory=3, bytes=64, stream=7)
    correlation, *_ = work(gpu, None, fake_gpu.EVENT_RECORD, None)
    gpu.put(fake_gpu.EVENT, correlation=correlation, context=1, stream=7, event=3, event_sync=12)
    correlation, start, end = work(gpu, None, fake_gpu.STREAM_SYNCHRONIZE, None)
    gpu.put(
        fake_gpu.WAIT,
        what=3,
        start=start,
        end=end,
        correlation=correlation,
        context=1,
        stream=7,
        event=fake_gpu.NONE,
        event_sync=fake_gpu.NONE,
    )
    assert gpu.put(fake_gpu.RUNTIME, call=fake_gpu.GET_DEVICE, start=start, end=end, thread=fake_gpu.thread()) == 0
    assert gpu.put(fake_gpu.DRIVER, call=fake_gpu.CU_GET_INFO, start=start, end=end, thread=fake_gpu.thread()) == 0
    assert gpu.put(fake_gpu.GRAPH, start=start, end=end, graph=5) == 0
    gpu.put(fake_gpu.OVERHEAD, what=5 << 16, object=2, thread=fake_gpu.thread(), start=start, end=end)


def main():
    gpu = Gpu(sys.argv[1])
    gpu.set_clock(1_700_000_000_000_000_000, 30)
    gpu.use(0)
    found = fake_gpu.start(ranges=True)
    for number in range(3):
        _recorder.step_begin(number)
        step(gpu)
        _recorder.step_end(number)
    begin = time.monotonic_ns()
    gpu.put(fake_gpu.MARKER, flags=2, at=begin, id=1, object=2, thread=fake_gpu.thread(), name="marked")
    gpu.put(fake_gpu.MARKER, flags=4, at=begin + 500, id=1)
    time.sleep(1.3)
    gpu.cupti.fake_drop(5)
    fake_gpu.stop()
    facts = {
        "mixed": gpu.cupti.fake_mixed(),
        "subscribers": gpu.cupti.fake_subscribers(),
        "enabled": [kind for kind in gpu.sizes if gpu.cupti.fake_is_enabled(kind)],
        "out": gpu.cupti.fake_buffers_out(),
        "init": gpu.cuda.fake_calls_of_init(),
    }
    print(json.dumps({"found": found, "planted": planted, "range": [begin, begin + 500], **facts}))


if __name__ == "__main__":
    main()
