"""What is done in the processes of Ray Train: it is called by ``stepscope.ray``, which travels there."""

from __future__ import annotations

import os

from stepscope import _as_torch_profiler, _options, _recorder, _recording
from stepscope._own_run import OwnRun
from stepscope._say import say

#: By these, processes that are recorded know where to and what.
_VARIABLES = ("STEPSCOPE_RUN", _options.VARIABLE, _as_torch_profiler.VARIABLE)

#: What :func:`begin` began; None: nothing.
_own_run: OwnRun | None = None


def environment_of_driver():
    """The variables of what records in the driver; none where nothing does."""
    is_recorded = bool(os.environ.get("STEPSCOPE_RUN"))
    return {name: os.environ[name] for name in _VARIABLES if name in os.environ} if is_recorded else {}


def options_of_own_run(options):
    """The options of a profiler, with a folder that is the same one in all processes."""
    from stepscope.profiler import _run_folder

    return {**options, "run": os.path.abspath(options.get("run") or _run_folder.default_run())}


def forget_controller():
    """This process coordinates, and trains nothing: it need not have been recorded."""
    if _recorder.is_open():
        _recording.close_capture()
        os.unlink(_recording.capture())


def begin(environment, options):
    """Record this worker: into the run of the driver, or into one of its own. True if nothing of ours does already."""
    global _own_run
    if _own_run is not None:
        return False
    _own_run = OwnRun(options)
    if options is None:
        _begin_as_driver(environment)
    else:
        _own_run.begin()
    for name, value in _facts_of_worker().items():
        _recorder.set_fact(name, str(value))
    return True


def _begin_as_driver(environment):
    """A worker of a cluster that the driver has started is recorded already; one that was there before is not."""
    if not _recorder.is_open():
        import torch

        from stepscope import _autostart
        from stepscope.profiler import _run_folder

        run = environment["STEPSCOPE_RUN"]
        os.environ.update(environment)
        _run_folder.create_run(run)
        _run_folder.Environment(run, _options.Options.from_environment())
        _autostart.start(torch)


def _facts_of_worker():
    context = _context()
    return {
        "process_name": "RayTrainWorker",
        "rank": context.get_world_rank(),
        "world_size": context.get_world_size(),
        "local_rank": context.get_local_rank(),
        "local_world_size": context.get_local_world_size(),
        "node_rank": context.get_node_rank(),
    }


def _context():
    import ray.train

    return ray.train.get_context()


def end():
    """Close what was recorded of this worker, which Ray kills then."""
    if str(_own_run) and _context().get_world_rank() == 0:
        say(f"next: {_own_run}")
    _own_run.end()
    _recording.close_capture()


def label(name):
    """A context that labels what Ray Train does, by the name of its hook."""
    from stepscope import dataflow
    from stepscope._annotate import annotate

    return dataflow.checkpoint(name) if name == "checkpoint_transfer" else annotate(name)
