"""Measure what score fusion gains or costs beside real and simulated vision-language models (VLMs).

    python -m agenticiqa.eval.research.fusion_study LABELS.csv MARGINS.csv TOOLS.csv

MARGINS.csv has the column ``image`` and one per VLM: the logit of "good" minus that of "poor" when it was asked for the
quality. TOOLS.csv has ``image`` and a column of scores in 1..5 per tool, LEARNED-IQA among them (of a tool that was
fitted to these images: its held-out predictions). Each VLM stands beside each tool of ``fusion_cases``.

The ways to fuse:

- profile: a profile fitted to the images that are measured, without any label, as ``assess --fuse auto`` does
- profile, other images: a profile fitted to the other half of the images, without any label
- prior: without a profile, the program's default for a model that nobody has measured
- paper: the paper's formula, eta 1, with nothing that limits the model
- best in hindsight: the weighted mean of both with the weight that was best on the measured images

Every figure is the SRCC of the fused score less that of the better part (VLM or tool), on the half of the images, and
with the VLMs (every second one), that nothing was chosen on; ``--all`` measures on all images and VLMs. The prior was
chosen on the other halves by ``--choose``: of the model errors the one with the largest mean gain, where the simulated
VLMs of .7 to .9, today's, have half of the weight, and all others, with the real ones of 2023, the other half.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from agenticiqa.eval.datasets import mos_scale, read_columns, read_labels
from agenticiqa.eval.metrics import Numbers, srcc
from agenticiqa.eval.names import MOS_RANGE_HELP
from agenticiqa.eval.research.fusion_cases import (
    LEVEL_VALUES,
    ToolCase,
    Vlm,
    halves,
    normal_scores,
    real_vlms,
    simulated_vlms,
    tool_cases,
)
from agenticiqa.programs.errors import AgenticIQAError
from agenticiqa.programs.fusion.fit import FusionRow, fit_profile
from agenticiqa.programs.fusion.formula import ScoreFusion
from agenticiqa.programs.fusion.interval import NORMAL_QUANTILES, score_error
from agenticiqa.programs.fusion.profile import PRIOR, FusionProfile
from agenticiqa.programs.tools import TOOLS
from agenticiqa.programs.tools.training_images import trained_on_count

MODEL_ERRORS = (0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 1.0, 1.2, 1.5, 3.0)
TODAY, TODAY_WEIGHT = ("0.7", "0.8", "0.9"), 0.5
WAYS = ("profile", "profile, other images", "prior", "paper", "best in hindsight")


@dataclass(frozen=True)
class Measured:
    """One VLM beside one tool: gain in SRCC over the better part, and the share of opinions inside the intervals."""

    tool: str
    vlm: str
    is_real: bool
    alone: float
    gains: Mapping[str, float]
    covered: Mapping[tuple[str, str], float]


def measured(case: ToolCase, vlm: Vlm, quality: Numbers, images: np.ndarray, others: np.ndarray) -> Measured:
    """Fuse in every way and measure on ``images`` (row numbers); ``others`` are the images to fit to beside them."""
    truth, tool = quality[images], case.scores[images]
    expectation = vlm.probabilities @ LEVEL_VALUES
    alone = _srcc(expectation[images], truth)
    better = max(alone, _srcc(tool, truth))
    fusions = {
        "profile": ScoreFusion(profile=fitted(case, vlm, images)),
        "profile, other images": ScoreFusion(profile=fitted(case, vlm, others)),
        "prior": ScoreFusion(profile=PRIOR),
        "paper": ScoreFusion(1.0),
    }
    gains: dict[str, float] = {}
    covered: dict[tuple[str, str], float] = {}
    for way, fusion in fusions.items():
        scores = fused(fusion, case, vlm, images)
        gains[way] = _srcc(scores, truth) - better
        if way != "paper":
            errors = deviations(fusion, case, scores, images)
            for share, quantile in NORMAL_QUANTILES.items():
                covered[way, share] = float(np.mean(np.abs(truth - scores) <= quantile * errors))
    x, y = normal_scores(tool), normal_scores(expectation[images])
    gains["best in hindsight"] = max(_srcc(w * x + (1 - w) * y, truth) for w in np.linspace(0, 1, 41)) - better
    return Measured(case.name, vlm.name, vlm.is_real, alone, gains, covered)


def fitted(case: ToolCase, vlm: Vlm, images: np.ndarray) -> FusionProfile:
    """A profile of a VLM and a tool, fitted to images without labels."""
    rows = [
        FusionRow(
            float(case.scores[image]),
            _distribution(vlm.probabilities[image]),
            case.spread,
            {name: float(scores[image]) for name, scores in case.others.items()},
        )
        for image in images
    ]
    return fit_profile(rows, PRIOR, tool_reliability=case.reliability)


def fused(fusion: ScoreFusion, case: ToolCase, vlm: Vlm, images: np.ndarray) -> Numbers:
    """The program's fused scores (n,) of images."""
    stated = case.spread if fusion.profile else None
    return np.array(
        [
            fusion.fuse_scores(
                [float(case.scores[image])],
                _distribution(vlm.probabilities[image]),
                tool_error=stated,
            )
            for image in images
        ]
    )


