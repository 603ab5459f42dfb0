"""What is known of a metric, and how one is run."""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.tools.calibration import Calibration
from agenticiqa.signatures.types import ToolCall

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ToolCard:
    """One metric.

    ``measure`` takes the pixels (uint8, H x W x 3, RGB), a full-reference metric the reference's pixels too, and gives
    the raw value. ``calibration`` maps it to 1..5, higher is better. ``good_at`` lists the distortion categories that
    it is the tool of choice for, "Overall" among them for quality as a whole. ``cost_ms`` is the time for 512 x 384
    pixels on one core, in milliseconds, to tell cheap from dear, or ``None`` where nobody measured it; ``smallest`` is
    the least side in pixels.
    """

    name: str
    kind: Literal["FR", "NR"]
    higher_is_better: bool
    raw_range: tuple[float, float]
    good_at: tuple[str, ...]
    description: str
    source: str
    cost_ms: float | None
    measure: Callable[..., float]
    calibration: Calibration | None = None
    smallest: int = 1

    def line(self) -> str:
        """One line for a model that chooses: name, kind, what it is good at."""
        best = f" Best for: {', '.join(self.good_at)}." if self.good_at else ""
        return f"{self.name} ({self.kind}): {self.description}{best}"


def find_card(toolbox: Mapping[str, ToolCard], name: str) -> ToolCard:
    """The card of a tool, its name taken case-sensitively. Raises ToolError naming the known ones."""
    if name not in toolbox:
        raise ToolError(f"unknown tool {name!r}: known tools are {', '.join(toolbox)}")
    return toolbox[name]


def run_tool(
    card: ToolCard, pixels: np.ndarray, reference: np.ndarray | None, *, region: str, distortion: str
) -> ToolCall:
    """Run one tool and record what came of it; a tool that fails is recorded too, and never raises."""
    started = time.perf_counter()
    raw = calibrated = error = None
    try:
        if card.kind == "FR" and reference is None:
            raise ToolError(f"{card.name} compares with a reference, and none was given")
        raw = float(card.measure(pixels, reference) if card.kind == "FR" else card.measure(pixels))
        if not np.isfinite(raw):
            raise ToolError(f"{card.name} gave {raw}, which is no measurement")
        if card.calibration is None:
            raise ToolError(f"{card.name} has no calibration to 1..5 in this profile")
        calibrated = card.calibration(raw)
    except Exception as failure:  # one broken metric must not sink the run; it is recorded, logged and shown
        raw = calibrated = None
        error = str(failure) if isinstance(failure, ToolError) else f"{type(failure).__name__}: {failure}"
        logger.warning("tool %s failed on %s: %s", card.name, region, error)
    ms = (time.perf_counter() - started) * 1000
    logger.info(
        "tool %s on %s for %s: raw %s, calibrated %s, %.1f ms", card.name, region, distortion, raw, calibrated, ms
    )
    return ToolCall(
        tool=card.name, region=region, distortion=distortion, raw=raw, calibrated=calibrated, ms=ms, error=error
    )
