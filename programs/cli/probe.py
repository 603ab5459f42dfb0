"""Find out what a model's server really does, with two questions: a small one, and the rating of an image."""

from contextlib import suppress
from typing import Any

import dspy
from PIL import Image

from agenticiqa.configs import Config, LevelsConfig, StageConfig, SummarizerConfig
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.connect import connect, server_of
from agenticiqa.programs.backends.context import context_size
from agenticiqa.programs.backends.run_context import recorded_usage
from agenticiqa.programs.backends.usage import total
from agenticiqa.programs.cli.printable import print_error
from agenticiqa.programs.errors import NoScore, Unanswered
from agenticiqa.programs.images import load
from agenticiqa.programs.stages.ask import CheckedPredict
from agenticiqa.signatures.answers.tokens import tokens_of

SIZE = (320, 240)  # pixels of the image that is rated


class ConnectionTest(dspy.Signature):
    """This is a test of the connection. Say what color the image has."""

    image: dspy.Image = dspy.InputField()
    color: str = dspy.OutputField()


def probe(stage: StageConfig, most_tokens: int) -> dict[str, Any]:
    """Ask both questions of a stage's model, and return what they found, as plain JSON types.

    Requests are not repeated after a failure. A failure of the rating is printed, and the log has an invalid answer.
    ``most_tokens`` is the most tokens of an answer in any stage with this model.

    Raises BackendError, and ``dspy.LMError`` if the small question has no answer.
    """
    stage = stage.model_copy(update={"max_retries": 0})
    with recorded_usage() as usage:
        small = _small_question(stage)
    rating, of_rating = _rating(stage)
    server = server_of(stage)
    size, remedy = context_size(server), server.provider.context.remedy if server.provider.context else None
    needed = None if rating["input_tokens"] is None else rating["input_tokens"] + most_tokens
    fits = None if size is None or needed is None else needed <= size
    context = {"size": size, "needed": needed, "fits": fits, "remedy": remedy}
    return {**total({**usage.to_json(), **of_rating}), **small, "rating": rating, "context": context}


def _small_question(stage: StageConfig) -> dict[str, Any]:
    """Find out which features the server refuses or ignores."""
    ask: CheckedPredict[str] = CheckedPredict(
        ConnectionTest, stage="connection", backend=connect(stage, cache=False), attempts=1, reads_tokens=True
    )
    reply = None
    with suppress(Unanswered):  # the server accepted the question, which is enough
        reply = ask({"image": load(Image.new("RGB", (32, 32), "grey"))})
    logprobs = None if reply is None else bool(tokens_of(reply.logprobs))
    return {"is_usable": reply is not None, "logprobs": logprobs}


def _rating(stage: StageConfig) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Rate an image as the program does, once, with evidence that is measured here; return also the usage."""
    found: dict[str, Any] = dict.fromkeys(("input_tokens", "output_tokens", "seconds", "source", "mass", "rejected"))
    program = AgenticIQA.from_config(_that_rates(stage))
    try:
        result = program(Image.merge("RGB", [Image.linear_gradient("L").resize(SIZE)] * 3))
    except (dspy.LMError, NoScore, Unanswered) as error:
        print_error(f"the rating of an image failed: {error}")
        return {"is_valid": False, **found}, {}
    ((asked, spent),) = result.usage_by_stage.items()
    found |= {key: spent[key] for key in ("input_tokens", "output_tokens", "seconds")}
    found |= {"source": result.probability_source, "mass": result.probability_mass}
    found["rejected"] = result.rejected_answers.get(asked)
    return {"is_valid": not found["rejected"], **found}, result.usage_by_stage


def _that_rates(stage: StageConfig) -> Config:
    """Return a configuration that asks only for the rating, once, with the keys that are set in a section."""
    once: dict[str, Any] = {"attempts": 1, "max_replan_iterations": 0, "cache": False}
    if isinstance(stage, LevelsConfig):
        return Config(mode="levels", levels=stage, **once)
    given = stage.model_dump(include={*SummarizerConfig.model_fields}, exclude_unset=True)
    return Config(summarizer=SummarizerConfig(**given), **once)
