"""Holistic Trace Analysis: loads a trace, and breaks down device time.

``python holistic.py start|load|breakdown FILE [TIMES]``; ``start`` imports the library and reads nothing.
"""

import os
import sys

from hta.trace_analysis import TraceAnalysis

mode, file, *times = sys.argv[1:]
if mode != "start":
    analysis = TraceAnalysis(trace_files={0: os.path.abspath(file)}, trace_dir=os.path.dirname(os.path.abspath(file)))
    for _ in range(int(times[0]) if times else mode == "breakdown"):
        assert len(analysis.get_temporal_breakdown(visualize=False)), "no device time"
os._exit(0)  # Taking millions of objects apart again is not part of it.
