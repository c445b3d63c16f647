"""Memory in use over time."""


def write(_recorded, _path, _device):
    """Not there yet."""
    raise NotImplementedError("stepscope does not write memory timelines; `stepscope analyze memory_curve RUN` has them")
