"""Rows of a finished run with a model, as a fit of the fusion reads them."""

import random
from typing import Any

from agenticiqa.programs.fusion.formula import default_fusion
from agenticiqa.programs.fusion.interval import fused_score
from agenticiqa.signatures.types import ExecutorOutput

Row = dict[str, Any]
DEFAULT = default_fusion()


def row(number: int, quality: float, model: float, **fusion: Any) -> Row:
    """Return a row with the score ``quality`` of LEARNED-IQA and the rating ``model`` of the model."""
    shares = {str(level): 2.0 ** (-2 * (level - model) ** 2) for level in range(1, 6)}
    probabilities = {level: share / sum(shares.values()) for level, share in shares.items()}
    call = {"tool": "LEARNED-IQA", "region": "Global", "distortion": "Overall", "spread": 0.7, "ms": 1}
    evidence = {"quality_scores": {"Global": {"Overall": ["LEARNED-IQA", quality]}}, "tool_log": [call]}
    p = {int(level): share for level, share in probabilities.items()}
    made = fused_score(DEFAULT, ExecutorOutput.model_validate(evidence), p, "logprobs")
    said = f"It looks fine. {made.how} The evidence has no distortion analysis."
    scores = {
        "final_answer": made.score,
        "quality_score": made.score,
        "score_interval": {share: [*ends] for share, ends in made.interval.items()},
        "score_without_model": made.without_model,
        "disagreement": made.disagreement,
        "quality_reasoning": said,
    }
    return {
        "image": f"{number}.png",
        "image_sha256": f"{number:064}",
        "query": "Rate it.",
        "query_type": "scoring",
        **scores,
        "quality_probs": probabilities,
        "probability_source": "logprobs",
        "executor_evidence": evidence,
        "summarizer_result": scores,
        "answered_by": {"scoring": ["vllm/test"]},
        "fusion": {"model": "vllm.test", "prompt": "p", "curves": "c", **fusion},
    }


def rows_of_a_model(images: int = 60) -> list[Row]:
    """Return rows of images; tool and model have independent errors, and NIQE falls with quality."""
    draw, made = random.Random(3), []
    for number in range(images):
        truth = draw.uniform(1.5, 4.5)
        tool, model = (min(max(truth + draw.gauss(0, 0.4), 1), 5) for _ in range(2))
        made.append(row(number, tool, model, third_tools={"NIQE": 9 - truth + draw.gauss(0, 0.8)}))
    return made
