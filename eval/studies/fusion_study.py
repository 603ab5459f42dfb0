"""Measure what score fusion gains or costs on the answers of real vision-language models (VLMs).

    python -m agenticiqa.eval.studies.fusion_study LABELS.csv MARGINS.csv --tool-scores SCORES.csv

MARGINS.csv has the column ``image`` and one per VLM: the logit of "good" minus that of "poor" when it was asked for the
quality. SCORES.csv has the columns ``image`` and ``score``, a tool's calibrated score in 1..5 (of a tool that was
fitted to these images: its held-out predictions). ``--tool NAME`` runs an embedded tool instead.

Everything fitted is fitted on four fifths of the images and measured on the other fifth, in turn. The columns:

- normalized, literal, average: the paper's formula with its denominator, as printed without it, and the plain mean,
  each with the eta and the map from margins to levels that serve it best;
- fitted: the levels as the VLM's logits imply them, and the two parameters of the configuration fitted as
  ``agenticiqa.eval.studies.fusion_fit`` does;
- held out: for a VLM without labels, the model's error chosen on the training images of all other VLMs, or the default
  where there are none;
- shipped: the default configuration.

Every figure is the SRCC of ranks within the fold.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

from agenticiqa.eval.bootstrap import Interval
from agenticiqa.eval.datasets import (
    MOS_RANGE_HELP,
    LabeledImage,
    folds_by_content,
    mos_scale,
    read_columns,
    read_labels,
)
from agenticiqa.eval.metrics import Numbers, srcc
from agenticiqa.eval.studies.fusion_fit import (
    DEFAULT,
    FOLDS,
    LEVEL_VALUES,
    MODEL_ERRORS,
    Setting,
    best_setting,
    fused,
    gain,
)
from agenticiqa.eval.studies.level_maps import FIT_MAPS, from_logits, probabilities
from agenticiqa.eval.studies.raw_values import raw_of
from agenticiqa.programs.errors import AgenticIQAError, UserError
from agenticiqa.programs.tools import toolbox

ALLOWED_LOSS = 0.01  # of SRCC, against the better part
SHARPNESS = (1, 4, 16)  # other backends may be more confident than these VLMs, and fusion has to withstand that
PAPER = [Setting(eta, 0.0) for eta in (4.0, 2.0, 1.0, 0.5, 0.25)]
LEAST_ABLE = 0.3  # SRCC above which a VLM counts as able to judge quality


def literal(tool: Numbers, p: Numbers, setting: Setting) -> Numbers:
    """The paper's sum as printed, without its denominator: not on the scale of 1..5."""
    alpha = probabilities(-setting.eta * (tool[:, None] - LEVEL_VALUES) ** 2)
    return (alpha * p) @ LEVEL_VALUES


def average(tool: Numbers, p: Numbers, setting: Setting) -> Numbers:
    """The mean of the tool's score and the expected level."""
    return (tool + p @ LEVEL_VALUES) / 2


@dataclass(frozen=True)
class Row:
    """One VLM: SRCC of the parts and of each way to fuse them, and paired differences to the better part."""

    vlm: str
    alone: float
    tool: float
    normalized: float
    literal: float
    average: float
    fitted: float
    fitted_gain: Interval
    held_out: float
    held_out_gain: Interval
    shipped_gain: Interval


