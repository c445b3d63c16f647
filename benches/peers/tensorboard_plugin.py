"""TensorBoard's PyTorch plugin: what its loader does with each file, without the server and its processes.

``python tensorboard_plugin.py start|load FILE``; ``start`` imports the library and reads nothing.
"""

import os
import sys
import tempfile

from torch_tb_profiler.profiler.data import DistributedRunProfileData, RunProfileData
from torch_tb_profiler.profiler.run_generator import RunGenerator

mode, file = sys.argv[1:]
if mode == "load":
    with tempfile.TemporaryDirectory() as cache:
        data = RunProfileData.parse("worker", None, os.path.abspath(file), cache)
        profile = RunGenerator("worker", None, data).generate_run_profile()
        distributed = DistributedRunProfileData(data)
    assert distributed is not None and profile.views, "no views"
os._exit(0)  # Taking millions of objects apart again is not part of it.
