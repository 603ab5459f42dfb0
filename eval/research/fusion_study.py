"""Measure what score fusion gains or costs beside real and simulated vision-language models (VLMs).

    python -m agenticiqa.eval.research.fusion_study LABELS.csv MARGINS.csv TOOLS.csv

MARGINS.csv has the column ``image`` and one per VLM: the logit of "good" minus that of "poor" when it was asked for the
quality. TOOLS.csv has ``image`` and a column of scores in 1..5 per tool, LEARNED-IQA among them (of a tool that was
fitted to these images: its held-out predictions). Each VLM stands beside each tool, and beside the best one with noise.

The ways to fuse:

- profile: a profile fitted to the images that are measured, without any label, as ``assess --fuse auto`` does
- profile, other images: a profile fitted to the other half of the images, without any label
- prior: without a profile, the program's default for a model that nobody has measured
- paper: the paper's formula, eta 1, with nothing that limits the model
- best in hindsight: the weighted mean of both with the weight that was best on the measured images

``--generated`` says that the images are AI-generated, of which the tools' reliability is another.

Every figure is the SRCC of the fused score less that of the better part (VLM or tool), on the half of the images, and
with the VLMs (every second one), that nothing was chosen on; ``--all`` measures on all images and VLMs. The prior was
chosen on the other halves: of eleven model errors from .6 to 3 the one with the largest mean gain, where the simulated
VLMs of .7 to .9, today's, had half of the weight, and all others, with the real ones of 2023, the other half.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import log_softmax
from scipy.stats import norm, rankdata

from agenticiqa.eval.datasets import mos_scale, read_columns, read_labels
from agenticiqa.eval.metrics import Numbers, srcc
from agenticiqa.eval.names import MOS_RANGE_HELP
from agenticiqa.eval.research.command import parser_of, run_command
from agenticiqa.programs.fusion.fit import FusionRow, fit_profile, known_reliability
from agenticiqa.programs.fusion.formula import ScoreFusion
from agenticiqa.programs.fusion.interval import NORMAL_QUANTILES, score_error
from agenticiqa.programs.fusion.profile import PRIOR, FusionProfile
from agenticiqa.programs.tools import TOOLS
from agenticiqa.programs.tools.tool import OPINION_STD
from agenticiqa.programs.tools.training_images import trained_on_count
from agenticiqa.signatures.vocabulary import JudgedAs

LEVEL_VALUES = np.arange(1.0, 6.0)
SIMULATED = (0.6, 0.7, 0.8, 0.9, 0.95)  # correlations of simulated VLMs with opinions, on normal scores
SHARED = (0.0, 0.3)  # correlations of their errors with the tool's
SIMULATED_MEAN, SIMULATED_STD, SIMULATED_WIDTH = 3.4, 0.7, 0.6  # levels; the width is that of their probabilities
TARGETS = (0.5, 0.68)  # SRCC of the tools that are made of a better one by adding noise
BEST_TOOL = "LEARNED-IQA"
ONLY_THIRD = ("EDGE-SHARPNESS",)  # calibrated to synthetic blur: no rating is made of it alone
WAYS = ("profile", "profile, other images", "prior", "paper", "best in hindsight")


@dataclass(frozen=True)
class ToolCase:
    """A tool's scores (n,) in 1..5, its known reliability, further tools' scores by name, and what the images are."""

    name: str
    scores: Numbers
    reliability: float
    others: Mapping[str, Numbers]
    kind: JudgedAs = "photo"

    @property
    def spread(self) -> float:
        """The standard deviation of opinions around the scores that its reliability implies, in levels."""
        return OPINION_STD * float(np.sqrt(1 - self.reliability**2))


@dataclass(frozen=True)
class Vlm:
    """A VLM's probabilities over the levels (n, 5), and what is known of it."""

    name: str
    probabilities: Numbers
    is_real: bool


