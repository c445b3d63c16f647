"""What is worth knowing about the process and the machine that a run was recorded on."""

import glob
import os
import platform
import sys

_RANK_VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")
_WORLD_SIZE_VARIABLES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")


def facts_of_process(torch):
    """Facts about this process, as a dict of strings."""
    facts = {
        "process_name": _process_name(),
        "command": "\0".join(_command()),
        "host": platform.node(),
        "os": platform.platform(),
        "cpu": _cpu_model(),
        "cpu_count": str(os.cpu_count() or 0),
        "python_version": platform.python_version(),
        "torch_version": torch.__version__,
        "torch_threads": str(torch.get_num_threads()),
        "cuda_version": torch.version.cuda or "",
        "gpus": "; ".join(_gpu_models()),
        "local_rank": os.environ.get("LOCAL_RANK", ""),
        **(rank_facts_of_torch() or rank_facts_of_launcher()),
    }
    # Names of files may hold bytes that are no text.
    return {key: value.encode(errors="replace").decode() for key, value in facts.items() if value}


def rank_facts_of_torch():
    """Rank and world size as torch.distributed has them; empty while it is not initialised."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return {}
    return {"rank": str(distributed.get_rank()), "world_size": str(distributed.get_world_size())}


def rank_facts_of_launcher():
    """Rank and world size from the launcher's variables; empty texts when it set none."""
    return {"rank": _first(_RANK_VARIABLES), "world_size": _first(_WORLD_SIZE_VARIABLES)}


def _first(variables):
    values = (os.environ.get(variable, "") for variable in variables)
    return next((value for value in values if value.isdigit()), "")


def _process_name():
    """What multiprocessing calls this process, else the program's own name."""
    multiprocessing = sys.modules.get("multiprocessing.process")
    # Spawned processes have their name before they import anything of the program; who their parent is, only after.
    if multiprocessing is not None and multiprocessing.current_process().name != "MainProcess":
        return multiprocessing.current_process().name
    script = sys.argv[0] if getattr(sys, "argv", None) else ""
    return os.path.basename(script) if script not in ("", "-c", "-m") else "python"


def _command():
    try:
        with open("/proc/self/cmdline", "rb") as file:
            return file.read().decode(errors="replace").rstrip("\0").split("\0")
    except OSError:
        return [sys.executable, *getattr(sys, "argv", [])]


def _cpu_model():
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            lines = (line.partition(":") for line in file)
            return next((value.strip() for key, _, value in lines if key.strip() == "model name"), "")
    except OSError:
        return platform.processor()


def _gpu_models():
    """NVIDIA's kernel module lists its devices without waking them."""
    models = []
    for path in sorted(glob.glob("/proc/driver/nvidia/gpus/*/information")):
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = (line.partition(":") for line in file)
            models.extend(value.strip() for key, _, value in lines if key.strip() == "Model")
    return models
