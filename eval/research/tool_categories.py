"""Compute SRCC of a tool with the strength of each kind of distortion, and with the MOS of labeled images."""

import csv
import importlib.util
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

import numpy as np
from PIL import Image

from agenticiqa.eval.datasets import LabeledImage
from agenticiqa.eval.metrics import srcc
from agenticiqa.eval.research.curve_fit import raw_of
from agenticiqa.eval.research.distort import DISTORTION_STRENGTHS, KINDS, distort
from agenticiqa.programs.batch.csv_table import rows_of
from agenticiqa.programs.errors import ToolError, UserError
from agenticiqa.programs.images.loading import load_pixels
from agenticiqa.programs.tools import Tool
from agenticiqa.programs.tools.numerics.pixels import RGB
from agenticiqa.programs.tools.srcc_table import Agreement
from agenticiqa.programs.tools.tool import raw_value
from agenticiqa.signatures.categories import BLURS, COMPRESSION, NOISE, OVERALL, SHARPNESS
from agenticiqa.signatures.vocabulary import DISTORTIONS, Distortion

PHOTOS = ("astronaut.png", "chelsea.png", "coffee.png", "rocket.jpg")
LONGEST_SIDE = 384  # pixels of a photo's longer side before it is distorted
CATEGORY_OF_LABEL: dict[str, Distortion] = {  # categories by the names in the column distortion
    "gaussian-blur": BLURS,
    "jpeg": COMPRESSION,
    "jp2k": COMPRESSION,
    "jp2k-fast-fading": COMPRESSION,
    "white-noise": NOISE,
}
ALSO_COUNTS_FOR: dict[Distortion, Distortion] = {BLURS: SHARPNESS}  # a blur is a lack of sharpness
MIN_IMAGES = 10

Figures = dict[str, Agreement]  # figures by tool, or by category


def raw_or_none(tool: Tool, item: LabeledImage) -> float | None:
    """Return ``raw_of``, but ``None`` where the tool does not apply."""
    try:
        return raw_of(tool, item)
    except ToolError:
        return None


def photos() -> dict[str, Path]:
    """Return the files of pristine color photos that scikit-image ships, by name. Raises UserError without it."""
    package = importlib.util.find_spec("skimage")
    if package is None or package.origin is None:
        raise UserError("the photos of scikit-image are needed: pip install scikit-image")
    folder = Path(package.origin).parent / "data"
    return {Path(name).stem: folder / name for name in PHOTOS}


def on_distortion_strengths(tools: Sequence[Tool], pristine: Mapping[str, RGB]) -> Iterator[tuple[str, Figures]]:
    """Yield for each kind of distortion the SRCC of every tool with the strengths 0 to 5 of all photos together.

    "Overall" comes last, for tools that rate overall quality. It pools all kinds, as their strengths are meant to
    be comparable. A full-reference tool gets the pristine photo as the reference.
    """
    all_kinds: dict[str, list[tuple[float | None, int]]] = {tool.name: [] for tool in tools if tool.rates_overall}
    undistorted = {(tool.name, name): _run(tool, photo, photo) for tool in tools for name, photo in pristine.items()}
    for kind in KINDS:
        values: dict[str, list[tuple[float | None, int]]] = {tool.name: [] for tool in tools}
        for seed, (name, photo) in enumerate(pristine.items()):
            for tool in tools:
                values[tool.name].append((undistorted[tool.name, name], 0))
            for strength in DISTORTION_STRENGTHS:
                distorted = distort(photo, kind, strength, seed=seed)
                for tool in tools:
                    values[tool.name].append((_run(tool, distorted, photo), strength))
        for name, pairs in all_kinds.items():
            pairs += values[name]
        yield kind, _figures(tools, values)
    yield OVERALL, _figures(tools, all_kinds)


