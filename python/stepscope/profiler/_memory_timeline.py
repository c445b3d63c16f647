"""Memory in use over time."""


def write(recorded, path, device):
    """Write the memory of a device over time to ``path``, in the form that its ending asks for.

    Parameters
    ----------
    recorded : Recorded
    path : str
        ``.html``: a page; ``.raw.json.gz``: changes; else points, packed when it ends in ``.gz``.
    device : str, optional
        ``"cpu"``, ``"cuda:0"`` …; by default the first GPU, or the host where there is none.
    """
    import torch

    from stepscope import _engine

    asked = torch.device(device or ("cuda:0" if torch.cuda.is_available() else "cpu"))
    number = None if asked.type == "cpu" else asked.index or 0
    # What memory is for follows from operators, labels, steps and modules.
    capture, cut = recorded.last_window(kinds=(True, True, True, True, ()))
    _engine.write_memory_timeline(path, capture, cut, number)
