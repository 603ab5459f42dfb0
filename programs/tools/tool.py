"""What is known of a metric, and how one is run."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.events import event
from agenticiqa.programs.tools.calibration import Calibration
from agenticiqa.programs.tools.numerics.pixels import Plane
from agenticiqa.programs.tools.srcc_table import Agreement
from agenticiqa.signatures.types import OVERALL, ToolCall

logger = logging.getLogger(__name__)

RELIABLE = 0.5  # least SRCC with a distortion's level at which a tool is taken for that distortion


@dataclass(frozen=True)
class Tool:
    """One metric.

    ``measure`` takes the pixels (uint8, H x W x 3, RGB), a full-reference metric the reference's pixels too, and gives
    the raw value. ``calibration`` maps it to 1..5, higher is better. ``good_at`` lists the distortion categories that
    it is made for, "Overall" among them for quality as a whole; ``measured`` has how well it really follows each, which
    is what a tool is chosen by, and is empty for one that nobody measured. ``trained_on`` names the data sets that it
    has seen, whose figures would flatter it. ``cost_ms`` is the time for 512 x 384
    pixels on one core, in milliseconds, to tell cheap from dear, or ``None`` where nobody measured it; ``smallest`` is
    the least side in pixels. ``damage`` takes what ``measure`` takes and tells where the image is bad: a map (h, w) of
    the image's shape or a whole fraction of it, 0 where nothing is wrong and larger the worse; ``None`` for a metric
    that has no such map.
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
    damage: Callable[..., Plane] | None = None
    measured: Mapping[str, Agreement] = field(default_factory=dict)
    trained_on: tuple[str, ...] = ()

    def strength(self, category: str) -> float:
        """How well it follows a category, as SRCC; where nobody measured it, 1 for what it is made for, else 0."""
        if not self.measured:
            return float(category in self.good_at)
        return self.measured[category].srcc if category in self.measured else 0.0

    def strengths(self) -> dict[str, Agreement]:
        """The measured categories that it is reliable for, and its quality overall, the best first."""
        told = {name: found for name, found in self.measured.items() if name == OVERALL or found.srcc >= RELIABLE}
        return dict(sorted(told.items(), key=lambda item: -item[1].srcc))

    def line(self) -> str:
        """One line for a model that chooses: name, kind, what it does and how well it was seen to do it."""
        if self.measured:
            best = ", ".join(f"{name}: SRCC {found.srcc:.2f} (n={found.n})" for name, found in self.strengths().items())
        else:
            best = ", ".join(self.good_at)
        return f"{self.name} ({self.kind}): {self.description}" + (f" Best for: {best}." if best else "")


def find_card(toolbox: Mapping[str, Tool], name: str) -> Tool:
    """The card of a tool, its name taken case-sensitively. Raises ToolError naming the known ones."""
    if name not in toolbox:
        raise ToolError(f"unknown tool {name!r}: known tools are {', '.join(toolbox)}")
    return toolbox[name]


def best_for(distortion: str, cards: Sequence[Tool]) -> Tool | None:
    """The tool of choice for a distortion: the one that follows it best, or where none is reliable, quality overall.

    Of several the first; ``None`` where no tool is good at either.
    """
    for category, least in ((distortion, RELIABLE), (OVERALL, 0.0)):
        best = max(cards, key=lambda card: card.strength(category), default=None)
        if best is not None and best.strength(category) > least:
            return best
    return None


def run_tool(card: Tool, pixels: np.ndarray, reference: np.ndarray | None, *, region: str, distortion: str) -> ToolCall:
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
        told = event("tool_failed", tool=card.name, region=region, error=error)
        logger.warning("tool %s failed on %s: %s", card.name, region, error, extra=told)
    ms = (time.perf_counter() - started) * 1000
    return ToolCall(
        tool=card.name, region=region, distortion=distortion, raw=raw, calibrated=calibrated, ms=ms, error=error
    )
