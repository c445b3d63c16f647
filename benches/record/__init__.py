"""The parts of ``benches/record.py``: each measures in a process of its own, and says its results as text."""
