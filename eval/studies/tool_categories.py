"""How well a tool follows each category of distortion: on ladders of known levels, and on labelled images."""

import importlib.util
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

import numpy as np
from PIL import Image

from agenticiqa.eval.calibrate.samples import raw_value
from agenticiqa.eval.datasets import Labelled
from agenticiqa.eval.metrics import srcc
from agenticiqa.programs.errors import ToolError, UserError
from agenticiqa.programs.tools import Tool
from agenticiqa.programs.tools.distort import KINDS, LEVELS, distort
from agenticiqa.programs.tools.numerics.pixels import RGB
from agenticiqa.programs.tools.srcc_table import Agreement
from agenticiqa.signatures.types import OVERALL
from agenticiqa.signatures.vocabulary import DISTORTIONS, Distortion

PHOTOS = ("astronaut.png", "chelsea.png", "coffee.png", "rocket.jpg")
LONGEST_SIDE = 384  # of a photo before it is distorted
DISTORTION_NAMES: dict[str, Distortion] = {  # of the labelled sets
    "gaussian-blur": "Blurs",
    "jpeg": "Compression",
    "jp2k": "Compression",
    "jp2k-fast-fading": "Compression",
    "white-noise": "Noise",
}
ALSO: dict[Distortion, Distortion] = {"Blurs": "Sharpness"}  # a blur is a lack of sharpness
FEWEST = 10

Figures = dict[str, Agreement]


def photos() -> dict[str, RGB]:
    """Pristine colour photos that scikit-image ships, at most 384 pixels a side. Raises UserError without it."""
    package = importlib.util.find_spec("skimage")
    if package is None or package.origin is None:
        raise UserError("the ladders are made of scikit-image's photos: pip install scikit-image")
    folder = Path(package.origin).parent / "data"
    return {Path(name).stem: _scaled(folder / name) for name in PHOTOS}


def on_ladders(cards: Sequence[Tool], pristine: Mapping[str, RGB]) -> Iterator[tuple[str, Figures]]:
    """For each kind of distortion the agreement of every tool with its level, 0 to 5, over all photos together.

    After the last kind, "Overall": over all kinds together, whose levels are meant to be alike, for the tools that rate
    quality as a whole. A full-reference tool is given the pristine photo as the reference.
    """
    everything: dict[str, list[tuple[float | None, int]]] = {card.name: [] for card in cards if rates_overall(card)}
    untouched = {(card.name, name): _run(card, photo, photo) for card in cards for name, photo in pristine.items()}
    for kind in KINDS:
        values: dict[str, list[tuple[float | None, int]]] = {card.name: [] for card in cards}
        for seed, (name, photo) in enumerate(pristine.items()):
            for card in cards:
                values[card.name].append((untouched[card.name, name], 0))
            for level in LEVELS:
                changed = distort(photo, kind, level, seed=seed)
                for card in cards:
                    values[card.name].append((_run(card, changed, photo), level))
        for name, mine in everything.items():
            mine += values[name]
        yield kind, _figures(cards, values)
    yield OVERALL, _figures(cards, everything)


def by_category(kinds: Mapping[str, Figures]) -> dict[str, Figures]:
    """The mean over a category's kinds: whoever is misled by one of them is misled by the category."""
    result: dict[str, Figures] = {OVERALL: dict(kinds[OVERALL])}
    for category in DISTORTIONS:
        figures = [
            found for kind, found in kinds.items() if kind != OVERALL and category in _about(KINDS[kind].category)
        ]
        for tool in dict.fromkeys(name for found in figures for name in found):
            mine = [found[tool] for found in figures if tool in found]
            mean = Agreement(round(fmean(one.srcc for one in mine), 3), sum(one.n for one in mine))
            result.setdefault(category, {})[tool] = mean
    return result


def on_labels(card: Tool, items: Sequence[Labelled]) -> Figures:
    """A tool's agreement with the opinion, by category where the labels name distortions, and of quality overall.

    Overall is left out for a tool of single distortions, whose scores say little of it. A full-reference tool is
    measured on images that have a reference only.
    """
    usable = [item for item in items if card.kind == "NR" or item.reference]
    figures = of_scores(card, [_value(card, item) for item in usable], usable)
    return figures if rates_overall(card) else {name: found for name, found in figures.items() if name != OVERALL}


def of_scores(card: Tool, values: Sequence[float | None], items: Sequence[Labelled]) -> Figures:
    """The agreement of values, on the tool's own scale, with the opinion of as many images, by category and overall."""
    groups: dict[str, list[tuple[float | None, float]]] = {OVERALL: []}
    for value, item in zip(values, items, strict=True):
        groups[OVERALL].append((value, item.mos))
        for category in _about(DISTORTION_NAMES.get(item.distortion or "")):
            groups.setdefault(category, []).append((value, item.mos))
    return {group: found for group, pairs in groups.items() if (found := agreement(card, pairs))}


def rates_overall(card: Tool) -> bool:
    """Whether a tool's score is about quality as a whole: full-reference, or not made for single distortions."""
    return card.kind == "FR" or not card.good_at or OVERALL in card.good_at


def agreement(card: Tool, pairs: Iterable[tuple[float | None, float]]) -> Agreement | None:
    """SRCC of raw values with qualities, in the card's direction; ``None`` for too few images that it could measure.

    A tool that gives the same value for all of them follows nothing: 0.
    """
    measured = [(value, quality) for value, quality in pairs if value is not None]
    if len(measured) < FEWEST:
        return None
    values, qualities = np.array(measured).T
    found = srcc(values if card.higher_is_better else -values, qualities) or 0.0
    return Agreement(round(found, 3), len(measured))


def _about(category: Distortion | None) -> list[Distortion]:
    """The categories that a distortion of one counts for."""
    return [category, *([ALSO[category]] if category in ALSO else [])] if category else []


def _figures(cards: Sequence[Tool], values: Mapping[str, Sequence[tuple[float | None, int]]]) -> Figures:
    """The agreement of each tool that has values with falling levels: the higher the level, the worse the image."""
    falling = {name: [(value, -level) for value, level in pairs] for name, pairs in values.items()}
    found = {card.name: agreement(card, falling[card.name]) for card in cards if card.name in falling}
    return {name: figure for name, figure in found.items() if figure}


def _run(card: Tool, pixels: RGB, reference: RGB) -> float | None:
    try:
        return float(card.measure(pixels, reference) if card.kind == "FR" else card.measure(pixels))
    except ToolError:
        return None


def _value(card: Tool, item: Labelled) -> float | None:
    try:
        return raw_value(card, item)
    except ToolError:
        return None


def _scaled(path: Path) -> RGB:
    image = Image.open(path).convert("RGB")
    image.thumbnail((LONGEST_SIDE, LONGEST_SIDE), Image.Resampling.LANCZOS)
    return np.asarray(image)
