"""Describe a metric as a tool, find it by name, choose it for a distortion, and run it.

``agenticiqa.signatures.types`` is imported where it is needed: with pydantic it would take longer than all the rest of
``from agenticiqa.programs.tools import ssim``.
"""

import hashlib
import logging
import math
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Literal, Protocol

from agenticiqa.programs.errors import ToolError, did_you_mean

if TYPE_CHECKING:
    from agenticiqa.programs.images import LoadedImage
    from agenticiqa.programs.tools.adapter import Adapter
    from agenticiqa.programs.tools.calibration import Calibration
    from agenticiqa.programs.tools.numerics.pixels import RGB, Plane
    from agenticiqa.programs.tools.srcc_table import Agreement
    from agenticiqa.signatures.types import ToolCall
    from agenticiqa.signatures.vocabulary import ImageKind

logger = logging.getLogger(__name__)

MOS_STD = 0.8  # levels; of mean opinions in sets of photos (CLIVE 0.80, BIQ2021 0.76)
PYIQA = "pyiqa:"  # before the name of a metric of that package, where metrics are named
RELIABLE = 0.5  # least SRCC with a distortion's level at which a tool is chosen for that distortion


@dataclass(frozen=True)
class SharedMeasure:
    """A measure of pixels that keeps its value, or an intermediate one, in a loaded image's memo for other tools."""

    of_pixels: "Callable[[RGB], float]"
    of_loaded: "Callable[[LoadedImage], float]"

    def __call__(self, image: "RGB") -> float:
        """``of_pixels``."""
        return self.of_pixels(image)


@dataclass(frozen=True)
class Tool:
    """One metric.

    ``measure`` takes the pixels (uint8, H x W x 3, RGB), for a full-reference metric ("FR") also the reference's, and
    returns the raw value. A no-reference metric ("NR") that other tools share has a ``SharedMeasure``.

    ``calibration`` maps the raw value to 1..5, higher is better. ``raw_range`` is where raw values usually lie, in
    ``unit`` if they have one. ``good_at`` names the distortion categories that the metric is made for, "Overall" for
    quality as a whole.
    ``measured`` is the measured SRCC for each category, by which the tool is chosen; empty if not measured.
    ``trained_on`` names the data sets that the metric was fitted to; its figures on these are too good. ``cost_ms`` is
    the time for 512 x 384 pixels on one core in milliseconds, ``None`` if unknown; ``smallest`` the least side in
    pixels. ``spread`` returns the standard deviation, in levels, of the MOS around the score of an image, for a tool
    that predicts it for each image; ``image_kind`` says what kind of image it assumed. ``adapter`` adapts its score
    to a user's labels.

    ``map`` takes what ``measure`` takes and returns where the image is bad: (h, w), of the image's shape or a whole
    fraction of it, 0 where nothing is wrong, larger the worse; ``None`` for a metric that has no such map.

    ``map_start`` and ``map_end`` are the map's values between which the colors of a heat map run. The end is what one
    place in ten exceeds under extreme blur, noise and JPEG, or under those of them that the tool is for; the start is
    what good photos mostly stay below, for a map that is not 0 on them (means over the photos of examples/,
    2026-11-22). Without an end the colors end at the largest value of each map.
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
    calibration: "Calibration | None" = None
    smallest: int = 1
    map: "Callable[..., Plane] | None" = None
    map_start: float = 0.0
    map_end: float | None = None
    measured: "Mapping[str, Agreement]" = field(default_factory=dict)
    trained_on: tuple[str, ...] = ()
    unit: str | None = None
    spread: "Callable[[LoadedImage], float] | None" = None
    image_kind: "Callable[[LoadedImage], ImageKind | None] | None" = None
    adapter: "Adapter | None" = None

    def strength(self, category: str) -> float:
        """Return how well it follows a category, as SRCC; if not measured, 1 for a category it is made for, else 0."""
        if not self.measured:
            return float(category in self.good_at)
        return self.measured[category].srcc if category in self.measured else 0.0

    @property
    def rates_overall(self) -> bool:
        """Return whether it estimates quality as a whole: it is full-reference, or not made for single properties."""
        return self.kind == "FR" or not self.good_at or "Overall" in self.good_at

    def spread_for(self, image: "LoadedImage") -> float:
        """Return the standard deviation, in levels, of the MOS around the tool's score for an image.

        It is the tool's own value for the image; for most tools the same for all images: ``usual_spread``.
        """
        return self.spread(image) if self.spread is not None else self.usual_spread

    @property
    def usual_spread(self) -> float:
        """The larger of the curve's residual and the residual by the correlation with MOS, in levels."""
        from agenticiqa.programs.tools.srcc_table import mos_srcc

        srcc = mos_srcc(self.name)
        left = MOS_STD * math.sqrt(1 - srcc**2) if srcc is not None else None
        residual = getattr(self.calibration, "residual", None)  # a plain function serves as a curve, too
        return max(filter(None, (left, residual)), default=MOS_STD)

    def strengths(self) -> "dict[str, Agreement]":
        """Return the measured categories that it follows reliably, and quality overall, the best first."""
        from agenticiqa.signatures.types import OVERALL

        reliable = {name: found for name, found in self.measured.items() if name == OVERALL or found.srcc >= RELIABLE}
        return dict(sorted(reliable.items(), key=lambda item: -item[1].srcc))

    def line(self) -> str:
        """Return one line for a reader: name, kind, description, and the measured performance."""
        if self.measured:
            best = ", ".join(f"{name}: SRCC {found.srcc:.2f} (n={found.n})" for name, found in self.strengths().items())
        else:
            best = ", ".join(self.good_at)
        return f"{self.name} ({self.kind}): {self.description}" + (f" Best for: {best}." if best else "")

    def line_for(self, categories: Collection[str]) -> str:
        """One line for a model that chooses a tool for these categories: how well it follows each of them (SRCC).

        Where that was not measured, the line has the tool's description.
        """
        from agenticiqa.signatures.types import OVERALL

        known = [(name, found) for name, found in self.strengths().items() if name in (*categories, OVERALL)]
        figures = ", ".join(f"{name} {found.srcc:.2f}" for name, found in known)
        return f"{self.name} ({figures})" if figures else self.line()


