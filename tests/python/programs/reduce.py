"""Prints all results of a run whose files are read by MPI's processes, or by processes of Python's own."""

import concurrent.futures
import json
import multiprocessing
import sys


def main(kind, *paths):
    import stepscope

    if kind == "mpi":
        from mpi4py.futures import MPIPoolExecutor

        executor = MPIPoolExecutor()
    else:
        executor = concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("spawn"))
    with executor:
        run = stepscope.reduce(paths, executor)
    print(json.dumps({name: run.analyze(name).to_json() for name in stepscope._run._engine.analyses()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
