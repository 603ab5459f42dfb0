"""Fit the shipped curves of tools, from each tool's own scale to 1..5 (``configs/tool_curves/default.yaml``).

    python -m agenticiqa.eval.research.fit_tool_curves LABELS.csv --tool SSIM --name SET --out NEW.yaml
    python -m agenticiqa.eval.research.fit_tool_curves PHOTOS --tool NOISE-SIGMA --out NEW.yaml

Full-reference tools were fitted to LIVE r2. Beside its labels, they have end points: references undistorted (quality 5)
and at the worst strength of distortions (at most 2). Tools for a single distortion were fitted to pristine photos,
which the command distorts; their quality is 5 - 0.8 strength. NEW.yaml has all curves of ``--base``, and NEW.png shows
the fit.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median

import numpy as np

from agenticiqa.eval.datasets import LabeledImage, MosScale, mos_scale
from agenticiqa.eval.labels.own_data import read_labels
from agenticiqa.eval.metrics import srcc
from agenticiqa.eval.names import MOS_RANGE_HELP
from agenticiqa.eval.research.command import parser_of, run_command
from agenticiqa.eval.research.curve_fit import Points, fit_curve, root_mean_square_error
from agenticiqa.eval.research.curve_picture import Outcome, picture
from agenticiqa.eval.research.distort import DISTORTION_STRENGTHS, KINDS, distort
from agenticiqa.programs.cli import render
from agenticiqa.programs.cli.printable import print_error
from agenticiqa.programs.cli.status import OK, SOME_FAILED
from agenticiqa.programs.errors import AgenticIQAError, ToolError
from agenticiqa.programs.images import find_images, load_pair
from agenticiqa.programs.images.files import write_atomically
from agenticiqa.programs.tools import TOOLS, Tool, get_tool
from agenticiqa.programs.tools.tool import raw_value
from agenticiqa.programs.tools.tool_curves import ToolCurve, read_tool_curves, write_tool_curves
from agenticiqa.programs.tools.training_images import parts_named
from agenticiqa.signatures.categories import BLURS, BRIGHTNESS, COLOR, COMPRESSION, CONTRAST, NOISE, SHARPNESS, SPATIAL

MAX_REFERENCES = 8  # pristine references that anchor a full-reference curve, evenly spaced over all of them
ALWAYS_ANCHORED = (BLURS, NOISE, COMPRESSION)  # every full-reference metric of overall quality has to detect these
# The distortions whose worst strength ends the curve of a full-reference tool, each with the median of its values. A
# tool without a row has a quantile of the values for all of ALWAYS_ANCHORED.
ANCHORS: Mapping[str, Sequence[str]] = {
    "FR-FUSION": ALWAYS_ANCHORED,
    "HaarPSI": (*ALWAYS_ANCHORED, SHARPNESS, SPATIAL),
    "FSIM": (*ALWAYS_ANCHORED, CONTRAST),
    "SSIMULACRA2": (COMPRESSION,),
    "PSNR": (COLOR, BRIGHTNESS),
}
WORST_STRENGTH = DISTORTION_STRENGTHS[-1]
WORST_QUANTILE = 0.75  # quantile of the values at the worst strength, for a tool without ANCHORS
# A tool is fitted to the kinds of distortion with at least this SRCC between its values and the strength. At the worst
# strength its value must change by at least this share of the change for the first of these kinds.
MIN_STRENGTH_SRCC, MIN_REACH = 0.5, 2 / 3


@dataclass(frozen=True)
class Sample:
    """One image to measure.

    ``quality`` is on 1..5, or ``None`` for an anchor, which has no MOS. ``level`` is the strength: ``None`` for an
    unchanged labeled image, 0 for a pristine one and 1..5 for one that is distorted here, by ``kind``.
    """

    image: Path
    reference: Path | None
    content: str
    quality: float | None = None
    kind: str | None = None
    level: int | None = None


def rated_samples(tool: Tool, items: Sequence[LabeledImage], scale: MosScale) -> list[Sample]:
    """Return the labeled images; for full-reference tools only those that have a reference."""
    full_reference = tool.kind == "FR"
    return [
        Sample(item.image, item.reference if full_reference else None, item.content, scale.to_1_5(item.mos))
        for item in items
        if item.reference or not full_reference
    ]


def anchor_samples(tool: Tool, items: Sequence[LabeledImage]) -> list[Sample]:
    """Return a full-reference tool's anchors: references against themselves, undistorted and at the worst strength.

    The distortions are the first kind of each category of its ``ANCHORS``.
    """
    if tool.kind == "NR":
        return []
    references = sorted({item.reference for item in items if item.reference})
    chosen = [references[i] for i in np.unique(np.linspace(0, len(references) - 1, MAX_REFERENCES).astype(int))]
    seen = ANCHORS.get(tool.name, ALWAYS_ANCHORED)
    first = {kind.category: name for name, kind in reversed(KINDS.items())}
    kinds = [name for category, name in first.items() if category in seen]
    return [
        Sample(path, path, path.name, kind=kind, level=strength)
        for path in chosen
        for kind, strength in [(None, 0), *((kind, WORST_STRENGTH) for kind in kinds)]
    ]


def strength_samples(tool: Tool, photos: Sequence[Path]) -> list[Sample]:
    """Return pristine photos at every strength of the tool's distortions; quality falls from 5 to 1 by 0.8."""
    categories = {tool.measures, *((BLURS,) if tool.measures == SHARPNESS else ())}  # blur is a lack of sharpness
    kinds = [name for name, kind in KINDS.items() if kind.category in categories]
    steps: list[tuple[str | None, int]] = [(None, 0), *product(kinds, DISTORTION_STRENGTHS)]
    return [
        Sample(photo, None, str(photo), 5 - 4 * strength / WORST_STRENGTH, kind, strength)
        for photo in photos
        for kind, strength in steps
    ]


