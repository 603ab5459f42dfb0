"""Show labeled images with their MOS to the scorer as worked examples, if that is shown to help."""

import math
import random
from collections.abc import Sequence

import dspy
import numpy as np

from agenticiqa.eval.optimize.items import Assessed, TuningQuestion
from agenticiqa.eval.optimize.measurements import Measurements
from agenticiqa.eval.optimize.objectives import value
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.images import load
from agenticiqa.programs.saving import SCORER
from agenticiqa.signatures.answers.levels import LevelProbs
from agenticiqa.signatures.summarizer import Assessment
from agenticiqa.signatures.types import LEVEL_KEYS
from agenticiqa.signatures.vocabulary import LEVELS

MOS_SPREAD = 0.7  # levels; deviation of single observers from the MOS
ASSESSED_ON = 60  # questions, without the exemplars
ONE_SIDED = 1.64  # standard errors: in simulations this keeps 5 % of useless examples; accepting any gain keeps half


def chosen(questions: Sequence[TuningQuestion], assessed: Sequence[Assessed], count: int) -> list[int]:
    """Return the indices of ``count`` images that span the scale and have small errors."""
    rated = [i for i, one in enumerate(assessed) if one.fused is not None and one.calls.get(SCORER)]
    if len(rated) < count:
        return []
    low, high = (end(questions[i].target or 0.0 for i in rated) for end in (min, max))
    picked: list[int] = []
    for step in range(count):
        wanted = low + (high - low) * (step + 0.5) / count

        def unlike(i: int, wanted: float = wanted) -> float:
            mos = questions[i].target or 0.0
            return abs(mos - wanted) + 0.5 * abs((assessed[i].fused or 0.0) - mos)

        picked.append(min((i for i in rated if i not in picked), key=unlike))
    return picked


def example(question: TuningQuestion, assessed: Assessed) -> dspy.Example:
    """Return one worked example: the original inputs, and an answer with level probabilities from the MOS."""
    mos = question.target or 0.0
    shares = {level: math.exp(-0.5 * ((level - mos) / MOS_SPREAD) ** 2) for level in range(1, 6)}
    total = sum(shares.values())
    probabilities = {key: round(shares[int(key)] / total, 3) for key in LEVEL_KEYS}
    best = max(shares, key=lambda level: shares[level])
    answer = Assessment(
        quality_level=next(name for name, number in LEVELS.items() if number == best),
        quality_probs=LevelProbs.model_validate(probabilities),
        quality_reasoning=f"Observers rated this image {mos:.1f} of 5 on average.",
    )
    shown = {"image": load(question.image).to_dspy(), "reference": None}
    if question.reference:
        shown["reference"] = load(question.reference).to_dspy()
    # The inputs are texts, among which a missing reference is "None".
    inputs = {**assessed.calls[SCORER]["inputs"], **shown}
    return dspy.Example(**inputs, assessment=answer.model_dump_json(by_alias=True))


def with_exemplars(
    program: AgenticIQA,
    pool: Sequence[TuningQuestion],
    seen: Sequence[int],
    count: int,
    measured: Measurements,
    seed: int,
) -> tuple[AgenticIQA, str]:
    """Add worked examples if they improve other questions of the pool; return the program and a sentence about it.

    ``seen`` are the indices in the pool that ``program`` was measured on. As every assessment then sends the examples,
    the gain must be significant: above ``ONE_SIDED`` standard errors from a jackknife over questions.
    """
    known = measured.assess(program, [pool[place] for place in seen])
    picked = [seen[i] for i in chosen([pool[place] for place in seen], known, count)]
    if not picked:
        return program, "not tried: too few scored images to choose exemplars from"
    shown: AgenticIQA = program.deepcopy()
    scorer = dict(shown.named_predictors())[SCORER]
    answers = measured.assess(program, [pool[place] for place in picked])
    scorer.demos = [example(pool[place], one) for place, one in zip(picked, answers, strict=True)]
    others = [place for place in seen if place not in picked]
    random.Random(seed).shuffle(others)
    questions = [pool[place] for place in others[:ASSESSED_ON]]
    without, having = (measured.assess(each, questions) for each in (program, shown))

    def gain(kept: Sequence[int]) -> float:
        asked = [questions[i] for i in kept]
        after, before = (value("scoring", [each[i] for i in kept], asked) for each in (having, without))
        return after - before

    every = range(len(questions))
    gained, error = gain(every), _standard_error([gain([i for i in every if i != left]) for left in every])
    mos_values = ", ".join(f"{pool[place].target or 0.0:.1f}" for place in picked)
    about = f"{count} exemplars (MOS {mos_values}) reduce the expected error by {gained:.3f} levels, "
    about += f"standard error {error:.3f}, n={len(questions)}"
    return (shown, f"kept: {about}") if gained > ONE_SIDED * error else (program, f"not kept: {about}")


def _standard_error(left_out: Sequence[float]) -> float:
    """Return the standard error of a figure, from its values with one question left out at a time."""
    return math.sqrt((len(left_out) - 1) * float(np.var(left_out))) if left_out else math.inf
