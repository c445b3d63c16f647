"""What collectives carry, and between whom: process groups are learnt as they are made."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import os
import sys
import types

from stepscope import _facts, _recorder
from stepscope._say import say

# Of groups with more ranks than this the list of ranks is left out of the facts.
_MOST_RANKS = 64
# What is longer is cut, and then is no JSON.
_MOST_BYTES = 8 << 10


@dataclasses.dataclass(eq=False, repr=False)
class _State:
    """What is known of process groups, and what of their collectives can be recorded."""

    torch: types.ModuleType | None = None
    """The torch module; None until a capture has been opened."""
    is_on: bool = False
    """Collectives are described now."""
    is_watching_ends: bool = False
    """This release has functions that destroy groups, and they are wrapped."""
    is_probed: bool = False
    """:func:`_prove_records` has run."""
    refusals: list[str] = dataclasses.field(default_factory=list)
    """Why not everything about collectives is recorded."""
    is_refusal_printed: bool = False
    """Such a reason was printed."""
    ranks_of_new_group: list[int] = dataclasses.field(default_factory=list)
    """The ranks of the group that was made last."""
    counted_backends: list[object] = dataclasses.field(default_factory=list)
    """The backends whose collectives are counted: they live for as long as these objects."""


_state = _State()


def watch(torch):
    """Learn the rank of this process as soon as torch.distributed knows it, whatever is recorded; once a process."""
    _state.torch = torch
    if torch.distributed.is_available():
        _watch_groups(torch.distributed.distributed_c10d)
        _watch_ends(torch.distributed.distributed_c10d)


def start(torch, options):
    """Describe collectives from now on."""
    _state.is_on = True
    if not torch.distributed.is_available():
        return
    # Also what changed while nothing was recorded: how many collectives a group has had.
    _learn_groups()


def stop():
    """Describe them no longer."""
    _state.is_on = False
    _count([])


def _watch_groups(distributed):
    """Learn the groups anew whenever one is made."""
    make_group = getattr(distributed, "_new_process_group_helper", None)
    if make_group is None:
        return

    @functools.wraps(make_group)
    def make_and_learn_group(*args, **kwargs):
        made = make_group(*args, **kwargs)
        try:
            _learn_rank(distributed)
            if _state.is_on:
                asked = inspect.signature(make_group).bind(*args, **kwargs).arguments
                _state.ranks_of_new_group = list(asked.get("global_ranks_in_group") or ())
                _learn_groups()
        except Exception as error:  # The program's groups matter more.
            say(f"not describing the collectives of process {os.getpid()}: {error}")
        return made

    _recorder.hide(make_and_learn_group.__code__)
    distributed._new_process_group_helper = make_and_learn_group


def _watch_ends(distributed):
    """Let go of groups before they are destroyed: we must neither keep one alive nor look at one that is gone."""
    for name in ("_unregister_process_group", "_unregister_all_process_groups"):
        unregister = getattr(distributed, name, None)
        if unregister is None:
            continue

        @functools.wraps(unregister)
        def let_go_and_unregister(*args, _unregister=unregister, **kwargs):
            try:
                # The group is no member of PyTorch's list any more: those that stay keep their counts.
                if not (_state.is_on and _learn_groups()):
                    _count([])
            except Exception as error:
                _count([])
                say(f"not describing the collectives of process {os.getpid()}: {error}")
            return _unregister(*args, **kwargs)

        _recorder.hide(let_go_and_unregister.__code__)
        setattr(distributed, name, let_go_and_unregister)
        _state.is_watching_ends = True


def _learn_rank(distributed):
    """A group has just been made. The first is that of all: a spawned process may know its rank only now."""
    groups = _groups(distributed)
    if len(groups) == 1 and groups[0][0].group_desc == "default_pg":
        ((group, _),) = groups
        for key, value in _facts.rank_facts_of_group(group.rank(), group.size()).items():
            _recorder.set_fact(key, value)


def _groups(distributed):
    """The groups that this process is a member of, each with its backend: of others the world has a stand-in."""
    groups = [(group, str(made_of[0])) for group, made_of in distributed._world.pg_map.items()]
    return [(group, backend) for group, backend in groups if hasattr(group, "group_name")]


def _learn_groups():
    distributed = sys.modules["torch.distributed"].distributed_c10d
    groups = _groups(distributed)
    if not groups:
        return False
    _prove_records(_state.torch)
    _tell_refusals()
    facts = [_facts_of(distributed, group, backend) for group, backend in groups]
    _recorder.set_fact("process_groups", _as_fact(facts))
    labelled = [group for group, backend in groups if _labels_its_ranges(backend)]
    described = [(_cpu_backend(group), _description_of(distributed, group)) for group in labelled]
    if _count(described):
        return True
    if len(labelled) == 1:
        number = _sequence_number(labelled[0]) if len(groups) == 1 else None
        _recorder.set_labelled_group(_description_of(distributed, labelled[0]), number)
    else:
        # Their ranges do not say which of them they belong to.
        _recorder.set_labelled_group()
    return True


def _as_fact(groups):
    """The groups as JSON that is no longer than facts may be: without ranks where it must be, then the first of them."""
    text = json.dumps(groups, separators=(",", ":"))
    if len(text) <= _MOST_BYTES:
        return text
    short = [{key: value for key, value in group.items() if key != "ranks"} for group in groups]
    while len(json.dumps(short, separators=(",", ":"))) > _MOST_BYTES:
        short.pop()
    _state.refusals.append(f"{len(groups)} groups are too many to list with their ranks; {len(short)} are listed")
    _tell_refusals()
    return json.dumps(short, separators=(",", ":"))


def _count(groups):
    """Count the collectives of groups, by backend and description; False where they cannot be counted."""
    if groups and (not _state.is_watching_ends or any(backend is None for backend, _ in groups)):
        groups = []
    try:
        is_set = _recorder.set_gloo_groups(_library(_state.torch), groups)
    except RuntimeError:
        is_set, groups = True, []  # Not what we know as Gloo: what is certain without counting is said.
    # What another thread may still look at must live on.
    kept = [] if is_set else _state.counted_backends
    _state.counted_backends = kept + [backend for backend, _ in groups]
    return is_set and bool(groups)


def _cpu_backend(group):
    try:
        return group._get_backend(_state.torch.device("cpu"))
    except (AttributeError, RuntimeError):
        return None


def _labels_its_ranges(backend):
    return any(name in backend.lower() for name in ("gloo", "mpi", "ucc", "undefined"))


def _facts_of(distributed, group, backend):
    ranks = _ranks_of(distributed, group)
    facts = {
        "name": group.group_name,
        "description": group.group_desc,
        "backend": backend,
        "backend_config": str(getattr(distributed._world, "pg_backend_config", {}).get(group, backend)),
        "size": group.size(),
        "rank": group.rank(),
    }
    return {**facts, "ranks": ranks} if len(ranks) <= _MOST_RANKS else facts


def _ranks_of(distributed, group):
    known = distributed._world.pg_group_ranks.get(group)
    if known:
        return sorted(known, key=known.get)
    # A group that is being made: PyTorch notes its ranks a moment later. The first one has all of them.
    return _state.ranks_of_new_group or list(range(group.size()))


def _description_of(distributed, group):
    """The facts about a group as each of its collectives carries them."""
    ranks = _ranks_of(distributed, group)
    listed = ", ".join(map(str, ranks)) if len(ranks) <= 30 else f"{', '.join(map(str, ranks[:29]))}, ..., {ranks[-1]}"
    facts = {
        "group": group.group_name,
        "group_description": group.group_desc,
        "group_size": group.size(),
        "group_ranks": f"[{listed}]",
        "rank": group.rank(),
    }
    return [(key, str(value)) for key, value in facts.items()]


def _sequence_number(group):
    """How many collectives the group has had; None where the same ops may go to another backend, on a device."""
    torch = _state.torch
    if torch.accelerator.is_available() if hasattr(torch, "accelerator") else torch.cuda.is_available():
        return None
    try:
        return group._get_backend(torch.device("cpu"))._get_sequence_number_for_group()
    except RuntimeError:
        return None


def prove_tensors(torch):
    """Prove, before anything is recorded, how tensors stand among a range's inputs. On a thread as the hook's probe."""
    _prove(lambda: _run_known_op(torch))


def _prove_records(torch):
    """Prove, with the first process group, where PyTorch keeps what backends for devices announce."""
    if not _state.is_probed and _recorder.is_hooked():
        _state.is_probed = True
        _prove(lambda: _recorder.probe_collectives(_library(torch)))


def _prove(prove):
    """What is not certain is left out, and said where there are collectives."""
    try:
        prove()
    except RuntimeError as refusal:
        _state.refusals.append(str(refusal))


def _tell_refusals():
    if _state.refusals:
        reason = "; ".join(_state.refusals)
        _recorder.set_fact("collectives_refused", reason)
        if not _state.is_refusal_printed:
            _state.is_refusal_printed = True
            say(f"not recording all about the collectives of process {os.getpid()}: {reason}")


def _library(torch):
    return os.path.join(os.path.dirname(torch.__file__), "lib")


def _run_known_op(torch):
    library = _library(torch)
    with torch.no_grad(), torch.inference_mode(False):
        tensor = torch.zeros(3, 5, dtype=torch.float64, device="cpu")
        _recorder.prove_tensors_begin()
        try:
            tensor.exp()
        finally:
            _recorder.prove_tensors_end(library, tensor._cdata, 15, 7)
