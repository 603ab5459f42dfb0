"""The Executor's prompts: locate regions, detect distortions, rate their severity, select tools (paper, Sec. 3.2).

The specification's mapping by region is converted to the requested list of rows. Content in a wrong form is passed on
unchanged, so that the validation reports it.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import dspy
from pydantic import BeforeValidator, Field, field_validator

from agenticiqa.signatures.answers.model_answer import ModelAnswer, names_in, rows_by_region
from agenticiqa.signatures.categories import CATEGORIES
from agenticiqa.signatures.input_texts import BOXES, IMAGE, QUERY, REFERENCE
from agenticiqa.signatures.lexicon import states_doubt
from agenticiqa.signatures.types import DetectableName, DistortionAnalysis, DistortionName, Name, Sentence, SeverityName
from agenticiqa.signatures.vocabulary import DETECTABLE, Distortion


def _box_or_zeros(value: Any) -> Any:
    """Return four zeros for a region without a box."""
    return [0, 0, 0, 0] if value is None or value == [] else value


class LocatedRegion(ModelAnswer):
    """Where one region is: ``box`` has four numbers in the form that was asked for, or four zeros if it is not seen."""

    # Names that models were trained to write.
    other_names: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("bbox", "bbox_2d", "box_2d", "bounding_box"), "box"),
        **dict.fromkeys(("label", "name", "object"), "region"),
    }

    region: Name
    box: Annotated[
        list[Annotated[float, Field(ge=0)]], Field(min_length=4, max_length=4), BeforeValidator(_box_or_zeros)
    ]

    @property
    def is_seen(self) -> bool:
        """Whether the region has a box."""
        return any(self.box)


class Location(ModelAnswer):
    """Where the regions are."""

    regions: Annotated[list[LocatedRegion], rows_by_region("box")] = Field(max_length=16)


class LocateRegions(dspy.Signature):
    """You find regions in an image. For every region listed, give the one box that encloses all of it and no more.
    Where several things have the name, enclose them all. Never guess a place.
    """

    image: dspy.Image = dspy.InputField(desc="the image to find the regions in")
    regions: str = dspy.InputField(desc="the regions to find, as a JSON list")
    form: str = dspy.InputField(desc="the form of a box: the order of its numbers, and their unit")
    location: Location = dspy.OutputField(
        desc="regions has each region listed once\n"
        "  - region: exactly the name given.\n"
        "  - box: four numbers, in the order and the unit of the form; 0, 0, 0, 0 when the region cannot be seen."
    )


# Distortions of a region that a request asks for: a model that lists every category has detected nothing.
MOST_REQUESTED = 4


class DetectedRegion(ModelAnswer):
    """The distortions of one region."""

    region: Name
    distortions: Annotated[list[DetectableName], BeforeValidator(names_in)] = Field(
        max_length=len(DETECTABLE), json_schema_extra={"maxItems": MOST_REQUESTED}
    )


class Detection(ModelAnswer):
    """The distortions found, region by region."""

    distortion_set: Annotated[list[DetectedRegion], rows_by_region("distortions")] = Field(max_length=16)

    def by_region(self) -> dict[str, list[Distortion]]:
        """Return ``{region: [category, ...]}``, each category once."""
        categories: dict[str, list[Distortion]] = {}
        for record in self.distortion_set:
            categories.setdefault(record.region, []).extend(record.distortions)
        return {region: [*dict.fromkeys(names)] for region, names in categories.items()}


SIGNS = "\n".join(f"    - {row.name}: {row.signs or row.everyday}" for row in CATEGORIES if row.is_detectable)


class DetectDistortions(dspy.Signature):
    """You spot image distortions: those that a careful observer would see. Do not guess.

    With a reference image, report what changed from it. Without one, compare with a good photograph of this scene;
    intended effects such as a soft background are not distortions.
    """

    reference: dspy.Image | None = dspy.InputField(desc=REFERENCE)
    image: dspy.Image = dspy.InputField(desc=IMAGE)
    query: str = dspy.InputField(desc=QUERY)
    query_scope: str = dspy.InputField(desc="the regions, as a JSON list")
    boxes: str = dspy.InputField(desc=BOXES)
    detection: Detection = dspy.OutputField(
        desc="distortion_set has each region of query_scope once\n"
        '  - region: exactly the name given ("Global" is the whole image).\n'
        f"  - distortions: the categories seen there, at most {MOST_REQUESTED}, the most visible first; an empty list "
        "where there are none. What shows each category:\n"
        f"{SIGNS}"
    )


class AnalyzedDistortion(ModelAnswer):
    """The severity of one distortion in one region."""

    region: Name
    type: DistortionName
    severity: SeverityName
    explanation: Sentence
    uncertain: bool

    @classmethod
    def prepared(cls, written: dict[str, Any]) -> dict[str, Any]:
        """Without a usable field, take the doubt from the words of the explanation."""
        if isinstance(written.get("uncertain"), bool):
            return written
        return {**written, "uncertain": states_doubt(str(written.get("explanation")))}


class Analysis(ModelAnswer):
    """The severity of every listed distortion."""

    distortion_analysis: list[AnalyzedDistortion] = Field(max_length=64)

    @field_validator("distortion_analysis", mode="before")
    @classmethod
    def _as_records(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return [
            {"region": region, **item} if isinstance(item, Mapping) else item
            for region, items in value.items()
            for item in (items if isinstance(items, list) else [items])
        ]

    def by_region(self) -> dict[str, list[DistortionAnalysis]]:
        """Return ``{region: [analysis, ...]}``, the form of the specification."""
        analyses: dict[str, list[DistortionAnalysis]] = {}
        for row in self.distortion_analysis:
            analyses.setdefault(row.region, []).append(
                DistortionAnalysis(
                    type=row.type, severity=row.severity, explanation=row.explanation, uncertain=row.uncertain
                )
            )
        return analyses


class AnalyzeDistortions(dspy.Signature):
    """You rate image distortions: how severe each one listed is in its region. Rate what is visible, not what the
    question suggests.
    """

    reference: dspy.Image | None = dspy.InputField(desc=REFERENCE)
    image: dspy.Image = dspy.InputField(desc=IMAGE)
    query: str = dspy.InputField(desc=QUERY)
    distortion_set: str = dspy.InputField(desc="the distortions to rate, as JSON: region to list of distortions")
    boxes: str = dspy.InputField(desc=BOXES)
    analysis: Analysis = dspy.OutputField(
        desc="distortion_analysis has every region and distortion listed once\n"
        "  - region, type: as listed.\n"
        "  - severity: none (not or barely visible), slight, moderate, severe or extreme (unusable).\n"
        "  - explanation: one short sentence: where and how it shows.\n"
        "  - uncertain: true when unsure."
    )


class ChosenTool(ModelAnswer):
    """The tool for one distortion of one region."""

    region: Name
    distortion: DistortionName
    tool: Name


class Selection(ModelAnswer):
    """A tool for every distortion."""

    selected_tools: list[ChosenTool] = Field(max_length=64)

    @field_validator("selected_tools", mode="before")
    @classmethod
    def _as_records(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return [
            {"region": region, "distortion": distortion, "tool": tool}
            for region, chosen in value.items()
            for distortion, tool in (chosen.items() if isinstance(chosen, Mapping) else [(None, chosen)])
        ]

    def by_region(self) -> dict[str, dict[str, str]]:
        """Return ``{region: {distortion: tool}}``, the form of the specification."""
        chosen: dict[str, dict[str, str]] = {}
        for row in self.selected_tools:
            chosen.setdefault(row.region, {})[row.distortion] = row.tool
        return chosen


class SelectTools(dspy.Signature):
    """You choose measuring tools: the available tool that follows each distortion best. The figures are correlations
    with people's opinions. Where no tool lists the distortion, take the best one for Overall.
    """

    available_tools: str = dspy.InputField(desc="the tools that apply to this image, one per line")
    distortion_set: str = dspy.InputField(desc="the distortions to measure, as JSON: region to list of distortions")
    selection: Selection = dspy.OutputField(
        desc="selected_tools has every region and distortion listed once\n  - tool: the bare name, as listed."
    )
