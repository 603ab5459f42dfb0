"""What a run will cost, told before anything is sent: calls, tokens and, with a price in the configuration, money.

The question decides in which stages a model is asked, by the same rules that plan offline. ``calls`` is one clean pass
in which everything that is looked for is found. ``calls_at_most`` adds the further attempts at rejected answers, every
replan, and plans of a model that reads the question otherwise than the rules; it does not know of requests that fail on
their way, which ``max_retries`` repeats, nor of a fallback.

Input is counted on the very prompts, with typical answers of the stages before (``costs.typical``). Not counted: what a
reasoning model thinks, worked examples of tuned prompts, rebates for a prompt that the provider has cached.
"""

import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from functools import cache, lru_cache
from typing import Any

import dspy
from PIL import Image

from agenticiqa.configs import Config, StageConfig
from agenticiqa.programs.backends.image_tokens import Size, image_tokens, within
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.batch.text_tokens import frame_tokens, schema_tokens, text_tokens
from agenticiqa.programs.batch.typical_calls import Asking, Shelf, typical_askings
from agenticiqa.programs.errors import ImageError, ToolError
from agenticiqa.programs.images import ImageSource, load, path_of
from agenticiqa.programs.offline.language.planner import plan_question
from agenticiqa.programs.tools import toolbox
from agenticiqa.signatures.planner import plan_signature
from agenticiqa.signatures.types import PlannerOutput

# These put a JSON schema into the prompt, and bill it; a server of one's own makes a grammar of it.
BILL_SCHEMAS = frozenset({"openai", "anthropic", "google"})

SECTIONS = {  # the section of the configuration that each stage reads
    "planner": "planner",
    "localization": "executor",
    "distortion_detection": "executor",
    "distortion_analysis": "executor",
    "tool_selection": "executor",
    "scoring": "summarizer",
    "answering": "summarizer",
    "replan": "replan",
}


@dataclass
class StageEstimate:
    """What one stage will ask of its ``model``.

    ``calls``, tokens and ``usd`` are those of one clean pass over all images; ``image_tokens`` are part of
    ``input_tokens``. ``usd`` is ``None`` where the configuration has no price for the stage.
    """

    stage: str
    model: str
    calls: int = 0
    calls_at_most: int = 0
    input_tokens: int = 0
    image_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = None


@dataclass
class Estimate:
    """What a run will ask of models.

    ``questions`` will be answered about ``images``. ``refused`` has what is wrong with the others, which end in an
    error and are not counted: there is no image, or no tool that the question asks for.
    """

    stages: list[StageEstimate] = field(default_factory=list)
    images: int = 0
    questions: int = 0
    refused: list[str] = field(default_factory=list)

    @property
    def total(self) -> StageEstimate:
        """All stages together. ``usd`` is ``None`` when one of them has no price."""
        prices = [stage.usd for stage in self.stages]
        total = StageEstimate("total", "", usd=None if None in prices else sum(usd for usd in prices if usd))
        for count in ("calls", "calls_at_most", "input_tokens", "image_tokens", "output_tokens"):
            setattr(total, count, sum(getattr(stage, count) for stage in self.stages))
        return total

    def rows(self) -> list[dict[str, Any]]:
        """A row for each stage that may ask a model, in the order of a run, and one of the totals; plain JSON types."""
        return [asdict(stage) for stage in (*self.stages, self.total)]


@dataclass(frozen=True)
class Step:
    """What one stage is expected to ask for one question: ``text`` and ``answer`` in tokens; 0 ``calls`` is perhaps."""

    calls: int
    at_most: int
    text: int = 0
    answer: int = 0
    images: tuple[str, ...] = ()


def estimate(config: Config, jobs: Iterable[Job]) -> Estimate:
    """What a run over ``jobs`` with ``config`` will ask of models. Nothing is sent, and no image is decoded.

    Raises ToolError when the configuration's calibration or pyiqa metrics are not to be had.
    """
    config = config.in_profile()
    shelf = Shelf.of(toolbox(config.calibration, config.pyiqa))
    told: dict[tuple[str, bool], dict[str, Step] | ToolError] = {}
    sums = {stage: StageEstimate(stage, section_of(config, stage).backend) for stage in SECTIONS}
    found, images = Estimate(), set()
    for job in jobs:
        key = job.query, job.reference is not None
        if key not in told:
            told[key] = _steps_or_error(config, shelf, *key)
        steps = told[key]
        try:
            sizes = _sizes(job, config)
            if isinstance(steps, ToolError):
                raise steps
        except (OSError, ImageError, ToolError) as error:
            found.refused.append(f"{job.name}: {error}" if isinstance(error, ToolError) else str(error))
            continue
        found.questions += 1
        images.add(path_of(job.image) or id(job.image))
        for stage, step in steps.items():
            _add(sums[stage], step, sum(_image_tokens(sums[stage].model, sizes[name]) for name in step.images))
    found.images = len(images)
    found.stages = [sums[stage] for stage in SECTIONS if sums[stage].calls_at_most]
    for row in found.stages:
        price = section_of(config, row.stage).price
        row.usd = price.usd(row.input_tokens, row.output_tokens) if price else None
    return found


