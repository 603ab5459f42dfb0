"""Estimate the cost of a run before anything is sent: calls, tokens and, with a price in the configuration, USD.

The question decides which stages ask a model, by the same rules that plan offline. ``calls`` is one pass in which no
answer is rejected and every distortion that is looked for is found. ``calls_at_most`` adds further attempts at rejected
answers, every replan, and plans of a model that reads the question differently from the rules; it leaves out requests
that fail on their way, which ``max_retries`` repeats, and fallbacks.

Input tokens are counted on the actual prompts, with typical answers of the stages before (``typical_calls``). Not
counted: a model's hidden reasoning, worked examples of tuned prompts, discounts for a prompt that the provider cached.
"""

import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from functools import cache, lru_cache
from typing import Any

import dspy
from PIL import Image

from agenticiqa.configs import Config, StageConfig
from agenticiqa.programs.backends.image_tokens import Size, image_tokens, within
from agenticiqa.programs.batch.job import Job, failure_text
from agenticiqa.programs.batch.text_tokens import frame_tokens, schema_tokens, text_tokens
from agenticiqa.programs.batch.typical_calls import ToolTexts, TypicalCall, typical_calls
from agenticiqa.programs.errors import ImageError, ToolError
from agenticiqa.programs.images import ImageSource, load, path_of
from agenticiqa.programs.offline.language.planner import plan_question
from agenticiqa.programs.questions.options import query_for_stages, read_options
from agenticiqa.programs.tools import toolbox
from agenticiqa.signatures.planner import plan_signature
from agenticiqa.signatures.types import PlannerOutput

# Providers that add a JSON schema to the prompt and bill it; your own server turns it into a grammar instead.
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
    """The expected cost of one stage, which asks ``model``.

    ``calls``, tokens and ``usd`` are those of one pass over all images without rejected answers; ``image_tokens`` are
    part of ``input_tokens``. ``least_*`` leave out stages that depend on what is found, or on a model's plan. ``usd``
    is ``None`` where the configuration has no price for the stage.
    """

    stage: str
    model: str
    calls: int = 0
    calls_at_most: int = 0
    input_tokens: int = 0
    image_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = None
    least_calls: int = 0
    least_input_tokens: int = 0
    least_output_tokens: int = 0
    least_usd: float | None = None


@dataclass
class Estimate:
    """The expected cost of a run.

    ``questions`` is the number of jobs, about ``images`` different images. ``refused`` has one line for each job that
    will end in an error instead and is not counted: there is no image, or no tool that the question asks for.
    """

    stages: list[StageEstimate] = field(default_factory=list)
    images: int = 0
    questions: int = 0
    refused: list[str] = field(default_factory=list)

    @property
    def total(self) -> StageEstimate:
        """The sum over all stages. ``usd`` is ``None`` when one of them has no price."""
        prices = [stage.usd for stage in self.stages]
        total = StageEstimate("total", "", usd=None if None in prices else sum(usd for usd in prices if usd))
        total.least_usd = None if total.usd is None else sum(stage.least_usd or 0.0 for stage in self.stages)
        counts = ("calls", "calls_at_most", "input_tokens", "image_tokens", "output_tokens")
        for count in (*counts, "least_calls", "least_input_tokens", "least_output_tokens"):
            setattr(total, count, sum(getattr(stage, count) for stage in self.stages))
        return total

    def rows(self) -> list[dict[str, Any]]:
        """One row per stage that may ask a model, in the order of a run, and the totals; plain JSON types."""
        return [asdict(stage) for stage in (*self.stages, self.total)]


@dataclass(frozen=True)
class StageCost:
    """The cost of one stage for one question: ``text`` and ``answer`` in tokens; 0 ``calls`` where it may be asked."""

    calls: int
    at_most: int
    text: int = 0
    answer: int = 0
    images: tuple[str, ...] = ()
    is_sure: bool = True  # whether it is asked whatever is planned and found


# The levels scorer's fixed text and its beginning of an answer, with a chat template's own marks: one token comes back.
_LEVELS = StageCost(1, 1, text=30, answer=1, images=("image",))


def estimate(config: Config, jobs: Iterable[Job]) -> Estimate:
    """Estimate the cost of a run over ``jobs`` with ``config``. Nothing is sent, and no image file is decoded.

    Raises ToolError when the configuration's calibration or pyiqa metrics are missing.
    """
    config = config.in_profile()
    tools = ToolTexts.of(toolbox(config.calibration, config.pyiqa))
    by_question: dict[tuple[str, str, bool], dict[str, StageCost] | ToolError] = {}
    sums = {stage: StageEstimate(stage, section_of(config, stage).backend) for stage in SECTIONS}
    found, images = Estimate(), set()
    for job in jobs:
        key = job.query, job.asked, job.reference is not None
        if key not in by_question:
            by_question[key] = _costs_or_error(config, tools, job)
        costs = by_question[key]
        try:
            sizes = _sizes(job, config)
            if isinstance(costs, ToolError):
                raise costs
        except (ImageError, ToolError) as error:
            found.refused.append(failure_text(job, error))
            continue
        found.questions += 1
        images.add(path_of(job.image) or id(job.image))
        for stage, cost in costs.items():
            _add(sums[stage], cost, sum(_image_tokens(sums[stage].model, sizes[name]) for name in cost.images))
    found.images = len(images)
    found.stages = [sums[stage] for stage in SECTIONS if sums[stage].calls_at_most]
    for row in found.stages:
        price = section_of(config, row.stage).price
        row.usd = price.usd(row.input_tokens, row.output_tokens) if price else None
        row.least_usd = price.usd(row.least_input_tokens, row.least_output_tokens) if price else None
    return found


