"""The Planner's prompt and answer: a plan for a question (paper, Sec. 3.1 and Appendix A.2)."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import dspy
from pydantic import BeforeValidator, Field, PrivateAttr, field_validator

from agenticiqa.signatures.answers.model_answer import ModelAnswer, names_in, rows_by_region
from agenticiqa.signatures.input_texts import QUERY, REFERENCE
from agenticiqa.signatures.types import (
    GLOBAL,
    DistortionName,
    DistortionSource,
    Name,
    PlanFlags,
    PlanQueryType,
    ReferenceMode,
    fold_scope,
    unique,
)
from agenticiqa.signatures.vocabulary import Distortion

MOST_REGIONS, MOST_TOOLS = 8, 16  # rows of a plan
MOST_ROWS = 4  # rows of distortions that a request asks for; a small model fills all that there may be


class RegionDistortions(ModelAnswer):
    """The distortions that the question names for one region."""

    region: Name
    distortions: Annotated[list[DistortionName], BeforeValidator(names_in)] = Field(max_length=8)


class PlanAnswer(ModelAnswer):
    """What a plan needs a model for, as lists of records, so that a strict JSON schema can describe it.

    The specification's other two keys are determined by rules (``programs.stages.plan_rules``). A model that writes
    them anyway is not asked again: ``stated`` has what it wrote.
    """

    set_by_rules: ClassVar[frozenset[str]] = frozenset({"reference_mode", "plan"})

    query_type: PlanQueryType
    query_scope: list[Name] = Field(max_length=MOST_REGIONS)
    distortion_source: DistortionSource
    distortions: Annotated[list[RegionDistortions], rows_by_region("distortions")] = Field(
        max_length=MOST_REGIONS, json_schema_extra={"maxItems": MOST_ROWS}
    )
    required_tool: Annotated[list[Name], BeforeValidator(names_in)] = Field(max_length=MOST_TOOLS)
    _stated: dict[str, Any] = PrivateAttr(default_factory=dict)

    @property
    def stated(self) -> Mapping[str, Any]:
        """The values that the model wrote for keys that the rules set, unchanged."""
        return self._stated

    @classmethod
    def prepared(cls, written: dict[str, Any]) -> dict[str, Any]:
        """Replace the two keys that may be null or omitted by empty lists."""
        return written | {key: [] for key in ("distortions", "required_tool") if written.get(key) is None}

    @classmethod
    def checked(cls, answer: "PlanAnswer", surplus: Mapping[str, Any]) -> list[str]:
        """Keep the values for the keys that the rules set; none of them is refused."""
        answer._stated = {key: surplus[key] for key in cls.set_by_rules & surplus.keys()}
        return []

    @field_validator("query_scope", mode="before")
    @classmethod
    def _scope_as_list(cls, value: Any) -> Any:
        scope = fold_scope(value)
        return [GLOBAL] if scope == GLOBAL else scope

    def by_region(self) -> dict[str, list[Distortion]]:
        """Return ``{region: [category, ...]}``, each category once, without regions that have none."""
        categories: dict[str, list[Distortion]] = {}
        for record in self.distortions:
            categories[record.region] = unique([*categories.get(record.region, []), *record.distortions])
        return {region: names for region, names in categories.items() if names}


class PlanSteps(ModelAnswer):
    """Which sub-tasks run."""

    distortion_detection: bool
    distortion_analysis: bool
    tool_selection: bool
    tool_execution: bool

    def as_flags(self) -> PlanFlags:
        """Return them as the flags of a plan."""
        return PlanFlags(**self.model_dump())


class WholePlanAnswer(PlanAnswer):
    """A plan with all seven keys of the specification."""

    set_by_rules: ClassVar[frozenset[str]] = frozenset()

    reference_mode: ReferenceMode
    plan: PlanSteps


class Plan(dspy.Signature):
    """You plan an image quality assessment: say what the user's question needs to have looked at and measured. You do
    not judge the image, and you do not answer.

    When feedback is given, the evidence of that plan was not sufficient: make another plan that fixes this.
    """

    reference: dspy.Image | None = dspy.InputField(desc=REFERENCE)
    image: dspy.Image = dspy.InputField(desc="the image that the question is about, possibly distorted")
    available_tools: str = dspy.InputField(desc="the tools that can be named")
    query: str = dspy.InputField(desc=QUERY)
    feedback: str | None = dspy.InputField(desc="the previous plan and why its evidence was not sufficient")
    planner_output: PlanAnswer = dspy.OutputField(
        desc="the plan\n"
        '  - query_type: "IQA" when the question is about how well the picture is rendered: its quality, or a '
        "distortion such as noise, blur, lighting, sharpness, color, contrast or compression. "
        '"Other" when it is about anything else, such as emotion, style, beauty or what the picture shows.\n'
        '  - query_scope: every object or region that the question names, in its own words; ["Global"] when it names '
        "none.\n"
        '  - distortion_source: "Explicit" when the question mentions blur, noise, sharpness, lighting, color, '
        "contrast, saturation, brightness or another distortion, also when only an answer option does; "
        'otherwise "Inferred".\n'
        "  - distortions: for each region of the scope the distortions that the question mentions; empty when it "
        "mentions none.\n"
        "  - required_tool: the available tools that the question itself names, as listed; never your own choice."
    )


WHOLE_PLAN = (
    '  - reference_mode: "Full-Reference" when there is a reference image, otherwise "No-Reference".\n'
    '  - plan: the steps to run, each true or false. For query_type "Other" all are false; otherwise:\n'
    '    - distortion_detection: true when distortion_source is "Inferred".\n'
    "    - distortion_analysis: true.\n"
    '    - tool_selection: true when required_tool is empty and query_scope is ["Global"].\n'
    '    - tool_execution: true when required_tool names a tool, or query_scope is ["Global"].'
)


def plan_signature(*, sees_images: bool, is_whole: bool = False) -> type[dspy.Signature]:
    """Return the Plan signature with or without the two images; ``is_whole``: the model writes all seven keys."""
    signature: Any = Plan
    if is_whole:
        desc = Plan.output_fields["planner_output"].json_schema_extra["desc"]
        signature = Plan.with_updated_fields("planner_output", type_=WholePlanAnswer, desc=f"{desc}\n{WHOLE_PLAN}")
    return signature if sees_images else signature.delete("reference").delete("image")
