"""Starts processes in one of the ways there are, each of which runs ``aten::erfinv``: ``launched.py HOW [RUN]``.

HOW: fork, spawn, forkserver (multiprocessing.Process), mp_spawn (torch.multiprocessing.spawn), or loader_fork,
loader_spawn, loader_forkserver (workers of a DataLoader, which run ``aten::log1p``). With RUN it records itself.
"""

import contextlib
import multiprocessing
import sys

import torch
from torch.utils.data import DataLoader, Dataset


def work(number):
    for _ in range(number + 1):
        torch.erfinv(torch.zeros(4))


class Items(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.log1p(torch.zeros(3))


def main():
    how = sys.argv[1]
    if how == "mp_spawn":
        torch.multiprocessing.spawn(work, nprocs=2)
    elif how.startswith("loader_"):
        context = how.removeprefix("loader_")
        for _batch in DataLoader(Items(), batch_size=2, num_workers=2, multiprocessing_context=context):
            torch.neg(torch.zeros(1))
    else:
        context = multiprocessing.get_context(how)
        processes = [context.Process(target=work, args=(number,), name=f"job {number}") for number in range(2)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
            assert process.exitcode == 0
    torch.neg(torch.zeros(1))


def recording():
    if len(sys.argv) < 3:
        return contextlib.nullcontext()
    from stepscope.profiler import profile

    return profile(run=sys.argv[2])


if __name__ == "__main__":
    with recording():
        main()
