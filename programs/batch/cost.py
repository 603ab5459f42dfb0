"""Estimate the cost of a run before anything is sent: calls, tokens and, with a price in the configuration, USD.

The question decides which stages ask a model, by the rules of the offline planner. The estimate is for one pass in
which no answer is rejected and every requested distortion is found. A run sends more if answers are rejected, if it
replans, or if a model plans more than the rules. It sends less if no distortion is found. ``--max-calls`` and
``--max-usd`` are upper bounds.

Input tokens are counted in the actual prompts; content known only during a run is counted as in typical runs
(``_tokens``). Not counted: worked examples of tuned prompts, discounts for cached prompts, and hidden reasoning, for
which there is an upper bound instead.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import dspy

from agenticiqa.configs import Config, PlannerConfig, PlanRules, StageConfig, SummarizerConfig
from agenticiqa.programs.backends.connect import stage_models
from agenticiqa.programs.backends.dspy_adapter import SteadyAdapter, stage_schema
from agenticiqa.programs.backends.image_tokens import within
from agenticiqa.programs.backends.models import always_reasons, image_tokens, plain_name
from agenticiqa.programs.backends.prices import price_of
from agenticiqa.programs.backends.providers import row_of
from agenticiqa.programs.batch.job import Job, failure_text
from agenticiqa.programs.errors import AgenticIQAError, ToolError
from agenticiqa.programs.fusion.tool_mean import rating_tools
from agenticiqa.programs.images import ImageSource, UndecodedImage, path_of, picklable
from agenticiqa.programs.images.loading import size_of
from agenticiqa.programs.images.regions import place_in_frame
from agenticiqa.programs.images.sources import StoredImage
from agenticiqa.programs.offline.answers.planner import plan_question
from agenticiqa.programs.questions.options import beside_options, parse_options, query_for_stages, read_options
from agenticiqa.programs.questions.plain_rating import is_plain_rating
from agenticiqa.programs.questions.query_type import detect_query_type
from agenticiqa.programs.stages.box_forms import box_form
from agenticiqa.programs.stages.planner import tools_shown
from agenticiqa.programs.stages.scorer import RATINGS
from agenticiqa.programs.tools import Tool, toolbox
from agenticiqa.programs.tools.tool import tools_for
from agenticiqa.signatures.categories import BLURS, NOISE
from agenticiqa.signatures.executor import AnalyzeDistortions, DetectDistortions, LocateRegions, SelectTools
from agenticiqa.signatures.planner import plan_signature
from agenticiqa.signatures.summarizer import AnswerQuestion
from agenticiqa.signatures.types import GLOBAL, PlannerOutput, QueryType

SECTIONS = {  # the section of the configuration that each stage reads
    "planner": "planner",
    "localization": "executor",
    "distortion_detection": "executor",
    "distortion_analysis": "executor",
    "tool_selection": "executor",
    "scoring": "summarizer",
    "answering": "summarizer",
}
SIGNATURES: Mapping[str, Any] = {  # signatures that depend on no section
    "localization": LocateRegions,
    "distortion_detection": DetectDistortions,
    "distortion_analysis": AnalyzeDistortions,
    "tool_selection": SelectTools,
    "answering": AnswerQuestion,
}
BYTES_PER_TOKEN = 4
WRITTEN_FLAGS = 60  # tokens of the two keys of a plan that a model writes with rules: check
WRITTEN_PROBABILITIES = 50  # tokens of the five probabilities that a model without log-probabilities writes
FRAME = (1024, 768)  # pixels of an image for which prompts are counted

# A token is up to seven letters of a word, up to three digits, a run of punctuation, or one letter of another script.
# Compared with GPT-4o's tokenizer, this count is 5 % lower to 4 % higher for the prompts of this program (11 % lower
# for the list of tools). It is 4 to 7 % lower than with the tokenizer published for Claude 2. Four characters per token
# would be 25 % lower to 7 % higher, because numbers and JSON have shorter tokens than prose.
PIECE = re.compile(r"[A-Za-z]{1,7}|\d{1,3}|[^\w\s]+|[^\W\dA-Za-z]")


@dataclass
class StageEstimate:
    """The expected cost of one stage, which asks ``model``.

    ``calls``, tokens and ``usd`` are for one pass over all images without rejected answers; ``image_tokens`` are part
    of ``input_tokens``; ``bytes`` is the size of the requests. ``usd`` is ``None`` if the configuration has no price.
    ``most_output_tokens`` and ``most_usd`` include as much hidden reasoning as ``max_tokens`` allows.
    """

    stage: str
    model: str
    calls: int = 0
    input_tokens: int = 0
    image_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = None
    bytes: int = 0
    most_output_tokens: int = 0
    most_usd: float | None = None


@dataclass
class Estimate:
    """The expected cost of a run.

    ``questions`` is the number of jobs, about ``images`` different images. ``refused`` has a line for each job that is
    not counted because its image or tool is missing.
    """

    stages: list[StageEstimate] = field(default_factory=list)
    images: int = 0
    questions: int = 0
    refused: list[str] = field(default_factory=list)

    @property
    def total(self) -> StageEstimate:
        """The sum over all stages. ``usd`` is ``None`` when one of them has no price."""
        sums: dict[str, Any] = {}
        for column in fields(StageEstimate)[2:]:
            values = [getattr(stage, column.name) for stage in self.stages]
            sums[column.name] = None if None in values else sum(values, 0.0 if "usd" in column.name else 0)
        return StageEstimate("total", "", **sums)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per stage that asks a model, in the order of a run, and the totals; plain JSON types."""
        return [asdict(stage) for stage in (*self.stages, self.total)]