def points_of(tool: Tool, raw: Mapping[Sample, float], origin: str) -> Points:
    """Return the points that a tool's curve is fitted to, from its raw values.

    Synthetic distortions are used only if the tool follows their strength; their kinds are added to ``origin``. Raises
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
    at_worst = {sample: value for sample, value in raw.items() if sample.level == WORST_STRENGTH}
    worst_kinds = sorted({str(sample.kind) for sample in at_worst})
    if perfect and not kinds:
        origin = (
            f"{origin}, with {len(perfect)} undistorted references and their extreme distortions "
            f"({', '.join(worst_kinds)}) as end points"
        )
    worst = [median(value for s, value in at_worst.items() if s.kind == kind) for kind in worst_kinds]
    if worst and tool.rates_overall and tool.name not in ANCHORS:
        quantile = WORST_QUANTILE if tool.higher_is_better else 1 - WORST_QUANTILE
        worst = [float(np.quantile([*at_worst.values()], quantile))]
    return Points(
        raw=np.array([*rated.values()], dtype=float),
        quality=np.array([sample.quality for sample in rated], dtype=float),
        contents=tuple(sample.content for sample in rated),
        perfect=median(perfect) if perfect else None,
        worst=tuple(worst),
        origin=origin,
        fitted_to=parts_named({sample.image for sample in rated}),
    )


def measured(tool: Tool, samples: Sequence[Sample]) -> dict[Sample, float]:
    """Return the raw values of the samples that the tool can measure; print the first failure on stderr."""
    values: dict[Sample, float] = {}
    failures = []
    for sample in render.progress(samples, len(samples), f"measuring {tool.name}"):
        try:
            image, reference = load_pair(sample.image, sample.reference)
            pixels = distort(image.pixels, sample.kind, sample.level or 0) if sample.kind else image.pixels
            values[sample] = raw_value(tool, pixels, reference.pixels if reference else None)
        except AgenticIQAError as error:
            failures.append(str(error))
    if failures:
        print_error(f"{tool.name}: {len(failures)} images failed, first: {failures[0]}")
    return values


def _follows(tool: Tool, raw: Mapping[Sample, float], kind: str) -> bool:
    values = [(value, sample.quality) for sample, value in raw.items() if sample.kind in (None, kind)]
    agreement = srcc(*np.array(values, dtype=float).T)
    return agreement is not None and agreement * (1 if tool.higher_is_better else -1) >= MIN_STRENGTH_SRCC


def _reach(raw: Mapping[Sample, float], kind: str) -> float:
    """Return the distance of a tool's median at the worst strength of a kind from its median on undistorted images."""
    ends = [
        [value for s, value in raw.items() if s.level == strength and s.kind in (None, kind)]
        for strength in (0, WORST_STRENGTH)
    ]
    return abs(median(ends[1]) - median(ends[0])) if all(ends) else 0.0


