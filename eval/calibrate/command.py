"""``agenticiqa calibrate``: fit the tools' curves to 1..5 on one's own opinion scores, and write them as a profile."""

import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agenticiqa.programs.batch.results_file import ResultsFile
from agenticiqa.programs.cli import render
from agenticiqa.programs.cli.options import OK, SOME_FAILED
from agenticiqa.programs.errors import ToolError, UserError
from agenticiqa.programs.images import find_images
from agenticiqa.programs.tools import TOOLS, Tool, get_tool
from agenticiqa.programs.tools.calibration import Calibration, load_profile, write_profile
from agenticiqa.signatures.types import OVERALL

if TYPE_CHECKING:
    from agenticiqa.eval.calibrate.fit_report import Outcome
    from agenticiqa.eval.calibrate.samples import Sample

USUAL_SCALES = ((0.0, 1.0), (1.0, 5.0), (0.0, 100.0))
OUT = Path("calibration.yaml")

EXAMPLES = """\
Tools measure on scales of their own; a curve per tool brings them to 1..5. The shipped curves were fitted on public
sets. Fit them to opinion scores of your own images:

  agenticiqa calibrate mine/labels.csv --out mine.yaml
      all tools that apply: full-reference ones where references are given, else no-reference ones
  agenticiqa calibrate mine/labels.csv --tool SSIM GMSD --mos-range 1 10 --out mine.yaml --force
      two tools, on scores from 1 to 10, in place of an earlier mine.yaml
  agenticiqa calibrate mine/labels.csv --split train --name "my set" --base other.yaml
      some of the rows; what the profile calls them; where the curves of all other tools come from
  agenticiqa calibrate photos/ --tool NOISE-SIGMA
      tools for one distortion need no scores: pristine photos are distorted step by step

labels.csv has the columns image and mos (higher is better) and, if there are any, reference and split. What is measured
is kept beside the output as it comes, in a file that ends in .raw.jsonl: after Ctrl-C the same command goes on, and
another fit of the same images is quick. A tool is refused, and keeps its curve of --base, if it could measure fewer
than 20 images or does not follow the scores in its own direction. A full-reference curve gives an undistorted image 5
and extreme distortions at most about 2, for which it may have to leave the middle of the points: look at the picture.
Then name the profile in a configuration (agenticiqa assess --config):

  calibration: mine.yaml

exit status: 0 every tool was fitted, 1 some were refused (told on stderr), 2 usage
"""


def add_arguments(parser: ArgumentParser) -> None:
    """The options of ``agenticiqa calibrate``."""
    parser.epilog, parser.formatter_class = EXAMPLES, RawDescriptionHelpFormatter
    parser.add_argument(
        "data", nargs="+", type=Path, metavar="LABELS.csv", help="opinion scores; or pristine photos, or their folders"
    )
    parser.add_argument("--tool", nargs="+", metavar="NAME", help='the tools to fit ("agenticiqa tools" lists them)')
    parser.add_argument("--split", metavar="S", help="only the rows of this split")
    parser.add_argument(
        "--mos-range",
        nargs=2,
        type=float,
        metavar=("LOW", "HIGH"),
        help="the scores that mean 1 and 5 (default: of 0..1, 1..5 and 0..100 the first that holds them all)",
    )
    parser.add_argument("--name", metavar="N", help="what the profile calls the data (default: the folder's name)")
    parser.add_argument("--base", metavar="P", default="default", help="the profile of all other curves (%(default)s)")
    parser.add_argument("--out", metavar="FILE", type=Path, default=OUT, help="the profile to write (%(default)s)")
    parser.add_argument("--plot", metavar="PNG", type=Path, help="the picture of the fit (default: beside the profile)")
    parser.add_argument("--force", action="store_true", help="replace a profile and a picture that are there")


def run(args: Namespace) -> int:
    """Measure, fit, and write the profile and the picture; what was refused is told, and the rest goes on."""
    from agenticiqa.eval.calibrate import fit_report

    plot = args.plot or args.out.with_suffix(".png")
    for file in (args.out, plot):
        if file.exists() and not args.force:
            raise UserError(f"{file} is there already: name another file, or replace it with --force")
    base = load_profile(args.base)
    wanted, origin = _wanted(args)
    kept = args.out.with_suffix(".raw.jsonl")
    with ResultsFile(kept) as journal:
        try:
            raw, failures = _measure(wanted, journal)
        except KeyboardInterrupt:
            print(f"agenticiqa: the same command goes on from what is kept in {kept}", file=sys.stderr)
            raise
    outcomes = [_outcome(card, raw[name], origin, base.get(name)) for name, card in _by_name(wanted).items()]
    fitted = {outcome.card.name: outcome.fit.curve for outcome in outcomes if outcome.fit}
    refused = [outcome for outcome in outcomes if not outcome.fit]
    fit_report.show(outcomes)
    for outcome in refused:
        name = outcome.card.name
        told = f" ({failures[name]})" if name in failures else ""
        print(f"agenticiqa: {name}: {outcome.refusal}{told}", file=sys.stderr)
    if fitted:
        write_profile(args.out, {**base, **fitted})
    fit_report.draw(outcomes, plot)
    if not fitted:
        print(f"No curve was fitted, so no profile was written. The points are drawn in {plot}.")
        return SOME_FAILED
    taken = len(base.keys() - fitted.keys())
    print(f"{args.out}: {len(fitted)} curves fitted, {taken} taken over from {args.base}. The fit is drawn in {plot}.")
    print(f'To use it, put "calibration: {args.out}" into a configuration. {kept} makes another fit quick.')
    return SOME_FAILED if refused else OK