def study(
    tool: Numbers,
    margins: Mapping[str, Numbers],
    quality: Numbers,
    contents: Sequence[str],
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> list[Row]:
    """A row per VLM. ``tool`` (n,) in 1..5, ``margins`` (n,) each, ``quality`` (n,) the labels on 1..5."""
    folds = folds_by_content(contents, FOLDS, seed)
    return [_row(name, tool, margins, quality, contents, folds, resamples) for name in margins]


def _row(
    name: str,
    tool: Numbers,
    margins: Mapping[str, Numbers],
    quality: Numbers,
    contents: Sequence[str],
    folds: np.ndarray,
    resamples: int,
) -> Row:
    own = margins[name]
    implied = from_logits(own)
    scores = {way: np.empty_like(tool) for way in ("normalized", "literal", "average", "fitted", "held out")}
    for fold in np.unique(folds):
        rest, out = folds != fold, folds == fold
        maps = [fit(own[rest], quality[rest])(own) for fit in FIT_MAPS.values()]
        for way, fuse, settings in (
            ("normalized", fused, PAPER),
            ("literal", literal, PAPER),
            ("average", average, PAPER[:1]),
        ):
            choices = [(p, setting) for p in maps for setting in settings]
            p, setting = max(choices, key=lambda c: srcc(fuse(tool[rest], c[0][rest], c[1]), quality[rest]) or 0.0)
            scores[way][out] = fuse(tool[out], p[out], setting)
        setting = best_setting(tool[rest], implied[rest], quality[rest])
        scores["fitted"][out] = fused(tool[out], implied[out], setting)
        others = {other: theirs[rest] for other, theirs in margins.items() if other != name}
        scores["held out"][out] = fused(
            tool[out], implied[out], safest(tool[rest], others, quality[rest]) if others else DEFAULT
        )
    scores |= {"shipped": fused(tool, implied, DEFAULT), "alone": own, "tool": tool}
    scores = {way: ranks_within(folds, values) for way, values in scores.items()}
    found = {way: srcc(values, quality) or 0.0 for way, values in scores.items()}
    parts = scores["alone"], scores["tool"]
    gains = {way: gain(scores[way], parts, quality, contents, resamples) for way in ("fitted", "held out", "shipped")}
    return Row(
        vlm=name,
        alone=found["alone"],
        tool=found["tool"],
        normalized=found["normalized"],
        literal=found["literal"],
        average=found["average"],
        fitted=found["fitted"],
        fitted_gain=gains["fitted"],
        held_out=found["held out"],
        held_out_gain=gains["held out"],
        shipped_gain=gains["shipped"],
    )


def ranks_within(folds: np.ndarray, scores: Numbers) -> Numbers:
    """Each score's rank in its fold, 0 to 1: folds with different settings are not on one scale."""
    ranks = np.empty_like(scores)
    for fold in np.unique(folds):
        ranks[folds == fold] = rankdata(scores[folds == fold]) / np.sum(folds == fold)
    return ranks


def safest(tool: Numbers, margins: Mapping[str, Numbers], quality: Numbers) -> Setting:
    """The model error with the highest mean gain over all VLMs among those that never lose more than is allowed.

    Each VLM counts at every ``SHARPNESS``. Where every error loses more than is allowed for some VLM, the one with the
    smallest worst loss is taken.
    """
    alone = srcc(tool, quality) or 0.0
    better = {name: max(alone, srcc(m, quality) or 0.0) for name, m in margins.items()}
    levels = [(name, from_logits(m, sharpness)) for name, m in margins.items() for sharpness in SHARPNESS]

    def preference(setting: Setting) -> tuple[bool, float]:
        gains = [(srcc(fused(tool, p, setting), quality) or 0.0) - better[name] for name, p in levels]
        safe = min(gains) >= -ALLOWED_LOSS
        return safe, float(np.mean(gains)) if safe else min(gains)

    return max((Setting(DEFAULT.eta, error) for error in reversed(MODEL_ERRORS)), key=preference)


def report(rows: Sequence[Row]) -> list[str]:
    """The table in Markdown, the best VLM first, and a sentence for each way to fuse."""
    lines = [
        "| VLM | alone | tool | normalized | literal | average | fitted | fitted - better part | held out "
        "| held out - better part | shipped - better part |",
        f"|{' --- |' * 11}",
    ]
    for row in sorted(rows, key=lambda row: -row.alone):
        figures = (row.alone, row.tool, row.normalized, row.literal, row.average, row.fitted)
        cells = [*(f"{figure:.3f}" for figure in figures), f"{row.fitted_gain:+.4f}", f"{row.held_out:.3f}"]
        cells += [f"{row.held_out_gain:+.4f}", f"{row.shipped_gain:+.4f}"]
        lines.append(f"| {row.vlm} | {' | '.join(cells)} |")
    better = {row.vlm: max(row.alone, row.tool) for row in rows}
    able = [row for row in rows if row.alone > LEAST_ABLE]
    lines.append("")
    for way in ("normalized", "literal", "average", "fitted", "held_out", "shipped"):
        gains = {
            row.vlm: row.shipped_gain.value or 0.0 if way == "shipped" else getattr(row, way) - better[row.vlm]
            for row in rows
        }
        worst = min(gains, key=lambda name: gains[name])
        won = sum(gains[row.vlm] > 0 for row in able)
        lines.append(
            f"- {way.replace('_', ' ')}: beats both parts for {won} of {len(able)} VLMs over {LEAST_ABLE}; "
            f"mean difference to the better part {np.mean([*gains.values()]):+.4f}, worst {gains[worst]:+.4f} ({worst})"
        )
    return lines


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labels", help="a labels.csv with the columns image and mos")
    parser.add_argument("margins", type=Path, help="a CSV with the column image and one column of margins per VLM")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--tool-scores", type=Path, metavar="CSV", help="a tool's scores: columns image and score")
    source.add_argument("--tool", metavar="NAME", help="an embedded no-reference tool, run on every image")
    parser.add_argument("--mos-range", nargs=2, type=float, metavar=("LOW", "HIGH"), help=MOS_RANGE_HELP)
    parser.add_argument("--resamples", type=int, default=1000, help="of the bootstrap intervals (%(default)s; 0: none)")
    parser.add_argument("--seed", type=int, default=0, help="of the folds (%(default)s)")
    args = parser.parse_args(argv)
    try:
        items = read_labels(args.labels)
        margins = read_columns(args.margins, items)
        tool = (
            _tool_scores(args.tool, items) if args.tool else read_columns(args.tool_scores, items, ["score"])["score"]
        )
        scale = mos_scale([item.mos for item in items], args.mos_range)
    except AgenticIQAError as error:
        print(error, file=sys.stderr)
        return 2
    quality = np.array([scale.to_1_5(item.mos) for item in items])
    contents = [item.content for item in items]
    rows = study(tool, margins, quality, contents, resamples=args.resamples, seed=args.seed)
    print("\n".join(report(rows)))
    setting = safest(tool, margins, quality)
    print(
        "- safest over all VLMs, also if they were more confident: "
        f"eta {setting.eta:g}, model_error {setting.model_error:g}"
    )
    return 0


def _tool_scores(name: str, items: Sequence[LabeledImage]) -> Numbers:
    tool = toolbox().get(name)
    if tool is None or tool.kind != "NR" or tool.calibration is None:
        raise UserError(f"there is no embedded no-reference tool {name!r} with a calibration")
    return np.array([tool.calibration(raw_of(tool, item)) for item in items])


if __name__ == "__main__":
    sys.exit(main())
