"""What the evidence says, what it lacks, and where it contradicts itself."""

import json
import re
from typing import Any

from agenticiqa.signatures.types import OVERALL, ExecutorOutput, PlannerOutput

UNCERTAIN = re.compile(r"\b(uncertain|unclear|not sure|cannot tell|can't tell|hard to tell|impossible to tell)\b", re.I)
HIGH_SCORE, LOW_SCORE = 4.0, 2.0


def format_evidence(evidence: ExecutorOutput) -> str:
    """The evidence for a prompt: one titled JSON section per kind, absent kinds left out."""
    sections: list[tuple[str, str]] = []
    if evidence.distortion_analysis:
        rows = {region: [row.model_dump() for row in rows] for region, rows in evidence.distortion_analysis.items()}
        sections.append(("Distortion analysis", _json(rows)))
    if evidence.overall_mean is not None:
        scores = {
            region: {distortion: [tool, round(score, 4)] for distortion, (tool, score) in row.items()}
            for region, row in (evidence.quality_scores or {}).items()
        }
        sections.append(("Tool scores (1-5 scale, higher is better)", _json(scores)))
        sections.append(("Tool score mean", f"{evidence.overall_mean:.2f}"))
    if evidence.notes:
        sections.append(("Notes", _json(evidence.notes)))
    if not sections:
        return "none"
    return "\n\n".join(f"{title}:\n{content}" for title, content in sections)


def gaps(plan: PlannerOutput, evidence: ExecutorOutput) -> list[str]:
    """What the plan asked for and the evidence lacks, one sentence each. What was switched off cannot be missing."""
    missing = [f"{_words(stage)} failed: {why}" for stage, why in evidence.failures.items()]
    if plan.plan.distortion_analysis and "distortion_analysis" not in evidence.failures:
        unseen = [region for region in plan.regions if region not in (evidence.distortion_analysis or {})]
        if unseen:
            missing.append(f"Distortion analysis does not cover {', '.join(unseen)}")
    if plan.plan.tool_execution:
        wanted = evidence.distortion_set or plan.named_distortions
        scored = evidence.quality_scores or {}
        for region in plan.regions:
            unscored = [name for name in wanted.get(region, []) if not _has_score(scored.get(region, {}), name)]
            if unscored:
                missing.append(f"Missing tool scores for {region}: {', '.join(unscored)}")
            elif not scored.get(region):
                missing.append(f"Missing tool scores for {region}")
    return missing


def contradictions(evidence: ExecutorOutput) -> list[str]:
    """Where the analysis and the tool scores of a region cannot both be right, one sentence each.

    A score for one distortion is held against the analysis of that distortion, an overall score against all of it.
    """
    found = []
    for region, rows in (evidence.distortion_analysis or {}).items():
        for key, (tool, score) in (evidence.quality_scores or {}).get(region, {}).items():
            where = f"Contradictory evidence for {region}"
            about = [row for row in rows if key.startswith((OVERALL, row.type))]
            bad = [row.type for row in about if row.severity in ("severe", "extreme")]
            if score > HIGH_SCORE and bad:
                found.append(f"{where}: severe {', '.join(bad)} but {tool} scores {score:.2f}")
            elif score < LOW_SCORE and about and all(row.severity == "none" for row in about):
                found.append(f"{where}: no distortion is visible but {tool} scores {score:.2f}")
    return found


def uncertainties(evidence: ExecutorOutput) -> list[str]:
    """Explanations in which the analyst says that it could not tell."""
    return [
        f"The analysis of {row.type} in {region} is uncertain: {row.explanation}"
        for region, rows in (evidence.distortion_analysis or {}).items()
        for row in rows
        if UNCERTAIN.search(row.explanation)
    ]


def what_is_missing(evidence: ExecutorOutput) -> str:
    """A sentence about the kinds of evidence that there is none of; empty when each is there."""
    lacking = [
        name
        for name, there in (
            ("distortion analysis", bool(evidence.distortion_analysis)),
            ("tool scores", bool(evidence.scores)),
        )
        if not there
    ]
    return f"No {' and no '.join(lacking)} to go by." if lacking else ""


def _has_score(scores: dict[str, tuple[str, float]], distortion: str) -> bool:
    return any(key == distortion or key.startswith(f"{distortion} (") for key in scores)


def _json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False)


def _words(stage: str) -> str:
    return stage.replace("_", " ").capitalize()
