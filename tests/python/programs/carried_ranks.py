"""One rank of DistributedDataParallel with gloo, profiled with torch.profiler and then with
stepscope.profiler: prints where they differ, and how much of the work others did."""

import json
import sys
import tempfile

import stepscope.profiler
import torch
import torch.distributed as dist
import torch.profiler

sys.path.insert(0, sys.argv[1])
import carried_work

OPTIONS = {"record_shapes": True}


def step(model, optimizer, label):
    with label("of the thread itself"):
        optimizer.zero_grad()
        model(torch.ones(16, 32)).sum().backward()
        optimizer.step()
    with label("collectives"):
        tensor = torch.ones(8)
        dist.all_reduce(tensor)
        works = [dist.all_reduce(tensor, async_op=True) for _ in range(3)]
        for work in works:
            work.wait()
        dist.all_gather([torch.zeros(8) for _ in range(2)], tensor)
        dist.barrier()


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for _ in range(3):
        step(model, optimizer, torch.profiler.record_function)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for threads in (False, True):
            config = torch.profiler._ExperimentalConfig(profile_all_threads=threads)
            both = []
            for of in (torch.profiler, stepscope.profiler):
                more = {"run": f"{folder}/run-{threads}"} if of is stepscope.profiler else {}
                dist.barrier()
                with of.profile(
                    activities=[of.ProfilerActivity.CPU], experimental_config=config, **OPTIONS, **more
                ) as prof:
                    step(model, optimizer, of.record_function)
                both.append(carried_work.told(prof, folder))
            elsewhere = sum(count for (_, is_own, *_), count in both[1]["events"].items() if not is_own)
            differences = {what: str(said) for what, said in carried_work.differences(*both).items()}
            found["all threads" if threads else "one thread"] = [elsewhere, differences]
    dist.barrier()
    dist.destroy_process_group()
    # At once with its end of line, which print writes after it: the ranks share a pipe.
    sys.stdout.write(f"FOUND {json.dumps(found)}\n")
    sys.stdout.flush()


main()
