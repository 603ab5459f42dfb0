"""How many processor cores this process may keep busy."""

import math
import os
from pathlib import Path

CPU_MAX = Path("/sys/fs/cgroup/cpu.max")


def available_cores() -> int:
    """The cores that the system lets us run on, at least 1: all of them, less what affinity or a container leaves out.

    A container's share of processor time (cgroup v2, ``cpu.max``: microseconds in each period) is rounded up.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        share, period = CPU_MAX.read_text().split()
        return max(1, min(cores, math.ceil(int(share) / int(period))))
    except (OSError, ValueError):  # no such file, or "max": no limit
        return cores
