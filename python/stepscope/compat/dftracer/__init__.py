"""The names of DFTracer, so that a program that was annotated for it is recorded by Stepscope.

Only the import changes: of 1.x ``from dftracer.logger import …`` becomes ``from stepscope.compat.dftracer.logger import
…``, and of 2.x ``from dftracer.python import …`` becomes ``from stepscope.compat.dftracer.python import …``, whose names
are here, too. What is the same and what differs is in ``docs/dftracer.md``.
"""

from stepscope.compat.dftracer.python import *  # noqa: F403
from stepscope.compat.dftracer.python import __all__ as __all__