def find_tool(name: str, tools: Collection[str]) -> str | None:
    """Return the tool's name as ``tools`` spells it, ignoring case, hyphens, underscores and blanks of ``name``.

    ``None`` when there is no such tool.

    >>> find_tool("ms ssim", ["SSIM", "MS_SSIM"])
    'MS_SSIM'
    """
    return {_plain(tool): tool for tool in tools}.get(_plain(name))


def get_tool(name: str, tools: Mapping[str, Tool]) -> Tool:
    """Return the tool that ``find_tool`` finds. Raises ToolError, naming the known tools, when there is none."""
    found = find_tool(name, tools)
    if found is None:
        raise unknown_tool(name, tools)
    return tools[found]


def unknown_tool(name: str, tools: Collection[str]) -> ToolError:
    """Return the error for a name that ``find_tool`` does not find, with the most similar name and all known ones."""
    return ToolError(f"unknown tool {name!r}{did_you_mean(name, tools)}: known tools are {', '.join(tools)}")


def best_for(distortion: str, tools: Sequence[Tool]) -> Tool | None:
    """Return the tool that follows a distortion best, or if none does so reliably, the one that is best overall.

    The first of equals; ``None`` where no tool is good at either.
    """
    from agenticiqa.signatures.types import OVERALL

    for category, least in ((distortion, RELIABLE), (OVERALL, 0.0)):
        best = max(tools, key=lambda tool: tool.strength(category), default=None)
        if best is not None and best.strength(category) > least:
            return best
    return None


def with_unit(raw: float, unit: str | None) -> str:
    """Format a raw value for readers: four significant digits, and its unit if it has one.

    >>> with_unit(31.2345, "dB"), with_unit(0.65559, None)
    ('31.23 dB', '0.6556')
    """
    return f"{raw:.4g} {unit}" if unit else f"{raw:.4g}"


def raw_value(tool: Tool, pixels: "RGB", reference: "RGB | None" = None) -> float:
    """Return a tool's value on its own scale for pixels, uint8 (H, W, 3), and for the reference's if it needs one.

    Raises ToolError where the tool does not apply, without a reference that it needs, and for a value that is not
    finite.
    """
    if tool.kind == "NR":
        return _finite(tool, tool.measure(pixels))
    if reference is None:
        raise ToolError(f"{tool.name} compares with a reference, and none was given")
    return _finite(tool, tool.measure(pixels, reference))


