"""Measure how well distortions are named: confusion table, false alarms, and severity against the true strength."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from agenticiqa.eval.metrics import srcc
from agenticiqa.eval.research.distort import KINDS
from agenticiqa.signatures.categories import BLURS, COMPRESSION
from agenticiqa.signatures.vocabulary import TRAINED, Distortion

VISIBLE = 0.5  # least severity of a distortion that is named
ALARM = 1.5  # least severity of an alarm, the end of "slight"
NONE = "none"

# The correct categories of each kind of distortion. Lost packets of JPEG 2000 are coding artifacts and look blurred.
CORRECT: dict[str, tuple[Distortion, ...]] = {kind: (made.category,) for kind, made in KINDS.items()} | {
    "fast_fading": (COMPRESSION, BLURS),
}
SHORT = ("Blurs", "Color", "Compr.", "Noise", "Bright.", "Sharp.", "Contrast")

Severities = NDArray[np.float64]


def top_category(severities: Severities) -> str:
    """Return the category of the highest of seven severities, or "none" if that is not visible."""
    return TRAINED[int(severities.argmax())] if severities.max() >= VISIBLE else NONE


def correct_shares(kinds: Sequence[str], severities: Severities) -> dict[str, float]:
    """Return, for each kind with a detectable category, the share of correct top categories; severities (N, 7)."""
    hits: dict[str, list[bool]] = {}
    for kind, row in zip(kinds, severities, strict=True):
        if set(CORRECT.get(kind, ())) & set(TRAINED):
            hits.setdefault(kind, []).append(top_category(row) in CORRECT[kind])
    return {kind: float(np.mean(values)) for kind, values in hits.items()}


def srcc_with_strength(kind: str, strengths: Sequence[float], severities: Severities) -> float:
    """Return the SRCC of distortion strengths (N,) with the severity of their category, 0 if that is constant.

    If two categories are correct, the higher severity counts; severities (N, 7).
    """
    columns = [TRAINED.index(name) for name in CORRECT[kind] if name in TRAINED]
    return srcc(strengths, severities[:, columns].max(axis=1)) or 0.0


def false_alarms(severities: Severities) -> dict[str, float]:
    """Return the shares of pristine images with an alarm, in any category and in each; severities (N, 7)."""
    shares = {"any": float(np.mean(severities.max(axis=1) >= ALARM))}
    return shares | {name: float(np.mean(severities[:, column] >= ALARM)) for column, name in enumerate(TRAINED)}


def confusion_table(
    kinds: Sequence[str], severities: Severities, strength_srcc: Mapping[str, Collection[float]]
) -> list[str]:
    """Return Markdown rows: true kind, count of each top category, correct share, mean of ``strength_srcc``."""
    lines = [
        f"| kind | n | {' | '.join(SHORT)} | none | correct | SRCC with level |",
        "| --- |" + " ---: |" * (len(SHORT) + 4),
    ]
    shares = correct_shares(kinds, severities)
    for kind in dict.fromkeys(kinds):
        categories = [top_category(row) for other, row in zip(kinds, severities, strict=True) if other == kind]
        counts = " | ".join(str(categories.count(name) or "") for name in (*TRAINED, NONE))
        share = f"{shares[kind]:.2f}" if kind in shares else "-"
        rank = f"{np.mean(list(strength_srcc[kind])):.2f}" if kind in strength_srcc else "-"
        lines.append(f"| {kind} | {len(categories)} | {counts} | {share} | {rank} |")
    return lines


def alarm_table(severities: Severities) -> list[str]:
    """Return Markdown rows of ``false_alarms``."""
    shares = false_alarms(severities)
    return [
        f"| pristine images | any | {' | '.join(SHORT)} |",
        "| ---: |" + " ---: |" * (len(SHORT) + 1),
        f"| {len(severities)} | {' | '.join(f'{share:.1%}' for share in shares.values())} |",
    ]
