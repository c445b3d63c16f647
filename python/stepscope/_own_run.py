"""A run that an object of ours records for a framework, where nothing else records."""

from stepscope import _recorder


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

    def end(self):
        """Record no longer what :meth:`begin` began."""
        profile, self._profile = self._profile, None
        if profile is not None:
            profile.stop()

    def __str__(self):
        return "" if self._profile is None else f"stepscope report {self._profile.run}"
