"""What the fusion is measured on: real and simulated vision-language models (VLMs), each beside tools of some SRCC."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax
from scipy.stats import norm, rankdata

from agenticiqa.eval.metrics import Numbers, srcc
from agenticiqa.programs.tools.srcc_table import opinion_srcc
from agenticiqa.programs.tools.tool import OPINION_STD

LEVEL_VALUES = np.arange(1.0, 6.0)
SIMULATED = (0.6, 0.7, 0.8, 0.9, 0.95)  # correlations of simulated VLMs with opinions, on normal scores
SHARED = (0.0, 0.3)  # correlations of their errors with the tool's
SIMULATED_MEAN, SIMULATED_STD, SIMULATED_WIDTH = 3.4, 0.7, 0.6  # levels; the width is that of their probabilities
TARGETS = (0.5, 0.68)  # SRCC of the tools that are made of a better one by adding noise
BEST_TOOL = "LEARNED-IQA"
ONLY_THIRD = ("EDGE-SHARPNESS",)  # calibrated to synthetic blur: no rating is made of it alone


@dataclass(frozen=True)
class ToolCase:
    """A tool's scores (n,) in 1..5, its known reliability, and further tools' scores by name."""

    name: str
    scores: Numbers
    reliability: float
    others: Mapping[str, Numbers]

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


def tool_cases(tools: Mapping[str, Numbers], quality: Numbers, seed: int = 0) -> list[ToolCase]:
    """The best tool with added noise down to each SRCC of ``TARGETS``, as it is, and every other tool in ``tools``.

    ``tools`` has scores (n,) in 1..5 by name, LEARNED-IQA among them. A noisy tool has the further tools beside it, a
    weaker real one has LEARNED-IQA beside it as well, which a run always can compute.
    """
    best = tools[BEST_TOOL]
    weak = {name: scores for name, scores in tools.items() if name != BEST_TOOL}
    cases = [
        ToolCase(f"{BEST_TOOL} + noise, {target:g}", degraded(best, quality, target, seed + place), target, weak)
        for place, target in enumerate(TARGETS)
    ]
    cases.append(ToolCase(_named(BEST_TOOL, best, quality), best, _known(BEST_TOOL, best, quality), weak))
    for name, scores in weak.items():
        if name in ONLY_THIRD:
            continue
        others = {other: theirs for other, theirs in tools.items() if other != name}
        cases.append(ToolCase(_named(name, scores, quality), scores, _known(name, scores, quality), others))
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


def _known(name: str, scores: Numbers, quality: Numbers) -> float:
    """The reliability in the tool table; of a tool that is none of the program's its SRCC here."""
    return opinion_srcc(name) or srcc(scores, quality) or 0.0


def halves(names: Sequence[str], seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two halves of the images (row numbers), by a seeded shuffle: to choose on, and to report on."""
    order = np.random.default_rng(seed).permutation(len(names))
    return np.sort(order[: len(names) // 2]), np.sort(order[len(names) // 2 :])