def fitted(tool: Tool, points: Points, old: ToolCurve | None) -> Outcome:
    """Fit one tool to its points; a refused fit is an outcome with its reason."""
    try:
        return Outcome(tool, points, old, fit_curve(points, tool))
    except ToolError as error:
        return Outcome(tool, points, old, refusal=str(error))


def write_curves(outcomes: Sequence[Outcome], base: Mapping[str, ToolCurve], base_name: str, out: Path) -> int:
    """Print the fits, and write the new curves with the other ones of the base, and the picture; return the status."""
    curves = {}
    for outcome in outcomes:
        name, points, fit = outcome.tool.name, outcome.points, outcome.fit
        if fit is None:
            print_error(f"{name}: {outcome.refusal}")
            continue
        curves[name] = fit.curve
        before = f" (old curve: {root_mean_square_error(outcome.old, points):.3f})" if outcome.old else ""
        print(f"{name}: {len(points.raw)} images, SRCC {fit.srcc:.3f}, residual {fit.residual:.3f}{before}")
    plot = out.with_suffix(".png")
    write_atomically(plot, picture(outcomes))
    if not curves:
        print(f"No curve was fitted, so no file was written. {plot} shows the points.")
        return SOME_FAILED
    write_tool_curves(out, {**base, **curves})
    copied = len(base.keys() - curves.keys())
    print(f"{out}: {len(curves)} curves fitted, {copied} copied from {base_name}. {plot} shows the fit.")
    print(f'To use it, add "tool_curves: {out}" to a configuration.')
    return OK if len(curves) == len(outcomes) else SOME_FAILED


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status."""
    parser = parser_of(__doc__)
    parser.add_argument("data", type=Path, help="a labels.csv, or a folder of pristine photos")
    parser.add_argument("--tool", nargs="+", required=True, metavar="NAME", help="the tools")
    parser.add_argument("--split", help="only the rows of this split")
    parser.add_argument("--mos-range", nargs=2, type=float, metavar=("LOW", "HIGH"), help=MOS_RANGE_HELP)
    parser.add_argument("--name", help="name of the data in the file (default: its folder)")
    parser.add_argument("--base", default="default", help="source of the other curves (default: %(default)s)")
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    return run_command(parser, _run, argv)


def _run(args: argparse.Namespace) -> int:
    base, outcomes = read_tool_curves(args.base), []
    is_folder = args.data.is_dir()
    photos = find_images([args.data]) if is_folder else []
    items = [] if is_folder else read_labels(args.data, args.split)
    origin = args.name or (args.data if is_folder else args.data.parent).resolve().name
    if is_folder:
        origin = f"{len(photos)} pristine photos with synthetic distortions (quality = 5 - 0.8 x level), {origin}"
    for tool in (get_tool(name, TOOLS) for name in args.tool):
        if is_folder:
            samples = strength_samples(tool, photos)
        else:
            scale = mos_scale([item.mos for item in items], args.mos_range)
            samples = [*rated_samples(tool, items, scale), *anchor_samples(tool, items)]
        points = points_of(tool, measured(tool, samples), origin)
        outcomes.append(fitted(tool, points, base.get(tool.name)))
    return write_curves(outcomes, base, args.base, args.out)


if __name__ == "__main__":
    raise SystemExit(main())
