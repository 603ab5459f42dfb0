"""Estimate the cost of a search before it begins."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from agenticiqa.configs import Config, StageConfig
from agenticiqa.eval.names import Stage
from agenticiqa.eval.optimize.items import TuningQuestion, options_of, unused
from agenticiqa.eval.optimize.search import AGAIN, FIRST, LOOK, SHOWN, first_places
from agenticiqa.eval.optimize.settings import TuningSettings
from agenticiqa.programs.backends.models import image_tokens
from agenticiqa.programs.backends.prices import price_of
from agenticiqa.programs.batch.cost import estimate, text_tokens
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.images import load

ESTIMATED: dict[Stage, str] = {"scoring": "scoring", "answering": "answering", "detection": "distortion_detection"}
# Simulated searches of 100 to 400 assessments used 12.6 to 13.8 of them per proposal.
ASSESSED_FOR_A_PROPOSAL = LOOK + 0.28 * AGAIN
ASSESSED_FOR_AN_INSTRUCTION = 10  # images that GEPA assesses per instruction, approximately
ENOUGH = 10  # proposals; with fewer, a search seldom finds an improvement
REFLECTION_TEXT, REFLECTION_ANSWER, FEEDBACK = 650, 250, 260  # tokens of the prompt, of the answer, and of each example
AFTER = 0.25  # share of requests that a later stage repeats because earlier answers changed (simulations: .05)


@dataclass(frozen=True)
class Cost:
    """The expected cost of a search: calls and tokens of the program's model and of the model that writes instructions.

    ``usd`` is ``None`` if a price is unknown.
    """

    calls: int
    input_tokens: int
    output_tokens: int
    reflections: int
    reflection_input: int
    reflection_output: int
    usd: float | None

    def line(self) -> str:
        """Return the cost in words."""
        money = (
            "cost unknown: give unknown prices with --price and --reflection-price"
            if self.usd is None
            else f"about {self.usd:.2f} USD"
        )
        return (
            f"about {self.calls:,} calls of the model ({self.input_tokens:,} input and {self.output_tokens:,} output "
            f"tokens), {self.reflections} of the reflection model ({self.reflection_input:,} and "
            f"{self.reflection_output:,} tokens); {money}"
        )


def proposals_of(assessments: int) -> int:
    """Return approximately how many proposals a budget affords."""
    return max(0, round((0.9 * assessments - FIRST) / ASSESSED_FOR_A_PROPOSAL))


def budget_for(proposals: int) -> int:
    """Return the number of assessments that this many proposals take."""
    return round((proposals * ASSESSED_FOR_A_PROPOSAL + FIRST) / 0.9)


def fusion_images(settings: TuningSettings, pool: int) -> int:
    """Return how many pool images the two fusions are fitted to beyond the budget.

    Our own search measures them anyway; GEPA may use other images.
    """
    rates = settings.stage in ("scoring", "all") and settings.optimizer != "reflect"
    return min(FIRST, pool, settings.budget) if rates else 0


def also_compared(settings: TuningSettings, pool: Sequence[TuningQuestion], held_out: int) -> list[TuningQuestion]:
    """Return the pool images that are compared in addition to the held-out ones if the search uses none of them."""
    if settings.optimizer != "reflect":
        return []
    return unused(pool, first_places(random.Random(settings.seed), len(pool)), held_out)


def expected(
    config: Config,
    settings: TuningSettings,
    pool: Sequence[TuningQuestion],
    held_out: Sequence[TuningQuestion],
    reflection: StageConfig,
) -> Cost:
    """Return the cost of a search and of its comparison; ``reflection`` is the model that writes instructions.

    Every question runs through all stages once; further assessments repeat the stages that ``_asked_again`` gives. The
    length of prompts is assumed to stay the same.
    """
    stage, first = settings.stage, min(len(pool), max(FIRST, settings.budget // 3))
    more = fusion_images(settings, len(pool)) + len(also_compared(settings, pool, len(held_out)))
    assessments = settings.budget + 2 * more
    jobs = [Job(q.image, q.query, q.reference, options=options_of(q)) for q in (*held_out, *pool[:first])]
    once = estimate(config, jobs)
    again = max(assessments - first, 0) + len(held_out)
    whole = [s for s in once.stages if s.calls]
    parts = _asked_again(config, stage, [s.stage for s in whole])
    times = {name: 1 + part * again / max(once.questions, 1) for name, part in parts.items()}
    own_search = settings.optimizer == "reflect"
    count = proposals_of(settings.budget) if own_search else assessments // ASSESSED_FOR_AN_INSTRUCTION
    reflection_input = count * _reflection_tokens(pool[:SHOWN], reflection)
    reflection_output = count * REFLECTION_ANSWER
    price, usd = price_of(reflection), None
    if price is not None and all(s.usd is not None for s in whole):
        usd = sum(times[s.stage] * (s.usd or 0.0) for s in whole) + price.usd(reflection_input, reflection_output)

    def total(name: str) -> int:
        return round(sum(times[s.stage] * getattr(s, name) for s in whole))

    return Cost(
        total("calls"),
        total("input_tokens"),
        total("output_tokens"),
        count,
        reflection_input,
        reflection_output,
        usd,
    )


def _reflection_tokens(examples: Sequence[TuningQuestion], reflection: StageConfig) -> int:
    """Return the input tokens of one request for an instruction that shows these examples."""
    texts = sum(text_tokens(question.query) for question in examples)
    images = sum(image_tokens(reflection.backend, load(question.image).size) for question in examples)
    return REFLECTION_TEXT + SHOWN * FEEDBACK + texts + images


def _asked_again(config: Config, stage: Stage, order: Sequence[str]) -> dict[str, float]:
    """Return by stage, in run order, the share of further assessments that send its request; the rest hit the cache.

    The tuned stage always sends it. Later stages do so at the rate ``AFTER``, as their prompts change with the tuned
    stage's answer. If all stages are tuned, each is tuned equally often.
    """
    tuned = [place for place, name in enumerate(order) if stage == "all" or name == ESTIMATED[stage]]
    if not config.cache or not tuned:
        return dict.fromkeys(order, 1.0)
    return {
        name: sum(1.0 if place == other else AFTER if place > other else 0.0 for other in tuned) / len(tuned)
        for place, name in enumerate(order)
    }
