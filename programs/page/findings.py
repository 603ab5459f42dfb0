"""Name the findings of an assessment in words: its distortions, their places, and what tools measured."""

from collections.abc import Callable, Iterable
from typing import Any

from agenticiqa.programs.tools import TOOLS
from agenticiqa.programs.tools.outside_training import SHORT
from agenticiqa.programs.tools.tool import with_unit
from agenticiqa.signatures.categories import OVERALL
from agenticiqa.signatures.types import GLOBAL, DistortionAnalysis, ExecutorOutput, ToolCall
from agenticiqa.signatures.vocabulary import SEVERITIES

NONE = SEVERITIES[0]
LEVEL_COLORS = {1: "#b2182b", 2: "#d6604d", 3: "#777777", 4: "#4393c3", 5: "#2166ac"}  # red to blue


def distortions_of(evidence: ExecutorOutput | None) -> list[tuple[str, DistortionAnalysis]]:
    """Return each analyzed (region, distortion), the most severe first."""
    pairs = [(region, item) for region, items in _analysis(evidence).items() for item in items]
    return sorted(pairs, key=lambda pair: -SEVERITIES.index(pair[1].severity))


def main_distortion_of(evidence: ExecutorOutput | None) -> tuple[str | None, str | None]:
    """Return the category and the severity of the most severe distortion.

    Both are "none" if there is none, and ``None`` if no distortion was looked for.
    """
    if evidence is None or evidence.distortion_analysis is None:
        return None, None
    found = found_in(evidence)
    return (found[0]["category"], SEVERITIES[found[0]["strength"]]) if found else (NONE, NONE)


def found_in(evidence: ExecutorOutput | None) -> list[dict[str, Any]]:
    """Return each distortion that is there as plain JSON (``result_row.DistortionInRow``), the most severe first."""
    return [
        {
            "region": place_of(evidence, region, item.type),
            "category": item.type,
            "strength": SEVERITIES.index(item.severity),
        }
        for region, item in distortions_of(evidence)
        if item.severity != NONE
    ]


def caveats_of(outside_training: Iterable[str], disagreement: float | None, remark: str) -> list[str]:
    """Return why a score is uncertain: an unusual image, a model that differs from the tools, a doubtful reference.

    ``remark`` is the sentence of the reference check.
    """
    reasons = [SHORT.get(reason, reason) for reason in outside_training]
    if disagreement:
        reasons.append(f"model and tools differ by {disagreement:.1f} levels")
    return [*reasons, remark] if remark else reasons


def placed(distortion: str, region: str) -> str:
    """Return a distortion with its region; the region is omitted for the whole image."""
    return distortion if region == GLOBAL else f"{distortion}, {region}"


def measured(tool: str, distortion: str) -> str:
    """Return what a tool measured, in words: its distortion, or overall quality."""
    known = TOOLS.get(tool)
    return "overall quality" if distortion == OVERALL or (known is not None and known.rates_overall) else distortion


def tool_rows(calls: Iterable[ToolCall], subject: Callable[[ToolCall], str]) -> list[tuple[str, ...]]:
    """Return the headings, and a line for each call: tool, its ``subject``, raw value, score and weight in the mean.

    Tools without weight come last, below a line that says so.
    """
    rows: list[tuple[str, ...]] = [("tool", "measures", "raw", "1 to 5", "weight")]
    apart: list[tuple[str, ...]] = [("not in the score", "", "", "", "")]
    for call in calls:
        raw = "failed" if call.raw is None else with_unit(call.raw, call.unit)
        score = "-" if call.calibrated is None else f"{call.calibrated:.2f}"
        weight = "-" if call.weight is None else f"{100 * call.weight:.3g} %"
        (apart if call.weight == 0 else rows).append((call.tool, subject(call), raw, score, weight))
    return rows + apart if apart[1:] else rows


def place_of(evidence: ExecutorOutput | None, region: str, distortion: str) -> str:
    """Return the place of a distortion: the damaged part if the damage is local, else the region."""
    parts = (evidence.local_damage or {}).get(region, []) if evidence else []
    return next((part.place for part in parts if part.type == distortion and region == GLOBAL), region)


def _analysis(evidence: ExecutorOutput | None) -> dict[str, list[DistortionAnalysis]]:
    return (evidence.distortion_analysis if evidence else None) or {}
