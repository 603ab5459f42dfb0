"""The row of a result: its fields, and the validation of rows from untrusted files."""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import orjson
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr, ValidationError, model_validator
from pydantic.types import Strict

from agenticiqa.configs.user_files import open_regular
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import printable_path
from agenticiqa.programs.images.reference_check import ReferenceCheck
from agenticiqa.signatures.types import ExecutorOutput

logger = logging.getLogger(__name__)

Row: TypeAlias = dict[str, Any]

MOST_NAMED = 20  # invalid lines with a separate warning

Number = Annotated[float, Strict(), Field(allow_inf_nan=False)]
Interval = Annotated[list[Number], Field(min_length=2, max_length=2)]
LevelKey = Literal["1", "2", "3", "4", "5"]
Share = Annotated[Number, Field(ge=0, le=1)]


class PlanInRow(BaseModel):
    """The plan of a row."""

    query_scope: StrictStr | list[StrictStr]
    reference_mode: StrictStr
    plan: dict[str, StrictBool] | None = None


class DistortionInRow(BaseModel):
    """A distortion of a row: its place, its category and its strength, 1 (slight) to 4 (extreme)."""

    model_config = ConfigDict(extra="forbid")

    region: StrictStr
    category: StrictStr
    strength: Annotated[StrictInt, Field(ge=1, le=4)]


class SentInRow(BaseModel):
    """How the image and the reference of a row were sent to a model; a row without a reference lacks that key."""

    model_config = ConfigDict(extra="forbid")

    image: StrictStr = ""
    reference: StrictStr = ""


class TimingsInRow(BaseModel):
    """The wall time of each stage of a row, in milliseconds; a row lacks stages that did not run."""

    model_config = ConfigDict(extra="forbid")

    planner: Number = 0.0
    executor: Number = 0.0
    summarizer: Number = 0.0
    replan: Number = 0.0


class TimingsOfScorer(TimingsInRow):
    """Also that of a scorer, which ``evaluate`` measures instead of the program."""

    scorer: Number = 0.0


class FusionInRow(BaseModel):
    """The fields of a row that a fit of the fusion reads."""

    model: StrictStr = ""
    prompt: StrictStr = ""
    tuned: StrictBool = False
    curves: StrictStr = ""
    third_tools: dict[str, Number] | None = None


class SpentInRow(BaseModel):
    """The usage of one stage, as ``usage.Spent``."""

    model_config = ConfigDict(extra="forbid")

    calls: StrictInt = 0
    cached: StrictInt = 0
    retries: StrictInt = 0
    input_tokens: StrictInt = 0
    output_tokens: StrictInt = 0
    usd: Number | None = None
    seconds: Number = 0.0
    cut_off: StrictBool = False


class AssessedRow(BaseModel):
    """The fields of a result, each declared here once: the keys of its JSON, in order, and the columns of its Parquet.

    ``Assessment`` has an attribute of each name, which ``to_dict`` reads. A field that is named in
    ``ALSO_SHOWN`` is also a line on the page. A row may lack any field.
    """

    image: StrictStr | None = None
    image_sha256: StrictStr | None = None
    reference: StrictStr | None = None
    reference_sha256: StrictStr | None = None
    width: StrictInt | None = None
    height: StrictInt | None = None
    jpeg_quality: StrictInt | None = None
    effective_side: StrictInt | None = None
    sent: SentInRow | None = None
    reference_check: ReferenceCheck | None = None
    query: StrictStr | None = None
    query_type: StrictStr | None = None
    options: dict[str, StrictStr] | None = None
    final_answer: Any = None
    quality_score: Number | None = None
    quality_level: StrictStr | None = None
    main_distortion: StrictStr | None = None
    severity: StrictStr | None = None
    distortions: list[DistortionInRow] | None = None
    caveats: list[StrictStr] | None = None
    score_interval: dict[str, Interval] | None = None
    score_without_model: Number | None = None
    disagreement: Number | None = None
    quality_reasoning: StrictStr | None = None
    quality_probs: dict[LevelKey, Share] | None = None
    probability_source: StrictStr | None = None
    probability_mass: Number | None = None
    probability_mass_from: StrictStr | None = None
    outside_training: list[StrictStr] | None = None
    plan: PlanInRow | None = None
    executor_evidence: ExecutorOutput | None = None
    summarizer_result: dict[str, Any] | None = None
    iteration_count: StrictInt | None = None
    replan_history: list[StrictStr] | None = None
    backend: StrictStr | None = None
    rejected_answers: dict[str, list[Any]] | None = None
    usage: dict[str, Any] | None = None
    usage_by_stage: dict[str, SpentInRow] | None = None
    answered_by: dict[str, list[StrictStr]] | None = None
    answer_notes: dict[str, list[StrictStr]] | None = None
    capabilities: dict[str, Any] | None = None
    timings_ms: TimingsInRow | None = None
    version: StrictStr | None = None


