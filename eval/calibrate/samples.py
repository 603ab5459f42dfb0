"""Select the images that calibrations are fitted to, and measure them with the tools.

These are labeled images, pristine images, and synthetic distortions of the pristine ones. Every value is measured once
and written to a results file immediately, so an interrupted run loses nothing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import median

import numpy as np

from agenticiqa.eval.calibrate.calibration_fit import Points
from agenticiqa.eval.datasets import LabeledImage, MosScale
from agenticiqa.eval.metrics import srcc
from agenticiqa.eval.research.distort import DISTORTION_LEVELS, KINDS, distort
from agenticiqa.programs.batch.results_file import ResultsFile, kept_rows
from agenticiqa.programs.errors import AgenticIQAError, ToolError
from agenticiqa.programs.images import LoadedImage, load, load_pair
from agenticiqa.programs.images.files import sha256_of
from agenticiqa.programs.tools import Tool
from agenticiqa.programs.tools.tool import raw_value
from agenticiqa.signatures.categories import BLURS, COMPRESSION, NOISE, SHARPNESS
from agenticiqa.signatures.types import OVERALL

MAX_REFERENCES = 8  # pristine references that anchor a full-reference curve, evenly spaced over all of them
ALWAYS_ANCHORED = (BLURS, NOISE, COMPRESSION)  # every full-reference metric of overall quality has to detect these
WORST_LEVEL = DISTORTION_LEVELS[-1]
WORST_QUANTILE = 0.75  # of the values at the worst level, for a tool without particular distortions
# A tool is fitted to the kinds of distortion with at least this SRCC between its values and the level. At the worst
# level its value must change by at least this share of the change for the first of these kinds.
MIN_LEVEL_SRCC, MIN_REACH = 0.5, 2 / 3


@dataclass(frozen=True)
class Sample:
    """One image to measure.

    ``quality`` is on 1..5, or ``None`` for an anchor, which has no MOS. ``level`` is ``None`` for an unchanged labeled
    image, 0 for a pristine one and 1..5 for one that is distorted here, by ``kind``.
    """

    image: Path
    reference: Path | None
    content: str
    quality: float | None = None
    kind: str | None = None
    level: int | None = None


def rated_samples(items: Sequence[LabeledImage], scale: MosScale, *, full_reference: bool) -> list[Sample]:
    """Return the labeled images; for full-reference tools only those that have a reference."""
    return [
        Sample(item.image, item.reference if full_reference else None, item.content, scale.to_1_5(item.mos))
        for item in items
        if item.reference or not full_reference
    ]


def anchor_samples(tool: Tool, items: Sequence[LabeledImage]) -> list[Sample]:
    """Return a full-reference tool's anchors: references against themselves, undistorted and at the worst level.

    The distortions are the first kind of each category that the tool is good at; for a tool of overall quality, also
    the first kinds of blur, noise and compression.
    """
    if tool.kind == "NR":
        return []
    references = sorted({item.reference for item in items if item.reference})
    chosen = [references[i] for i in np.unique(np.linspace(0, len(references) - 1, MAX_REFERENCES).astype(int))]
    seen = {*tool.good_at, *(ALWAYS_ANCHORED if OVERALL in tool.good_at or not tool.good_at else ())}
    first = {kind.category: name for name, kind in reversed(KINDS.items())}
    kinds = [name for category, name in first.items() if category in seen]
    return [
        Sample(path, path, path.name, kind=kind, level=level)
        for path in chosen
        for kind, level in [(None, 0), *((kind, WORST_LEVEL) for kind in kinds)]
    ]


def level_samples(tool: Tool, photos: Sequence[Path]) -> list[Sample]:
    """Return pristine photos at every level of the distortions a tool is good at; quality falls from 5 to 1 by 0.8."""
    categories = {*tool.good_at, *((BLURS,) if SHARPNESS in tool.good_at else ())}  # blur is a lack of sharpness
    kinds = [name for name, kind in KINDS.items() if kind.category in categories]
    steps: list[tuple[str | None, int]] = [(None, 0), *((kind, level) for kind in kinds for level in DISTORTION_LEVELS)]
    return [
        Sample(photo, None, str(photo), 5 - 4 * level / WORST_LEVEL, kind, level)
        for photo in photos
        for kind, level in steps
    ]


def points_of(tool: Tool, raw: Mapping[Sample, float], origin: str) -> Points:
    """Return the points that a tool's curve is fitted to, from its raw values.

    Synthetic distortions are used only if the tool follows their level; their kinds are added to ``origin``. Raises
    ToolError if it follows none.
    """
    rated = {sample: value for sample, value in raw.items() if sample.quality is not None}
    kinds = [kind for kind in KINDS if any(sample.kind == kind for sample in rated)]
    if kinds:
        reach = {kind: _reach(rated, kind) for kind in kinds if _follows(tool, rated, kind)}
        followed = [kind for kind, way in reach.items() if way >= MIN_REACH * next(iter(reach.values()))]
        if not followed:
            raise ToolError(
                "the tool does not correlate with the level of any distortion that it is made for "
                f"({', '.join(kinds)}): exclude it"
            )
        rated = {sample: value for sample, value in rated.items() if sample.kind in (None, *followed)}
        origin = f"{origin} ({', '.join(followed)})"
        raw = rated
    perfect = [value for sample, value in raw.items() if sample.level == 0]
    at_worst = {sample: value for sample, value in raw.items() if sample.level == WORST_LEVEL}
    worst_kinds = sorted({str(sample.kind) for sample in at_worst})
    if perfect and not kinds:
        origin = (
            f"{origin}, with {len(perfect)} undistorted references and their extreme distortions "
            f"({', '.join(worst_kinds)}) as end points"
        )
    worst = [median(value for s, value in at_worst.items() if s.kind == kind) for kind in worst_kinds]
    if worst and not tool.good_at:  # a tool without particular distortions: a quantile over all kinds together
        quantile = WORST_QUANTILE if tool.higher_is_better else 1 - WORST_QUANTILE
        worst = [float(np.quantile([*at_worst.values()], quantile))]
    return Points(
        raw=np.array([*rated.values()], dtype=float),
        quality=np.array([sample.quality for sample in rated], dtype=float),
        contents=tuple(sample.content for sample in rated),
        perfect=median(perfect) if perfect else None,
        worst=tuple(worst),
        origin=origin,
    )


def measure(
    wanted: Mapping[Sample, Sequence[Tool]], kept: ResultsFile
) -> Iterator[tuple[Sample, dict[str, float], dict[str, str]]]:
    """Measure every sample with its tools; yield it with the raw values by tool, and the failures by tool.

    Values in ``kept`` for the same files and the same tool are reused; new ones are added to it.
    """
    keys = ("tool", "mark", "image", "reference", "kind", "level")
    known = {tuple(row.get(key) for key in keys): row["raw"] for _, row in kept_rows(kept.path) if "raw" in row}
    by_name = {tool.name: tool for tools in wanted.values() for tool in tools}
    marks = {name: _value_on_test_image(tool) for name, tool in by_name.items()}
    loaded, digest = lru_cache(maxsize=2)(load), lru_cache(maxsize=None)(sha256_of)
    for sample, tools in wanted.items():
        values: dict[str, float] = {}
        failures: dict[str, str] = {}
        pixels: list[np.ndarray] = []
        reference = digest(sample.reference) if sample.reference else None
        for tool in tools:
            try:
                row = (tool.name, marks[tool.name], digest(sample.image), reference, sample.kind, sample.level)
                if row not in known:
                    pixels = pixels or _pixels(sample, loaded)
                    known[row] = raw_value(tool, *pixels)
                    kept.append({**dict(zip(keys, row, strict=True)), "raw": known[row]})
                values[tool.name] = known[row]
            except AgenticIQAError as error:
                failures[tool.name] = str(error)
        yield sample, values, failures


def _pixels(sample: Sample, loaded: Callable[[Path], LoadedImage]) -> list[np.ndarray]:
    """Return the image's pixels, distorted if the sample says so, and the reference's, if it has one."""
    image, reference = load_pair(loaded(sample.image), loaded(sample.reference) if sample.reference else None)
    pixels = distort(image.pixels, sample.kind, sample.level or 0) if sample.kind else image.pixels
    return [pixels, *([reference.pixels] if reference else [])]


def _value_on_test_image(tool: Tool) -> float:
    """Return a tool's value for a fixed image; if it differs, the tool has changed and kept values are stale."""
    pixels = np.random.default_rng(0).integers(0, 256, (24, 32, 3), dtype=np.uint8).repeat(8, axis=0).repeat(8, axis=1)
    return raw_value(tool, *([distort(pixels, "jpeg", 3), pixels] if tool.kind == "FR" else [pixels]))


def _follows(tool: Tool, raw: Mapping[Sample, float], kind: str) -> bool:
    values = [(value, sample.quality) for sample, value in raw.items() if sample.kind in (None, kind)]
    found = srcc(*np.array(values, dtype=float).T)
    return found is not None and found * (1 if tool.higher_is_better else -1) >= MIN_LEVEL_SRCC


def _reach(raw: Mapping[Sample, float], kind: str) -> float:
    """Return the distance of a tool's median at the worst level of a kind from its median on undistorted images."""
    ends = [
        [value for s, value in raw.items() if s.level == level and s.kind in (None, kind)] for level in (0, WORST_LEVEL)
    ]
    return abs(median(ends[1]) - median(ends[0])) if all(ends) else 0.0
