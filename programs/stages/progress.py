"""Log records for the steps of an assessment: one function per event, with its message and its fields."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import dspy

from agenticiqa.programs.backends.usage import Spent, total
from agenticiqa.programs.events import event
from agenticiqa.programs.fusion.formula import level_name
from agenticiqa.programs.images.loaded import LoadedImage
from agenticiqa.programs.images.reference_check import ReferenceCheck
from agenticiqa.programs.stages.protocols import Scored
from agenticiqa.programs.tools.tool import with_unit
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


def log_started(image: LoadedImage, query: str, reference: LoadedImage | None, backend: str) -> None:
    """Log that the images are loaded and the question is valid."""
    size, name = list(image.size), reference.source if reference else None
    sentence = "%s, %d x %d pixels, reference %s, assessed by %s: %s"
    values = (image.source, *size, name or "none", backend, query)
    _log("begun", sentence, *values, size=size, reference=name, query=query, backend=backend)


def checked_reference(check: ReferenceCheck) -> None:
    """Log the reference check: a warning, unless the pair was aligned without problems."""
    level = logging.INFO if check.aligned else logging.WARNING
    _log("reference_checked", check.sentence, level=level, **check.model_dump(mode="json"))


def planned(plan: PlannerOutput, seconds: float) -> None:
    """Log the plan."""
    flags = plan.plan.model_dump()
    _log(
        "planned",
        "planned in %.2f s: query type %s, scope %s, %s, tools named: %s, sub-tasks: %s",
        *(seconds, plan.query_type, ", ".join(plan.regions), plan.reference_mode, ", ".join(plan.tools) or "none"),
        ", ".join(name for name, on in flags.items() if on) or "nothing",
        query_type=plan.query_type,
        scope=plan.regions,
        distortion_source=plan.distortion_source,
        distortions=plan.distortions,
        reference_mode=plan.reference_mode,
        tools=plan.tools,
        flags=flags,
        seconds=round(seconds, 3),
    )


def unchanged_plan(*, offline: bool) -> None:
    """Log that a replan does nothing new, so the answer is final; a warning, except for the deterministic rules."""
    level = logging.INFO if offline else logging.WARNING
    _log("plan_unchanged", "the new plan does the same as an earlier one, so the answer is final", level=level)


def located(boxes: Boxes) -> None:
    """Log the boxes of the named regions, in pixels."""
    _log("located", "located: %s", _by_region(boxes), boxes=boxes)


def detected(distortions: Distortions) -> None:
    """Log the distortions of each region."""
    listed = {region: ", ".join(names) for region, names in distortions.items()}
    _log("detected", "detected: %s", _by_region(listed), distortions=distortions)


def analyzed(analysis: Mapping[str, Sequence[DistortionAnalysis]]) -> None:
    """Log the severity of each distortion, with its explanation."""
    worded = {region: ", ".join(f"{item.type} {item.severity}" for item in items) for region, items in analysis.items()}
    rows = {region: [item.model_dump() for item in items] for region, items in analysis.items()}
    _log("analyzed", "analyzed: %s", _by_region(worded), analysis=rows)


def selected(tools: Mapping[str, Mapping[str, str]]) -> None:
    """Log the tool for each distortion."""
    worded = {
        region: ", ".join(f"{tool} for {subject}" for subject, tool in chosen.items())
        for region, chosen in tools.items()
    }
    _log("selected", "selected: %s", _by_region(worded), tools=tools)


def measured(call: ToolCall) -> None:
    """Log the score of one tool, or why it has none; its weight is not known before all tools have run."""
    score = "without a curve" if call.calibrated is None else f"calibrated {call.calibrated:.2f}"
    outcome = call.error or f"raw {with_unit(call.raw or 0.0, call.unit)}, {score}"
    values = (call.tool, call.region, call.distortion, outcome, call.ms)
    _log("measured", "measured: %s on %s for %s: %s, %.1f ms", *values, **call.model_dump(exclude={"weight"}))


def summarizing(
    plan: PlannerOutput, kind: QueryType, evidence: ExecutorOutput, image: LoadedImage, reference: LoadedImage | None
) -> None:
    """Log the evidence used for the answer, and the mode of answering."""
    mode = "scoring" if kind is QueryType.SCORING else "explanation/QA"
    distortions, scores = _counts(evidence)
    name = reference.source if reference else None
    _log(
        "summarizing",
        "summarizer: query type %s, %s mode, %s, image %s, reference %s",
        *(plan.query_type, mode, evidence_summary(evidence), image.source, name),
        query_type=kind.value,
        mode=mode,
        distortions=distortions,
        tool_scores=scores,
        failures=evidence.failures,
        reference=name,
    )


def evidence_summary(evidence: ExecutorOutput) -> str:
    """Return a summary of how much evidence there is."""
    return "{} analyzed distortions, {} tool scores".format(*_counts(evidence))


def scored(score: float, evidence: ExecutorOutput, levels: Scored, expectation: float) -> None:
    """Log the fused score, the tools' mean, and the level probabilities with their expectation."""
    mean = evidence.overall_mean
    _log(
        "scored",
        "scored: %.2f (%s) from a tool mean of %s and an expected level of %.2f (%s)",
        *(score, level_name(score), "none" if mean is None else f"{mean:.2f}", expectation, levels.source),
        score=score,
        quality_level=level_name(score),
        tool_mean=mean,
        tools=len(evidence.overall_scores),
        level_expectation=expectation,
        probabilities={str(level): share for level, share in levels.probabilities.items()},
        probability_source=levels.source,
        probability_mass=levels.mass,
    )


