"""What fusing is worth, on the answers of real vision-language models (VLMs), and when it hurts.

    python -m agenticiqa.eval.studies.fusion_study LABELS.csv MARGINS.csv --tool-scores SCORES.csv

MARGINS.csv has the column ``image`` and one per VLM: the logit of "good" less that of "poor" where it was asked for
the quality. SCORES.csv has the columns ``image`` and ``score``, a tool's calibrated score in 1..5 (of a model that was
fitted to these images: out of fold). Or name an embedded tool with ``--tool``.

Every fitted thing is fitted on four fifths of the images and measured on the other fifth, in turn. "normalised",
"literal" and "average" are the paper's formula with its denominator, as printed without it, and the plain mean, each
with the eta and the map from margins to levels that serve it best. "fitted" takes the levels as the VLM's logits say
them and fits the two numbers of the configuration, as ``agenticiqa.eval.studies.fusion_fit`` does. "held out" is for a
VLM that nobody has labels for: the model's error is chosen on the training images of all other VLMs. "shipped" is with
the default configuration. Each figure is of ranks within the fold, for all the same way.
"""

import argparse
import csv
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

from agenticiqa.eval.bootstrap import Estimate
from agenticiqa.eval.calibrate.samples import raw_value
from agenticiqa.eval.datasets import Labelled, read_labels
from agenticiqa.eval.metrics import Numbers, srcc
from agenticiqa.eval.studies.fusion_fit import (
    DEFAULT,
    ERRORS,
    LEVELS,
    Setting,
    best_setting,
    folds_of,
    fused,
    gain,
    signed,
)
from agenticiqa.eval.studies.level_maps import MAPPINGS, as_said, normalised
from agenticiqa.programs.errors import AgenticIQAError, UserError
from agenticiqa.programs.tools import toolbox

ALLOWED_LOSS = 0.01  # of SRCC, against the better part
SHARPER = (1, 4, 16)  # times as sure of itself: other backends may be, and these answers must not hide it
PAPER = [Setting(eta, 0.0) for eta in (4.0, 2.0, 1.0, 0.5, 0.25)]


def literal(tool: Numbers, p: Numbers, setting: Setting) -> Numbers:
    """The paper's sum as printed, without its denominator: not on the scale of 1..5."""
    alpha = normalised(-setting.eta * (tool[:, None] - LEVELS) ** 2)
    return (alpha * p) @ LEVELS


def average(tool: Numbers, p: Numbers, setting: Setting) -> Numbers:
    """The mean of the tool's score and the levels' expectation."""
    return (tool + p @ LEVELS) / 2


@dataclass(frozen=True)
class Row:
    """One VLM: SRCC of the parts and of each way to fuse them, and the paired difference of two to the better part."""

    vlm: str
    alone: float
    tool: float
    normalised: float
    literal: float
    average: float
    fitted: float
    fitted_gain: Estimate
    held_out: float
    held_out_gain: Estimate
    shipped_gain: Estimate


