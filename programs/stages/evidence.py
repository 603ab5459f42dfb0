"""Format the evidence for a prompt, and find its gaps, contradictions and uncertainties."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from agenticiqa.programs.images.files import digest
from agenticiqa.signatures.categories import OVERALL
from agenticiqa.signatures.lexicon import states_doubt
from agenticiqa.signatures.types import DistortionAnalysis, ExecutorOutput, PlannerOutput, unique
from agenticiqa.signatures.vocabulary import Distortion, Severity

Scores = dict[str, dict[str, tuple[str, float]]]
HIGH_SCORE, LOW_SCORE = 4.0, 2.0
# The level of a region whose worst distortion has this severity.
LEVEL_OF: dict[Severity, int] = {"none": 5, "slight": 4, "moderate": 3, "severe": 2, "extreme": 1}
FAR = 1.0  # least difference between two tools, in levels, that is reported


def format_evidence(evidence: ExecutorOutput, *, rates: bool = True) -> str:
    """Return the evidence for a prompt: one titled JSON section per kind, without missing kinds.

    If the question ``rates`` the quality, the scores that are part of the mean are separate from the others. Any other
    question has no mean.
    """
    sections: list[tuple[str, str]] = []
    if evidence.distortion_analysis:
        rows = {
            region: [row.model_dump(exclude=None if row.uncertain else {"uncertain"}) for row in rows]
            for region, rows in evidence.distortion_analysis.items()
        }
        sections.append(("Distortion analysis", _json(rows)))
    scores = scores_in_mean(evidence) if rates else evidence.quality_scores
    if scores:
        sections.append(("Tool scores (1-5 scale, higher is better)", _json(_rounded(scores))))
    if rates and evidence.overall_mean is not None:
        sections.append(("Tool score mean", f"{evidence.overall_mean:.2f}"))
    if rates and (others := scores_in_mean(evidence, are=False)):
        sections.append(("Other measurements (1-5 scale, no part of the mean)", _json(_rounded(others))))
    if evidence.notes:
        sections.append(("Notes", _json(evidence.notes)))
    if not sections:
        return "none"
    return "\n\n".join(f"{title}:\n{content}" for title, content in sections)


def basis_of(plan: PlannerOutput, evidence: ExecutorOutput) -> str:
    """Return a digest of what an answer is based on: the kind of question, and the evidence without its times.

    The detected distortions are no part of it if they were analyzed, because the analysis names them all.
    """
    left_out: dict[str, Any] = {"tool_log": {"__all__": {"ms"}}}
    if evidence.distortion_analysis is not None:
        left_out["distortion_set"] = True
    return digest([plan.query_type, evidence.model_dump(mode="json", exclude=left_out)])


def scores_in_mean(evidence: ExecutorOutput, *, are: bool = True) -> Scores:
    """Return, by region and distortion, the tools and scores that are part of the mean, or those that are not."""
    weights = {(call.region, call.tool): call.weight for call in evidence.tool_log}
    rows = {
        region: {key: pair for key, pair in row.items() if (weights.get((region, pair[0])) != 0) == are}
        for region, row in (evidence.quality_scores or {}).items()
    }
    return {region: row for region, row in rows.items() if row}


def _rounded(scores: Scores) -> Scores:
    return {r: {key: (tool, round(score, 4)) for key, (tool, score) in row.items()} for r, row in scores.items()}


class OpenPoint(NamedTuple):
    """A gap in the evidence, or a doubt about it: a sentence, and the region and the distortions that it is about.

    ``distance`` is that of a score in the mean from the level of the worst distortion that contradicts it.
    """

    sentence: str
    region: str
    distortions: Sequence[Distortion]
    lacks_analysis: bool = False
    distance: float = 0.0


def gaps(plan: PlannerOutput, evidence: ExecutorOutput) -> list[str]:
    """Return one sentence for each missing piece of evidence that the plan requested, in the plan's order."""
    return unique(point.sentence for point in missing(plan, evidence))


def missing(plan: PlannerOutput, evidence: ExecutorOutput) -> list[OpenPoint]:
    """Return the missing evidence that the plan requested, in the plan's order.

    A sub-task that failed leaves no gap: a new plan would not make the model's answers usable.
    """
    points = []
    wanted = evidence.distortion_set or plan.named_distortions
    if plan.plan.distortion_analysis and not {"distortion_detection", "distortion_analysis"} & evidence.failures.keys():
        unseen = [region for region in plan.regions if region not in (evidence.distortion_analysis or {})]
        sentence = f"Distortion analysis does not cover {', '.join(unseen)}"
        points += [OpenPoint(sentence, region, wanted.get(region, []), lacks_analysis=True) for region in unseen]
    if plan.plan.tool_execution and "tool_selection" not in evidence.failures:
        scored = evidence.quality_scores or {}
        for region in plan.regions:
            # Tools that the question names run for any distortions.
            names = [] if plan.tools else wanted.get(region, [])
            unscored = [name for name in names if not _has_score(scored.get(region, {}), name)]
            if unscored:
                points.append(OpenPoint(f"Missing tool scores for {region}: {', '.join(unscored)}", region, unscored))
            elif not scored.get(region) and not any(
                call.region == region and call.raw is not None and call.calibrated is None for call in evidence.tool_log
            ):
                points.append(OpenPoint(f"Missing tool scores for {region}", region, wanted.get(region, [])))
    return points


