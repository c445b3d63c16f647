"""Iterations and phases of an SGLang server: SGLang labels them only while PyTorch's own profiler runs."""

import contextlib
import functools
import sys

from stepscope import _recorder, _steps
from stepscope._annotate import annotate
from stepscope._frameworks import harmless

#: What the scheduler does thousands of times a second also while there are no requests; those of its ranges with work in
#: them are ``run_batch`` and ``process_batch_result``.
_POLLING = frozenset(
    f"scheduler.{name}"
    for name in ("recv_requests", "process_input_requests", "get_next_batch_to_run", "idle", "sanity_check_cache")
)


def label_ranges(module):
    """Label what SGLang labels for profilers: passes of the model, as ``step[DECODE bs=16]``, and what its scheduler does."""
    utils = sys.modules[module]
    range_of = utils.profile_range

    @harmless
    def label(name, scope):
        if name.startswith("step["):
            _steps.pass_begins()
        is_nothing = isinstance(scope, contextlib.nullcontext)
        return annotate(name) if is_nothing and name not in _POLLING and _recorder.are_labels_wanted() else None

    @functools.wraps(range_of)
    def labelled(debug_name, *args, **kwargs):
        scope = range_of(debug_name, *args, **kwargs)
        return label(debug_name, scope) or scope

    _recorder.hide(labelled.__code__)
    utils.profile_range = labelled
