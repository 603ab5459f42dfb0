"""The fused score of one image, and the sentence that says what it was made of."""

from collections.abc import Mapping
from dataclasses import dataclass

from agenticiqa.programs.stages.fusion import ScoreFusion, level_name
from agenticiqa.programs.stages.profile_use import default_fusion
from agenticiqa.signatures.types import ExecutorOutput, ProbabilitySource

SOURCES = {  # each probability_source whose name is unclear in a sentence
    "learned": "the learned model",
    "probabilities": "the probabilities that the model wrote",
    "percentages": "the percentages that the model wrote",
    "salvaged_probs": "the probabilities in an answer that was rejected",
    "salvaged_level": "the level alone, of an answer that was rejected",
}


@dataclass(frozen=True)
class FusedScore:
    """A score in [1, 5], the expected level of the model that is part of it, and how it was made, in one sentence."""

    score: float
    expectation: float
    how: str


def fused_score(
    fusion: ScoreFusion, evidence: ExecutorOutput, probabilities: Mapping[int, float], source: ProbabilitySource
) -> FusedScore:
    """Fuse the tool scores of the evidence with a model's probabilities over the levels.

    A fusion with a profile that was fitted to other tools than those of this evidence (without a reference, say) does
    not know these: the default fusion is used, and the sentence says so. Raises ValueError as ``fuse_scores`` does.
    """
    tool_scores, note = evidence.overall_scores, ""
    profile = fusion.profile
    if tool_scores and profile and profile.toolset and profile.toolset != evidence.overall_tools:
        fusion = default_fusion()
        note = f"; the fusion profile, of {', '.join(profile.toolset)}, is not for these tools"
    score = fusion.fuse_scores(tool_scores, probabilities)
    expectation = sum(level * share for level, share in probabilities.items())
    how = f"Score {score:.2f} ({level_name(score)})"
    if tool_scores:
        mean = f"{evidence.overall_mean:.2f} (n={len(tool_scores)})"
        how += f", fused from the tool mean {mean} and a level expectation of {expectation:.2f}"
    else:
        how += ", the level expectation alone, as no tool score came"
    return FusedScore(score, expectation, f"{how} (levels from {SOURCES.get(source, source)}){note}.")
