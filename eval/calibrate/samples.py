"""What curves are fitted to: raw values of labelled images, of pristine ones, and of synthetic distortions of these.

Every value is measured once and kept in a journal as it comes, so that an interrupted run loses nothing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from statistics import median

import numpy as np

from agenticiqa.eval.calibrate.calibration_fit import Points
from agenticiqa.eval.datasets import Labelled
from agenticiqa.eval.metrics import srcc
from agenticiqa.eval.optimize.splits import Scale
from agenticiqa.programs.batch.results_file import ResultsFile
from agenticiqa.programs.errors import AgenticIQAError, ToolError
from agenticiqa.programs.images import LoadedImage, load, load_pair
from agenticiqa.programs.tools import Tool
from agenticiqa.programs.tools.distort import KINDS, LEVELS, distort
from agenticiqa.signatures.types import OVERALL

MOST_REFERENCES = 8  # pristine references that anchor a full-reference curve, evenly spaced over all of them
SEEN_BY_ALL = ("Blurs", "Noise", "Compression")  # what every full-reference metric of quality overall has to see
WORST = LEVELS[-1]
MOST = 0.75  # of the values under extreme distortions, for a tool that claims no strength
# A tool is fitted on the kinds of distortion whose level it follows with at least this SRCC, and whose worst level
# takes it at least this share of the way that the first of them does.
FOLLOWS, REACHES = 0.5, 2 / 3


@dataclass(frozen=True)
class Sample:
    """One image to measure.

    ``quality`` is on 1..5, or ``None`` for an anchor, which no one rated. ``level`` is ``None`` for an image as it was
    labelled, 0 for a pristine one and 1..5 for one that is distorted here, by ``kind``.
    """

    image: Path
    reference: Path | None
    content: str
    quality: float | None = None
    kind: str | None = None
    level: int | None = None


def rated_samples(items: Sequence[Labelled], scale: Scale, *, compared: bool) -> list[Sample]:
    """The labelled images, for full-reference tools (``compared``) only those that have a reference."""
    return [
        Sample(item.image, item.reference if compared else None, item.content, scale.to_levels(item.mos))
        for item in items
        if item.reference or not compared
    ]


def anchor_samples(card: Tool, items: Sequence[Labelled]) -> list[Sample]:
    """For a full-reference tool some references against themselves, as they are and at the worst level of distortions.

    The distortions are the first kind of each category that the tool is good at, and of blur, noise and compression
    for a tool of quality overall.
    """
    if card.kind == "NR":
        return []
    references = sorted({item.reference for item in items if item.reference})
    chosen = [references[i] for i in np.unique(np.linspace(0, len(references) - 1, MOST_REFERENCES).astype(int))]
    seen = {*card.good_at, *(SEEN_BY_ALL if OVERALL in card.good_at or not card.good_at else ())}
    first = {kind.category: name for name, kind in reversed(KINDS.items())}
    kinds = [name for category, name in first.items() if category in seen]
    return [
        Sample(path, path, path.name, kind=kind, level=level)
        for path in chosen
        for kind, level in [(None, 0), *((kind, WORST) for kind in kinds)]
    ]


def ladder_samples(card: Tool, photos: Sequence[Path]) -> list[Sample]:
    """Pristine photos through every level of the distortions that a tool is good at: from 5 in steps of 0.8 to 1."""
    categories = {*card.good_at, *(("Blurs",) if "Sharpness" in card.good_at else ())}  # blur is a lack of sharpness
    kinds = [name for name, kind in KINDS.items() if kind.category in categories]
    steps: list[tuple[str | None, int]] = [(None, 0), *((kind, level) for kind in kinds for level in LEVELS)]
    return [
        Sample(photo, None, str(photo), 5 - 4 * level / WORST, kind, level) for photo in photos for kind, level in steps
    ]


def points_of(card: Tool, raw: Mapping[Sample, float], origin: str) -> Points:
    """What a tool measured, as the points that its curve is fitted to.

    On a ladder only the kinds of distortion count whose level the tool follows; ``origin`` is completed with them.
    Raises ToolError where it follows none.
    """
    rated = {sample: value for sample, value in raw.items() if sample.quality is not None}
    kinds = [kind for kind in KINDS if any(sample.kind == kind for sample in rated)]
    if kinds:
        reach = {kind: _reach(rated, kind) for kind in kinds if _follows(card, rated, kind)}
        followed = [kind for kind, way in reach.items() if way >= REACHES * next(iter(reach.values()))]
        if not followed:
            raise ToolError(f"it follows the level of no distortion that it is for ({', '.join(kinds)}): leave it out")
        rated = {sample: value for sample, value in rated.items() if sample.kind in (None, *followed)}
        origin = f"{origin} ({', '.join(followed)})"
        raw = rated
    perfect = [value for sample, value in raw.items() if sample.level == 0]
    wrecked = {sample: value for sample, value in raw.items() if sample.level == WORST}
    named = sorted({str(sample.kind) for sample in wrecked})
    if perfect and not kinds:
        origin = f"{origin}, anchored by {len(perfect)} references undistorted and under extreme {', '.join(named)}"
    worst = [median(value for s, value in wrecked.items() if s.kind == kind) for kind in named]
    if worst and not card.good_at:  # one that claims no strength is held to most of its values, of all kinds together
        worst = [float(np.quantile([*wrecked.values()], MOST if card.higher_is_better else 1 - MOST))]
    return Points(
        raw=np.array([*rated.values()], dtype=float),
        quality=np.array([sample.quality for sample in rated], dtype=float),
        contents=tuple(sample.content for sample in rated),
        perfect=median(perfect) if perfect else None,
        worst=tuple(worst),
        origin=origin,
    )


def measure(
    wanted: Mapping[Sample, Sequence[Tool]], journal: ResultsFile
) -> Iterator[tuple[Sample, dict[str, float], dict[str, str]]]:
    """Measure every sample with its tools: yields it with the raw value by tool, or the reason why there is none.

    What the journal holds of the same files, measured by the same tool, is taken from there; what is new goes into it.
    """
    keys = ("tool", "mark", "image", "reference", "kind", "level")
    known = {tuple(row.get(key) for key in keys): row["raw"] for row in journal.rows if "raw" in row}
    tools = {card.name: card for cards in wanted.values() for card in cards}
    marks = {name: _mark(card) for name, card in tools.items()}
    loaded, digest = lru_cache(maxsize=2)(load), lru_cache(maxsize=None)(_digest)
    for sample, cards in wanted.items():
        values: dict[str, float] = {}
        failures: dict[str, str] = {}
        pixels: list[np.ndarray] = []
        reference = digest(sample.reference) if sample.reference else None
        for card in cards:
            try:
                names = (card.name, marks[card.name], digest(sample.image), reference, sample.kind, sample.level)
                if names not in known:
                    pixels = pixels or _pixels(sample, loaded)
                    known[names] = _run(card, *pixels)
                    journal.append({**dict(zip(keys, names, strict=True)), "raw": known[names]})
                values[card.name] = known[names]
            except AgenticIQAError as error:
                failures[card.name] = str(error)
        yield sample, values, failures


def raw_value(card: Tool, item: Labelled) -> float:
    """What a metric gives for a labelled image, on its own scale. Raises ToolError where it does not apply."""
    image, reference = load_pair(item.image, item.reference if card.kind == "FR" else None)
    return _run(card, image.pixels, *([reference.pixels] if reference else []))


def _run(card: Tool, *pixels: np.ndarray) -> float:
    raw = float(card.measure(*pixels))
    if not np.isfinite(raw):
        raise ToolError(f"{card.name} gave {raw}, which is no measurement")
    return raw


def _pixels(sample: Sample, loaded: Callable[[Path], LoadedImage]) -> list[np.ndarray]:
    """The image's pixels, distorted where the sample says so, and the reference's, if it has one."""
    image, reference = load_pair(loaded(sample.image), loaded(sample.reference) if sample.reference else None)
    pixels = distort(image.pixels, sample.kind, sample.level or 0) if sample.kind else image.pixels
    return [pixels, *([reference.pixels] if reference else [])]


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def _mark(card: Tool) -> float:
    """What a tool measures on a fixed image: another value, and what it measured before is no longer its own."""
    pixels = np.random.default_rng(0).integers(0, 256, (24, 32, 3), dtype=np.uint8).repeat(8, axis=0).repeat(8, axis=1)
    return _run(card, *([distort(pixels, "jpeg", 3), pixels] if card.kind == "FR" else [pixels]))


def _follows(card: Tool, raw: Mapping[Sample, float], kind: str) -> bool:
    values = [(value, sample.quality) for sample, value in raw.items() if sample.kind in (None, kind)]
    agreement = srcc(*np.array(values, dtype=float).T)
    return agreement is not None and agreement * (1 if card.higher_is_better else -1) >= FOLLOWS


def _reach(raw: Mapping[Sample, float], kind: str) -> float:
    """How far the worst level of a kind moves a tool, from the middle of the undistorted images to its own."""
    ends = [[value for s, value in raw.items() if s.level == level and s.kind in (None, kind)] for level in (0, WORST)]
    return abs(median(ends[1]) - median(ends[0])) if all(ends) else 0.0
