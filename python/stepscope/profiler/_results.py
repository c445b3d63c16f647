"""What is asked of a profiler after it recorded: events, averages, files."""

import os

from stepscope import _as_torch_profiler
from stepscope.profiler import _distributed


class Results:
    """The part of a profiler that reads back what was recorded."""

    def _recorded(self, purpose):
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {purpose}")
        return self.profiler

    def key_averages(
        self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False, *, all_threads=None
    ):
        """The events of the last cycle, those of one name together.

        Parameters
        ----------
        group_by_input_shape : bool
            Tell apart by the shapes of inputs; needs ``record_shapes``.
        group_by_stack_n : int
            Tell apart by that many of the innermost frames; needs ``with_stack``.
        group_by_overload_name : bool
            Tell overloads apart.
        all_threads : bool, optional
            Those of all threads, and not only of the one that started to record and its backward pass.

        Returns
        -------
        EventList
            One ``FunctionEventAvg`` a group; ``.table()`` is its text.
        """
        recorded = self._recorded("getting key averages")
        self._check_has_events()
        return recorded.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name, all_threads)

    def events(self, *, all_threads=None):
        """The events of the last cycle, or of all of them with ``acc_events``, as an ``EventList``."""
        recorded = self._recorded("accessing events")
        self._check_has_events()
        return recorded.list_events(all_threads)

    def _check_has_events(self):
        if self._experimental.get("trace_only"):
            raise RuntimeError(
                "events() is not available when trace_only=True in ExperimentalConfig. "
                "Use export_chrome_trace() instead."
            )

    def export_chrome_trace(self, path, use_python_export=False, *, all_threads=None):
        """Write the last cycle as Chrome JSON, packed when ``path`` ends in ``.gz``; as often as you like.

        ``use_python_export`` changes nothing here.
        """
        recorded = self._recorded("exporting chrome trace")
        if not _as_torch_profiler.is_export_wanted():
            return
        facts = _distributed.facts_of(self._trace_metadata)
        *kinds, of_devices = self._kinds(self._types)
        collections = ("PYTHON_GC",) if self._experimental.get("record_python_gc_info") else ()
        recorded.export_chrome_trace(path, facts, all_threads, (*kinds, of_devices + collections))

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Write the stacks of the last cycle in the folded form that draws flame graphs; needs ``with_stack``."""
        return self._recorded("exporting stacks").export_stacks(path, metric)

    def export_memory_timeline(self, path, device=None):
        """Write the memory of a device over the last cycle, by category; needs ``record_shapes``, ``profile_memory``
        and ``with_stack``.

        Parameters
        ----------
        path : str
            ``.html``: a page with the curve; ``.raw.json.gz``: a list of ``[ns, action, bytes, category]``; else
            ``[[us, …], [bytes by category, …]]``, packed when it ends in ``.gz``.
        device : str, optional
            ``"cpu"``, ``"cuda:0"`` …; by default the first GPU, or the host where there is none.
        """
        required = ("record_shapes", "profile_memory", "with_stack")
        missing = [f"{name}=True" for name in required if not getattr(self, name)]
        if missing:
            raise ValueError(f"{', '.join(missing)} required for memory profiling.")
        from stepscope.profiler import _memory_timeline

        _memory_timeline.write(self._recorded("exporting memory"), os.fspath(path), device)

    def _stats(self):
        return None if self.profiler is None else self.profiler._stats
