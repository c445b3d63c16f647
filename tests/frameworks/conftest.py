"""What the tests of frameworks share with those of the package: how runs are made and read."""

import os
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
import runs

# Lightning asks MPI whether it runs below it; the library of this environment lies in the one beside it.
os.environ["MPI4PY_LIBMPI"] = str(Path(torch.__file__).parents[3])
# Ray asks nobody on the network, leaves no token behind, and its workers get as much time as others.
os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_AUTH_MODE="disabled", RAY_worker_niceness="0")


def pytest_collection_modifyitems(items):
    runs.put_slow_files_first(items)