ALSO_SHOWN = ("map", "reference")  # on pages, beside the score, the main distortion and the answer


class ResultRow(AssessedRow):
    """The fields that readers use in a row of ``assess --jsonl`` or ``evaluate``; other keys are not checked.

    The score is 1..5; a ``scorer`` has its own scale, and ``mos`` is on the scale of the labels.
    """

    timings_ms: TimingsOfScorer | None = None
    name: StrictStr | None = None
    content: StrictStr | None = None
    mos: Number | None = None
    rotation: StrictInt | None = None
    correct: StrictBool | None = None
    fields: dict[str, StrictBool] | None = None
    scorer: StrictStr | None = None
    raw_score: Number | None = None
    fusion: FusionInRow | None = None
    map: StrictStr | None = None
    run_fingerprint: StrictStr | None = None

    @model_validator(mode="after")
    def _score_is_on_its_scale(self) -> "ResultRow":
        if self.quality_score is not None and self.scorer is None and not 1 <= self.quality_score <= 5:
            raise ValueError(f"quality_score is {self.quality_score:g}, expected 1 to 5")
        return self


def checked_rows(file: Path, needs: Callable[[Row], Collection[str]]) -> Iterator[tuple[int, Row]]:
    """Yield each valid row of a file with its offset in bytes; a row must also have the keys that it ``needs``.

    Invalid rows are skipped, and a final warning names their lines; a truncated last line is skipped too.
    Raises OSError, and UserError if all rows were skipped.
    """
    offset, kept, wrong = 0, 0, list[str]()
    with open_regular(file) as lines:
        for number, line in enumerate(lines, 1):
            if line.endswith(b"\n"):
                if why := _fault(line, needs):
                    wrong.append(f"{printable_path(file)}: line {number} is not a row of results: {why}")
                else:
                    kept += 1
                    yield offset, orjson.loads(line)
            offset += len(line)
    if wrong and not kept:
        raise UserError(wrong[0])
    for fault in wrong[:MOST_NAMED]:
        logger.warning("%s; the line is skipped", fault)
    if more := len(wrong[MOST_NAMED:]):
        logger.warning("%s: %d more invalid lines are skipped", printable_path(file), more)


def _fault(line: bytes, needs: Callable[[Row], Collection[str]]) -> str:
    try:
        row = orjson.loads(line)
    except ValueError:
        row = None
    if not isinstance(row, dict):
        return "it is not a JSON object"
    missing = [name for name in needs(row) if row.get(name) is None]
    return f"the key {missing[0]!r} is missing" if missing else fault_of(row)


def fault_of(row: Mapping[str, Any]) -> str:
    """Return what is wrong with a row, in one line; empty for a valid row."""
    try:
        ResultRow.model_validate(row)
    except ValidationError as error:
        first = error.errors()[0]
        return ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, "))))
    return ""
