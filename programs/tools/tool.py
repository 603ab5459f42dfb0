"""Describe a metric as a tool, find it by name, choose it for a distortion, and run it.

``agenticiqa.signatures.types`` is imported where it is needed: with pydantic it would take longer than all the rest of
``from agenticiqa.programs.tools import ssim``.
"""

import hashlib
import logging
import math
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Literal, Protocol

from agenticiqa.programs.errors import ToolError
from agenticiqa.signatures import OVERALL

if TYPE_CHECKING:
    from agenticiqa.programs.images import LoadedImage
    from agenticiqa.programs.tools.adapter import Adapter
    from agenticiqa.programs.tools.numerics.pixels import RGB, Plane
    from agenticiqa.programs.tools.shared import Measurable
    from agenticiqa.programs.tools.srcc_table import Agreement
    from agenticiqa.programs.tools.tool_curves import ToolCurve
    from agenticiqa.signatures.types import ToolCall
    from agenticiqa.signatures.vocabulary import ImageKind

logger = logging.getLogger(__name__)

MOS_STD = 0.8  # levels; standard deviation of MOS in sets of photos (CLIVE 0.80, BIQ2021 0.76)
OWN = "added by add_tool"  # the source of a tool of the user
PYIQA = "pyiqa:"  # prefix of the name of a metric of that package
RELIABLE = 0.5  # least SRCC with a distortion's strength at which a tool is chosen for that distortion


@dataclass(frozen=True)
class Tool:
    """One metric.

    Attributes:
        name: The name in plans, results and ``agenticiqa tools``.
        kind: "FR" if it needs a reference, "NR" if not.
        higher_is_better: The direction of raw values.
        raw_range: Where raw values usually lie, in ``unit`` if they have one.
        measures: "Overall" for quality as a whole, or the one distortion category that it measures. Whether it also
            follows that category is in ``measured``; until it is measured there, it counts as if it did.
        description: What it measures, in a sentence.
        source: The paper, or the origin of the method.
        cost_ms: The time for 512 x 384 pixels on one core in milliseconds, ``None`` if unknown.
        measure: Returns the raw value of pixels (uint8 RGB, shape (H, W, 3)), and of the reference's for "FR".
        is_shared: Whether ``measure`` is made by ``shared.shared``: it also takes a loaded image and keeps its value
            there for the offline findings and other tools.
        curve: Maps the raw value to 1..5, higher is better; without it, the tool has only raw values.
        smallest: The least side in pixels.
        map: Takes what ``measure`` takes and returns where the image is bad: (h, w), of the image's shape or a whole
            fraction of it, 0 where nothing is wrong, larger is worse. ``None`` for a metric that has no such map.
        map_start: The map's value where the colors of a heat map start: what good photos mostly stay below, for a map
            that is not 0 on them (mean over the photos of examples/, 2026-11-22).
        map_end: The value where the colors end: what one place in ten exceeds under extreme blur, noise and JPEG, or
            those of them that the tool is for (same photos). ``None``: the largest value of each map.
        measured: The measured SRCC for each category, used to choose the tool; empty if not measured.
        trained_on: The data sets that it was fitted to; its figures on these are too good.
        unit: The unit of raw values, if they have one.
        spread: Returns the standard deviation, in levels, of the MOS around the score of an image, if the tool predicts
            it.
        image_kind: Returns the kind of image that the tool assumed.
        adapter: Adapts its score to a user's labels.
    """

    name: str
    kind: Literal["FR", "NR"]
    higher_is_better: bool
    raw_range: tuple[float, float]
    description: str
    source: str
    cost_ms: float | None
    measure: Callable[..., float]
    measures: str = OVERALL
    is_shared: bool = False
    curve: "ToolCurve | Callable[[float], float] | None" = None
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
        """Return how well the tool follows a category.

        Args:
            category: A distortion category, or "Overall".

        Returns:
            The measured SRCC; if not measured, 1 for what the tool ``measures``, else 0.
        """
        return self.measured[category].srcc if category in self.measured else float(category == self.measures)

    @property
    def rates_overall(self) -> bool:
        """Whether it estimates quality as a whole, not a single property."""
        return self.measures == OVERALL

    def spread_for(self, image: "LoadedImage") -> float:
        """Return the standard deviation of the MOS around the tool's score for an image.

        Args:
            image: The loaded image.

        Returns:
            Levels: the tool's own value for the image, or ``usual_spread`` for a tool that predicts none.
        """
        return self.spread(image) if self.spread is not None else self.usual_spread

    @property
    def usual_spread(self) -> float:
        """The larger of the curve's residual and the residual by the correlation with MOS, in levels."""
        from agenticiqa.programs.tools.srcc_table import mos_srcc

        srcc = mos_srcc(self.name)
        left = MOS_STD * math.sqrt(1 - srcc**2) if srcc is not None else None
        residual = getattr(self.curve, "residual", None)  # a plain function has none
        return max(filter(None, (left, residual)), default=MOS_STD)

    def strengths(self) -> "dict[str, Agreement]":
        """List the categories that the tool follows reliably.

        Returns:
            The measured agreement by category, quality overall included, the best first.
        """
        reliable = {name: row for name, row in self.measured.items() if name == OVERALL or row.srcc >= RELIABLE}
        return dict(sorted(reliable.items(), key=lambda item: -item[1].srcc))

    def line(self) -> str:
        """Describe the tool in one line for a reader.

        Returns:
            Its name, kind, description and measured performance.
        """
        if self.measured:
            best = ", ".join(f"{name}: SRCC {row.srcc:.2f} (n={row.n})" for name, row in self.strengths().items())
        else:
            best = self.measures
        return f"{self.name} ({self.kind}): {self.description}" + (f" Best for: {best}." if best else "")

    def line_for(self, categories: Collection[str]) -> str:
        """Describe the tool in one line for a model that chooses a tool for some categories.

        Args:
            categories: The distortion categories to choose for.

        Returns:
            The name with the SRCC for each of them; where that was not measured, the same as ``line``.
        """
        known = [(name, row) for name, row in self.strengths().items() if name in (*categories, OVERALL)]
        figures = ", ".join(f"{name} {row.srcc:.2f}" for name, row in known)
        return f"{self.name} ({figures})" if figures else self.line()