def run_tool(
    tool: Tool, image: "LoadedImage", reference: "LoadedImage | None", *, region: str, distortion: str
) -> "ToolCall":
    """Run a tool on an image once; later calls return the first result, for their region and distortion.

    ``reference`` has the image's size; a no-reference tool ignores it. A tool that fails is recorded in the call's
    ``error`` and logged; nothing is raised.
    """
    key = ("tool", tool.name, tool.measure, tool.calibration, reference.sha256 if reference else None)
    call = image.memo.once(key, lambda: _kept_or_measured(tool, image, reference, region, distortion))
    return call.model_copy(update={"region": region, "distortion": distortion})


class KeptCalls(Protocol):
    """A store of calls beyond the life of a loaded image, by a text that names tool and pixels."""

    def measured(self, key: str) -> str | None:
        """Return a call as JSON; ``None`` when there is none."""

    def keep_measured(self, key: str, value: str) -> None:
        """Store one call."""


_kept_calls: list[KeptCalls] = []  # by content, so that one store can serve all threads of the process


@contextmanager
def kept_calls(store: KeptCalls) -> Iterator[None]:
    """Use the store in the block: earlier measurements of the same pixels, in any process, are reused."""
    _kept_calls.append(store)
    try:
        yield
    finally:
        _kept_calls.remove(store)


def _kept_or_measured(
    tool: Tool, image: "LoadedImage", reference: "LoadedImage | None", region: str, distortion: str
) -> "ToolCall":
    from agenticiqa.signatures.types import ToolCall

    if not _kept_calls:
        return _measured(tool, image, reference, region, distortion)
    compared = (each for each in (image, reference) if each is not None)
    pixels = [each.memo.once("digest of pixels", partial(_digest, each)) for each in compared]
    store = _kept_calls[-1]
    key = repr((version("agenticiqa"), tool.name, tool.calibration, pixels))
    if (found := store.measured(key)) is not None:
        return ToolCall.model_validate_json(found)
    call = _measured(tool, image, reference, region, distortion)
    if call.error is None:
        store.keep_measured(key, call.model_dump_json())
    return call


def _digest(image: "LoadedImage") -> str:
    return f"{image.size} {hashlib.sha256(image.pixels.tobytes()).hexdigest()}"


def _measured(
    tool: Tool, image: "LoadedImage", reference: "LoadedImage | None", region: str, distortion: str
) -> "ToolCall":
    from agenticiqa.programs.events import event
    from agenticiqa.signatures.types import AdaptedTo, ToolCall

    started = time.perf_counter()
    raw = calibrated = spread = image_kind = adapted = error = None
    try:
        if isinstance(tool.measure, SharedMeasure):
            raw = _finite(tool, tool.measure.of_loaded(image))
        else:
            raw = raw_value(tool, image.pixels, reference.pixels if reference else None)
        if tool.calibration is None:
            raise ToolError(f"{tool.name} has no calibration to 1..5 in this profile")
        calibrated, spread = tool.calibration(raw), tool.spread_for(image)
        image_kind = tool.image_kind(image) if tool.image_kind else None
        if (own := tool.adapter) is not None:
            labels, digest, this_one = own.about["labels"], own.about["digest"], image.sha256 in own.about["images"]
            adapted = AdaptedTo(name=own.name, digest=digest, labels=labels, this_one=this_one)
    except Exception as failure:  # one broken metric must not end the run; it is recorded, logged and shown
        raw = calibrated = spread = None
        error = str(failure) if isinstance(failure, ToolError) else f"{type(failure).__name__}: {failure}"
        extra = event("tool_failed", tool=tool.name, region=region, error=error)
        logger.warning("tool %s failed on %s: %s", tool.name, region, error, extra=extra)
    ms = (time.perf_counter() - started) * 1000
    return ToolCall(
        tool=tool.name,
        region=region,
        distortion=distortion,
        raw=raw,
        unit=tool.unit,
        calibrated=calibrated,
        spread=spread,
        image_kind=image_kind,
        adapted=adapted,
        ms=ms,
        error=error,
    )


def _finite(tool: Tool, raw: float) -> float:
    if not math.isfinite(raw):
        raise ToolError(f"{tool.name} gave {raw}, which is no measurement")
    return float(raw)


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).casefold()
