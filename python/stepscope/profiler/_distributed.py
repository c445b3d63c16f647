"""What ``torch.distributed`` says about the job, and how metadata stands in a trace."""

import json
import sys


def distributed_info():
    """The member ``distributedInfo`` of a trace; ``None`` while ``torch.distributed`` is not initialised."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    try:
        info = {
            "backend": distributed.get_backend(),
            "rank": distributed.get_rank(),
            "world_size": distributed.get_world_size(),
        }
        # Not in every release.
        if hasattr(distributed, "get_pg_count"):
            info["pg_count"] = distributed.get_pg_count()
            configs = distributed.distributed_c10d._get_all_pg_configs()
            info["pg_config"] = json.loads(json.dumps(configs, default=_plain))
        return info
    except Exception:
        return None  # What a release says otherwise is no reason to fail.


def _plain(number):
    """A number of numpy or a tensor as one of Python."""
    return number.item() if hasattr(number, "item") else str(number)


def _text(member):
    return member if isinstance(member, str) else json.dumps(member)


def facts_of(metadata):
    """Metadata as facts of a trace: those of ``distributedInfo`` each by itself, the others as they are."""
    facts = []
    for key, value in metadata.items():
        if key == "distributedInfo":
            facts += [(f"{key}.{name}", _text(member)) for name, member in json.loads(value).items()]
        else:
            facts.append((f"metadata.{key}", value))
    return facts
