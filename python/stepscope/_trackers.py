"""Hands a run to the tracker of experiments that the program uses: its report, its trace, and about twenty numbers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from stepscope._say import say


def log_to(run=None, tracker=None, name="stepscope"):
    """See :func:`stepscope.log_to`."""
    try:
        return _log_to(run, tracker, name)
    except Exception as error:
        # Training has ended well, whatever happens here.
        say(f"not logged to a tracker: {type(error).__name__}: {error}")
        return None


def _log_to(run, tracker, name):
    if _rank() != 0:
        return None
    path = _path_of(run)
    kind, handle = _given(tracker) or _active()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "stepscope", "export", path, "--for", kind, "-o", folder, "--force"]
        made = subprocess.run(command, capture_output=True, text=True)
        if made.returncode:
            raise RuntimeError(made.stderr.strip())
        folder = Path(folder)
        numbers = json.loads((folder / "numbers.json").read_text())
        _TRACKERS[kind](handle, folder, numbers, name)
    return kind


def _rank():
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank()
    return int(os.environ.get("RANK", 0))


def _path_of(run):
    recording = sys.modules.get("stepscope._recording")
    run = getattr(run, "run", run) or (recording and recording.run())
    if run is None:
        raise ValueError("no run was recorded here; name one: log_to(run=...)")
    recorder = sys.modules.get("stepscope._recorder")
    if recorder is not None and recorder.is_open() and os.path.samefile(recording.run(), run):
        raise ValueError("the run is still being recorded: end the profile before")
    return os.fspath(run)


def _given(tracker):
    """What a tracker is, and the object to log to, where one was named or given."""
    if tracker is None:
        return None
    if isinstance(tracker, str):
        if tracker not in _TRACKERS:
            raise ValueError(f"tracker is {tracker!r}: give one of {', '.join(_TRACKERS)}, or the tracker's object")
        return tracker, None
    module = type(tracker).__module__.split(".")[0]
    kind = {"torch": "tensorboard", "tensorboardX": "tensorboard"}.get(module, module)
    if kind not in _TRACKERS:
        raise ValueError(f"nothing is known of a tracker of {type(tracker).__module__}")
    return kind, tracker


def _active():
    """The tracker that the program has begun to log to. None is imported for that."""
    wandb = sys.modules.get("wandb")
    if getattr(wandb, "run", None) is not None:
        return "wandb", wandb.run
    mlflow = sys.modules.get("mlflow")
    if mlflow is not None and mlflow.active_run() is not None:
        return "mlflow", None
    clearml = sys.modules.get("clearml")
    if clearml is not None and clearml.Task.current_task() is not None:
        return "clearml", clearml.Task.current_task()
    raise ValueError("no tracker is active; name one: log_to(tracker=...)")


def _to_wandb(run, folder, numbers, name):
    import wandb

    run = run or wandb.run
    # Its page shows a trace whose file ends so, in an artifact of this type.
    artifact = wandb.Artifact(f"{name}-{run.id}", type="profile")
    artifact.add_file(str(folder / "stepscope.pt.trace.json"))
    artifact.add_file(str(folder / "report.html"))
    # It has copied the files.
    run.log_artifact(artifact)
    run.log({f"{name}/report": wandb.Html((folder / "report.html").read_text(encoding="utf-8"))})
    run.summary.update({f"{name}/{key}": value for key, value in numbers.items()})


def _to_mlflow(_, folder, numbers, name):
    import mlflow

    mlflow.log_artifacts(str(folder), name)
    mlflow.log_metrics({f"{name}/{key}": value for key, value in numbers.items()})


def _to_clearml(task, folder, numbers, name):
    from clearml import Task

    task = task or Task.current_task()
    for file in sorted(folder.iterdir()):
        # What is to be kept is copied before this folder goes.
        task.upload_artifact(f"{name}-{file.name}", artifact_object=str(file), wait_on_upload=True)
    logger = task.get_logger()
    for key, value in numbers.items():
        logger.report_single_value(f"{name}/{key}", value)


def _to_tensorboard(writer, folder, numbers, name):
    if writer is None:
        raise ValueError("give the SummaryWriter: log_to(tracker=writer)")
    # A run of its own: TensorBoard follows one file of events in a folder.
    shutil.copytree(folder, Path(writer.log_dir) / name, dirs_exist_ok=True)


_TRACKERS = {"wandb": _to_wandb, "mlflow": _to_mlflow, "clearml": _to_clearml, "tensorboard": _to_tensorboard}