def doubtful(evidence: ExecutorOutput) -> list[OpenPoint]:
    """Return the doubts about the evidence: contradictions, and what the analyst is uncertain about."""
    return [*_contradicting(evidence), *_uncertain(evidence)]


def contradictions(evidence: ExecutorOutput) -> list[str]:
    """Return one sentence for each tool score that contradicts the analysis of the same region."""
    return [point.sentence for point in _contradicting(evidence)]


def uncertainties(evidence: ExecutorOutput) -> list[str]:
    """Return one sentence for each analyzed distortion that the analyst is uncertain about."""
    return [point.sentence for point in _uncertain(evidence)]


def _contradicting(evidence: ExecutorOutput) -> list[OpenPoint]:
    """Return the contradictions between a tool score and the analysis of the same region.

    A contradiction is a score above 4 with a severe distortion, or below 2 without a visible distortion. The score of
    one distortion is compared with the analysis of that distortion. The score of a tool for the overall quality is
    compared with the whole region's analysis, also where that tool stands in for one distortion, and with a detection
    that found nothing.
    """
    conflicts: dict[tuple[str, str, float], list[DistortionAnalysis]] = {}  # the rows that a score contradicts
    nothing = {region for region, names in (evidence.distortion_set or {}).items() if not names}
    for region, rows in (evidence.distortion_analysis or {}).items():
        scores = (evidence.quality_scores or {}).get(region, {})
        overall = {tool for key, (tool, _) in scores.items() if key.startswith(OVERALL)}
        for key, (tool, score) in scores.items():
            about = [row for row in rows if tool in overall or key.startswith(row.type)]
            bad = [row for row in about if row.severity in ("severe", "extreme")]
            was_examined = bool(about) or (tool in overall and region in nothing)
            if score > HIGH_SCORE and bad:
                conflicts.setdefault((region, tool, score), []).extend(bad)
            elif score < LOW_SCORE and was_examined and all(row.severity == "none" for row in about):
                conflicts.setdefault((region, tool, score), []).extend(about)
    weights = {(call.region, call.tool): call.weight for call in evidence.tool_log}
    points = []
    for (region, tool, score), rows in conflicts.items():
        counts = weights.get((region, tool)) != 0
        points.append(
            OpenPoint(
                f"Contradictory evidence for {region}: {_severe(rows)} but {tool} scores {score:.2f}",
                region,
                unique(row.type for row in rows),
                distance=abs(score - min((LEVEL_OF[row.severity] for row in rows), default=5)) if counts else 0.0,
            )
        )
    return points


def _uncertain(evidence: ExecutorOutput) -> list[OpenPoint]:
    """Return what the analyst says it is uncertain about: in a field, or without this field in some words."""
    return [
        OpenPoint(f"The analysis of {row.type} in {region} is uncertain: {row.explanation}", region, [row.type])
        for region, rows in (evidence.distortion_analysis or {}).items()
        for row in rows
        if (states_doubt(row.explanation) if row.uncertain is None else row.uncertain)
    ]


def far_named_tools(evidence: ExecutorOutput) -> list[str]:
    """Return one sentence for each named or selected tool with a score far from that of the program's own tool."""
    return [
        f"{tool} ({score:.1f}) differs strongly from {own} ({mine:.1f}), the program's own metric"
        for tool, score, own, mine in _beside_own(evidence)
        if abs(score - mine) >= FAR
    ]


def named_gap(evidence: ExecutorOutput) -> float:
    """Return the largest difference, in levels, between a named or selected tool and the program's own, or 0."""
    return max((abs(score - mine) for _, score, _, mine in _beside_own(evidence)), default=0.0)


def contradicted_by(evidence: ExecutorOutput) -> float:
    """Return half the largest distance, in levels, of a score in the mean from a contradicting analysis, or 0."""
    return max((point.distance / 2 for point in _contradicting(evidence)), default=0.0)


def _beside_own(evidence: ExecutorOutput) -> Iterator[tuple[str, float, str, float]]:
    """Yield each named or selected tool with its score, and the program's own tool of the region with its score."""
    own = {call.region: call for call in evidence.tool_log if call.weight == 0 and call.distortion == OVERALL}
    for call in evidence.tool_log:
        mine = own.get(call.region)
        if call.weight and mine and call.calibrated is not None and mine.calibrated is not None:
            yield call.tool, call.calibrated, mine.tool, mine.calibrated


def what_is_missing(evidence: ExecutorOutput) -> str:
    """Return sentences that name the missing kinds of evidence and the sub-tasks that failed, or an empty text."""
    kinds = {"distortion analysis": evidence.distortion_analysis, "tool scores": evidence.scores}
    sentences = []
    if missing := [kind for kind, value in kinds.items() if not value]:
        sentences.append(f"The evidence has no {' and no '.join(missing)}.")
    if failed := [step.replace("_", " ") for step in evidence.failures]:
        sentences.append(f"The model gave no usable answer for: {', '.join(failed)}.")
    return " ".join(sentences)


def _severe(rows: Sequence[DistortionAnalysis]) -> str:
    bad = unique(row.type for row in rows if row.severity != "none")
    return f"severe {', '.join(bad)}" if bad else "no distortion is visible"


def _has_score(scores: dict[str, tuple[str, float]], distortion: str) -> bool:
    return any(key == distortion or key.startswith(f"{distortion} (") for key in scores)


def _json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False)
