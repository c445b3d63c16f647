"""What ``check.py`` is made of: workloads, recording them twice, and comparing what was recorded."""
