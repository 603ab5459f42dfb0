"""The levels scorer: a model's probabilities over five words that continue a fixed beginning of its answer.

Models trained to name a level (Q-Align, OneAlign, DeQA-Score, Q-ReAlign) use this prompt; any other model that can
continue an answer may use it, too. The prompt has no evidence, no reference and no schema.
"""

from typing import Any

import dspy

from agenticiqa.configs import Config, LevelsPrompt
from agenticiqa.programs.backends.choice import Backend
from agenticiqa.programs.backends.connect import connect, refuse_without_continuation
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.questions.query_type import detect_query_type
from agenticiqa.programs.stages.ask import CheckedPredict, Rejected
from agenticiqa.programs.stages.plan_rules import plan_by_rules
from agenticiqa.programs.stages.protocols import Planned, Scored
from agenticiqa.programs.stages.side_by_side import StageModule
from agenticiqa.signatures.answers.tokens import LEAST_MASS, level_words
from agenticiqa.signatures.summarizer import NameLevel
from agenticiqa.signatures.types import ExecutorOutput, PlanFlags, QueryType

STEM = "The quality of the image is"


# The order in which each family was trained. Q-ReAlign: qalign/template.py. Q-Align, OneAlign and DeQA-Score have the
# question first and the image on a new line: q_align/evaluate/scorer.py.
IMAGE_FIRST: tuple[LevelsPrompt, ...] = ("q-realign",)


class LevelsAdapter(dspy.Adapter):
    """Sends the image, the signature's instructions as the question, and the beginning of the answer."""

    def __init__(self, prompt: LevelsPrompt) -> None:
        super().__init__()
        self.is_image_first = prompt in IMAGE_FIRST

    def format(
        self, signature: type[dspy.Signature], demos: list[dict[str, Any]], inputs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        """Return the messages for DSPy, as in ``dspy.Adapter``, without examples."""
        image = {"type": "image_url", "image_url": {"url": inputs["image"].url}}
        question = signature.instructions if self.is_image_first else f"{signature.instructions}\n"
        content = [image, {"type": "text", "text": question}]
        if not self.is_image_first:
            content.reverse()
        return [{"role": "user", "content": content}, {"role": "assistant", "content": STEM}]

    def parse(self, signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
        """Return the whole completion as the output field, as in ``dspy.Adapter``."""
        (name,) = signature.output_fields
        return {name: completion.strip()}


class LevelsScorer(StageModule):
    """A scorer that reads a model's quality estimate from the probabilities of five words (``protocols.ScorerStage``).

    Raises Unanswered, so the image has no score, if the server returns no log-probabilities or if less than half of
    the next token's probability falls on the five words.
    """

    def __init__(self, *, backend: Backend, prompt: LevelsPrompt = "q-realign") -> None:
        super().__init__()
        self.ask: CheckedPredict[str] = CheckedPredict(
            NameLevel,
            stage="scoring",
            backend=backend,
            attempts=1,
            reads_tokens=True,
            adapter=LevelsAdapter(prompt),
        )

    def forward(
        self, image: LoadedImage, query: str, evidence: ExecutorOutput, reference: LoadedImage | None
    ) -> Scored:
        """See ``protocols.ScorerStage``. The query, the evidence and the reference are not shown."""
        reply = self.ask(inputs={"image": image}, check_tokens=refuse_unread)
        reading = level_words(reply.logprobs)
        assert reading, "refuse_unread rejects replies without probabilities"
        assert reading.probabilities, "refuse_unread rejects replies without probabilities"
        reasoning = (
            f'The model received only the image. After "{STEM}", the words excellent, good, fair, poor and bad had a '
            f"total probability of {reading.mass:.2f}"
        )
        return Scored(
            reading.probabilities, "logprobs", reasoning, reading.mass, model=reply.model, mass_from=reading.mass_from
        )


def levels_scorer(config: Config) -> LevelsScorer | None:
    """Return a configuration's levels scorer, if any. Raises BackendError, also if it cannot continue answers."""
    if config.levels is None:
        return None
    refuse_without_continuation(config.levels)
    backend = connect(config.levels, cache=config.cache)
    return LevelsScorer(backend=backend, prompt=config.levels.prompt) if backend else None


def refuse_unread(word: str, logprobs: Any) -> None:
    """Raise Rejected, with the probability mass of the five words, if no distribution over them can be read."""
    reading = level_words(logprobs)
    if reading is None:
        raise Rejected(
            "the server returned no log-probabilities of the next token and its alternatives; use a server that "
            "supports top_logprobs"
        )
    if reading.probabilities is None:
        raise Rejected(
            f"the words excellent, good, fair, poor and bad have a total probability of only {reading.mass:.2f} "
            f"(minimum {LEAST_MASS:g}). The model continued with {word!r}; use a model trained to rate in these words"
        )


class LevelsPlanner(StageModule):
    """A planner without sub-tasks: the mode ``levels`` uses only the model. Raises UserError for other questions."""

    def forward(self, image: LoadedImage, query: str, reference: LoadedImage | None, feedback: str) -> Planned:
        """See ``protocols.PlannerStage``."""
        if detect_query_type(query) is not QueryType.SCORING:
            raise UserError(f"the mode levels can only rate quality, not answer {query!r}; leave the question out")
        plan = plan_by_rules("IQA", "Global", None, [], is_explicit=False, reference_given=False)
        nothing = PlanFlags(**dict.fromkeys(PlanFlags.model_fields, False))
        return Planned(plan.model_copy(update={"plan": nothing}))
