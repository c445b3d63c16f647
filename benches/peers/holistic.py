"""Holistic Trace Analysis: loads a trace, and breaks down device time; or what it says of a folder of ranks: the same, the
overlap of communication and computing, and kernels.

``python holistic.py start|load|breakdown FILE [TIMES]``, ``python holistic.py ranks FOLDER``; ``start`` imports the
library and reads nothing.
"""

import os
import sys

from hta.trace_analysis import TraceAnalysis

mode, file, *times = sys.argv[1:]
if mode == "ranks":
    analysis = TraceAnalysis(trace_dir=os.path.abspath(file))
    assert len(analysis.get_temporal_breakdown(visualize=False)), "no device time"
    assert len(analysis.get_comm_comp_overlap(visualize=False)), "no communication"
    assert all(len(table) for table in analysis.get_gpu_kernel_breakdown(visualize=False)), "no kernels"
    # Its search for stragglers is left out: 0.5 knows kernels of NCCL as `ncclKernel…`, as they were called before 2.19,
    # and fails where there are none.
elif mode != "start":
    analysis = TraceAnalysis(trace_files={0: os.path.abspath(file)}, trace_dir=os.path.dirname(os.path.abspath(file)))
    for _ in range(int(times[0]) if times else mode == "breakdown"):
        assert len(analysis.get_temporal_breakdown(visualize=False)), "no device time"
os._exit(0)  # Taking millions of objects apart again is not part of it.
