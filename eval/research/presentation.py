"""How far the offline score of a photo moves when the photo is presented otherwise: smaller, framed, repeated, turned.

    python -m agenticiqa.eval.research.presentation LABELS [--worst 0.25] [--most 60]

The photos are those with the lowest opinions, on which a raised score does the most harm. Printed for each way: n, the
mean and the largest shift of the score, the root mean square of what it is off people's opinion of the photo as it was,
the share of which the result says how they are presented, and the share whose 95 % interval holds that opinion.
"""

import io
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence

import numpy as np
from PIL import Image, ImageFilter, ImageOps

from agenticiqa.eval.datasets import mos_scale, read_labels
from agenticiqa.eval.research.command import parser_of, run_command
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.result import Assessment

Way = Callable[[Image.Image], Image.Image]
TOLD = ("Judged at", "judged at", "looks like", "means little")
SHARPEN = ImageFilter.UnsharpMask(2, 150, 2)


def scaled(share: float) -> Way:
    """The photo at a share of its sides."""
    return lambda photo: photo.resize(
        (round(photo.width * share), round(photo.height * share)), Image.Resampling.LANCZOS
    )


def tiled(times: int) -> Way:
    """The photo beside and below itself."""

    def way(photo: Image.Image) -> Image.Image:
        return Image.fromarray(np.tile(np.asarray(photo), (times, times, 1)))

    return way


def framed(share: float, color: str) -> Way:
    """A border of a share of the longer side on all sides."""
    return lambda photo: ImageOps.expand(photo, round(share * max(photo.size)), color)


def barred(share: float) -> Way:
    """Black bars above and below."""
    return lambda photo: ImageOps.expand(photo, (0, round(share * photo.height)), "black")


def compressed(photo: Image.Image) -> Image.Image:
    """The photo saved as JPEG of quality 75."""
    file = io.BytesIO()
    photo.save(file, "JPEG", quality=75)
    return Image.open(file).convert("RGB")


def turned(how: Image.Transpose) -> Way:
    """The photo mirrored or turned."""
    return lambda photo: photo.transpose(how)


WAYS: dict[str, Way] = {
    "as it is": lambda photo: photo,
    "half size": scaled(1 / 2),
    "quarter size": scaled(1 / 4),
    "quarter size, sharpened": lambda photo: scaled(1 / 4)(photo).filter(SHARPEN),
    "sharpened": lambda photo: photo.filter(SHARPEN),
    "2 x 2 tiles": tiled(2),
    "3 x 3 tiles": tiled(3),
    "2 x 2 tiles, JPEG 75": lambda photo: compressed(tiled(2)(photo)),
    "2 x 2 tiles at half size": lambda photo: scaled(1 / 2)(tiled(2)(photo)),
    "black border": framed(0.1, "black"),
    "white border, JPEG 75": lambda photo: compressed(framed(0.08, "white")(photo)),
    "letterbox": barred(0.15),
    "letterbox, JPEG 75": lambda photo: compressed(barred(0.15)(photo)),
    "JPEG 75": compressed,
    "mirrored": turned(Image.Transpose.FLIP_LEFT_RIGHT),
    "upside down": turned(Image.Transpose.FLIP_TOP_BOTTOM),
    "turned by 180": turned(Image.Transpose.ROTATE_180),
    "turned by 90": turned(Image.Transpose.ROTATE_90),
    "turned by 270": turned(Image.Transpose.ROTATE_270),
}


def is_told(result: Assessment) -> bool:
    """Whether the result says that the photo is small, framed, repeated or no photo."""
    text = " ".join([result.quality_reasoning, *result.executor_evidence.notes])
    return any(words in text for words in TOLD)


def print_table(args: Namespace) -> None:
    """Judge every photo in every way, and print a row for each."""
    items = read_labels(args.labels)
    if args.split:
        items = [item for item in items if item.split == args.split]
    scale = mos_scale([item.mos for item in items])
    items = sorted(items, key=lambda item: item.mos)[: max(1, round(len(items) * args.worst))]
    items = items[:: max(1, -(-len(items) // args.most))]
    photos = [Image.open(item.image).convert("RGB") for item in items]
    truths = np.array([scale.to_1_5(item.mos) for item in items])
    program = AgenticIQA.offline()
    plain: np.ndarray | None = None
    print("| way | n | mean shift | largest | rms error | told | 95 % interval holds the opinion |")
    print("| --- |" + " ---: |" * 6)
    for name in args.ways:
        results = [program(WAYS[name](photo)) for photo in photos]
        scores = np.array([float(result) for result in results])
        plain = scores if plain is None else plain
        shifts = scores - plain
        ends = np.array([(result.summarizer_result.score_interval or {})["95"] for result in results])
        error = np.sqrt(np.mean((scores - truths) ** 2))
        held = (ends[:, 0] <= truths) & (truths <= ends[:, 1])
        told = np.mean([is_told(result) for result in results])
        largest = shifts[np.abs(shifts).argmax()]
        row = f"{shifts.mean():+.2f} | {largest:+.2f} | {error:.2f} | {told:.0%} | {held.mean():.0%}"
        print(f"| {name} | {len(shifts)} | {row} |", flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Parse the arguments and print the table."""
    parser = parser_of(__doc__)
    parser.add_argument("labels", help="labels.csv of judged photos")
    parser.add_argument("--split", help="only the photos of this split")
    parser.add_argument("--worst", type=float, default=0.25, help="the share of photos, the worst first (%(default)s)")
    parser.add_argument("--most", type=int, default=60, help="photos at most, evenly among these (%(default)s)")
    parser.add_argument(
        "--ways", nargs="+", choices=list(WAYS), default=list(WAYS), help="the first one is compared with"
    )
    return run_command(parser, print_table, argv)


if __name__ == "__main__":
    sys.exit(main())