def find_tool(name: str, tools: Collection[str]) -> str | None:
    """Find a tool's name, ignoring case, hyphens, underscores and blanks.

    >>> find_tool("ms ssim", ["SSIM", "MS_SSIM"])
    'MS_SSIM'

    Args:
        name: The name as a user or a model wrote it.
        tools: The known names.

    Returns:
        The name as ``tools`` spells it, or ``None`` when there is no such tool.
    """
    return {_plain(tool): tool for tool in tools}.get(_plain(name))


def get_tool(name: str, tools: Mapping[str, Tool]) -> Tool:
    """Return the tool that ``find_tool`` finds.

    Args:
        name: The name as a user or a model wrote it.
        tools: The known tools by name.

    Returns:
        The tool.

    Raises:
        ToolError: There is no such tool; the message has the known names.
    """
    key = find_tool(name, tools)
    if key is None:
        raise unknown_tool(name, tools)
    return tools[key]


def unknown_tool(name: str, tools: Collection[str]) -> ToolError:
    """Return the error for a name that ``find_tool`` does not find, with the most similar name and all known ones."""
    from agenticiqa.configs.spelling import did_you_mean  # an import that a single metric does not need

    return ToolError(f"unknown tool {name!r}{did_you_mean(name, tools, ', '.join(tools))}")


def best_for(distortion: str, tools: Sequence[Tool]) -> Tool | None:
    """Return the tool that follows a distortion best, or if none does so reliably, the one that is best overall.

    The first of equals; ``None`` where no tool is good at either.
    """
    return best_at(distortion, tools, RELIABLE) or best_at(OVERALL, tools, 0.0)


