"""Iterations and phases of an SGLang server: SGLang labels them only while PyTorch's own profiler runs."""

import contextlib
import functools
import sys

from stepscope import _recorder
from stepscope._annotate import annotate

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

    @functools.wraps(range_of)
    def labelled(debug_name, *, color=None, nvtx_enabled=False):
        scope = range_of(debug_name, color=color, nvtx_enabled=nvtx_enabled)
        is_nothing = isinstance(scope, contextlib.nullcontext)
        if is_nothing and debug_name not in _POLLING and _recorder.are_labels_wanted():
            return annotate(debug_name)
        return scope

    _recorder.hide(labelled.__code__)
    utils.profile_range = labelled
