"""What is worth knowing about the process and the machine that a run was recorded on."""

import functools
import glob
import itertools
import os
import platform
import sys

from stepscope import _recorder

# What says how many threads libraries compute with, and where these run.
_THREAD_VARIABLES = (
    *("OMP_NUM_THREADS", "OMP_DYNAMIC", "OMP_PROC_BIND", "OMP_PLACES", "OMP_WAIT_POLICY", "GOMP_CPU_AFFINITY"),
    *("KMP_AFFINITY", "KMP_BLOCKTIME", "MKL_NUM_THREADS", "MKL_DYNAMIC", "OPENBLAS_NUM_THREADS"),
)
# What makes every launch, allocation or collective slower to find a fault, and with which values: none for all but 0.
_DEBUG_VARIABLES = {
    **dict.fromkeys(("CUDA_LAUNCH_BLOCKING", "HIP_LAUNCH_BLOCKING", "AMD_SERIALIZE_KERNEL", "AMD_SERIALIZE_COPY")),
    **dict.fromkeys(("PYTORCH_NO_CUDA_MEMORY_CACHING", "PYTORCH_NO_HIP_MEMORY_CACHING")),
    "TORCH_DISTRIBUTED_DEBUG": "DETAIL",
    "NCCL_DEBUG": "TRACE",
}
# Where a process is in its job, by the launcher's variables.
_KEYS_OF_LAUNCHER = ("rank", "world_size", "local_rank", "local_world_size", "node_rank", "restart_count")


def facts_of_process(torch):
    """Facts about this process, as a dict of strings."""
    facts = {
        "process_name": _process_name(),
        "command": "\0".join(_command()),
        "host": platform.node(),
        "os": platform.platform(),
        "cpu": _cpu_model(),
        "cpu_count": str(os.cpu_count() or 0),
        "numa_nodes": str(len(set(_node_of_cpu().values())) or ""),
        "numa_nodes_of_memory": _memory_nodes() if _node_of_cpu() else "",
        "python_version": platform.python_version(),
        "torch_version": torch.__version__,
        "torch_threads": str(torch.get_num_threads()),
        "thread_variables": " ".join(f"{name}={os.environ[name]}" for name in _THREAD_VARIABLES if name in os.environ),
        "debug_variables": " ".join(_debug_variables()),
        "cuda_version": torch.version.cuda or "",
        "gpus": "; ".join(_gpu_models()),
        **(rank_facts_of_torch() or rank_facts_of_launcher()),
    }
    # Names of files may hold bytes that are no text.
    return {key: value.encode(errors="replace").decode() for key, value in facts.items() if value}


def settings_of_loop(torch, optimizer):
    """What a program sets before its loop, as a dict of strings; empty ones are not known."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    allowed = os.sched_getaffinity(0)
    nodes = {_node_of_cpu()[cpu] for cpu in allowed if cpu in _node_of_cpu()}
    return {
        "parameters": str(sum(parameter.numel() for parameter in parameters)),
        "parameters_float64": str(sum(one.numel() for one in parameters if one.dtype == torch.float64)),
        "torch_threads": str(torch.get_num_threads()),
        "cpu_cores": str(len(set(_core_of_cpu().values())) or ""),
        "cpu_cores_allowed": str(len({_core_of_cpu().get(cpu, cpu) for cpu in allowed})),
        "numa_nodes_of_cpus": ",".join(map(str, sorted(nodes))),
        "anomaly_mode": "1" if torch.is_anomaly_enabled() else "0",
    }


def rank_facts_of_torch():
    """The rank facts of an initialised torch.distributed; empty while it is not."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return {}
    return rank_facts_of_group(distributed.get_rank(), distributed.get_world_size())


def rank_facts_of_group(rank, world_size):
    """What torch.distributed says, and the rest of the launcher unless that means other processes; unknown ones empty.

    Processes that a rank of a launcher starts, such as those of ``spawn``, have its variables and ranks of their own.
    """
    facts = {"rank": str(rank), "world_size": str(world_size)}
    of_launcher = rank_facts_of_launcher()
    is_of_others = any(of_launcher.get(key, value) != value for key, value in facts.items())
    return {**dict.fromkeys(_KEYS_OF_LAUNCHER, ""), **({} if is_of_others else of_launcher), **facts}


def rank_facts_of_launcher():
    """The rank facts that the launcher's variables say; which ones is in ``launchers.rs`` of the recorder."""
    return {key: str(value) for key, value in _recorder.launcher_facts(os.environ.get).items()}


def _debug_variables():
    """Those that are set so that they cost time, as `CUDA_LAUNCH_BLOCKING=1`."""
    for name, costly in _DEBUG_VARIABLES.items():
        value = os.environ.get(name, "")
        if value.upper() == costly or (costly is None and value not in ("", "0")):
            yield f"{name}={value}"


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
    if not _cpus():
        return platform.processor()
    return next((cpu["model name"] for cpu in _cpus() if "model name" in cpu), "")


def _core_of_cpu():
    """The core of each processor: one may be several of them."""
    cores = {}
    for cpu in _cpus():
        number = cpu.get("processor", "")
        if number.isdecimal():
            cores[int(number)] = (cpu.get("physical id"), cpu.get("core id", number))
    return cores


@functools.cache
def _cpus():
    """What the system says of each processor. It is read once, before calls on files are recorded."""
    of_each = "".join(_lines("/proc/cpuinfo")).split("\n\n")
    lines = ([line.partition(":") for line in cpu.splitlines()] for cpu in of_each if cpu)
    return [{key.strip(): value.strip() for key, _, value in cpu} for cpu in lines]


@functools.cache
def _node_of_cpu():
    """The NUMA node of each processor; empty where there is only one. It is read once, as the above."""
    nodes = {}
    for path in glob.glob("/sys/devices/system/node/node[0-9]*/cpulist"):
        node = int(os.path.basename(os.path.dirname(path))[len("node") :])
        nodes.update(dict.fromkeys(_numbers("".join(_lines(path))), node))
    return nodes if len(set(nodes.values())) > 1 else {}


@functools.cache
def _memory_nodes():
    """The NUMA nodes from which the process may take memory, as `0,1`; read once, too."""
    lines = (line.partition(":") for line in _lines("/proc/self/status"))
    nodes = [node for key, _, value in lines if key == "Mems_allowed_list" for node in _numbers(value)]
    # What `numactl --membind` says holds besides. Any mapping shows it, as `bind:1` or `bind=static:1`.
    policy = [part for line in _lines("/proc/self/numa_maps", 1) for part in line.split()[1:2]]
    kind, _, bound = "".join(policy).partition(":")
    if kind.partition("=")[0] == "bind":
        nodes = [node for node in nodes if node in _numbers(bound)]
    return ",".join(map(str, nodes))


def _lines(path, count=None):
    """The lines of a file, or the first of them; none where it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return list(itertools.islice(file, count))
    except OSError:
        return []


def _numbers(text):
    """The numbers of a list as the system writes it: `0-2,5`."""
    ranges = (part.partition("-") for part in text.strip().split(",") if part)
    return [number for first, _, last in ranges for number in range(int(first), int(last or first) + 1)]


def _gpu_models():
    """NVIDIA's kernel module lists its devices without waking them."""
    models = []
    for path in sorted(glob.glob("/proc/driver/nvidia/gpus/*/information")):
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = (line.partition(":") for line in file)
            models.extend(value.strip() for key, _, value in lines if key.strip() == "Model")
    return models
