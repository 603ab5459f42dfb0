"""The steps of an assessment as log records: one function for each event, with its sentence and its fields."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import dspy

from agenticiqa.programs.backends.ledger import Spent, total
from agenticiqa.programs.events import event
from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.stages.fusion import Probabilities, level_name
from agenticiqa.signatures.types import (
    Boxes,
    DistortionAnalysis,
    Distortions,
    ExecutorOutput,
    PlannerOutput,
    QueryType,
    ToolCall,
)

logger = logging.getLogger(__name__)


def begun(image: LoadedImage, query: str, reference: LoadedImage | None, backend: str) -> None:
    """The images are loaded and the question is fit to be asked."""
    size, against = list(image.size), reference.source if reference else None
    logger.info(
        "%s, %d x %d pixels, reference %s, judged by %s: %s",
        *(image.source, *size, against or "none", backend, query),
        extra=event("begun", size=size, reference=against, query=query, backend=backend),
    )


def planned(plan: PlannerOutput, seconds: float) -> None:
    """What will be looked at."""
    flags = plan.plan.model_dump()
    logger.info(
        "planned in %.2f s: query type %s, scope %s, %s, tools named: %s, to do: %s",
        *(seconds, plan.query_type, ", ".join(plan.regions), plan.reference_mode, ", ".join(plan.tools) or "none"),
        ", ".join(name for name, on in flags.items() if on) or "nothing",
        extra=event(
            "planned",
            query_type=plan.query_type,
            scope=plan.regions,
            distortion_source=plan.distortion_source,
            distortions=plan.distortions,
            reference_mode=plan.reference_mode,
            tools=plan.tools,
            flags=flags,
            seconds=round(seconds, 3),
        ),
    )


def located(boxes: Boxes) -> None:
    """Where the named regions are, in pixels."""
    logger.info("located: %s", _by_region(boxes), extra=event("located", boxes=boxes))


def detected(distortions: Distortions) -> None:
    """Which distortions each region has."""
    listed = {region: ", ".join(names) for region, names in distortions.items()}
    logger.info("detected: %s", _by_region(listed), extra=event("detected", distortions=distortions))


def analysed(analysis: Mapping[str, Sequence[DistortionAnalysis]]) -> None:
    """How bad each distortion is, and how one can tell."""
    worded = {region: ", ".join(f"{item.type} {item.severity}" for item in items) for region, items in analysis.items()}
    rows = {region: [item.model_dump() for item in items] for region, items in analysis.items()}
    logger.info("analysed: %s", _by_region(worded), extra=event("analysed", analysis=rows))


def selected(tools: Mapping[str, Mapping[str, str]]) -> None:
    """Which tool measures which distortion."""
    worded = {
        region: ", ".join(f"{tool} for {subject}" for subject, tool in chosen.items())
        for region, chosen in tools.items()
    }
    logger.info("selected: %s", _by_region(worded), extra=event("selected", tools=tools))


def measured(call: ToolCall) -> None:
    """What one tool gave, or why nothing."""
    came = call.error or f"raw {call.raw:.4g}, calibrated {call.calibrated:.2f}"
    logger.info(
        "measured: %s on %s for %s: %s, %.1f ms",
        *(call.tool, call.region, call.distortion, came, call.ms),
        extra=event("measured", **call.model_dump()),
    )


def summarizing(
    plan: PlannerOutput, kind: QueryType, evidence: ExecutorOutput, image: LoadedImage, reference: LoadedImage | None
) -> None:
    """Of what the answer will be made, and in which mode."""
    mode = "scoring" if kind is QueryType.SCORING else "explanation/QA"
    distortions, scores = sum(map(len, (evidence.distortion_analysis or {}).values())), len(evidence.scores)
    against = reference.source if reference else None
    logger.info(
        "summarizer: query type %s, %s mode, %d analysed distortions, %d tool scores, image %s, reference %s",
        *(plan.query_type, mode, distortions, scores, image.source, against),
        extra=event(
            "summarizing",
            query_type=kind.value,
            mode=mode,
            distortions=distortions,
            tool_scores=scores,
            failures=evidence.failures,
            reference=against,
        ),
    )


def scored(score: float, evidence: ExecutorOutput, levels: dspy.Prediction, expectation: float) -> None:
    """How the score came about: the mean of ``tools`` scores, the levels' probabilities and their expectation."""
    mean = evidence.overall_mean
    p: Probabilities = levels.probabilities
    logger.info(
        "scored: %.2f (%s) of a tool mean of %s and a level expectation of %.2f from %s",
        *(score, level_name(score), "none" if mean is None else f"{mean:.2f}", expectation, levels.source),
        extra=event(
            "scored",
            score=score,
            quality_level=level_name(score),
            tool_mean=mean,
            tools=len(evidence.overall_scores),
            level_expectation=expectation,
            probabilities={str(level): share for level, share in p.items()},
            probability_source=levels.source,
            probability_mass=levels.get("mass"),
        ),
    )


def concluded(answer: float | str, reasoning: str) -> None:
    """The answer to a question that asks for no score."""
    logger.info("concluded: %s", answer, extra=event("concluded", answer=answer, reasoning=reasoning))


def stays(iteration: int, doubts: Sequence[str]) -> None:
    """The evidence carries the answer, whatever doubts there are."""
    told = event("replan", need_replan=False, reason=None, iteration=iteration, doubts=[*doubts])
    logger.info("replan: not needed, iteration %d", iteration, extra=told)


def replans(reason: str, iteration: int, limit: int) -> None:
    """The evidence does not carry the answer: it is planned again, unless the limit is reached."""
    again = iteration < limit
    told = event("replan", need_replan=again, reason=reason, iteration=iteration, doubts=[])
    if again:
        logger.info("replan: need_replan=true, reason: %s, iteration %d", reason, iteration, extra=told)
    else:
        logger.warning("replan: the limit of %d iterations is reached, still: %s", limit, reason, extra=told)


def asked(stage: str, attempt: int, attempts: int) -> None:
    """A model is asked; what, is told at DEBUG."""
    told = event("asked", stage=stage, attempt=attempt, attempts=attempts)
    logger.info("%s: asked, attempt %d of %d", stage, attempt, attempts, extra=told)


def answered(stage: str, attempt: int, spent: Spent, seconds: float) -> None:
    """A model's answer was accepted: what it took."""
    taken = {**spent.to_json(), "cached": bool(spent.cached), "seconds": round(seconds, 3)}
    came = "from the cache" if spent.cached else f"{spent.input_tokens} + {spent.output_tokens} tokens"
    logger.info(
        *("%s: answered in %.2f s, %s", stage, seconds, came),
        extra=event("answered", stage=stage, attempt=attempt, **taken),
    )


def done(result: dspy.Prediction, seconds: float) -> None:
    """The answer stands, and what it all took."""
    spent = total(result.usage_by_stage)
    logger.info(
        "done: %s in %.2f s, %d calls, %d + %d tokens",
        *(result.final_answer, seconds, spent["calls"], spent["input_tokens"], spent["output_tokens"]),
        extra=event(
            "done",
            answer=result.final_answer,
            score=result.quality_score,
            iterations=result.iteration_count,
            seconds=round(seconds, 3),
            **spent,
        ),
    )


def _by_region(told: Mapping[str, Any]) -> str:
    return "; ".join(f"{region}: {what or 'nothing'}" for region, what in told.items())
