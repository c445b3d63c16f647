"""Executors of the tests of ``stepscope.reduce``, and what their workers do."""

import concurrent.futures
import os
import pickle
import signal
import subprocess
import sys

PROGRAM = """
import pickle, sys
try:
    function, arguments = pickle.load(sys.stdin.buffer)
    told = function(*arguments)
except Exception as error:
    told = error
pickle.dump(told, sys.stdout.buffer)
"""


class Through(concurrent.futures.Executor):
    """Passes tasks on to another executor, each through ``wrap(function, *arguments)``; keeps the futures."""

    def __init__(self, executor, wrap):
        self.executor, self.wrap, self.futures = executor, wrap, []

    def submit(self, function, *arguments):
        self.futures.append(self.executor.submit(self.wrap, function, *arguments))
        return self.futures[-1]


class AtOnce:
    """Does each task in this thread before ``submit`` returns."""

    def __init__(self, wrap):
        self.wrap, self.futures = wrap, []

    def submit(self, function, *arguments):
        self.futures.append(concurrent.futures.Future())
        self.futures[-1].set_result(self.wrap(function, *arguments))
        return self.futures[-1]


class Programs:
    """Starts a program for each task, as those do that submit jobs to a cluster: its futures do not say when they end."""

    def __init__(self, *options):
        self.options, self.cancelled = options, []

    def submit(self, function, *arguments):
        return Job(self, pickle.dumps((function, arguments)))


class Job:
    """A task that is a program."""

    def __init__(self, of, task):
        self.of, self.task = of, task

    def result(self):
        command = [sys.executable, *self.of.options, "-c", PROGRAM]
        told = pickle.loads(subprocess.run(command, input=self.task, capture_output=True, check=True).stdout)
        if isinstance(told, Exception):
            raise told
        return told

    def cancel(self):
        self.of.cancelled.append(self)
        return True


def killed(named, marker, function, *arguments):
    """A worker that is killed when its task has ``named``; only the first time, where there is a path for a marker."""
    if any(named in str(argument) for argument in arguments) and not (marker and os.path.exists(marker)):
        if marker:
            open(marker, "x").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return function(*arguments)