def from_logits(margins: Numbers, sharpness: float = 1) -> Numbers:
    """The probabilities (n, 5) that the logits of "good" minus those of "poor", (n,), imply.

    "good" is level 4 and "poor" level 2, so half the margin is a level. ``sharpness`` multiplies the margins: above 1
    the model is more confident.
    """
    return np.exp(log_softmax(sharpness * margins[:, None] / 2 * (LEVEL_VALUES - 3), axis=1))


def around(expectation: Numbers) -> Numbers:
    """Gaussian probabilities (n, 5) around expectations (n,)."""
    return np.exp(log_softmax(-0.5 * ((LEVEL_VALUES - expectation[:, None]) / SIMULATED_WIDTH) ** 2, axis=1))


def normal_scores(values: Numbers) -> Numbers:
    """Ranks (n,) as quantiles of the standard normal distribution."""
    return np.asarray(norm.ppf((rankdata(values) - 0.5) / len(values)))


def tool_cases(
    tools: Mapping[str, Numbers], quality: Numbers, seed: int = 0, kind: JudgedAs = "photo"
) -> list[ToolCase]:
    """The best tool with added noise down to each SRCC of ``TARGETS``, as it is, and every other tool in ``tools``.

    ``tools`` has scores (n,) in 1..5 by name, LEARNED-IQA among them. A noisy tool has the further tools beside it, a
    weaker real one has LEARNED-IQA beside it as well, which a run always can compute.
    """
    best = tools[BEST_TOOL]
    weak = {name: scores for name, scores in tools.items() if name != BEST_TOOL}
    cases = [
        ToolCase(f"{BEST_TOOL} + noise, {target:g}", degraded(best, quality, target, seed + place), target, weak, kind)
        for place, target in enumerate(TARGETS)
    ]
    known = _known(BEST_TOOL, best, quality, kind)
    cases.append(ToolCase(_named(BEST_TOOL, best, quality), best, known, weak, kind))
    for name, scores in weak.items():
        if name in ONLY_THIRD:
            continue
        others = {other: theirs for other, theirs in tools.items() if other != name}
        cases.append(ToolCase(_named(name, scores, quality), scores, _known(name, scores, quality, kind), others, kind))
    return cases


def degraded(scores: Numbers, quality: Numbers, target: float, seed: int = 0) -> Numbers:
    """Scores (n,) with noise added until their SRCC with the quality is ``target``, in 1..5, calibrated."""
    noise, plain = np.random.default_rng([seed, 7]).standard_normal(len(scores)), normal_scores(scores)
    low, high = 0.0, 10.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if (srcc(plain + middle * noise, quality) or 0.0) > target else (low, middle)
    spread = quality.std() * target
    return np.clip(quality.mean() + spread * normal_scores(plain + low * noise), 1, 5)


def simulated_vlms(tool: Numbers, quality: Numbers, seed: int = 0) -> list[Vlm]:
    """VLMs of every correlation in ``SIMULATED`` whose error has every correlation in ``SHARED`` with the tool's."""
    truth = normal_scores(quality)
    own = _beside(normal_scores(tool), truth)
    found = []
    for place, correlation in enumerate(SIMULATED):
        for shared in SHARED:
            draw = np.random.default_rng([seed, place, int(100 * shared)]).standard_normal(len(truth))
            error = shared * own + np.sqrt(1 - shared**2) * _beside(draw, truth, own)
            answer = correlation * truth + np.sqrt(1 - correlation**2) * error
            p = around(np.clip(SIMULATED_MEAN + SIMULATED_STD * answer, 1, 5))
            found.append(Vlm(f"simulated {correlation:g}, errors {shared:g}", p, is_real=False))
    return found


def real_vlms(margins: Mapping[str, Numbers]) -> list[Vlm]:
    """VLMs whose margins were published."""
    return [Vlm(name, from_logits(theirs), is_real=True) for name, theirs in margins.items()]