class StageCost(NamedTuple):
    """The cost of one call for one question: the tokens of its text and its answer, and the images that it shows."""

    text: int
    answer: int
    images: tuple[str, ...]

    def counts(self, image_tokens: int, image_bytes: int) -> dict[str, int]:
        """Return the numbers of ``StageEstimate`` for one image or pair with these tokens and bytes."""
        return {
            "calls": 1,
            "input_tokens": self.text + image_tokens,
            "output_tokens": self.answer,
            "image_tokens": image_tokens,
            "bytes": image_bytes + BYTES_PER_TOKEN * self.text,
        }


# The fixed text of the levels scorer, with the marks of a chat template; the answer is one token.
_LEVELS = StageCost(text=30, answer=1, images=("image",))


def _bytes_in_request(image: ImageSource) -> int:
    """Return the bytes of an image in a request: base64 of its file, the usual form; 0 for an image without a file."""
    if isinstance(image, UndecodedImage) and isinstance(image.content, bytes):
        return len(image.content) * 4 // 3
    path = path_of(image)
    try:
        return 0 if path is None else Path(path).stat().st_size * 4 // 3
    except OSError:
        return 0


def estimate(config: Config, jobs: Iterable[Job]) -> Estimate:
    """Estimate the cost of a run over ``jobs`` with ``config``. Sends nothing and decodes no image.

    Raises ToolError when the configuration's tool curves or pyiqa metrics are missing.
    """
    config = config.in_mode()
    tools = toolbox(config.tool_curves, config.pyiqa, config.adapter)
    by_question: dict[tuple[str, str, bool], dict[str, StageCost] | ToolError] = {}
    sums = {stage: Counter[str]() for stage in SECTIONS}
    result, images = Estimate(), set()
    most = config.image_settings.max_pixels

    def shown_size(image: ImageSource) -> tuple[int, int]:
        return within(size_of(image, max_pixels=most), config.max_side)

    tokens_of = lru_cache(maxsize=65536)(image_tokens)
    for job in jobs:
        key = job.query, job.asked, job.reference is not None
        if key not in by_question:
            try:
                by_question[key] = _costs(config, tools, job)
            except ToolError as error:
                by_question[key] = error
        try:
            image = picklable(job.image)  # an image in a data set is read once
            costs, size = by_question[key], shown_size(image)
            is_sized = job.reference is None or job.resize_reference
            sizes = {"image": size, "reference": size if is_sized else shown_size(job.reference)}
            if isinstance(costs, ToolError):
                raise costs
        except AgenticIQAError as error:  # also of an image at an address that cannot be reached
            result.refused.append(failure_text(job, error))
            continue
        result.questions += 1
        images.add(path_of(job.image) or (job.name, None if isinstance(job.image, StoredImage) else id(job.image)))
        for stage, cost in costs.items():
            sources = [image if name == "image" else job.reference or image for name in cost.images]
            model = section_of(config, stage).backend
            in_tokens = sum(tokens_of(model, sizes[name]) for name in cost.images)
            sums[stage].update(cost.counts(in_tokens, sum(map(_bytes_in_request, sources))))
    result.images = len(images)
    for stage, counts in sums.items():
        if counts:
            section = section_of(config, stage)
            row = StageEstimate(stage, section.backend, **counts)
            row.most_output_tokens = max(row.output_tokens, row.calls * tokens_with_reasoning(section))
            if price := price_of(section):
                row.usd = price.usd(row.input_tokens, row.output_tokens)
                row.most_usd = price.usd(row.input_tokens, row.most_output_tokens)
            result.stages.append(row)
    return result


