"""Measure what styles do to the judgment of good photos: they are no damage, so the best answer is nothing.

    python -m agenticiqa.eval.research.styles_report PHOTOS [--manifest style_photos.csv] [--damage]

PHOTOS is the folder that the files of the manifest are relative to: those with the split ``test``, on which nothing was
taught of styles, are judged plain and in each style of ``styles``, by the offline program. Prints by style how far the
score is from that of the plain photo, and in how many images a distortion of degree moderate or more is named.

--damage asks for the other half: each image gets real damage on top of its style (level 4), and the share in which that
category is named as moderate or more is printed beside that of the plain photos with the same damage.
"""

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from agenticiqa import AgenticIQA
from agenticiqa.eval.research import DATA
from agenticiqa.eval.research.command import parser_of, run_command
from agenticiqa.eval.research.distorted import PLAIN, listed_photos
from agenticiqa.eval.research.photos import opened_photo
from agenticiqa.eval.research.styles import ONE_HUE, STYLES
from agenticiqa.programs.images import load
from agenticiqa.programs.offline.distortions import findings_of
from agenticiqa.programs.tools.distort import distort
from agenticiqa.programs.tools.numerics.pixels import RGB
from agenticiqa.programs.tools.planted import seed_of
from agenticiqa.signatures.categories import COLOR
from agenticiqa.signatures.vocabulary import CATEGORY_OF_KIND, SEVERITIES

MANIFEST = DATA / "style_photos.csv"
MODERATE = SEVERITIES.index("moderate")
LONGEST = 512  # pixels
DAMAGE = (
    "gaussian_blur",
    "motion_blur",
    "white_noise",
    "impulse_noise",
    "jpeg",
    "jpeg2000",
    "darken",
    "brighten",
    "low_contrast",
    "oversaturate",
    "color_cast",
    "oversharpen",
)
LEVEL = 4
DAMAGED_EACH = 2  # kinds of damage that an image gets, one at a time; the next image gets the next ones


class InStyle(NamedTuple):
    """The judgment of a photo in a style: its score, 1 to 5, and the categories named as moderate or worse."""

    style: str
    content: str
    score: float
    named: tuple[str, ...]


def judged(photos: dict[str, RGB]) -> Iterator[InStyle]:
    """The judgments of the offline program, of each photo plain and in every style."""
    program = AgenticIQA.offline()
    for style, content, pixels in styled(photos):
        result = program(Image.fromarray(pixels), "Rate the quality of this image.")
        analysis = result.executor_evidence.distortion_analysis or {}
        found = (each for part in analysis.values() for each in part)
        named = tuple(each.type for each in found if SEVERITIES.index(each.severity) >= MODERATE)
        yield InStyle(style, content, float(result), named)


def shift_table(judgments: Sequence[InStyle]) -> list[str]:
    """Markdown rows by style, of all styles, and of the plain photos."""
    plain = {each.content: each.score for each in judgments if each.style == PLAIN}
    groups = {style: [each for each in judgments if each.style == style] for style in STYLES}
    groups |= {"all styles": [each for each in judgments if each.style != PLAIN]}
    groups |= {PLAIN: [each for each in judgments if each.style == PLAIN]}
    lines = [
        "| style | n | score shift, mean | absolute, median | 90th percentile | moderate or worse named | which |",
        "| --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for style, group in groups.items():
        shift = np.array([each.score - plain[each.content] for each in group])
        which = Counter(name for each in group for name in each.named)
        lines.append(
            f"| {style} | {len(group)} | {shift.mean():+.2f} | {np.median(np.abs(shift)):.2f} "
            f"| {np.quantile(np.abs(shift), 0.9):.2f} | {np.mean([bool(each.named) for each in group]):.0%} "
            f"| {', '.join(f'{name} {count}' for name, count in which.most_common())} |"
        )
    return lines


def damage_table(photos: dict[str, RGB]) -> list[str]:
    """Markdown rows by style: how often damage on top of it is found, and the same damage of the plain photos."""
    found: dict[tuple[str, str, str], bool] = {}
    for style, content, pixels in styled(photos):
        place = list(photos).index(content)
        for kind in _kinds(style, place):
            damaged = distort(pixels, kind, LEVEL, seed=place)
            finding = findings_of(load(Image.fromarray(damaged)))[CATEGORY_OF_KIND[kind]]
            found[style, content, kind] = SEVERITIES.index(finding.word) >= MODERATE
    lines = ["| style | n | found | found without the style | difference |", "| --- | ---: | ---: | ---: | ---: |"]
    of_style = {
        style: [(hit, found[PLAIN, content, kind]) for (each, content, kind), hit in found.items() if each == style]
        for style in STYLES
    }
    for style, hits in (of_style | {"all styles": [hit for each in of_style.values() for hit in each]}).items():
        beside, without = np.mean(hits, axis=0)
        lines.append(f"| {style} | {len(hits)} | {beside:.2f} | {without:.2f} | {beside - without:+.2f} |")
    return lines


def styled(photos: dict[str, RGB]) -> Iterator[tuple[str, str, RGB]]:
    """Each photo plain and in every style: the style, the content and the pixels; the same at each call."""
    for content, photo in photos.items():
        yield PLAIN, content, photo
        for style, apply in STYLES.items():
            yield style, content, apply(photo, np.random.default_rng(seed_of(f"{content} {style}", 0)))


def _kinds(style: str, place: int) -> list[str]:
    """The kinds of damage of the photo at a place, in a style: all of a plain one; without color none of color."""
    if style == PLAIN:
        return list(DAMAGE)
    first = DAMAGED_EACH * (place + list(STYLES).index(style))
    kinds = [DAMAGE[(first + number) % len(DAMAGE)] for number in range(DAMAGED_EACH)]
    return [kind for kind in kinds if style not in ONE_HUE or CATEGORY_OF_KIND[kind] != COLOR]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = parser_of(__doc__)
    parser.add_argument("photos", type=Path, help="the folder with the photos")
    parser.add_argument("--manifest", type=Path, default=MANIFEST, help="CSV: content, file, split (%(default)s)")
    parser.add_argument("--damage", action="store_true", help="measure damage on top of styles instead")

    def run(args: argparse.Namespace) -> None:
        listed = listed_photos(args.manifest, args.photos, test=True)
        photos = {content: np.asarray(opened_photo(file, LONGEST)) for content, file in listed}
        print("\n".join(damage_table(photos) if args.damage else shift_table(list(judged(photos)))))

    return run_command(parser, run, argv)


if __name__ == "__main__":
    raise SystemExit(main())