def _beside(values: Numbers, *given: Numbers) -> Numbers:
    """What of values (n,) is no linear function of the given ones, standardized."""
    design = np.column_stack([np.ones_like(values), *given])
    rest = values - design @ np.linalg.lstsq(design, values, rcond=None)[0]
    return np.asarray(rest / rest.std())


def _named(name: str, scores: Numbers, quality: Numbers) -> str:
    return f"{name}, {srcc(scores, quality) or 0.0:.2f}"


def _known(name: str, scores: Numbers, quality: Numbers, kind: JudgedAs) -> float:
    """The reliability in the tool table; of a tool that is none of the program's its SRCC here."""
    return known_reliability(name, kind) or srcc(scores, quality) or 0.0


@dataclass(frozen=True)
class MeasuredCase:
    """One VLM beside one tool: gain in SRCC over the better part, and the share of opinions inside the intervals."""

    tool: str
    vlm: str
    is_real: bool
    alone: float
    gains: Mapping[str, float]
    covered: Mapping[tuple[str, str], float]


def measured(case: ToolCase, vlm: Vlm, quality: Numbers, images: np.ndarray, others: np.ndarray) -> MeasuredCase:
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
            errors = deviations(fusion, case, scores, expectation[images], images)
            for share, quantile in NORMAL_QUANTILES.items():
                covered[way, share] = float(np.mean(np.abs(truth - scores) <= quantile * errors))
    x, y = normal_scores(tool), normal_scores(expectation[images])
    gains["best in hindsight"] = max(_srcc(w * x + (1 - w) * y, truth) for w in np.linspace(0, 1, 41)) - better
    return MeasuredCase(case.name, vlm.name, vlm.is_real, alone, gains, covered)