def section_of(config: Config, stage: str) -> StageConfig:
    """Return the configuration of a stage, by the stage's name in the estimate."""
    section: StageConfig = (stage == "scoring" and config.levels) or getattr(config, SECTIONS[stage])
    return section


def tokens_with_reasoning(section: StageConfig) -> int:
    """Return the most tokens of an answer with its hidden reasoning; 0 for a model that does not reason."""
    row = row_of(section.backend)
    if row is None or not (row.max_tokens or always_reasons(section.backend)):
        return 0
    return stage_models(section)[0].max_tokens


@lru_cache(maxsize=1024)
def text_tokens(text: str) -> int:
    """Return the approximate number of tokens of a text."""
    return len(PIECE.findall(text))


def _costs(config: Config, tools: Mapping[str, Tool], job: Job) -> dict[str, StageCost]:
    """Return the stages that ask a model for one question."""
    if config.mode == "levels":
        return {"scoring": _LEVELS}
    query, options, reference = job.query.strip(), read_options(job.options), job.reference is not None
    question = query_for_stages(query, options)
    plan = plan_question(question, reference_given=reference, known_tools=tuple(tools))
    tokens = _tokens(plan, query, options, tools, reference, config.planner.rules)
    if config.executor.select == "table" and detect_query_type(question) is QueryType.SCORING:
        tokens.pop("tool_selection", None)
    if config.planner.rules == "fill" and is_plain_rating(question):
        tokens.pop("planner", None)
    costs = {}
    for stage in (stage for stage in SECTIONS if stage in tokens):
        section = section_of(config, stage)
        if stage == "scoring" and config.levels:
            costs[stage] = _LEVELS
        elif not section.is_offline:
            costs[stage] = _call(stage, section, reference, *tokens[stage])
    return costs


def _call(stage: str, section: StageConfig, reference: bool, filled: int, answer: int) -> StageCost:
    """Return the cost of one call; ``filled`` is the number of tokens filled into its prompt."""
    signature: Any = SIGNATURES.get(stage)
    if isinstance(section, PlannerConfig):
        signature = _planner(section.sees_images, section.rules == "check")
        answer += WRITTEN_FLAGS * (section.rules == "check")
    provider = row_of(section.backend)
    model = plain_name(section.backend.partition(".")[2])
    if stage == "scoring" and isinstance(section, SummarizerConfig):
        prompt = RATINGS[section.rating]
        signature = prompt.signature
        if section.logprobs and provider and provider.of_model(model).logprobs:
            signature, answer = prompt.token_form.signature(signature), answer - WRITTEN_PROBABILITIES
    is_enforced = section.structured_outputs in ("auto", "json_schema")
    text = _frame_tokens(signature, reference, is_enforced) + filled
    if is_enforced and provider and provider.bills_schemas:
        text += text_tokens(json.dumps(stage_schema(signature)))
    offered = ("image", "reference") if reference else ("image",)
    images = tuple(name for name in offered if name in signature.input_fields)
    return StageCost(text, min(answer, section.max_tokens), images)


