"""The measurements as the reasoning of an answer quotes them: each score once."""

from agenticiqa.signatures.types import GLOBAL, ExecutorOutput

MOST_SCORES = 4


def scores_in_words(evidence: ExecutorOutput) -> list[str]:
    """The scores of the tools, one sentence part for each tool and region, with all that it was asked about."""
    asked: dict[tuple[str, str, float], list[str]] = {}
    for region, row in (evidence.quality_scores or {}).items():
        for distortion, (tool, score) in row.items():
            asked.setdefault((tool, region, score), []).append(distortion)
    return [
        f"{tool} scores {score:.2f} of 5 for {'the image' if region == GLOBAL else region}, {' and '.join(distortions)}"
        for (tool, region, score), distortions in [*asked.items()][:MOST_SCORES]
    ]