def deviations(fusion: ScoreFusion, case: ToolCase, scores: Numbers, images: np.ndarray) -> Numbers:
    """The standard deviations (n,) that the program states for its scores of images."""
    equal = dict.fromkeys(fusion.quality_levels, 0.2)
    alone = [fusion.fuse_scores([float(case.scores[image])], equal, tool_error=case.spread) for image in images]
    pairs = zip(scores.tolist(), alone, strict=True)
    return np.array([score_error(fusion, case.spread, score, tool, None) for score, tool in pairs])


def utility(found: Iterable[Measured], way: str = "prior") -> float:
    """The mean gain, where today's VLMs have half of the weight."""
    by_group: dict[bool, list[float]] = defaultdict(list)
    for each in found:
        by_group[is_todays(each)].append(each.gains[way])
    weights = {True: TODAY_WEIGHT, False: 1 - TODAY_WEIGHT}
    return sum(weights[group] * float(np.mean(gains)) for group, gains in by_group.items())


def is_todays(each: Measured) -> bool:
    """Whether the VLM is a simulated one of .7 to .9."""
    return not each.is_real and each.vlm.split(",")[0].split()[-1] in TODAY


def prior_table(cases: Sequence[tuple[ToolCase, Vlm]], quality: Numbers, images: np.ndarray) -> list[str]:
    """For each candidate of the prior's model error its utility, and mean and worst gain."""
    lines = ["| model error | utility | mean | worst | today's: mean | worst |", f"|{' --- |' * 6}"]
    for error in MODEL_ERRORS:
        fusion = ScoreFusion(profile=PRIOR.model_copy(update={"model_error": error}))
        found = []
        for case, vlm in cases:
            truth, expectation = quality[images], (vlm.probabilities @ LEVEL_VALUES)[images]
            better = max(_srcc(expectation, truth), _srcc(case.scores[images], truth))
            gain = _srcc(fused(fusion, case, vlm, images), truth) - better
            found.append(Measured(case.name, vlm.name, vlm.is_real, 0.0, {"prior": gain}, {}))
        gains = [each.gains["prior"] for each in found]
        today = [each.gains["prior"] for each in found if is_todays(each)]
        cells = (utility(found), np.mean(gains), min(gains), np.mean(today), min(today))
        lines.append(f"| {error:g} | {' | '.join(f'{cell:+.3f}' for cell in cells)} |")
    return lines


def report(found: Sequence[Measured]) -> list[str]:
    """Mean and worst gain of each way by tool, real and simulated VLMs apart, and the coverage of the intervals."""
    lines = [f"| tool | VLMs | {' | '.join(WAYS)} |", f"|{' --- |' * (2 + len(WAYS))}"]
    tools = list(dict.fromkeys(each.tool for each in found))
    for kind, name in ((True, "real"), (False, "simulated")):
        for tool in tools:
            group = [each for each in found if each.tool == tool and each.is_real == kind]
            lines.append(_row(tool, name, group))
    lines.append(_row("all", "all", found))
    lines += ["", f"| tool | {' | '.join(f'{way}, {share} %' for way, share in found[0].covered)} |"]
    lines.append(f"|{' --- |' * (1 + len(found[0].covered))}")
    for tool in tools:
        held = [[each.covered[key] for each in found if each.tool == tool] for key in found[0].covered]
        lines.append(f"| {tool} | {' | '.join(f'{np.mean(h):.0%} ({min(h):.0%})' for h in held)} |")
    return lines


