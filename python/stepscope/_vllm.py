"""Iterations and phases of a vLLM engine: vLLM itself labels them only while a profiler of its own runs."""

import contextlib
import functools
import sys

from stepscope import _recorder, _steps
from stepscope._annotate import annotate
from stepscope._frameworks import harmless


def label_iterations(module):
    """Label each pass of the model with what vLLM's own label says: how many requests are read in and continued, and how
    many tokens of them."""
    worker_module = sys.modules[module]
    details_of = worker_module.compute_iteration_details

    @harmless
    def iteration(scheduled):
        if not scheduled.num_scheduled_tokens:
            return None  # It only forgets requests that have ended.
        details = details_of(scheduled)
        context = f"{details.num_ctx_requests}({details.num_ctx_tokens})"
        return annotate(
            f"execute_context_{context}_generation_{details.num_generation_requests}({details.num_generation_tokens})"
        )

    @harmless
    def begins(scheduled):
        if scheduled.num_scheduled_tokens:
            _steps.pass_begins()

    annotate_profile = worker_module.Worker.annotate_profile

    @functools.wraps(annotate_profile)
    def annotate_and_label(self, scheduled, *args, **kwargs):
        begins(scheduled)
        scope = annotate_profile(self, scheduled, *args, **kwargs)
        return (_is_nothing(scope) and iteration(scheduled)) or scope

    _recorder.hide(annotate_and_label.__code__)
    worker_module.Worker.annotate_profile = annotate_and_label


def label_phases(module):
    """Label what vLLM labels where ``VLLM_CUSTOM_SCOPES_FOR_PROFILING`` is set: scheduling, forward pass, sampling."""
    utils = sys.modules[module]
    scope_of = utils.record_function_or_nullcontext

    @functools.wraps(scope_of)
    def labelled(name, *args, **kwargs):
        scope = scope_of(name, *args, **kwargs)
        return annotate(name) if _is_nothing(scope) else scope

    _recorder.hide(labelled.__code__)
    utils.record_function_or_nullcontext = labelled


def _is_nothing(scope):
    """vLLM labels nothing here, and our labels are recorded."""
    return isinstance(scope, contextlib.nullcontext) and _recorder.are_labels_wanted()
