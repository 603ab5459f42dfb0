"""Any metric of IQA-PyTorch (pyiqa) behind a card of ours: an optional extra, imported only when it is asked for.

pyiqa is under the PolyForm Noncommercial licence and downloads weights when a learned metric first runs.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.tools.calibration import Calibration, load_profile, usable
from agenticiqa.programs.tools.card import ToolCard
from agenticiqa.signatures.types import OVERALL

INSTALL = 'pyiqa is not installed: pip install "agenticiqa[pyiqa]" (PolyForm Noncommercial licence)'


def pyiqa_card(name: str, profile: str) -> ToolCard:
    """The card of a pyiqa metric.

    Its curve is the profile's, if that has one of this name; else the metric's own range is mapped linearly. Raises
    ToolError when pyiqa is missing, knows no such metric, or the metric has neither a curve nor a finite range.
    """
    known = _configs()
    if name not in known:
        raise ToolError(f"pyiqa has no metric {name!r}; it has {', '.join(sorted(known))}")
    about = known[name]
    low, high = _numbers(str(about.get("score_range", "")))
    higher_is_better = not about.get("lower_better", False)
    if name in load_profile(profile):
        curve = usable(name, profile)
    elif low is not None and high is not None:
        slope = 4 / (high - low) * (1 if higher_is_better else -1)
        middle = 3 - slope * (low + high) / 2
        curve = Calibration((0.0, 0.0, 0.0, slope, middle), (low, high), "linear over the metric's stated range")
    else:
        raise ToolError(f"{name} has no curve in the calibration profile {profile!r} and no finite range of its own")
    return ToolCard(
        name=name,
        kind=about["metric_mode"],
        higher_is_better=higher_is_better,
        raw_range=curve.raw_range,
        good_at=(OVERALL,),
        description="Metric of IQA-PyTorch.",
        source="pyiqa, PolyForm Noncommercial licence",
        cost_ms=float("nan"),
        measure=_measure(name),
        calibration=curve,
    )


def _measure(name: str) -> Callable[..., float]:
    def measure(image: np.ndarray, reference: np.ndarray | None = None) -> float:
        arrays = [image] if reference is None else [image, reference]
        return float(_metric(name)(*map(_tensor, arrays)))

    return measure


@cache
def _metric(name: str) -> Any:
    import pyiqa

    return pyiqa.create_metric(name, device="cpu")


def _tensor(pixels: np.ndarray) -> Any:
    import torch

    return torch.from_numpy(pixels.astype(np.float32) / 255).permute(2, 0, 1)[None]


def _configs() -> dict[str, dict[str, Any]]:
    try:
        from pyiqa.default_model_configs import DEFAULT_CONFIGS
    except ImportError as error:
        raise ToolError(INSTALL) from error
    return dict(DEFAULT_CONFIGS)


def _numbers(score_range: str) -> tuple[float | None, float | None]:
    """The two ends of a range such as "~0, ~1" or "0, 100"; ``None`` for an end that is not a number."""
    ends = [re.sub(r"[~\s]", "", end) for end in score_range.split(",")]
    if len(ends) != 2:
        return None, None
    low, high = (float(end) if re.fullmatch(r"-?\d+(\.\d+)?", end) else None for end in ends)
    return low, high