def fitted(case: ToolCase, vlm: Vlm, images: np.ndarray) -> FusionProfile:
    """A profile of a VLM and a tool, fitted to images without labels."""
    rows = [
        FusionRow(
            float(case.scores[image]),
            _distribution(vlm.probabilities[image]),
            case.spread,
            {name: float(scores[image]) for name, scores in case.others.items()},
            judged_as=case.kind,
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


def deviations(
    fusion: ScoreFusion, case: ToolCase, scores: Numbers, expectation: Numbers, images: np.ndarray
) -> Numbers:
    """The standard deviations (n,) that the program states for its scores, given the VLM's expected levels (n,)."""
    equal, found = dict.fromkeys(fusion.quality_levels, 0.2), []
    for score, level, tools in zip(scores.tolist(), expectation.tolist(), case.scores[images].tolist(), strict=True):
        alone = fusion.fuse_scores([tools], equal, tool_error=case.spread)
        found.append(score_error(fusion, case.spread, score, alone, None, tools, fusion.place(level)))
    return np.array(found)


def report(found: Sequence[MeasuredCase]) -> list[str]:
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


def _row(tool: str, kind: str, group: Sequence[MeasuredCase]) -> str:
    cells = []
    for way in WAYS:
        worst = min(group, key=lambda each: each.gains[way])
        mean = float(np.mean([each.gains[way] for each in group]))
        cells.append(f"{mean:+.3f}, worst {worst.gains[way]:+.3f} ({worst.vlm})")
    return f"| {tool} | {kind}, {len(group)} | {' | '.join(cells)} |"


def halves(contents: Sequence[str], seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two halves of the images (row numbers), by a seeded shuffle of contents: to choose on, and to report on."""
    known = list(dict.fromkeys(contents))
    order = np.random.default_rng(seed).permutation(len(known))
    is_first = np.isin(contents, [known[place] for place in order[: len(known) // 2]])
    return np.flatnonzero(is_first), np.flatnonzero(~is_first)


def each_vlm(found: Sequence[MeasuredCase]) -> list[str]:
    """Each real VLM beside the best tool, the best first: its SRCC alone and the gains of every way."""
    real = [each for each in found if each.is_real and each.tool.startswith(f"{BEST_TOOL}, ")]
    lines = [f"| VLM | alone | {' | '.join(WAYS)} |", f"|{' --- |' * (2 + len(WAYS))}"]
    for each in sorted(real, key=lambda each: -each.alone):
        lines.append(f"| {each.vlm} | {each.alone:.3f} | {' | '.join(f'{each.gains[way]:+.3f}' for way in WAYS)} |")
    return lines


def reported(vlms: Sequence[Vlm]) -> list[Vlm]:
    """Every second VLM, that nothing was chosen on; of simulated ones, pairs of one correlation, one of each."""
    places = [place if vlm.is_real else place // 2 + place for place, vlm in enumerate(vlms)]
    return [vlm for vlm, place in zip(vlms, places, strict=True) if place % 2]


def mean_gain_interval(found: Sequence[MeasuredCase], way: str, resamples: int = 1000) -> tuple[float, float]:
    """The 95 % bootstrap interval of the mean gain, VLMs drawn with replacement."""
    names = sorted({each.vlm for each in found})
    by_vlm = np.array([np.mean([each.gains[way] for each in found if each.vlm == name]) for name in names])
    draws = np.random.default_rng(0).integers(0, len(names), (resamples, len(names)))
    low, high = np.percentile(by_vlm[draws].mean(axis=1), [2.5, 97.5])
    return float(low), float(high)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = parser_of(__doc__)
    parser.add_argument("labels", help="a labels.csv with the columns image and mos")
    parser.add_argument("margins", type=Path, help="a CSV with the column image and one column of margins per VLM")
    parser.add_argument("tools", type=Path, help="a CSV with the column image and one column of scores per tool")
    parser.add_argument("--mos-range", nargs=2, type=float, metavar=("LOW", "HIGH"), help=MOS_RANGE_HELP)
    parser.add_argument("--seed", type=int, default=0, help="of the halves and simulations (%(default)s)")
    parser.add_argument("--all", action="store_true", help="measure on all images and VLMs")
    parser.add_argument(
        "--generated", action="store_true", help="the images are AI-generated; of all VLMs, on one half"
    )

    def run(args: argparse.Namespace) -> None:
        items = read_labels(args.labels)
        margins, tools = read_columns(args.margins, items), read_columns(args.tools, items)
        scale = mos_scale([item.mos for item in items], args.mos_range)
        quality = np.array([scale.to_1_5(item.mos) for item in items])
        others, images = halves([item.content for item in items], args.seed)
        kind: JudgedAs = "generated" if args.generated else "photo"
        every_vlm = args.all or args.generated
        if args.all:
            images = np.arange(len(items))
        cases = [
            (case, vlm)
            for case in tool_cases(tools, quality, args.seed, kind)
            for vlms in (real_vlms(margins), simulated_vlms(case.scores, quality, args.seed))
            for vlm in (vlms if every_vlm else reported(vlms))
        ]
        for name in tools:
            tool = TOOLS.get(name)
            if tool and (count := trained_on_count(tool, [item.image for item in items])):
                print(
                    f"Not held out: {name} was trained on {count} of {len(items)} images, "
                    f"unless {args.tools} predicts each of them without itself."
                )
        found = [measured(case, vlm, quality, images, others) for case, vlm in cases]
        print(f"{len(images)} images, {len({vlm.name for _, vlm in cases})} VLMs, {len(found)} pairs of VLM and tool")
        print("\n".join([*report(found), "", *each_vlm(found)]))
        for way in WAYS:
            low, high = mean_gain_interval(found, way)
            print(f"- {way}: the mean gain has the 95 % interval [{low:+.3f}, {high:+.3f}] over VLMs")

    return run_command(parser, run, argv)


def _distribution(row: Numbers) -> dict[int, float]:
    return dict(enumerate((row / row.sum()).tolist(), 1))


def _srcc(a: Numbers, b: Numbers) -> float:
    return srcc(a, b) or 0.0


if __name__ == "__main__":
    raise SystemExit(main())
