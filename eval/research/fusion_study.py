"""Measure what score fusion gains or costs beside real and simulated vision-language models (VLMs).

    python -m agenticiqa.eval.research.fusion_study DATA --set clive

DATA has the folders clive, biq2021, agiqa3k and live_r2, each with a ``labels.csv``. The folder of the measured set
also has ``peer_vlm_margins.csv``: the column ``image``, and one per VLM with the logit of "good" minus that of "poor".

Each VLM stands beside each of five tools: LEARNED-IQA, predicted by 10 folds; the same with noise down to an SRCC of .5
and .68; the same trained on other sets only; and NIQE. A held-out LEARNED-IQA is a ridge regression on its features, as
in ``adapter_figures``. Every figure is the SRCC of the fused score minus that of the better part (VLM or tool):

- profile: a profile fitted to the measured images, without labels
- default: the fusion without a profile, which is the formula of the paper
- hindsight: the weighted mean of both with the weight that was best on the measured images

For AGIQA-3K the figures are of half of the prompts, because a constant of the fit was chosen on the other half. The
last tables compare the plain and the weighted mean of two tools, show whether the spread of a real VLM's probabilities
predicts the error of the fused score, and show the SRCC for a weak and a good simulated VLM.
"""

import argparse
import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import log_softmax
from scipy.stats import norm, rankdata

from agenticiqa.eval.datasets import folds_by_content
from agenticiqa.eval.labels.own_data import read_labels
from agenticiqa.eval.metrics import Numbers, srcc
from agenticiqa.eval.research.adapter_figures import SCALES, RatedImages, read_set, scores_by_others
from agenticiqa.eval.research.command import begin_step, parser_of, run_command
from agenticiqa.programs.fusion.fit import FusionRow, fit_profile, known_reliability
from agenticiqa.programs.fusion.formula import ScoreFusion, default_fusion
from agenticiqa.programs.fusion.interval import FusedScore, fused_score
from agenticiqa.programs.fusion.tool_mean import mean_weights
from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.images.loading import load
from agenticiqa.programs.tools import TOOLS, toolbox
from agenticiqa.programs.tools.tool import MOS_STD, run_tool
from agenticiqa.signatures.categories import OVERALL
from agenticiqa.signatures.types import GLOBAL, ExecutorOutput, ToolCall
from agenticiqa.signatures.vocabulary import ImageKind

LEVEL_VALUES = np.arange(1.0, 6.0)
SIMULATED = (0.6, 0.7, 0.8, 0.9, 0.95)  # correlations of simulated VLMs with the MOS, on normal scores
WEAK, GOOD = 0.55, 0.89
SHARED = (0.0, 0.3)  # correlations of the VLMs' errors with the tool's
SIMULATED_MEAN, SIMULATED_STD, SIMULATED_WIDTH = 3.4, 0.7, 0.6  # levels of the scores; width of their probabilities
NOISY = (0.5, 0.68)  # SRCC of the tools that are made of LEARNED-IQA by adding noise
LEARNED, NIQE, SHARPNESS = "LEARNED-IQA", "NIQE", "EDGE-SHARPNESS"
FOLDS = 10
WAYS = ("profile", "default", "hindsight")


@dataclass(frozen=True)
class ToolCase:
    """A tool's scores (n,) in 1..5, the names of the tools in them, its reliability, and further tools by name."""

    name: str
    scores: Numbers
    toolset: tuple[str, ...]
    reliability: float
    others: Mapping[str, Numbers]
    kind: ImageKind

    def evidence(self, image: int) -> ExecutorOutput:
        """Return the evidence of one image, with the spread that the tool's reliability implies."""
        score, spread = float(self.scores[image]), MOS_STD * float(np.sqrt(1 - self.reliability**2))
        call = ToolCall(tool=self.name, region=GLOBAL, distortion=OVERALL, calibrated=score, spread=spread, ms=0)
        return ExecutorOutput(quality_scores={GLOBAL: {OVERALL: (self.name, score)}}, tool_log=[call])


@dataclass(frozen=True)
class Vlm:
    """A VLM's probabilities over the levels (n, 5)."""

    name: str
    probabilities: Numbers
    is_real: bool

    def levels(self, image: int) -> dict[int, float]:
        """Return the probabilities for one image."""
        return dict(enumerate(self.probabilities[image].tolist(), 1))


@dataclass(frozen=True)
class MeasuredCase:
    """One VLM beside one tool: gains in SRCC over the better part, and the coverage of the intervals by way."""

    tool: str
    vlm: str
    is_real: bool
    gains: Mapping[str, float]
    covered: Mapping[tuple[str, str], float]
    srcc: Mapping[str, float]