def study(
    tool: Numbers,
    margins: Mapping[str, Numbers],
    quality: Numbers,
    contents: Sequence[str],
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> list[Row]:
    """A row per VLM. ``tool`` (n,) in 1..5, ``margins`` (n,) each, ``quality`` (n,), the labels on 1..5."""
    folds = folds_of(contents, seed=seed)
    said = {name: as_said(m) for name, m in margins.items()}
    rows = []
    for name, m in margins.items():
        by_way = {way: np.empty_like(tool) for way in ("normalised", "literal", "average", "fitted", "held out")}
        for fold in np.unique(folds):
            rest, out = folds != fold, folds == fold
            levels = [make(m[rest], quality[rest])(m) for make in MAPPINGS.values()]
            for way, fuse, settings in (
                ("normalised", fused, PAPER),
                ("literal", literal, PAPER),
                ("average", average, PAPER[:1]),
            ):
                choices = [(p, setting) for p in levels for setting in settings]
                p, setting = max(choices, key=lambda c: srcc(fuse(tool[rest], c[0][rest], c[1]), quality[rest]) or 0.0)
                by_way[way][out] = fuse(tool[out], p[out], setting)
            setting = best_setting(tool[rest], said[name][rest], quality[rest])
            by_way["fitted"][out] = fused(tool[out], said[name][out], setting)
            others = {other: theirs[rest] for other, theirs in margins.items() if other != name}
            by_way["held out"][out] = fused(tool[out], said[name][out], safest(tool[rest], others, quality[rest]))
        by_way |= {"shipped": fused(tool, said[name], DEFAULT), "alone": m, "tool": tool}
        by_way = {way: ranks_within(folds, scores) for way, scores in by_way.items()}
        rank = {way: srcc(scores, quality) or 0.0 for way, scores in by_way.items()}
        parts = by_way["alone"], by_way["tool"]
        gains = [gain(by_way[way], parts, quality, contents, resamples) for way in ("fitted", "held out", "shipped")]
        rows.append(
            Row(
                name,
                rank["alone"],
                rank["tool"],
                rank["normalised"],
                rank["literal"],
                rank["average"],
                rank["fitted"],
                gains[0],
                rank["held out"],
                gains[1],
                gains[2],
            )
        )
    return rows


def ranks_within(folds: np.ndarray, scores: Numbers) -> Numbers:
    """Each score as its rank among those of its fold, 0 to 1: folds whose settings differ are not on one scale."""
    ranks = np.empty_like(scores)
    for fold in np.unique(folds):
        ranks[folds == fold] = rankdata(scores[folds == fold]) / np.sum(folds == fold)
    return ranks


def safest(tool: Numbers, margins: Mapping[str, Numbers], quality: Numbers) -> Setting:
    """The model's error that gains most in the mean among those that never lose more than is allowed.

    Over the VLMs given, each also if it were surer of itself. Where every error loses more than that for some VLM, it
    is the one whose worst loss is the least.
    """
    alone = srcc(tool, quality) or 0.0
    better = {name: max(alone, srcc(m, quality) or 0.0) for name, m in margins.items()}
    levels = [(name, as_said(m, sharper)) for name, m in margins.items() for sharper in SHARPER]

    def worth(setting: Setting) -> tuple[bool, float]:
        gains = [(srcc(fused(tool, p, setting), quality) or 0.0) - better[name] for name, p in levels]
        safe = min(gains) >= -ALLOWED_LOSS
        return safe, float(np.mean(gains)) if safe else min(gains)

    return max((Setting(DEFAULT.eta, error) for error in reversed(ERRORS)), key=worth)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table and what follows from it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labels", help="a labels.csv with the columns image and mos")
    parser.add_argument("margins", type=Path, help="a CSV with the column image and one column of margins per VLM")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--tool-scores", type=Path, metavar="CSV", help="a tool's scores: columns image and score")
    source.add_argument("--tool", metavar="NAME", help="an embedded no-reference tool, run on every image")
    parser.add_argument("--mos-range", nargs=2, type=float, default=(0, 100), metavar=("WORST", "BEST"))
    parser.add_argument("--resamples", type=int, default=1000, help="of the bootstrap intervals (%(default)s; 0: none)")
    parser.add_argument("--seed", type=int, default=0, help="of the folds (%(default)s)")
    args = parser.parse_args(argv)
    try:
        items = read_labels(args.labels)
        margins = read_columns(args.margins, items)
        tool = (
            _tool_scores(args.tool, items) if args.tool else read_columns(args.tool_scores, items, ["score"])["score"]
        )
    except AgenticIQAError as error:
        print(error, file=sys.stderr)
        return 2
    worst, best = args.mos_range
    quality = np.clip(1 + 4 * (np.array([item.mos for item in items]) - worst) / (best - worst), 1, 5)
    contents = [item.content for item in items]
    rows = study(tool, margins, quality, contents, resamples=args.resamples, seed=args.seed)
    print("\n".join(report(rows)))
    setting = safest(tool, margins, quality)
    print(f"- safest over all VLMs, also if they were surer: eta {setting.eta:g}, model_error {setting.model_error:g}")
    return 0


def report(rows: Sequence[Row]) -> list[str]:
    """The table in Markdown, the best VLM first, and a sentence for each way to fuse."""
    lines = [
        "| VLM | alone | tool | normalised | literal | average | fitted | fitted - better part | held out "
        "| held out - better part | shipped - better part |",
        f"|{' --- |' * 11}",
    ]
    for row in sorted(rows, key=lambda row: -row.alone):
        figures = (row.alone, row.tool, row.normalised, row.literal, row.average, row.fitted)
        cells = [*(f"{figure:.3f}" for figure in figures), signed(row.fitted_gain), f"{row.held_out:.3f}"]
        cells += [signed(row.held_out_gain), signed(row.shipped_gain)]
        lines.append(f"| {row.vlm} | {' | '.join(cells)} |")
    better = {row.vlm: max(row.alone, row.tool) for row in rows}
    able = [row for row in rows if row.alone > 0.3]
    lines.append("")
    for way in ("normalised", "literal", "average", "fitted", "held_out", "shipped"):
        gains = {
            row.vlm: row.shipped_gain.value or 0.0 if way == "shipped" else getattr(row, way) - better[row.vlm]
            for row in rows
        }
        lost = min(gains, key=lambda name: gains[name])
        won = sum(gains[row.vlm] > 0 for row in able)
        lines.append(
            f"- {way.replace('_', ' ')}: beats both parts for {won} of {len(able)} VLMs over 0.3; "
            f"mean difference to the better part {np.mean([*gains.values()]):+.4f}, worst {gains[lost]:+.4f} ({lost})"
        )
    return lines


def read_columns(path: Path, items: Sequence[Labelled], wanted: Sequence[str] | None = None) -> dict[str, Numbers]:
    """Columns of numbers by name, in the order of the labelled images; all but ``image`` unless some are wanted.

    Raises UserError, in one line, for a file, column, image or number that is missing.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = {row["image"]: row for row in csv.DictReader(file)}
        names = wanted or [name for name in next(iter(rows.values()), {}) if name != "image"]
        return {name: np.array([float(rows[item.name][name]) for item in items]) for name in names}
    except KeyError as error:
        raise UserError(
            f"{path}: there is no {error}; every labelled image needs a row and every column its name"
        ) from error
    except (OSError, UnicodeDecodeError, ValueError, TypeError) as error:
        raise UserError(f"{path}: expected a CSV with the column image and columns of numbers: {error}") from error


def _tool_scores(name: str, items: Sequence[Labelled]) -> Numbers:
    card = toolbox().get(name)
    if card is None or card.kind != "NR" or card.calibration is None:
        raise UserError(f"there is no embedded no-reference tool {name!r} with a curve")
    return np.array([card.calibration(raw_value(card, item)) for item in items])


if __name__ == "__main__":
    sys.exit(main())