def tools_for(categories: Collection[str], tools: Sequence[Tool]) -> list[Tool]:
    """Return the tools that suit one of these categories, so that no list has tools for other distortions.

    These are the tools that follow a category reliably or were never measured. If a category has none that follows it,
    all that rate quality as a whole are listed, too.
    """
    following = {category: [tool for tool in tools if tool.strength(category) >= RELIABLE] for category in categories}
    overall = not all(following.values())
    chosen = {tool.name for found in following.values() for tool in found}
    return [tool for tool in tools if tool.name in chosen or (tool.rates_overall and (overall or not tool.measured))]


def best_at(category: str, tools: Iterable[Tool], least: float) -> Tool | None:
    """Return the tool with the highest strength in a category, the first of equals, if it is above ``least``."""
    best = max(tools, key=lambda tool: tool.strength(category), default=None)
    return best if best is not None and best.strength(category) > least else None


def with_unit(raw: float, unit: str | None) -> str:
    """Format a raw value for readers: four significant digits, and its unit if it has one.

    >>> with_unit(31.2345, "dB"), with_unit(0.65559, None)
    ('31.23 dB', '0.6556')
    """
    return f"{raw:.4g} {unit}" if unit else f"{raw:.4g}"


def raw_value(tool: Tool, image: "RGB | Measurable", reference: "RGB | Measurable | None" = None) -> float:
    """Return a tool's value on its own scale for an image, and for the reference if it needs one.

    Arrays are uint8 (H, W, 3). Raises ToolError where the tool does not apply, without a reference that it needs, and
    for a value that is not finite.
    """
    if tool.kind == "FR" and reference is None:
        raise ToolError(f"{tool.name} needs a reference; give one")
    given = [image] if tool.kind == "NR" else [image, reference]
    raw = tool.measure(*(given if tool.is_shared else [getattr(picture, "pixels", picture) for picture in given]))
    if not math.isfinite(raw):
        raise ToolError(f"{tool.name} returned {raw}, which is not a valid measurement")
    return float(raw)


def run_tool(
    tool: Tool, image: "LoadedImage", reference: "LoadedImage | None", *, region: str, distortion: str
) -> "ToolCall":
    """Run a tool on an image once; later calls return the first result.

    Args:
        tool: The tool to run.
        image: The loaded image.
        reference: The pristine image of the same size; a no-reference tool ignores it.
        region: The region that the call is recorded for.
        distortion: The distortion that the call is recorded for.

    Returns:
        The call with the raw value and the score in 1..5. If the tool fails, its ``error`` says why, and the failure is
        logged; nothing is raised.
    """
    key = ("tool", tool.name, tool.measure, tool.curve, reference.sha256 if reference else None)
    call = image.memo.once(key, lambda: _kept_or_measured(tool, image, reference, region, distortion))
    return call.model_copy(update={"region": region, "distortion": distortion})


class KeptCalls(Protocol):
    """A store of calls beyond the life of a loaded image, by a text that names tool and pixels."""

    def measured(self, key: str) -> str | None:
        """Return a call as JSON, or ``None`` without one."""

    def keep_measured(self, key: str, value: str) -> None:
        """Store one call."""


_kept_calls: list[KeptCalls] = []  # values by content, so that one store can serve all threads of the process


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
    compared = (picture for picture in (image, reference) if picture is not None)
    pixels = [picture.memo.once("digest of pixels", partial(_digest, picture)) for picture in compared]
    store = _kept_calls[-1]
    key = repr((version("agenticiqa"), tool.name, tool.curve, pixels))
    if (text := store.measured(key)) is not None:
        return ToolCall.model_validate_json(text)
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
        raw = raw_value(tool, image, reference)
        if tool.curve is not None:
            calibrated, spread = float(tool.curve(raw)), tool.spread_for(image)
            if not 1 <= calibrated <= 5:
                raise ToolError(f"the curve of {tool.name} maps {raw:g} to {calibrated:g}, but scores are from 1 to 5")
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


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).casefold()