def _row(tool: str, kind: str, group: Sequence[Measured]) -> str:
    cells = []
    for way in WAYS:
        worst = min(group, key=lambda each: each.gains[way])
        mean = float(np.mean([each.gains[way] for each in group]))
        cells.append(f"{mean:+.3f}, worst {worst.gains[way]:+.3f} ({worst.vlm})")
    return f"| {tool} | {kind}, {len(group)} | {' | '.join(cells)} |"


def half(vlms: Sequence[Vlm], *, choosing: bool) -> list[Vlm]:
    """Every second VLM; of the simulated ones, which come in pairs of one correlation, one of each pair in turn."""
    places = [place if vlm.is_real else place // 2 + place for place, vlm in enumerate(vlms)]
    return [vlm for vlm, place in zip(vlms, places, strict=True) if place % 2 == (0 if choosing else 1)]


def mean_gain_interval(found: Sequence[Measured], way: str, resamples: int = 1000) -> tuple[float, float]:
    """The 95 % bootstrap interval of the mean gain, VLMs drawn with replacement."""
    names = sorted({each.vlm for each in found})
    by_vlm = np.array([np.mean([each.gains[way] for each in found if each.vlm == name]) for name in names])
    draws = np.random.default_rng(0).integers(0, len(names), (resamples, len(names)))
    low, high = np.percentile(by_vlm[draws].mean(axis=1), [2.5, 97.5])
    return float(low), float(high)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labels", help="a labels.csv with the columns image and mos")
    parser.add_argument("margins", type=Path, help="a CSV with the column image and one column of margins per VLM")
    parser.add_argument("tools", type=Path, help="a CSV with the column image and one column of scores per tool")
    parser.add_argument("--mos-range", nargs=2, type=float, metavar=("LOW", "HIGH"), help=MOS_RANGE_HELP)
    parser.add_argument("--seed", type=int, default=0, help="of the halves and simulations (%(default)s)")
    parser.add_argument("--choose", action="store_true", help="print the table that the prior is chosen by")
    parser.add_argument("--all", action="store_true", help="measure on all images and VLMs")
    args = parser.parse_args(argv)
    try:
        items = read_labels(args.labels)
        margins, tools = read_columns(args.margins, items), read_columns(args.tools, items)
        scale = mos_scale([item.mos for item in items], args.mos_range)
    except AgenticIQAError as error:
        print(error, file=sys.stderr)
        return 2
    quality = np.array([scale.to_1_5(item.mos) for item in items])
    choosing, reporting = halves([item.content for item in items], args.seed)
    cases = [
        (case, vlm)
        for case in tool_cases(tools, quality, args.seed)
        for kind in (real_vlms(margins), simulated_vlms(case.scores, quality, args.seed))
        for vlm in (kind if args.all else half(kind, choosing=args.choose))
    ]
    images = np.arange(len(items)) if args.all else choosing if args.choose else reporting
    others = reporting if args.choose else choosing
    if args.choose:
        print("\n".join(prior_table(cases, quality, images)))
        return 0
    for name in tools:
        tool = TOOLS.get(name)
        if tool and (count := trained_on_count(tool, [item.image for item in items])):
            print(
                f"Not held out: {name} was trained on {count} of {len(items)} images, "
                f"unless {args.tools} predicts each of them without itself."
            )
    found = [measured(case, vlm, quality, images, others) for case, vlm in cases]
    print(f"{len(images)} images, {len({vlm.name for _, vlm in cases})} VLMs, {len(found)} pairs of VLM and tool")
    print("\n".join(report(found)))
    for way in WAYS:
        low, high = mean_gain_interval(found, way)
        print(f"- {way}: the mean gain has the 95 % interval [{low:+.3f}, {high:+.3f}] over VLMs")
    return 0


def _distribution(row: Numbers) -> dict[int, float]:
    return dict(enumerate((row / row.sum()).tolist(), 1))


def _srcc(a: Numbers, b: Numbers) -> float:
    return srcc(a, b) or 0.0


if __name__ == "__main__":
    sys.exit(main())
