"""Use any metric of IQA-PyTorch (pyiqa) as a tool: an optional extra, imported only on request.

pyiqa is under the PolyForm Noncommercial license. A learned metric's weights are downloaded when its tool is made.
"""

import contextlib
import math
import re
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.tools.tool import PYIQA, Tool
from agenticiqa.programs.tools.tool_curves import ToolCurve, read_tool_curves, usable

INSTALL = 'pyiqa is not installed: pip install "agenticiqa[pyiqa]" (PolyForm Noncommercial license)'


def pyiqa_tool(name: str, curves: str) -> Tool:
    """Return a pyiqa metric as a tool that runs on the CPU.

    Its curve is that of this name in ``curves``, if there is one; else the metric's stated range is mapped linearly.
    Raises ToolError when pyiqa is missing or broken, has no such metric, the metric has neither a curve nor a finite
    range, or it cannot be made (its weights cannot be downloaded, for example).
    """
    known = _configuration(name)
    curve = _curve(name, curves, known["score_range"], not known.get("lower_better", False))
    return replace(pyiqa_metric(name), name=name, raw_range=curve.raw_range, curve=curve)


def pyiqa_metric(name: str) -> Tool:
    """Return a pyiqa metric under the name ``pyiqa:NAME``, on its own scale. Raises ToolError as ``pyiqa_tool``."""
    known = _configuration(name)
    return Tool(
        name=f"{PYIQA}{name}",
        kind=known["metric_mode"],
        higher_is_better=not known.get("lower_better", False),
        raw_range=(-math.inf, math.inf),
        description="Metric of IQA-PyTorch.",
        source="pyiqa, PolyForm Noncommercial license",
        cost_ms=None,
        measure=load_metric(name),
    )


@cache
def load_metric(name: str) -> Callable[..., float]:
    """Return a pyiqa metric as a function of uint8 pixels (H, W, 3), made once. Raises ToolError if it cannot be made.

    It takes the image and, if the metric compares, the reference. Threads take turns.
    """
    return measure_by(created_metric(name))


def created_metric(name: str) -> Any:
    """Return a pyiqa metric on the CPU, as ``pyiqa.create_metric`` makes it. Raises ToolError if it cannot be made."""
    _configuration(name)
    create_metric = _package().create_metric
    try:
        # pyiqa prints its downloads to stdout, where only results belong.
        with contextlib.redirect_stdout(sys.stderr):
            return create_metric(name, device="cpu")
    except Exception as error:  # the network, the weights, a dependency's version: all end in one line for the user
        raise ToolError(f"pyiqa cannot create its metric {name}: {_in_one_line(error)}") from error


def measure_by(metric: Callable[..., Any]) -> Callable[..., float]:
    """Convert a metric of tensors (1, 3, H, W) in [0, 1] to one of uint8 pixels (H, W, 3). Threads take turns."""
    turn = threading.Lock()

    def measure(image: np.ndarray, reference: np.ndarray | None = None) -> float:
        arrays = [image] if reference is None else [image, reference]
        with turn:  # some metrics keep the layers' outputs of the call under way on themselves
            return float(metric(*map(_tensor, arrays)))

    return measure


def _configuration(name: str) -> Any:
    """Return pyiqa's configuration of a metric. Raises ToolError for an unknown name."""
    known = _package().default_model_configs.DEFAULT_CONFIGS
    if name not in known:
        raise ToolError(f"pyiqa has no metric {name!r}; it has {', '.join(sorted(known))}")
    return known[name]


def _curve(name: str, curves: str, score_range: str, higher_is_better: bool) -> ToolCurve:
    if name in read_tool_curves(curves):
        return usable(name, curves)
    low, high = _ends(score_range)
    if low is None or high is None:
        raise ToolError(
            f"{name} has no curve in the tool curves {curves!r} and no finite range of its own; name "
            "a file with a curve for it under tool_curves"
        )
    slope = 4 / (high - low) * (1 if higher_is_better else -1)
    middle = 3 - slope * (low + high) / 2
    return ToolCurve((0.0, 0.0, 0.0, slope, middle), (low, high), "linear over the metric's stated range")


def _ends(score_range: str) -> tuple[float | None, float | None]:
    """Return the two ends of a range such as "~0, ~1" or "0, 100"; ``None`` for an end that is not a number."""
    ends = [re.sub(r"[~\s]", "", end) for end in score_range.split(",")]
    if len(ends) != 2:
        return None, None
    low, high = (float(end) if re.fullmatch(r"-?\d+(\.\d+)?", end) else None for end in ends)
    return low, high


def _tensor(pixels: np.ndarray) -> Any:
    import torch

    return torch.from_numpy(pixels.astype(np.float32) / 255).permute(2, 0, 1)[None]


def _package() -> Any:
    try:
        import pyiqa
    except Exception as error:  # incompatible torch and torchvision raise other errors than ImportError
        if isinstance(error, ModuleNotFoundError) and error.name == "pyiqa":
            raise ToolError(INSTALL) from error
        raise ToolError(f"pyiqa is installed but cannot be imported: {_in_one_line(error)}") from error
    return pyiqa


def _in_one_line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