def of_level_scores(tool: Tool, path: Path) -> Figures:
    """Return a tool's SRCC with the strengths, by kind and overall, from a CSV with kind, level (0 to 5) and score.

    Raises UserError for another file, and where a kind is missing.
    """
    pairs: dict[str, list[tuple[float | None, float]]] = {}
    try:
        for row in rows_of(path):
            pairs.setdefault(row["kind"], []).append((float(row["score"]), -float(row["level"])))
    except (OSError, KeyError, ValueError, csv.Error) as error:
        raise UserError(f"{path}: expected a CSV with the columns kind, level and score ({error!r})") from error
    if missing := KINDS.keys() - pairs.keys():
        raise UserError(f"{path}: no rows with the kind {', '.join(sorted(missing))} found; measure these kinds, too")
    pairs = {kind: pairs[kind] for kind in KINDS}
    pairs[OVERALL] = [pair for rows in pairs.values() for pair in rows]
    return {kind: figure for kind, rows in pairs.items() if (figure := directed_srcc(tool, rows))}


def by_category(kinds: Mapping[str, Figures]) -> dict[str, Figures]:
    """Return the mean SRCC over a category's kinds, by category and tool."""
    result: dict[str, Figures] = {OVERALL: dict(kinds[OVERALL])}
    for category in DISTORTIONS:
        figures = [
            row for kind, row in kinds.items() if kind != OVERALL and category in counts_for(KINDS[kind].category)
        ]
        for tool in dict.fromkeys(name for row in figures for name in row):
            own = [row[tool] for row in figures if tool in row]
            mean = Agreement(round(fmean(one.srcc for one in own), 3), sum(one.n for one in own))
            result.setdefault(category, {})[tool] = mean
    return result


def on_labels(tool: Tool, items: Sequence[LabeledImage]) -> Figures:
    """Return a tool's SRCC with MOS, overall and by category where the labels name distortions.

    "Overall" is omitted for a single-distortion tool. A full-reference tool is measured only on images that have
    a reference.
    """
    usable = [item for item in items if tool.kind == "NR" or item.reference]
    figures = of_scores(tool, [raw_or_none(tool, item) for item in usable], usable)
    return figures if tool.rates_overall else {name: figure for name, figure in figures.items() if name != OVERALL}


def of_scores(tool: Tool, values: Sequence[float | None], items: Sequence[LabeledImage]) -> Figures:
    """Return the SRCC of raw values (N,) with the MOS of N images, overall and by category."""
    groups: dict[str, list[tuple[float | None, float]]] = {OVERALL: []}
    for value, item in zip(values, items, strict=True):
        groups[OVERALL].append((value, item.mos))
        for category in counts_for(CATEGORY_OF_LABEL.get(item.distortion or "")):
            groups.setdefault(category, []).append((value, item.mos))
    return {group: figure for group, pairs in groups.items() if (figure := directed_srcc(tool, pairs))}


def directed_srcc(tool: Tool, pairs: Iterable[tuple[float | None, float]]) -> Agreement | None:
    """Return SRCC of raw values with qualities, positive if the tool follows its declared direction.

    0 for a tool with one value for all images; ``None`` if it could measure fewer than 10 images.
    """
    measured = [(value, quality) for value, quality in pairs if value is not None]
    if len(measured) < MIN_IMAGES:
        return None
    values, qualities = np.array(measured).T
    correlation = srcc(values if tool.higher_is_better else -values, qualities) or 0.0
    return Agreement(round(correlation, 3), len(measured))


def counts_for(category: Distortion | None) -> list[Distortion]:
    """Return the categories that a distortion of ``category`` counts for."""
    return [category, *([ALSO_COUNTS_FOR[category]] if category in ALSO_COUNTS_FOR else [])] if category else []


def _figures(tools: Sequence[Tool], values: Mapping[str, Sequence[tuple[float | None, int]]]) -> Figures:
    """Return by tool the SRCC of its values with the negated strength: the stronger, the worse the image."""
    falling = {name: [(value, -strength) for value, strength in pairs] for name, pairs in values.items()}
    figures = {tool.name: directed_srcc(tool, falling[tool.name]) for tool in tools if tool.name in falling}
    return {name: figure for name, figure in figures.items() if figure}


def _run(tool: Tool, pixels: RGB, reference: RGB) -> float | None:
    try:
        return raw_value(tool, pixels, reference)
    except ToolError:
        return None


def read_scaled(path: Path) -> RGB:
    """Read a photo, scaled to at most 384 pixels a side."""
    image = Image.fromarray(load_pixels(path))
    image.thumbnail((LONGEST_SIDE, LONGEST_SIDE), Image.Resampling.LANCZOS)
    return np.asarray(image)