def tool_cases(images: RatedImages, others: Sequence[RatedImages], measured: Mapping[str, Numbers]) -> list[ToolCase]:
    """Return the five tools for the images of a set; ``measured`` has NIQE and EDGE-SHARPNESS (n,)."""
    kind: ImageKind = "generated" if any(images.generator) else "photo"
    folds = folds_by_content(images.content.tolist(), FOLDS, dealt=True)
    held_out = np.zeros(len(images.mos))
    for fold in range(FOLDS):
        held_out[folds == fold] = scores_by_others([images.of(folds != fold), *others], images.of(folds == fold))
    across = scores_by_others(others, images)

    def known(tool: str, scores: Numbers) -> float:
        return known_reliability(tool, kind) or _srcc(scores, images.mos)

    cases = [
        ToolCase(f"{LEARNED} with noise, {aim}", _degraded(held_out, images.mos, aim, place), (), aim, measured, kind)
        for place, aim in enumerate(NOISY)
    ]
    learned = known(LEARNED, held_out)
    cases.append(ToolCase(LEARNED, held_out, (LEARNED,), learned, measured, kind))
    cases.append(ToolCase(f"{LEARNED}, other sets", across, (LEARNED,), _srcc(across, images.mos), measured, kind))
    beside = {SHARPNESS: measured[SHARPNESS], LEARNED: held_out}
    return [*cases, ToolCase(NIQE, measured[NIQE], (NIQE,), known(NIQE, measured[NIQE]), beside, kind)]


def two_tools(learned: ToolCase, niqe: ToolCase, mos: Numbers) -> list[ToolCase]:
    """Return the plain and the weighted mean of LEARNED-IQA and NIQE as tools."""
    weights = mean_weights([TOOLS[LEARNED], TOOLS[NIQE]], has_reference=False)
    cases = []
    for name, share in (("plain", 0.5), ("weighted", weights[LEARNED])):
        mean = share * learned.scores + (1 - share) * niqe.scores
        both = (LEARNED, NIQE)
        cases.append(ToolCase(f"{name} mean of both", mean, both, _srcc(mean, mos), learned.others, learned.kind))
    return cases


def simulated_vlms(tool: Numbers, mos: Numbers, correlations: Sequence[float] = SIMULATED) -> list[Vlm]:
    """Return VLMs of every correlation whose error has every correlation in ``SHARED`` with the tool's."""
    truth = normal_scores(mos)
    own = _beside(normal_scores(tool), truth)
    vlms = []
    for place, correlation in enumerate(correlations):
        for shared in SHARED:
            draw = np.random.default_rng([0, place, int(100 * shared)]).standard_normal(len(truth))
            error = shared * own + np.sqrt(1 - shared**2) * _beside(draw, truth, own)
            answer = correlation * truth + np.sqrt(1 - correlation**2) * error
            level = np.clip(SIMULATED_MEAN + SIMULATED_STD * answer, 1, 5)
            logs = -0.5 * ((LEVEL_VALUES - level[:, None]) / SIMULATED_WIDTH) ** 2
            name = f"simulated {correlation:g}, shared error {shared:g}"
            vlms.append(Vlm(name, np.exp(log_softmax(logs, axis=1)), is_real=False))
    return vlms


def real_vlms(margins: Mapping[str, Numbers]) -> list[Vlm]:
    """Return the VLMs of published logits of "good" (level 4) minus "poor" (level 2): half of it is a level."""
    logs = {name: theirs[:, None] / 2 * (LEVEL_VALUES - 3) for name, theirs in margins.items()}
    return [Vlm(name, np.exp(log_softmax(log, axis=1)), is_real=True) for name, log in logs.items()]


def fitted_fusion(case: ToolCase, vlm: Vlm, images: Iterable[int]) -> ScoreFusion:
    """Return the fusion by a profile that is fitted to these images (row numbers) without labels."""
    rows = [
        FusionRow(
            float(case.scores[image]),
            vlm.levels(image),
            case.evidence(image).overall_spread,
            {name: float(scores[image]) for name, scores in case.others.items()},
            image_kind=case.kind,
        )
        for image in images
    ]
    return ScoreFusion(profile=fit_profile(rows, tool_reliability=case.reliability))


