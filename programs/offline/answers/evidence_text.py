"""The measurements as the reasoning of an answer quotes them: of the kind that was asked about, and each score once."""

import re
from collections.abc import Sequence
from dataclasses import replace

from agenticiqa.programs.offline.answers.measured_image import VISIBLE, MeasuredImage, kinds_in, without_hue
from agenticiqa.programs.offline.measured.findings import Finding
from agenticiqa.signatures.lexicon import terms_in
from agenticiqa.signatures.types import GLOBAL, ExecutorOutput

MOST_SCORES = 4
_BALANCE = re.compile(r"\b(?:white|colou?r)[- ]balance\b", re.I)  # which is asked about a cast, and names none


def quoting(measured: MeasuredImage, question: str) -> MeasuredImage:
    """The measurements with explanations about the kinds that a question names, where they were measured.

    A finding explains the kind that fits best: of an image that is colorful and has no cast, its colorfulness. If it is
    visible, the kind that was asked about is explained beside it.
    """
    kinds = {term.meaning.kind for term in terms_in(question)} - {""}
    if _BALANCE.search(question):
        kinds.add("color cast")
    asked = [without_hue(kind) for kind in sorted(kinds)]
    return replace(measured, findings={name: _quoting(each, asked) for name, each in measured.findings.items()})


def _quoting(finding: Finding, asked: Sequence[str]) -> Finding:
    wanted = [
        text
        for kind, text in finding.explanations.items()
        if kinds_in(kind) & {*asked} and text not in finding.explanation
    ]
    if not wanted or finding.local:
        return finding
    shown = [finding.explanation] if finding.severity >= VISIBLE else []
    return replace(finding, explanation=" ".join([*shown, *wanted]))


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
