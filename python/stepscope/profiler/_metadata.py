"""What a program says of its own recording: metadata, and the ids of cycles."""

import json

from stepscope import _recorder
from stepscope.profiler import _distributed


class Metadata:
    """The part of a profiler that keeps metadata."""

    def add_metadata(self, key, value):
        """Add a text to the trace, and to the run."""
        self.add_metadata_json(key, json.dumps(value))

    def add_metadata_json(self, key, value):
        """Add a value, given as JSON, to the trace, and to the run."""
        self._trace_metadata[key] = value
        if self._part.is_open:
            self._note({key: value})

    @staticmethod
    def _note(metadata):
        """Let the run know of metadata."""
        for fact, value in _distributed.facts_of(metadata):
            _recorder.set_fact(fact, value)

    def preset_metadata_json(self, key, value):
        """The same before recording begins: it is added when it does."""
        self.preset_metadata[key] = value

    def _add_own_metadata(self):
        for name in ("profile_memory", "with_stack", "record_shapes", "with_modules", "with_flops"):
            if getattr(self, name):
                self.add_metadata_json(name, "1")
        self.add_metadata_json("trace_id", json.dumps(self.profiler.trace_id))
        distributed = _distributed.distributed_info()
        if distributed:
            self.add_metadata_json("distributedInfo", json.dumps(distributed))
        for key, value in self.preset_metadata.items():
            self.add_metadata_json(key, value)

    def set_custom_trace_id_callback(self, callback):
        """Let ``callback()`` give the id of each cycle that begins from now on."""
        self.custom_trace_id_callback = callback

    def get_trace_id(self):
        """The id of the cycle that began last; ``None`` before the first."""
        return None if self.profiler is None else self.profiler.trace_id