def _tokens(
    plan: PlannerOutput,
    query: str,
    options: Mapping[str, str] | None,
    tools: Mapping[str, Tool],
    reference: bool,
    rules: PlanRules,
) -> dict[str, tuple[int, int]]:
    """Return, by stage of the plan, the tokens that are filled into its prompt, and the tokens of its answer.

    Questions, options and lists of tools are counted. The other numbers are for typical answers: two distortions per
    region if none was named (offline runs over 28 photos found 1.25 on average), a sentence of 141 characters about
    each (median of these runs: 137), and scores of the best tools for each and for overall quality.
    """
    question_tokens = text_tokens(query_for_stages(query, options))
    offered, flags = options or parse_options(query), plan.plan
    areas = [region for region in plan.regions if region != GLOBAL] if flags.any() else []
    unplaced = sum(place_in_frame(region, FRAME) is None for region in areas)
    stated = sum(map(len, plan.named_distortions.values()))
    distortions = 2 * len(plan.regions) if flags.distortion_detection else stated
    form = text_tokens(box_form("", FRAME).asked)
    boxes, listed = 12 * len(areas) + 3 + form if areas else 1, 3 + 3 * distortions
    shown = tools_shown(rules, tools, query_for_stages(query, options), reference_given=reference)
    tokens = {"planner": (text_tokens(", ".join(shown)) + question_tokens, 52 + 12 * stated)}
    if unplaced:
        tokens["localization"] = 3 * unplaced + form, 7 + 18 * unplaced
    if flags.distortion_detection:
        tokens["distortion_detection"] = question_tokens + 3 * len(plan.regions) + boxes, 26 * len(plan.regions)
    if flags.distortion_analysis and distortions:
        tokens["distortion_analysis"] = question_tokens + listed + boxes, 11 + 60 * distortions
    if flags.tool_selection and distortions and not (plan.tools and flags.tool_execution):
        wanted = {name for names in plan.named_distortions.values() for name in names} or {BLURS, NOISE}
        suited = tools_for(wanted, [tool for tool in tools.values() if tool.kind == ("FR" if reference else "NR")])
        offers = "\n".join(tool.line_for(wanted) for tool in suited)
        tokens["tool_selection"] = text_tokens(offers) + listed, 10 + 21 * distortions
    evidence = 1  # characters of "none"
    if flags.any():
        evidence = 4 + 43 * len(areas) + 20 * bool(unplaced) + 48 * distortions * flags.distortion_analysis
        able = [tool for tool in tools.values() if tool.kind == ("FR" if reference else "NR")]
        further = len(rating_tools(able, has_reference=reference)) - 1
        evidence += (25 + 14 * (distortions + 1) + 24 * further) * flags.tool_execution
    if not offered and detect_query_type(query, plan.query_type) is QueryType.SCORING:
        tokens["scoring"] = text_tokens(query) + evidence, 112
    else:
        listed_options = "\n".join(f"{letter}. {text}" for letter, text in offered.items())
        question = text_tokens(beside_options(query, options)) + text_tokens(listed_options)
        tokens["answering"] = question + evidence, 66 if offered else 94
    return tokens


@cache
def _planner(sees_images: bool, is_whole: bool) -> type[dspy.Signature]:
    return plan_signature(sees_images=sees_images, is_whole=is_whole)


@cache
def _frame_tokens(signature: Any, reference: bool, is_enforced: bool) -> int:
    """Return the tokens of a signature's prompt with empty inputs, without image tokens."""
    adapter = SteadyAdapter("json_schema" if is_enforced else "off")
    pixel = dspy.Image("data:image/png;base64,AAAA")
    images = {"image": pixel, "reference": pixel if reference else None}
    inputs = {name: images.get(name, "") for name in signature.input_fields}
    contents = [message["content"] for message in adapter.format(signature, [], inputs)]
    parts = [part for content in contents for part in ([{"text": content}] if isinstance(content, str) else content)]
    return sum(text_tokens(part.get("text", "")) for part in parts)
