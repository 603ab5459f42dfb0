"""Make a labeled set of photos with two planted distortions each, for ``eval.research.faithfulness``.

    python -m agenticiqa.eval.research.planted_pairs LABELS.csv... --out DIR [--split dev] [--count 200]

The photos are the references of the sets and the best-rated fifth of their photos without a reference. DIR gets the
images, ``labels.csv`` (its ``mos`` is the calibrated SSIMULACRA2 beside the photo, and no reference is named, so that
programs judge without one) and ``planted.csv`` with what taking away either distortion is worth.
"""

import argparse
import csv
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
from PIL import Image

from agenticiqa.eval.calibrate.raw_values import opinion_of
from agenticiqa.eval.research.local_damage import contents
from agenticiqa.programs import images
from agenticiqa.programs.cli import render
from agenticiqa.programs.errors import AgenticIQAError
from agenticiqa.programs.tools import toolbox
from agenticiqa.programs.tools.distort import KINDS, distort
from agenticiqa.programs.tools.numerics.pixels import RGB
from agenticiqa.programs.tools.planted import CORRECT, seed_of
from agenticiqa.signatures.vocabulary import DetectableDistortion

JUDGE = "SSIMULACRA2"  # with the reference; no program that judges without one uses it
# The order in which a camera and what follows it do their damage.
ORDER: tuple[DetectableDistortion, ...] = (
    "Brightness change",
    "Contrast",
    "Color distortions",
    "Blurs",
    "Noise",
    "Sharpness",
    "Compression",
)
LEVELS = (2, 4)  # the least and the greatest level
LONG_SIDE = 512  # larger photos are reduced


@dataclass(frozen=True)
class Pair:
    """A photo with two distortions, and what it gains, in levels of JUDGE, without the first or without the second."""

    image: str
    content: str
    first: str
    first_level: int
    second: str
    second_level: int
    seed: int
    score: float
    gain_without_first: float
    gain_without_second: float

    def gain_without(self, category: str) -> float:
        """What taking away all planted distortions of a category gains; 0 where none of it was planted."""
        gains = {self.first: self.gain_without_first, self.second: self.gain_without_second}
        return sum(gain for kind, gain in gains.items() if category in CORRECT[kind])


def chosen(number: int, content: str) -> tuple[str, int, str, int, int]:
    """Two kinds that share no category, in ``ORDER``, their levels, and a seed, for the ``number``-th image."""
    rng = np.random.default_rng(seed_of(content, number))
    kinds = [kind for kind in KINDS if kind != "pixelate"]  # which may be called a blur or a coding
    while True:
        pair = [kinds[index] for index in rng.choice(len(kinds), 2, replace=False)]
        if not set(CORRECT[pair[0]]) & set(CORRECT[pair[1]]):
            break
    first, second = sorted(pair, key=lambda kind: ORDER.index(CORRECT[kind][0]))
    levels = rng.integers(LEVELS[0], LEVELS[1] + 1, 2)
    return first, int(levels[0]), second, int(levels[1]), int(rng.integers(1 << 31))


def pairs(photos: Sequence[Path], count: int, save: Callable[[str, RGB], None]) -> Iterator[Pair]:
    """``count`` photos with two distortions; ``save`` gets the name and the pixels of each."""
    tool = toolbox()[JUDGE]
    for number in range(count):
        path = photos[number % len(photos)]
        photo = reduced(images.load(path).pixels)

        def score(pixels: RGB, photo: RGB = photo) -> float:
            return opinion_of(tool, pixels, photo)

        first, level, second, second_level, seed = chosen(number, path.name)
        with_first = distort(photo, first, level, seed=seed)
        both = distort(with_first, second, second_level, seed=seed)
        name = f"images/{number:04d}.png"
        save(name, both)
        worth = score(both)
        yield Pair(
            image=name,
            content=path.name,
            first=first,
            first_level=level,
            second=second,
            second_level=second_level,
            seed=seed,
            score=worth,
            gain_without_first=score(distort(photo, second, second_level, seed=seed)) - worth,
            gain_without_second=score(with_first) - worth,
        )


def reduced(pixels: RGB) -> RGB:
    """The image at a longer side of at most 512 pixels."""
    image = Image.fromarray(pixels)
    image.thumbnail((LONG_SIDE, LONG_SIDE), Image.Resampling.LANCZOS)
    return np.asarray(image)


def write_set(photos: Sequence[Path], count: int, out: Path) -> None:
    """Write the images, ``labels.csv`` and ``planted.csv`` into a folder, which must not have labels yet."""
    (out / "images").mkdir(parents=True, exist_ok=True)
    made = pairs(photos, count, lambda name, pixels: Image.fromarray(pixels).save(out / name))
    found = list(render.progress(made, count, "planting"))
    with (out / "planted.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Pair)])
        writer.writeheader()
        writer.writerows(asdict(pair) for pair in found)
    with (out / "labels.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["image", "mos", "distortion", "level", "content"])
        for each in found:
            levels = f"{each.first_level}+{each.second_level}"
            rows.writerow([each.image, each.score, f"{each.first}+{each.second}", levels, each.content])


def read_pairs(file: Path) -> dict[str, Pair]:
    """The rows of a ``planted.csv`` by the names of their images."""
    with file.open(newline="", encoding="utf-8") as lines:
        made = [
            Pair(**{field.name: field.type(row[field.name]) for field in fields(Pair)})  # type: ignore[operator]
            for row in csv.DictReader(lines)
        ]
    return {pair.image: pair for pair in made}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labels", type=Path, nargs="+", help="labeled sets, with references or of authentic photos")
    parser.add_argument("--out", type=Path, required=True, help="the folder of the new set")
    parser.add_argument("--split", help="of the authentic photos")
    parser.add_argument("--count", type=int, default=200, help="how many images (%(default)s)")
    args = parser.parse_args(argv)
    try:
        if (args.out / "labels.csv").exists():
            print(f"{args.out} has a labels.csv already; name another folder", file=sys.stderr)
            return 2
        references, photos = contents(args.labels, args.split)
        write_set([*references, *photos], args.count, args.out)
    except AgenticIQAError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{args.count} images, labels.csv and planted.csv are in {args.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
