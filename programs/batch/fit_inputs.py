"""Compute the key ``fusion`` of a row: the inputs of a fusion fit that the documented keys lack.

A fit (``fusion.profile``) compares the model's level probabilities and the tools' mean, which every row has, with
independent tools, which a rating does not run. It must not mix models, scoring prompts or tools.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.fusion.configured import curves_digest
from agenticiqa.programs.fusion.interval import backend_shown
from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.result import Assessment
from agenticiqa.programs.saving import ScoringPrompt, scoring_prompt
from agenticiqa.programs.stages.side_by_side import cpu_slot
from agenticiqa.programs.tools import TOOLS
from agenticiqa.programs.tools.metrics.learned_iqa import TOOL as LEARNED_IQA
from agenticiqa.programs.tools.statistics.parts import working_copy
from agenticiqa.programs.tools.tool import Tool, raw_value

Row: TypeAlias = dict[str, Any]

LEARNED = LEARNED_IQA.name
THIRD_TOOLS = ("NIQE", "EDGE-SHARPNESS")  # tools that differ in their construction from LEARNED-IQA and from each other


def rows_with_fit_inputs(
    program: AgenticIQA, to_row: Callable[[Assessment], Row] = Assessment.to_dict
) -> Callable[[Assessment], Row]:
    """Return ``to_row`` followed by ``fit_inputs``, for ``assess_many(postprocess=...)``.

    Args:
        program: The program that assesses the images.
        to_row: Converts a result to a row.

    Returns:
        A function of a result, picklable if ``to_row`` is. For a program that asks no model there is nothing to fit,
        and ``to_row`` itself is returned.
    """
    if not program.questions:
        return to_row
    tools = getattr(program.executor, "toolbox", {})
    return partial(_row, to_row, scoring_prompt(program), tools)


def fit_inputs(result: Assessment, prompt: ScoringPrompt, tools: Mapping[str, Tool]) -> dict[str, Any] | None:
    """Return the value of the row's key ``fusion``; ``None`` unless a model gave the rating's probabilities.

    - ``model``: the backend that gave the probabilities, named as in a configuration
    - ``prompt`` and ``tuned``: the digest of its prompt, and whether that was tuned
    - ``curves``: a digest of the curves of the tools in the rating
    - ``third_tools``: raw values by name, each on the scale of its metric, for the whole image or for a copy with 1024
      pixels on the longer side; a tool that fails is left out
    """
    answered, evidence = result.answered_by.get("scoring"), result.executor_evidence
    if result.quality_score is None or not answered:
        return None
    return {
        "model": backend_shown(answered[-1]),
        "prompt": prompt.digest,
        "tuned": prompt.is_tuned,
        "curves": curves_digest(evidence.overall_tools, tools),
        "third_tools": third_tools(result.image, _names(evidence.overall_tools, result.reference)),
    }


def third_tools(image: LoadedImage, names: Sequence[str] = THIRD_TOOLS) -> dict[str, float]:
    """Return the raw values of tools for an image, without tools that fail."""
    values: dict[str, float] = {}
    with cpu_slot():
        copy = working_copy(image)
        for name in names:
            try:
                values[name] = raw_value(TOOLS[name], image if copy is image.pixels else copy)
            except Exception:  # a metric that does not apply to this image (for example, too small) gives no value
                continue
    return values


def _names(rated: tuple[str, ...], reference: LoadedImage | None) -> tuple[str, ...]:
    """Return ``THIRD_TOOLS``, and LEARNED-IQA if a rating without a reference used weaker tools."""
    return THIRD_TOOLS if LEARNED in rated or reference is not None else (*THIRD_TOOLS, LEARNED)


def _row(
    to_row: Callable[[Assessment], Row], prompt: ScoringPrompt, tools: Mapping[str, Tool], result: Assessment
) -> Row:
    row, inputs = to_row(result), fit_inputs(result, prompt, tools)
    return row if inputs is None else {**row, "fusion": inputs}
