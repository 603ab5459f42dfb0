"""From a metric's own scale to 1..5 (higher is better): five-parameter logistic curves with their provenance.

The curve is the standard form of Sheikh et al. 2006 (the paper's Eq. 6 prints it without the ``1 +``, with which nine
of its tools would be constant)::

    beta1 * (1/2 - 1 / (1 + exp(beta2 * (x - beta3)))) + beta4 * x + beta5, clipped to [1, 5]

A curve that turns round inside the metric's range would call a worse image better, so it is refused by name.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path

import numpy as np
import yaml

from agenticiqa.programs.errors import ToolError

PROFILES = "calibration"


@dataclass(frozen=True)
class Calibration:
    """One tool's curve. ``fitted_on`` says where the numbers come from: data set, n, date, residual, SRCC."""

    betas: tuple[float, float, float, float, float]
    raw_range: tuple[float, float]
    fitted_on: str

    def __call__(self, raw: float) -> float:
        """The score in [1, 5] of a raw value; values beyond the range count as its end."""
        return float(np.clip(logistic5(np.clip(raw, *self.raw_range), self.betas), 1.0, 5.0))

    def is_monotone(self) -> bool:
        """Whether the curve, before clipping, only rises or only falls over the metric's range."""
        steps = np.diff(logistic5(np.linspace(*self.raw_range, 2001), self.betas))
        tolerance = 1e-9
        return bool(np.all(steps >= -tolerance) or np.all(steps <= tolerance))


def logistic5(raw: float | np.ndarray, betas: tuple[float, float, float, float, float]) -> float | np.ndarray:
    """The standard five-parameter logistic of ``raw``, unclipped."""
    b1, b2, b3, b4, b5 = betas
    x = np.asarray(raw, dtype=float)
    # 1/2 - 1/(1 + exp(t)) is tanh(t/2)/2, which cannot overflow
    return b1 * 0.5 * np.tanh(0.5 * b2 * (x - b3)) + b4 * x + b5


@lru_cache(maxsize=8)
def load_profile(name_or_path: str) -> Mapping[str, Calibration]:
    """The curves of a profile: the name of a shipped one ("default", "table5") or the path of a YAML file.

    A profile maps a tool's name to ``betas`` (five numbers), ``raw_range`` (two) and ``fitted_on`` (a sentence).
    Raises ToolError when there is no such profile or an entry is incomplete; use :func:`usable` to get a curve, which
    refuses one that is not monotone.
    """
    path = Path(name_or_path)
    shipped = resources.files("agenticiqa.configs") / PROFILES / f"{name_or_path}.yaml"
    if path.is_file():
        text = path.read_text(encoding="utf-8")
    elif shipped.is_file():
        text = shipped.read_text(encoding="utf-8")
    else:
        known = sorted(
            p.name.removesuffix(".yaml") for p in (resources.files("agenticiqa.configs") / PROFILES).iterdir()
        )
        raise ToolError(f"no calibration profile {name_or_path!r}: give a YAML file or one of {', '.join(known)}")
    try:
        return {
            tool: Calibration(tuple(entry["betas"]), tuple(entry["raw_range"]), entry["fitted_on"])
            for tool, entry in yaml.safe_load(text)["tools"].items()
        }
    except (KeyError, TypeError, yaml.YAMLError) as error:
        raise ToolError(f"calibration profile {name_or_path!r} is not readable: {error}") from error


def usable(tool: str, profile: str) -> Calibration:
    """The tool's curve in a profile. Raises ToolError when it has none or one that is not monotone."""
    curves = load_profile(profile)
    if tool not in curves:
        raise ToolError(f"calibration profile {profile!r} has no curve for {tool}: it has {', '.join(curves)}")
    if not curves[tool].is_monotone():
        raise ToolError(
            f"calibration profile {profile!r}: the curve of {tool} is not monotone over {curves[tool].raw_range}"
        )
    return curves[tool]
