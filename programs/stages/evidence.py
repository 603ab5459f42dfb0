"""Format the evidence for a prompt, and find its gaps, contradictions and uncertainties."""

import json
from collections.abc import Iterator
from typing import Any

from agenticiqa.programs.images.files import digest
from agenticiqa.signatures.lexicon import states_doubt
from agenticiqa.signatures.types import OVERALL, ExecutorOutput, PlannerOutput

Scores = dict[str, dict[str, tuple[str, float]]]
HIGH_SCORE, LOW_SCORE = 4.0, 2.0
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


def gaps(plan: PlannerOutput, evidence: ExecutorOutput) -> list[str]:
    """Return one sentence for each missing piece of evidence that the plan requested, in the plan's order.

    A sub-task that failed leaves no gap: a new plan would not make the model's answers usable.
    """
    missing = []
    if plan.plan.distortion_analysis and not {"distortion_detection", "distortion_analysis"} & evidence.failures.keys():
        unseen = [region for region in plan.regions if region not in (evidence.distortion_analysis or {})]
        if unseen:
            missing.append(f"Distortion analysis does not cover {', '.join(unseen)}")
    if plan.plan.tool_execution and "tool_selection" not in evidence.failures:
        wanted = evidence.distortion_set or plan.named_distortions
        scored = evidence.quality_scores or {}
        for region in plan.regions:
            # Tools that the question names run for any distortions.
            names = [] if plan.tools else wanted.get(region, [])
            unscored = [name for name in names if not _has_score(scored.get(region, {}), name)]
            if unscored:
                missing.append(f"Missing tool scores for {region}: {', '.join(unscored)}")
            elif not scored.get(region) and not any(
                call.region == region and call.raw is not None and call.calibrated is None for call in evidence.tool_log
            ):
                missing.append(f"Missing tool scores for {region}")
    return missing


def contradictions(evidence: ExecutorOutput) -> list[str]:
    """Return one sentence for each tool score that contradicts the analysis of the same region.

    A contradiction is a score above 4 with a severe distortion, or below 2 without a visible distortion. The score of
    one distortion is compared with the analysis of that distortion. The score of a tool for the overall quality is
    compared with the whole region's analysis, also where that tool stands in for one distortion.
    """
    conflicts: dict[tuple[str, str, float], list[str]] = {}  # the severe distortions that a score contradicts
    for region, rows in (evidence.distortion_analysis or {}).items():
        scores = (evidence.quality_scores or {}).get(region, {})
        overall = {tool for key, (tool, _) in scores.items() if key.startswith(OVERALL)}
        for key, (tool, score) in scores.items():
            about = [row for row in rows if tool in overall or key.startswith(row.type)]
            bad = [row.type for row in about if row.severity in ("severe", "extreme")]
            if (score > HIGH_SCORE and bad) or (
                score < LOW_SCORE and about and all(row.severity == "none" for row in about)
            ):
                conflicts.setdefault((region, tool, score), []).extend(bad)
    return [
        f"Contradictory evidence for {region}: {_severe(bad)} but {tool} scores {score:.2f}"
        for (region, tool, score), bad in conflicts.items()
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


def _beside_own(evidence: ExecutorOutput) -> Iterator[tuple[str, float, str, float]]:
    """Yield each named or selected tool with its score, and the program's own tool of the region with its score."""
    own = {call.region: call for call in evidence.tool_log if call.weight == 0 and call.distortion == OVERALL}
    for call in evidence.tool_log:
        mine = own.get(call.region)
        if call.weight and mine and call.calibrated is not None and mine.calibrated is not None:
            yield call.tool, call.calibrated, mine.tool, mine.calibrated


def uncertainties(evidence: ExecutorOutput) -> list[str]:
    """Return one sentence for each analyzed distortion that the analyst is uncertain about.

    An analysis says it in a field; without this field, some words of its explanation do.
    """
    return [
        f"The analysis of {row.type} in {region} is uncertain: {row.explanation}"
        for region, rows in (evidence.distortion_analysis or {}).items()
        for row in rows
        if (states_doubt(row.explanation) if row.uncertain is None else row.uncertain)
    ]


def what_is_missing(evidence: ExecutorOutput) -> str:
    """Return sentences that name the missing kinds of evidence and the sub-tasks that failed, or an empty text."""
    kinds = {"distortion analysis": evidence.distortion_analysis, "tool scores": evidence.scores}
    sentences = []
    if missing := [kind for kind, value in kinds.items() if not value]:
        sentences.append(f"The evidence has no {' and no '.join(missing)}.")
    if failed := [step.replace("_", " ") for step in evidence.failures]:
        sentences.append(f"The model gave no usable answer for: {', '.join(failed)}.")
    return " ".join(sentences)


def _severe(distortions: list[str]) -> str:
    return f"severe {', '.join(dict.fromkeys(distortions))}" if distortions else "no distortion is visible"


def _has_score(scores: dict[str, tuple[str, float]], distortion: str) -> bool:
    return any(key == distortion or key.startswith(f"{distortion} (") for key in scores)


def _json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False)
