"""The names of other tools, for programs that were written for them: see :mod:`stepscope.compat.dftracer`."""
