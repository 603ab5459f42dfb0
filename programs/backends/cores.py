"""The number of processor cores that this process may use."""

import math
import os
from pathlib import Path

WORKERS = 4  # images in parallel with a model, where most of the time is waiting
CPU_MAX = Path("/sys/fs/cgroup/cpu.max")


def available_cores() -> int:
    """Return the number of usable cores (at least 1) within the process's CPU affinity and its container's limit.

    The limit of a container (cgroup v2, ``cpu.max``: microseconds per period) is rounded up to whole cores.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        share, period = CPU_MAX.read_text().split()
        return max(1, min(cores, math.ceil(int(share) / int(period))))
    except (OSError, ValueError):  # no such file, or "max": no limit
        return cores