def _wanted(args: Namespace) -> tuple[dict["Sample", list[Tool]], str]:
    """Which image is to be measured by which tools, and where it all comes from."""
    from agenticiqa.eval.calibrate import samples
    from agenticiqa.eval.datasets import read_labels
    from agenticiqa.eval.optimize.splits import scale_of

    named = [get_tool(name, TOOLS) for name in dict.fromkeys(args.tool or ())]
    wanted: dict[Sample, list[Tool]] = {}
    if args.data[0].suffix.lower() == ".csv":
        if len(args.data) > 1:
            raise UserError(f"expected one labels file, got {len(args.data)}: join them into one")
        items = read_labels(args.data[0], args.split)
        ends = args.mos_range or _usual_scale([item.mos for item in items])
        scale = scale_of(items, ends)
        kind = "FR" if any(item.reference for item in items) else "NR"
        cards = named or [card for card in TOOLS.values() if card.kind == kind and not _is_single(card)]
        for card in cards:
            rated = samples.rated_samples(items, scale, compared=card.kind == "FR")
            if not rated:
                raise UserError(f"{card.name} compares with references, and {args.data[0]} names none")
            for sample in (*rated, *samples.anchor_samples(card, items)):
                wanted.setdefault(sample, []).append(card)
        outside = sum(not ends[0] <= item.mos <= ends[1] for item in items)
        print(
            f"{len(items)} labelled images; scores {ends[0]:g} to {ends[1]:g} stand for 1 to 5"
            + (f", {outside} scores beyond count as these" if outside else ""),
            file=sys.stderr,
        )
        folder = args.data[0].resolve().parent.name
        return wanted, args.name or (f"{folder}, split {args.split}" if args.split else folder)
    photos = find_images(args.data)
    for card in named or [card for card in TOOLS.values() if _is_single(card)]:
        if not _is_single(card):
            raise UserError(f"{card.name} rates quality overall: fit it on opinion scores (LABELS.csv), not on photos")
        for sample in samples.ladder_samples(card, photos):
            wanted.setdefault(sample, []).append(card)
    name = args.name or args.data[0].resolve().name
    return wanted, f"synthetic ladders, quality 5 - 0.8 level, of {len(photos)} pristine photos, {name}"


def _is_single(card: Tool) -> bool:
    """Whether a tool is for single distortions, which say little of the quality overall."""
    return card.kind == "NR" and bool(card.good_at) and OVERALL not in card.good_at


def _usual_scale(mos: Sequence[float]) -> tuple[float, float]:
    for low, high in USUAL_SCALES:
        if low <= min(mos) and max(mos) <= high:
            return low, high
    raise UserError(f"scores from {min(mos):g} to {max(mos):g} are on no usual scale: name its ends with --mos-range")


def _measure(
    wanted: Mapping["Sample", Sequence[Tool]], journal: ResultsFile
) -> tuple[dict[str, dict["Sample", float]], dict[str, str]]:
    """The raw values by tool, and of each tool that could not measure some images why."""
    from agenticiqa.eval.calibrate import samples

    raw: dict[str, dict[Sample, float]] = {name: {} for name in _by_name(wanted)}
    failures: dict[str, list[str]] = {}
    for sample, values, failed in render.progress(samples.measure(wanted, journal), len(wanted), "measuring"):
        for name, value in values.items():
            raw[name][sample] = value
        for name, reason in failed.items():
            failures.setdefault(name, []).append(reason)
    return raw, {name: f"{len(reasons)} images failed, first: {reasons[0]}" for name, reasons in failures.items()}


def _by_name(wanted: Mapping["Sample", Sequence[Tool]]) -> dict[str, Tool]:
    """The tools that are to measure anything, in the toolbox's order."""
    names = {card.name for cards in wanted.values() for card in cards}
    return {name: card for name, card in TOOLS.items() if name in names}


def _outcome(card: Tool, raw: Mapping["Sample", float], origin: str, old: Calibration | None) -> "Outcome":
    from agenticiqa.eval.calibrate.calibration_fit import fit_calibration
    from agenticiqa.eval.calibrate.fit_report import Outcome
    from agenticiqa.eval.calibrate.samples import points_of

    points = None
    try:
        points = points_of(card, raw, origin)
        return Outcome(card, old, points, fit_calibration(points, card))
    except ToolError as error:
        return Outcome(card, old, points, refusal=str(error))
