"""Tool curves: five-parameter logistics from a metric's own scale to 1..5, higher is better.

The curve is the standard form of Sheikh et al. 2006::

    beta1 * (1/2 - 1 / (1 + exp(beta2 * (x - beta3)))) + beta4 * x + beta5, clipped to [1, 5]

(The paper's Eq. 6 prints it without the ``1 +``, which would make nine of its tools constant.) A curve that is not
monotone over the metric's range would rate a worse image higher, so it is refused.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import yaml

from agenticiqa.configs.bounds import LARGEST_ERROR, LEAST_ERROR
from agenticiqa.configs.user_files import text_of_yaml
from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.images.files import write_atomically

Betas: TypeAlias = tuple[float, float, float, float, float]

FOLDER = "tool_curves"
LARGEST = 1e9  # magnitude of betas and raw values; curves of larger ones overflow
HEADER = """\
# For each tool, a five-parameter logistic curve from its own scale to 1..5, and the data that it was fitted to. Written
# by eval/research/fit_tool_curves.py. To use this file, give its path under "tool_curves:" in a configuration.
"""


@dataclass(frozen=True)
class ToolCurve:
    """One tool's curve.

    Attributes:
        betas: The five parameters of the logistic.
        raw_range: The lowest and the highest raw value of the tool.
        fitted_on: What the curve was fitted on, for readers: data set, n, date, residual, SRCC.
        residual: The standard deviation of MOS around the curve, in points; ``None`` if it is not known.
        fitted_to: The shipped sets that the curve was fitted to, as "SET" or "SET/SPLIT" (see ``training_images``).
    """

    betas: Betas
    raw_range: tuple[float, float]
    fitted_on: str
    residual: float | None = None
    fitted_to: tuple[str, ...] = ()

    def __call__(self, raw: float) -> float:
        """Return the score in [1, 5] of a raw value; values outside ``raw_range`` are clipped to it first."""
        return float(np.clip(logistic5(np.clip(raw, *self.raw_range), self.betas), 1.0, 5.0))

    def is_monotone(self) -> bool:
        """Return whether the curve, before clipping, only rises or only falls over the metric's range."""
        steps = np.diff(logistic5(np.linspace(*self.raw_range, 2001), self.betas))
        tolerance = 1e-9
        return bool(np.all(steps >= -tolerance) or np.all(steps <= tolerance))

    def is_constant(self) -> bool:
        """Return whether all raw values have the same score."""
        return self(self.raw_range[0]) == self(self.raw_range[1])


def read_yaml(text: str) -> Any:
    """Return the value of a YAML text, read by libyaml where available: that takes a tenth of the time."""
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def logistic5(raw: float | np.ndarray, betas: Betas) -> float | np.ndarray:
    """Return the standard five-parameter logistic of ``raw``, unclipped."""
    b1, b2, b3, b4, b5 = betas
    x = np.asarray(raw, dtype=float)
    # 1/2 - 1/(1 + exp(t)) is tanh(t/2)/2, which cannot overflow
    return b1 * 0.5 * np.tanh(0.5 * b2 * (x - b3)) + b4 * x + b5


def read_tool_curves(name_or_path: str) -> Mapping[str, ToolCurve]:
    """Return tool curves by the name of a shipped set ("default", "table5") or the path of a YAML file.

    The file maps a tool's name to ``betas`` (five numbers), ``raw_range`` (two) and ``fitted_on`` (a sentence), and
    may have ``residual`` (a number) and ``fitted_to`` (a list), as attributes of ``ToolCurve``.
    Raises ToolError when there is no such file or an entry is incomplete; use :func:`usable` to get a curve, which
    refuses one that is not monotone.
    """
    folder = resources.files("agenticiqa.configs") / FOLDER
    try:
        text = text_of_yaml(Path(name_or_path), folder / f"{name_or_path}.yaml")
        if text is None:
            known = sorted(file.name.removesuffix(".yaml") for file in folder.iterdir())
            raise ToolError(f"no tool curves {name_or_path!r}; give a YAML file or one of {', '.join(known)}")
    except (OSError, UnicodeDecodeError) as error:
        raise ToolError(f"tool curves {name_or_path!r} cannot be read: {error}") from error
    return _parsed(name_or_path, text)


def write_tool_curves(path: str | os.PathLike[str], curves: Mapping[str, ToolCurve]) -> None:
    """Write curves, in their order, in a file for :func:`read_tool_curves`; an old file is replaced as a whole."""
    entries = {
        tool: {name: list(value) if isinstance(value, tuple) else value for name, value in vars(curve).items()}
        for tool, curve in curves.items()
    }
    text = yaml.safe_dump({"tools": entries}, sort_keys=False, default_flow_style=None, width=120, allow_unicode=True)
    write_atomically(path, HEADER + text)


@lru_cache(maxsize=8)
def _parsed(name: str, text: str) -> Mapping[str, ToolCurve]:
    try:
        return {tool: _curve(tool, entry) for tool, entry in read_yaml(text)["tools"].items()}
    except (AttributeError, KeyError, TypeError, ValueError, yaml.YAMLError) as error:
        raise ToolError(f"tool curves {name!r} are invalid: {' '.join(str(error).split())}") from error


def _curve(tool: str, entry: Mapping[str, Any]) -> ToolCurve:
    """Return one entry of a file. Raises ValueError, TypeError or KeyError for an incomplete or invalid one."""
    b1, b2, b3, b4, b5 = map(float, entry["betas"])
    low, high = map(float, entry["raw_range"])
    if not (np.abs([b1, b2, b3, b4, b5, low, high]) <= LARGEST).all() or low >= high:
        raise ValueError(
            f"{tool}: expected five finite betas and an increasing raw_range, each at most {LARGEST:g} in size, got "
            f"{entry['betas']} and {[low, high]}"
        )
    residual = entry.get("residual")
    if residual is not None and not LEAST_ERROR <= float(residual) <= LARGEST_ERROR:
        raise ValueError(f"{tool}: residual is {residual}, expected {LEAST_ERROR:g} to {LARGEST_ERROR:g} levels")
    return ToolCurve(
        (b1, b2, b3, b4, b5),
        (low, high),
        str(entry["fitted_on"]),
        None if residual is None else float(residual),
        tuple(map(str, entry.get("fitted_to", ()))),
    )


def usable(tool: str, name_or_path: str) -> ToolCurve:
    """Return the tool's curve in a set of curves. Raises ToolError when it has none or one that is not monotone."""
    curves = read_tool_curves(name_or_path)
    if tool not in curves:
        raise ToolError(f"tool curves {name_or_path!r}: no curve for {tool}, only for {', '.join(curves)}")
    if not curves[tool].is_monotone():
        raise ToolError(
            f"tool curves {name_or_path!r}: the curve of {tool} is not monotone over {curves[tool].raw_range}"
        )
    if curves[tool].is_constant():
        raise ToolError(
            f"tool curves {name_or_path!r}: the curve of {tool} has the same score all over {curves[tool].raw_range}"
        )
    return curves[tool]