def section_of(config: Config, stage: str) -> StageConfig:
    """The configuration of a stage, by the stage's name in the estimate."""
    if stage == "scoring" and config.levels:
        return config.levels
    section: StageConfig = getattr(config, SECTIONS[stage])
    return section


def _add(row: StageEstimate, cost: StageCost, image_tokens: int) -> None:
    row.calls += cost.calls
    row.calls_at_most += cost.at_most
    row.image_tokens += image_tokens
    row.input_tokens += cost.text + image_tokens
    row.output_tokens += cost.answer
    if cost.is_sure:
        row.least_calls += cost.calls
        row.least_input_tokens += cost.text + image_tokens
        row.least_output_tokens += cost.answer


def _costs_or_error(config: Config, tools: ToolTexts, job: Job) -> dict[str, StageCost] | ToolError:
    try:
        return _costs(config, tools, job)
    except ToolError as error:
        return error


def _costs(config: Config, tools: ToolTexts, job: Job) -> dict[str, StageCost]:
    """The stages that ask a model for one question, and those that may."""
    query, options, reference = job.query.strip(), read_options(job.options), job.reference is not None
    asked = query_for_stages(query, options)

    def planned(feedback: str = "") -> PlannerOutput:
        return plan_question(asked, reference_given=reference, known_tools=tools.names, feedback=feedback)

    def calls_for(plan: PlannerOutput) -> dict[str, TypicalCall]:
        planner = _planner(config.planner.sees_images)
        return typical_calls(plan, query, tools, reference=reference, options=options, planner=planner)

    if config.profile == "levels":
        return {"scoring": _LEVELS}
    plan, replans = planned(), config.max_replan_iterations
    calls = calls_for(plan)
    if not config.planner.is_offline:
        # A model may plan anything: every stage may be asked in every round, of scoring and answering only one.
        rounds = [set(SECTIONS) - ({"scoring", "answering"} - set(calls))] * (replans + 1)
    elif replans and plan.plan.any() and (wider := planned("it fell short")) != plan:
        rounds = [set(calls), set(calls_for(wider))]  # a third plan by the rules would equal the second
    else:
        rounds = [set(calls)]
    turns = {stage: sum(stage in stages for stages in rounds) for stage in SECTIONS}
    if not config.planner.is_offline:
        unsure = set(SECTIONS) - {"planner", "scoring", "answering"}
    else:
        unsure = {"distortion_analysis", "tool_selection"} if plan.plan.distortion_detection else set()
    turns["replan"] = min(turns["distortion_analysis"], replans)  # all doubts come from the analysis
    costs = {}
    for stage, section in ((stage, section_of(config, stage)) for stage in SECTIONS if turns[stage]):
        if not section.is_offline:
            at_most = turns[stage] * config.attempts
            cost = _cost(calls[stage], section, at_most, reference) if stage in calls else StageCost(0, at_most)
            if stage == "scoring" and config.levels:
                cost = replace(_LEVELS, calls=cost.calls, at_most=turns[stage])
            costs[stage] = replace(cost, is_sure=stage not in unsure)
    return costs


def _cost(call: TypicalCall, section: StageConfig, at_most: int, reference: bool) -> StageCost:
    """One call of a stage."""
    signature: Any = call.signature
    text = frame_tokens(signature, reference) + sum(map(text_tokens, call.inputs.values()))
    provider = section.backend.partition(".")[0]
    if provider in BILL_SCHEMAS and section.structured_outputs in ("auto", "json_schema"):
        text += schema_tokens(signature)
    answer = min(text_tokens(call.answer), section.max_tokens)
    given = ("image", "reference") if reference else ("image",)
    shown = tuple(name for name in given if name in signature.input_fields)
    return StageCost(1, at_most, text, answer, shown)


@cache
def _planner(sees_images: bool) -> type[dspy.Signature]:
    return plan_signature(sees_images=sees_images)


@lru_cache(maxsize=65536)
def _image_tokens(backend: str, size: Size) -> int:
    return image_tokens(backend, size)


def _sizes(job: Job, config: Config) -> dict[str, Size]:
    """The sizes in which the images will be sent, from the headers of their files; those in memory are decoded.

    Raises ImageError for what is no image.
    """
    image = _size(job.image)
    pristine = image if job.reference is None or job.resize_reference else _size(job.reference)
    return {"image": within(image, config.max_side), "reference": within(pristine, config.max_side)}


def _size(source: ImageSource) -> Size:
    path = path_of(source)
    if path is None:
        return load(source).size
    try:
        with (
            warnings.catch_warnings(action="ignore", category=Image.DecompressionBombWarning),
            Image.open(path) as image,
        ):
            return image.size
    except Exception:  # a HEIC photo, or none that can be read: loading says what is wrong, as it will in the run
        return load(source).size
