"""Show the offline intervals of photos and of their distorted copies, by distortion and level.

    python -m agenticiqa.eval.research.interval_copies examples/*.webp CLIVE/images/1.webp ...

Copies are JPEG files of falling quality, and the kinds of ``distort`` at strengths 1 to 5. A row has the means over
photos of score and 80 % interval, its width, and the share of copies whose interval does not overlap the photo's.
"""

import argparse
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from agenticiqa.eval.research.command import parser_of, run_command
from agenticiqa.eval.research.distort import DISTORTION_STRENGTHS, distort
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.tools.numerics.pixels import RGB

QUALITIES = (95, 75, 50, 30, 20, 10)  # JPEG quality settings
DISTORTIONS = ("gaussian_blur", "white_noise", "darken", "brighten")
QUERY = "Rate the quality of this image."


class ScoredCopy(NamedTuple):
    """A score with its 80 % interval."""

    score: float
    low: float
    high: float


def copies(photo: RGB) -> Iterator[tuple[str, RGB]]:
    """Yield the photo and its distorted copies, each with its name."""
    yield "original", photo
    for quality in QUALITIES:
        file = io.BytesIO()
        Image.fromarray(photo).save(file, "JPEG", quality=quality)
        yield f"JPEG {quality}", np.asarray(Image.open(file).convert("RGB"))
    for kind in DISTORTIONS:
        for strength in DISTORTION_STRENGTHS:
            yield f"{kind} {strength}", distort(photo, kind, strength)


def assessed(program: AgenticIQA, image: RGB) -> ScoredCopy:
    """Return the score and the interval of an image."""
    result = program(Image.fromarray(image), QUERY)
    assert result.score_interval is not None  # the question asks for a rating
    return ScoredCopy(float(result), *result.score_interval["80"])


def table(photos: Sequence[RGB]) -> list[str]:
    """Return the lines of the table."""
    program, rows = AgenticIQA.offline(), dict[str, list[ScoredCopy]]()
    for photo in photos:
        for name, copy in copies(photo):
            rows.setdefault(name, []).append(assessed(program, copy))
    lines = [f"{len(photos)} photos", "", "| copy | score | 80 % interval | width | below the photo's |"]
    lines.append("| --- |" + " ---: |" * 4)
    for name, found in rows.items():
        score, low, high = np.mean(found, axis=0)
        apart = np.mean([copy.high < photo.low for copy, photo in zip(found, rows["original"], strict=True)])
        lines.append(f"| {name} | {score:.2f} | {low:.2f} to {high:.2f} | {high - low:.2f} | {apart:.0%} |")
    return lines


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status."""
    parser = parser_of(__doc__)
    parser.add_argument("photos", type=Path, nargs="+", help="files of photos")

    def run(args: argparse.Namespace) -> None:
        print("\n".join(table([np.asarray(Image.open(file).convert("RGB")) for file in args.photos])))

    return run_command(parser, run, argv)


if __name__ == "__main__":
    raise SystemExit(main())
