"""A run that an object of ours records for a framework, where nothing else records."""

import atexit
import os

from stepscope import _recorder
from stepscope._say import say


class OwnRun:
    """Recorded between :meth:`begin` and :meth:`end`, with options as of :class:`stepscope.profiler.profile`."""

    def __init__(self, options):
        self._options, self._profile = options, None

    def begin(self):
        """Record from now on, unless something records already."""
        if self._profile is None and not _recorder.is_open():
            from stepscope.profiler import profile

            self._profile = profile(**self._options)
            self._profile.start()
            # A loop that fails does not say that it ends.
            atexit.register(self.end)

    def end(self):
        """Record no longer what :meth:`begin` began, and say where it is."""
        profile, self._profile = self._profile, None
        if profile is not None:
            atexit.unregister(self.end)
            profile.stop()
            if os.path.isdir(profile.run):
                say(f"next: stepscope report {profile.run}")
