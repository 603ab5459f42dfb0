"""Measure how far the quality model's score is from the true one for images outside of its training.

    python -m agenticiqa.eval.research.outside_spread PHOTOS/labels.csv... [--drawn N] [--photos N]

For pictures that are no photos nobody's opinions are at hand, so the truth is made: a clean drawing is excellent, 5,
and a distorted one has the score that FR-FUSION gives it with the clean one as its reference. The same is done to
photos of scikit-image, for scale. For parts of photos, of few pixels or thin, and for photos made gray the truth is the
mean opinion of the whole photo in color. Prints the root mean square error by reason, which ``LEAST_SPREAD`` in
``outside_training.py`` states, and how many truths an interval of 1.96 of that spread around the score holds.
"""

import argparse
import sys
import zlib
from collections.abc import Iterator, Sequence

import numpy as np

from agenticiqa.eval.datasets import mos_scale, read_labels
from agenticiqa.eval.research.drawn_pictures import KINDS, drawn
from agenticiqa.eval.research.outside_photos import LOOK_OF, in_gray
from agenticiqa.programs.errors import AgenticIQAError
from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.images.loading import load
from agenticiqa.programs.offline.distortions import findings_of
from agenticiqa.programs.offline.opinion import estimate_opinion
from agenticiqa.programs.tools import toolbox
from agenticiqa.programs.tools.distort import distort
from agenticiqa.programs.tools.metrics.fr_fusion import fr_fusion
from agenticiqa.programs.tools.numerics.pixels import RGB
from agenticiqa.programs.tools.outside_training import LEAST_SPREAD

DAMAGE = ("gaussian_blur", "white_noise", "jpeg", "low_resolution", "darken", "low_contrast")
PARTS: dict[str, tuple[int, int]] = {  # height and width in pixels of parts of photos
    "8 x 8": (8, 8), "24 x 24": (24, 24), "48 x 48": (48, 48), "64 x 64": (64, 64), "96 x 96": (96, 96),
    "192 x 192": (192, 192), "2 x 600": (2, 600), "40 x 400": (40, 400),
}  # fmt: skip
Z95 = 1.96

Case = tuple[str, RGB, float]  # its group, its pixels, the true score


def drawn_cases(count: int) -> Iterator[Case]:
    """``count`` clean pictures of each drawn kind, and each of them damaged once; odd seeds, not fitted on."""
    for kind in KINDS:
        for index in range(count):
            yield from pair(LOOK_OF[kind], drawn(kind, 2 * index + 1), f"{kind}{index}")


def photo_pairs() -> Iterator[Case]:
    """Clean photos and damaged ones, for scale."""
    import skimage.data

    for name in ("astronaut", "chelsea", "coffee", "rocket"):
        for turn in range(4):
            yield from pair("photo", np.ascontiguousarray(getattr(skimage.data, name)()), f"{name}{turn}")


def pair(group: str, clean: RGB, name: str) -> Iterator[Case]:
    """A clean picture, which is excellent, and a damaged one with what FR-FUSION gives it."""
    choice = zlib.crc32(name.encode())
    damaged = distort(clean, DAMAGE[choice % len(DAMAGE)], 2 + choice // 64 % 4)
    calibration = toolbox()["FR-FUSION"].calibration
    yield group, clean, 5.0
    yield group, damaged, calibration(fr_fusion(damaged, clean)) if calibration else fr_fusion(damaged, clean)


def part_cases(labels: str, most: int) -> Iterator[Case]:
    """Middles of photos, and photos made gray, with the opinions of the whole photos."""
    items = sorted(read_labels(labels), key=lambda item: zlib.crc32(f"spread{item.name}".encode()))
    scale = mos_scale([item.mos for item in items])
    for item in items[:most]:
        pixels, truth = load(item.image).pixels, scale.to_1_5(item.mos)
        yield "gray", in_gray(pixels), truth
        yield "whole photos in color", pixels, truth
        for name, (height, width) in PARTS.items():
            top, left = ((side - part) // 2 for side, part in zip(pixels.shape[:2], (height, width), strict=True))
            if min(top, left) >= 0:
                yield name, np.ascontiguousarray(pixels[top : top + height, left : left + width]), truth


def spread_for(group: str) -> float | None:
    """The least spread of a group's reason, ``None`` for a group that has none."""
    reason_of = {"2 x 600": "thin", "40 x 400": "thin"}
    reason_of |= dict.fromkeys(("8 x 8", "24 x 24", "48 x 48"), "too small")
    stated = {str(reason): spread for reason, spread in LEAST_SPREAD.items()}
    return stated.get(reason_of.get(group, group))


def score_of(pixels: RGB) -> float:
    """The offline estimate of the opinion on an image."""
    image: LoadedImage = load(pixels)
    return estimate_opinion(image, None, findings_of(image)).score


def report(cases: Sequence[tuple[str, float, float]]) -> list[str]:
    """Markdown rows from (group, score, truth)."""
    lines = ["| images | n | mean error | root mean square | stated | held by 95 % |", "| --- " * 6 + "|"]
    groups: dict[str, list[tuple[float, float]]] = {}
    for group, score, truth in cases:
        groups.setdefault(group, []).append((score, truth))
    for group, pairs in groups.items():
        scores, truths = np.array(pairs).T
        errors, spread = scores - truths, spread_for(group)
        held = f"{np.mean(np.abs(errors) <= Z95 * spread):.0%}" if spread else ""
        rms = float(np.sqrt(np.mean(errors**2)))
        lines.append(f"| {group} | {len(pairs)} | {errors.mean():+.2f} | {rms:.2f} | {spread or ''} | {held} |")
    return lines


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labels", nargs="*", help="labels.csv files of photos")
    parser.add_argument("--drawn", type=int, default=5, help="pictures of each drawn kind (default: 5)")
    parser.add_argument("--photos", type=int, default=60, help="photos of each set, at most (default: 60)")
    args = parser.parse_args(argv)
    try:
        cases = [*drawn_cases(args.drawn), *(photo_pairs() if args.drawn else ())]
        for labels in args.labels:
            cases += part_cases(labels, args.photos)
        scored = [(group, score_of(pixels), truth) for group, pixels, truth in cases]
    except AgenticIQAError as error:
        print(error, file=sys.stderr)
        return 2
    print("\n".join(report(scored)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