def concluded(answer: float | str, reasoning: str) -> None:
    """Log the answer to a question that does not request a score."""
    _log("concluded", "concluded: %s", answer, answer=answer, reasoning=reasoning)


def no_replan(iteration: int, doubts: Sequence[str]) -> None:
    """Log that the evidence is sufficient; ``doubts`` remain."""
    fields: dict[str, Any] = {"need_replan": False, "reason": None, "iteration": iteration, "doubts": [*doubts]}
    _log("replan", "replan: not needed, iteration %d", iteration, **fields)


def replan(reason: str, iteration: int, limit: int) -> None:
    """Log that the evidence is insufficient or in doubt: plan again, or a warning if the limit is reached."""
    fields: dict[str, Any] = {"reason": reason, "iteration": iteration, "doubts": []}
    if iteration < limit:
        sentence = "replan: need_replan=true, reason: %s, iteration %d"
        _log("replan", sentence, reason, iteration, need_replan=True, **fields)
    else:
        sentence = "replan: the limit of %d iterations is reached; the evidence is still insufficient: %s"
        _log("replan", sentence, limit, reason, level=logging.WARNING, need_replan=False, **fields)


def nothing_to_add(reason: str, iteration: int) -> None:
    """Log that the evidence is insufficient or in doubt, and that a new plan could add nothing."""
    fields: dict[str, Any] = {"need_replan": False, "reason": reason, "iteration": iteration, "doubts": []}
    _log("replan", "replan: not possible, because nothing can be added: %s", reason, **fields)


def asked(stage: str, attempt: int, attempts: int) -> None:
    """Log that a model is asked. The prompt is logged separately, at level DEBUG."""
    values = (stage, attempt, attempts)
    _log("asked", "%s: request, attempt %d of %d", *values, stage=stage, attempt=attempt, attempts=attempts)


def answered(stage: str, attempt: int, spent: Spent, seconds: float) -> None:
    """Log an accepted answer with its calls, tokens and time."""
    usage = {**spent.to_json(), "cached": bool(spent.cached), "seconds": round(seconds, 3)}
    tokens = "from the cache" if spent.cached else f"{spent.input_tokens} + {spent.output_tokens} tokens"
    values = (stage, seconds, tokens)
    _log("answered", "%s: answered in %.2f s, %s", *values, stage=stage, attempt=attempt, **usage)


def rejected(turn: Mapping[str, Any], reasons: Sequence[str], seconds: float, evidence: str) -> None:
    """Log a rejected answer with the last of these reasons; ``evidence`` summarizes the model's input."""
    why = " for the same reason" if len(reasons) > 1 and reasons[-1] == reasons[-2] else f": {reasons[-1]}"
    values = (turn["stage"], turn["attempt"], turn["attempts"], why, f" (evidence: {evidence})" if evidence else "")
    fields = {**turn, "reason": reasons[-1], "seconds": round(seconds, 3), "evidence": evidence or None}
    _log("rejected", "%s: attempt %d of %d rejected%s%s", *values, level=logging.WARNING, **fields)


def unanswered(stage: str, attempts: int, last: str) -> None:
    """Log that no attempt was valid; the code that catches the error reports it."""
    values = (stage, last if last.strip() else "(empty)")
    _log("unanswered", "%s: the last answer was: %s", *values, level=logging.ERROR, stage=stage, attempts=attempts)


def fell_back(stage: str, model: str, error: Exception) -> None:
    """Log that a model is unreachable after its retries, so the next one is asked."""
    why = next(iter(str(error).splitlines()), "").removeprefix(f"[{model}] ")
    sentence, fields = "%s: %s is unreachable (%s); asking the next model", {"model": model, "reason": why}
    _log("fallback", sentence, stage, model, why, level=logging.WARNING, stage=stage, **fields)


def no_usable(stage: str, reason: str, remedy: str) -> None:
    """Log that no answer of a model was usable, and what is done instead."""
    _log("fallback", "%s: %s%s", stage, reason, remedy, level=logging.WARNING, stage=stage, reason=reason)


def done(result: dspy.Prediction, seconds: float) -> None:
    """Log the final answer, with the calls, tokens and time of all stages."""
    spent, answer = total(result.usage_by_stage), result.final_answer
    answer_text = f"{answer:.2f}" if isinstance(answer, float) else answer
    _log(
        "done",
        "done: %s in %.2f s, %d calls, %d + %d tokens",
        *(answer_text, seconds, spent["calls"], spent["input_tokens"], spent["output_tokens"]),
        answer=answer,
        score=result.quality_score,
        iterations=result.iteration_count,
        seconds=round(seconds, 3),
        **spent,
    )


def _log(step: str, sentence: str, /, *values: Any, level: int = logging.INFO, **fields: Any) -> None:
    """Log a step: its sentence with the inserted values, and its fields (see ``events``)."""
    logger.log(level, sentence, *values, extra=event(step, **fields), stacklevel=2)


def _counts(evidence: ExecutorOutput) -> tuple[int, int]:
    return sum(map(len, (evidence.distortion_analysis or {}).values())), len(evidence.scores)


def _by_region(findings: Mapping[str, Any]) -> str:
    return "; ".join(f"{region}: {what or 'nothing'}" for region, what in findings.items())