def measured(case: ToolCase, vlm: Vlm, mos: Numbers, images: np.ndarray) -> MeasuredCase:
    """Fuse in every way and measure on ``images`` (row numbers)."""
    truth, tool, expectation = mos[images], case.scores[images], (vlm.probabilities @ LEVEL_VALUES)[images]
    better = max(_srcc(expectation, truth), _srcc(tool, truth))
    fusions = {"profile": fitted_fusion(case, vlm, images), "default": default_fusion()}
    agreements: dict[str, float] = {}
    covered: dict[tuple[str, str], float] = {}
    for way, fusion in fusions.items():
        fused = [fused_score(fusion, case.evidence(image), vlm.levels(image), "logprobs") for image in images]
        agreements[way] = _srcc(np.array([item.score for item in fused]), truth)
        covered |= {(way, share): _coverage(fused, truth, share) for share in ("80", "95")}
    x, y = normal_scores(tool), normal_scores(expectation)
    agreements["hindsight"] = max(_srcc(w * x + (1 - w) * y, truth) for w in np.linspace(0, 1, 41))
    gains = {way: value - better for way, value in agreements.items()}
    return MeasuredCase(case.name, vlm.name, vlm.is_real, gains, covered, agreements)


def spread_correlation(case: ToolCase, vlm: Vlm, mos: Numbers) -> float:
    """Return whether a VLM's own spread predicts the error of the fused score without a profile: a rank correlation.

    It is the partial correlation of the deviation of the VLM's probabilities with the absolute error. The fused score
    and the change by the VLM, which the interval takes into account, are held constant.
    """
    fusion, images = default_fusion(), range(len(mos))
    fused = [fused_score(fusion, case.evidence(image), vlm.levels(image), "logprobs") for image in images]
    score = np.array([item.score for item in fused])
    change = np.array([abs(item.score - (item.without_model or item.score)) for item in fused])
    spread = np.sqrt(vlm.probabilities @ LEVEL_VALUES**2 - (vlm.probabilities @ LEVEL_VALUES) ** 2)
    known = (normal_scores(score), normal_scores(change))
    own, error = (_beside(normal_scores(values), *known) for values in (spread, np.abs(score - mos)))
    return float(np.mean(own * error))


def report(cases: Sequence[MeasuredCase]) -> list[str]:
    """Return the tables of gains, mean and worst, and of the coverage, mean and least, by tool and kind of VLM."""
    lines = [f"| tool | VLMs | {' | '.join(WAYS)} |", f"|{' --- |' * (2 + len(WAYS))}"]
    tools = list(dict.fromkeys(case.tool for case in cases))
    for tool in tools:
        for is_real, name in ((True, "real"), (False, "simulated")):
            group = [case for case in cases if (case.tool, case.is_real) == (tool, is_real)]
            lines.append(_row(tool, f"{len(group)} {name}", group))
    lines.append(_row("all", f"{len(cases)} pairs", cases))
    for way in WAYS:
        low, high = mean_gain_interval(cases, way)
        lines.append(f"{way}: 95 % interval of the mean gain over VLMs [{low:+.3f}, {high:+.3f}]")
    keys = [*cases[0].covered]
    lines += ["", f"| tool | {' | '.join(f'{way}, {share} %' for way, share in keys)} |"]
    lines.append(f"|{' --- |' * (1 + len(keys))}")
    for tool in tools:
        held = [[case.covered[key] for case in cases if case.tool == tool] for key in keys]
        lines.append(f"| {tool} | {' | '.join(f'{np.mean(h):.0%} ({min(h):.0%})' for h in held)} |")
    return lines


