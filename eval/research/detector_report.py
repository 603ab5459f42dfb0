"""Measure how well distortions are named: confusion table, false alarms, and severity against the true level.

    python -m agenticiqa.eval.research.detector_report LABELS.csv [--reference]

LABELS.csv needs the columns distortion and level; without --reference every image is judged without one.
"""

import argparse
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from agenticiqa.eval.datasets import LabeledImage, read_labels
from agenticiqa.eval.metrics import srcc
from agenticiqa.eval.research.command import parser_of, run_command
from agenticiqa.programs import images
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.offline.distortions import findings_of
from agenticiqa.programs.tools.distort import KINDS
from agenticiqa.signatures.categories import BLURS, COMPRESSION, NOISE
from agenticiqa.signatures.vocabulary import DETECTABLE, Distortion

VISIBLE = 0.5  # least severity that counts as named
ALARM = 1.5  # severity at which "slight" ends
NONE = "none"

# The correct categories by kind of distortion. Lost packets of JPEG 2000 are coding artifacts that mostly look blurred.
CORRECT: dict[str, tuple[Distortion, ...]] = {kind: (made.category,) for kind, made in KINDS.items()} | {
    "fast_fading": (COMPRESSION, BLURS),
    "jp2k-fast-fading": (COMPRESSION, BLURS),
    "jp2k": (COMPRESSION,),
    "gaussian-blur": (BLURS,),
    "white-noise": (NOISE,),
}
SHORT = ("Blurs", "Color", "Compr.", "Noise", "Bright.", "Sharp.", "Contrast")

Severities = NDArray[np.float64]


def top_category(severities: Severities) -> str:
    """The category of the highest severity, or "none" where that is not visible; severities (7,)."""
    return DETECTABLE[int(severities.argmax())] if severities.max() >= VISIBLE else NONE


def is_correct(kind: str, named: str) -> bool:
    """Whether a category is a correct name for a kind of distortion."""
    return named in CORRECT[kind]


def correct_shares(kinds: Sequence[str], severities: Severities) -> dict[str, float]:
    """By kind that has a detectable category, the share of images whose top category is correct; severities (N, 7)."""
    hits: dict[str, list[bool]] = {}
    for kind, row in zip(kinds, severities, strict=True):
        if set(CORRECT.get(kind, ())) & set(DETECTABLE):
            hits.setdefault(kind, []).append(is_correct(kind, top_category(row)))
    return {kind: float(np.mean(each)) for kind, each in hits.items()}


def srcc_with_level(kind: str, levels: Sequence[float], severities: Severities) -> float:
    """SRCC of the distortion levels of one image (N,) with the severity of their category; 0 where that is constant.

    Where two categories are correct, the higher severity counts; severities (N, 7).
    """
    columns = [DETECTABLE.index(name) for name in CORRECT[kind] if name in DETECTABLE]
    return srcc(levels, severities[:, columns].max(axis=1)) or 0.0


def false_alarms(severities: Severities) -> dict[str, float]:
    """Shares of pristine images with an alarm above "slight" in any category and in each; severities (N, 7)."""
    shares = {"any": float(np.mean(severities.max(axis=1) >= ALARM))}
    return shares | {name: float(np.mean(severities[:, column] >= ALARM)) for column, name in enumerate(DETECTABLE)}


def confusion_table(
    kinds: Sequence[str], severities: Severities, level_srcc: Mapping[str, Collection[float]]
) -> list[str]:
    """Markdown rows: true kind, the count of each top category, the correct share, the mean of ``level_srcc``."""
    lines = [
        f"| kind | n | {' | '.join(SHORT)} | none | correct | SRCC with level |",
        "| --- |" + " ---: |" * (len(SHORT) + 4),
    ]
    shares = correct_shares(kinds, severities)
    for kind in dict.fromkeys(kinds):
        named = [top_category(row) for each, row in zip(kinds, severities, strict=True) if each == kind]
        counts = " | ".join(str(named.count(name) or "") for name in (*DETECTABLE, NONE))
        share = f"{shares[kind]:.2f}" if kind in shares else "-"
        rank = f"{np.mean(list(level_srcc[kind])):.2f}" if kind in level_srcc else "-"
        lines.append(f"| {kind} | {len(named)} | {counts} | {share} | {rank} |")
    return lines


def alarm_table(severities: Severities) -> list[str]:
    """Markdown rows of ``false_alarms``."""
    shares = false_alarms(severities)
    return [
        f"| pristine images | any | {' | '.join(SHORT)} |",
        "| ---: |" + " ---: |" * (len(SHORT) + 1),
        f"| {len(severities)} | {' | '.join(f'{share:.1%}' for share in shares.values())} |",
    ]


def _usable(labels: str) -> list[LabeledImage]:
    """The images of a known kind with a level. Raises UserError where there are none, or a level is no number."""
    items = [item for item in read_labels(labels) if item.distortion in CORRECT and item.level]
    if not items:
        raise UserError(
            f"{labels}: no image has a level and a distortion that can be checked; those that can: {', '.join(CORRECT)}"
        )
    for item in items:
        try:
            float(str(item.level))
        except ValueError as error:
            raise UserError(f"{labels}: the level of {item.name} is {item.level!r}, expected a number") from error
    return items


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = parser_of(__doc__)
    parser.add_argument("labels", help="a labels.csv with the columns image, mos, reference, distortion and level")
    parser.add_argument("--reference", action="store_true", help="compare each image with its reference")

    def run(args: argparse.Namespace) -> None:
        items = _usable(args.labels)
        pristine = {path: images.load(path) for path in {item.reference for item in items if item.reference}}

        def severities_of(image: images.LoadedImage, reference: images.LoadedImage | None) -> list[float]:
            found = findings_of(image, reference if args.reference else None)
            return [found[name].severity for name in DETECTABLE]

        kinds = [str(item.distortion) for item in items]
        severities = np.array(
            [
                severities_of(images.load(item.image), pristine[item.reference] if item.reference else None)
                for item in items
            ]
        )
        level_srcc: dict[str, list[float]] = {}
        for kind, content in dict.fromkeys(zip(kinds, (item.content for item in items), strict=True)):
            rows = [row for row, item in enumerate(items) if (kinds[row], item.content) == (kind, content)]
            follows = srcc_with_level(kind, [float(str(items[row].level)) for row in rows], severities[rows])
            level_srcc.setdefault(kind, []).append(follows)
        print("\n".join(confusion_table(kinds, severities, level_srcc)))
        hits = sum(is_correct(kind, top_category(row)) for kind, row in zip(kinds, severities, strict=True))
        print(f"\ncorrect: {hits} of {len(kinds)}\n")
        if pristine:
            print("\n".join(alarm_table(np.array([severities_of(image, image) for image in pristine.values()]))))

    return run_command(parser, run, argv)


if __name__ == "__main__":
    raise SystemExit(main())
