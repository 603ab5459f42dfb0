"""What a finished assessment tells: its timings and retries while it runs, its JSON when it is done."""

import time
from dataclasses import dataclass, field
from typing import Any

import dspy

from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.stages.flow import Call, Flow
from agenticiqa.programs.stages.fusion import level_name
from agenticiqa.signatures.types import SummarizerOutput


@dataclass
class RunRecord:
    """What the stages told of themselves: wall time by stage, and why answers were rejected.

    ``seconds`` are those of a stage's last run, ``timings_ms`` the sums over all iterations.
    """

    timings_ms: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    retries: dict[str, list[str]] = field(default_factory=dict)

    def stage(self, name: str, module: dspy.Module, inputs: dict[str, Any]) -> Flow[dspy.Prediction]:
        """Run one stage and note its time and its retries."""
        started = time.perf_counter()
        prediction = yield Call(module, inputs)
        self.seconds[name] = time.perf_counter() - started
        self.timings_ms[name] = self.timings_ms.get(name, 0.0) + self.seconds[name] * 1000
        rejected = prediction.retries
        for part, reasons in (rejected if isinstance(rejected, dict) else {name: rejected}).items():
            if reasons:
                self.retries.setdefault(part, []).extend(reasons)
        return prediction


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