def mean_gain_interval(cases: Sequence[MeasuredCase], way: str, resamples: int = 1000) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the mean gain, with VLMs drawn with replacement."""
    names = sorted({case.vlm for case in cases})
    by_vlm = np.array([np.mean([case.gains[way] for case in cases if case.vlm == name]) for name in names])
    draws = np.random.default_rng(0).integers(0, len(names), (resamples, len(names)))
    low, high = np.percentile(by_vlm[draws].mean(axis=1), [2.5, 97.5])
    return float(low), float(high)


def second_half(contents: Sequence[str]) -> np.ndarray:
    """Return the row numbers of half of the scenes, drawn with a seed; those of the other half chose a constant."""
    known = list(dict.fromkeys(contents))
    order = np.random.default_rng(0).permutation(len(known))
    return np.flatnonzero(~np.isin(contents, [known[place] for place in order[: len(known) // 2]]))


def normal_scores(values: Numbers) -> Numbers:
    """Return the ranks (n,) as quantiles of the standard normal distribution."""
    return np.asarray(norm.ppf((rankdata(values) - 0.5) / len(values)))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    parser = parser_of(__doc__, "half an hour on two cores, most of it for the features, which are cached")
    parser.add_argument("data", type=Path, help="the folder of the sets")
    parser.add_argument("--set", choices=("clive", "agiqa3k"), default="clive", help="the set to measure on")

    def run(args: argparse.Namespace) -> None:
        sets = {name: read_set(args.data / name) for name in SCALES}
        images = sets.pop(args.set)
        items = read_labels(args.data / args.set / "labels.csv")
        begin_step(f"{args.set}: {NIQE} and {SHARPNESS} of {len(items):,} images")
        loaded = [load(item.image) for item in items]
        values = {name: tool_scores(name, loaded) for name in (NIQE, SHARPNESS)}
        cases = tool_cases(images, [*sets.values()], values)
        rows = second_half(images.content.tolist()) if args.set == "agiqa3k" else np.arange(len(items))
        vlms = real_vlms(margins_of(args.data / args.set, [item.image for item in items]))
        print(f"{len(rows)} images")
        for case in cases:
            print(f"- {case.name}: SRCC {_srcc(case.scores[rows], images.mos[rows]):.3f}")
        begin_step(f"fusing {len(vlms)} real VLMs, and simulated ones, with each tool")
        for of in (cases, two_tools(cases[2], cases[4], images.mos)):
            measurements = [
                measured(case, vlm, images.mos, rows)
                for case in of
                for vlm in (*vlms, *simulated_vlms(case.scores, images.mos))
            ]
            print("\n".join([*report(measurements), ""]))
        found = [spread_correlation(cases[2], vlm, images.mos) for vlm in vlms]
        print(f"own spread of {len(vlms)} real VLMs and error beside {LEARNED}: correlation {np.mean(found):.2f}")
        print(f"from {min(found):.2f} to {max(found):.2f}")
        for vlm in simulated_vlms(cases[2].scores, images.mos, (WEAK, GOOD)):
            one = measured(cases[2], vlm, images.mos, rows)
            print(f"{vlm.name} beside {LEARNED}: SRCC {', '.join(f'{way} {one.srcc[way]:.3f}' for way in WAYS)}")

    return run_command(parser, run, argv)


def tool_scores(name: str, images: Sequence[LoadedImage]) -> Numbers:
    """Return the scores (n,) of a tool on 1..5."""
    tool = toolbox()[name]
    calls = [run_tool(tool, image, None, region=GLOBAL, distortion=OVERALL) for image in images]
    return np.array([call.calibrated for call in calls], float)


def margins_of(folder: Path, images: Sequence[Path]) -> dict[str, Numbers]:
    """Return the margins (n,) of each VLM in the order of the images."""
    with (folder / "peer_vlm_margins.csv").open(newline="") as file:
        rows = {folder / row.pop("image"): row for row in csv.DictReader(file)}
    in_order = [rows[image] for image in images]
    return {name: np.array([float(row[name]) for row in in_order]) for name in in_order[0]}


def _degraded(scores: Numbers, mos: Numbers, aim: float, seed: int) -> Numbers:
    """Return scores (n,) in 1..5 with noise added until their SRCC with the MOS is ``aim``."""
    noise, plain = np.random.default_rng([seed, 7]).standard_normal(len(scores)), normal_scores(scores)
    low, high = 0.0, 10.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if _srcc(plain + middle * noise, mos) > aim else (low, middle)
    return np.clip(mos.mean() + mos.std() * aim * normal_scores(plain + low * noise), 1, 5)


def _beside(values: Numbers, *others: Numbers) -> Numbers:
    """Return the part of values (n,) that is no linear function of the given ones, standardized."""
    design = np.column_stack([np.ones_like(values), *others])
    rest = values - design @ np.linalg.lstsq(design, values, rcond=None)[0]
    return np.asarray(rest / rest.std())


def _coverage(fused: Sequence[FusedScore], truth: Numbers, share: str) -> float:
    ends = np.array([item.interval["80" if share == "80" else "95"] for item in fused])
    return float(np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1])))


def _row(tool: str, kind: str, group: Sequence[MeasuredCase]) -> str:
    cells = [f"{np.mean([e.gains[way] for e in group]):+.3f}, {min(e.gains[way] for e in group):+.3f}" for way in WAYS]
    return f"| {tool} | {kind} | {' | '.join(cells)} |"


def _srcc(a: Numbers, b: Numbers) -> float:
    return srcc(a, b) or 0.0


if __name__ == "__main__":
    raise SystemExit(main())
