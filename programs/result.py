"""The result of an assessment as JSON, and what is recorded while it runs: timings and rejected answers."""

import time
from dataclasses import dataclass, field
from typing import Any, TypeVar

import dspy

from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.stages.flow import Flow
from agenticiqa.programs.stages.fusion import level_name
from agenticiqa.programs.stages.protocols import StageResult
from agenticiqa.signatures.types import SummarizerOutput

R = TypeVar("R", bound=StageResult)


@dataclass
class RunRecord:
    """The wall time of each stage of a run, and why answers of models were rejected.

    ``seconds`` has each stage's last run, ``timings_ms`` the sum over all iterations, in milliseconds.
    ``rejected_answers`` has, for each stage that asked a model and rejected answers, one reason per answer, in order.
    """

    timings_ms: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    rejected_answers: dict[str, list[str]] = field(default_factory=dict)

    def timed(self, name: str, stage: Flow[R]) -> Flow[R]:
        """Run one stage, and note its time and its rejected answers."""
        started = time.perf_counter()
        result = yield from stage
        self.seconds[name] = time.perf_counter() - started
        self.timings_ms[name] = self.timings_ms.get(name, 0.0) + self.seconds[name] * 1000
        for asked, reasons in result.rejected_answers.items():
            self.rejected_answers.setdefault(asked, []).extend(reasons)
        return result


def to_json(result: dspy.Prediction) -> dict[str, Any]:
    """A result as plain JSON types, with the documented keys."""
    summary: SummarizerOutput = result.summarizer_result
    image: LoadedImage = result.image
    return {
        "image": image.source,
        "image_sha256": image.sha256,
        "reference": result.reference.source if result.reference else None,
        "query": result.query,
        "query_type": result.query_type.value,
        "final_answer": summary.final_answer,
        "quality_score": summary.quality_score,
        "quality_level": level_name(summary.quality_score) if summary.quality_score is not None else None,
        "quality_reasoning": summary.quality_reasoning,
        "quality_probs": summary.quality_probs,
        "probability_source": summary.probability_source,
        "probability_mass": summary.probability_mass,
        "plan": result.plan.model_dump(mode="json"),
        "executor_evidence": result.executor_evidence.model_dump(mode="json"),
        "summarizer_result": summary.model_dump(mode="json"),
        "iteration_count": result.iteration_count,
        "replan_history": result.replan_history,
        "backend": result.backend,
        "retries": result.retries,
        "usage": result.usage,
        "usage_by_stage": result.usage_by_stage,
        "timings_ms": {stage: round(ms, 1) for stage, ms in result.timings_ms.items()},
        "version": result.version,
    }