def section_of(config: Config, stage: str) -> StageConfig:
    """The configuration of a stage, by the stage's name in the estimate."""
    section: StageConfig = getattr(config, SECTIONS[stage])
    return section


def _add(row: StageEstimate, step: Step, image_tokens: int) -> None:
    row.calls += step.calls
    row.calls_at_most += step.at_most
    row.image_tokens += image_tokens
    row.input_tokens += step.text + image_tokens
    row.output_tokens += step.answer


def _steps_or_error(config: Config, shelf: Shelf, query: str, reference: bool) -> dict[str, Step] | ToolError:
    try:
        return _steps(config, shelf, query.strip(), reference)
    except ToolError as error:
        return error


def _steps(config: Config, shelf: Shelf, query: str, reference: bool) -> dict[str, Step]:
    """The stages that ask a model for one question, and those that may."""

    def planned(feedback: str = "") -> PlannerOutput:
        return plan_question(query, reference_given=reference, known_tools=shelf.names, feedback=feedback)

    def asked(plan: PlannerOutput) -> dict[str, Asking]:
        planner = _planner(config.planner.sees_images)
        return typical_askings(plan, query, shelf, reference=reference, planner=planner)

    plan, replans = planned(), config.max_replan_iterations
    askings = asked(plan)
    if not config.planner.is_offline:
        # A model plans as it will: every stage may have its turn in every round. Scoring and answering are either-or.
        rounds = [set(SECTIONS) - ({"scoring", "answering"} - set(askings))] * (replans + 1)
    elif replans and plan.plan.any() and (wider := planned("it fell short")) != plan:
        rounds = [set(askings), set(asked(wider))]  # a third plan by the rules would be equal to the second
    else:
        rounds = [set(askings)]
    turns = {stage: sum(stage in stages for stages in rounds) for stage in SECTIONS}
    turns["replan"] = min(turns["distortion_analysis"], replans)  # all doubts come of the analysis
    steps = {}
    for stage, section in ((stage, section_of(config, stage)) for stage in SECTIONS if turns[stage]):
        if not section.is_offline:
            at_most = turns[stage] * config.attempts
            steps[stage] = _step(askings[stage], section, at_most, reference) if stage in askings else Step(0, at_most)
    return steps


def _step(asking: Asking, section: StageConfig, at_most: int, reference: bool) -> Step:
    """One call of a stage."""
    signature: Any = asking.signature
    text = frame_tokens(signature, reference) + sum(map(text_tokens, asking.inputs.values()))
    provider = section.backend.partition(".")[0]
    if provider in BILL_SCHEMAS and section.structured_outputs in ("auto", "json_schema"):
        text += schema_tokens(signature)
    answer = min(text_tokens(asking.answer), section.max_tokens)
    given = ("image", "reference") if reference else ("image",)
    shown = tuple(name for name in given if name in signature.input_fields)
    return Step(1, at_most, text, answer, shown)


@cache
def _planner(sees_images: bool) -> type[dspy.Signature]:
    return plan_signature(sees_images=sees_images)


@lru_cache(maxsize=65536)
def _image_tokens(backend: str, size: Size) -> int:
    return image_tokens(backend, size)


def _sizes(job: Job, config: Config) -> dict[str, Size]:
    """The sizes in which the images will be sent, from the headers of their files; those in memory are decoded.

    Raises OSError or ImageError for no image.
    """
    image = _size(job.image)
    pristine = image if job.reference is None or job.resize_reference else _size(job.reference)
    return {"image": within(image, config.max_side), "reference": within(pristine, config.max_side)}


def _size(source: ImageSource) -> Size:
    path = path_of(source)
    if path is None:
        return load(source).size
    if not path.is_file():
        raise OSError(f"there is no file {path}")
    try:
        with (
            warnings.catch_warnings(action="ignore", category=Image.DecompressionBombWarning),
            Image.open(path) as image,
        ):
            return image.size
    except Exception as error:  # decoders raise almost anything on damaged bytes
        raise OSError(f"{path} is no image that can be read ({error})") from error
