"""Measure whether the distortions that a program names are what makes the images bad: are they better without them?

    python -m agenticiqa.eval.research.faithfulness plant LABELS.csv... --out DIR [--split dev] [--count 200]
    agenticiqa evaluate DIR/labels.csv --out RUN          # of any backend
    python -m agenticiqa.eval.research.faithfulness measure DIR RUN

``plant`` makes a labeled set of photos with two distortions each. The photos are the references of the sets and the
best-rated fifth of their photos without a reference. DIR gets the images, ``labels.csv`` (its ``mos`` is the calibrated
SSIMULACRA2 beside the photo, and no reference is named, so that programs judge without one) and ``planted.csv`` with
what taking away either distortion is worth.

``measure`` asks nothing of a model: the kept rows of the run say what was named first (the most severe). The distortion
of that name is taken away exactly, and the gain is compared with the mean over the seven categories (naming at random)
and with the better of the two.
"""

import csv
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from PIL import Image

from agenticiqa.eval.calibrate.raw_values import opinion_of
from agenticiqa.eval.datasets import LabeledImage, read_labels
from agenticiqa.eval.intervals import difference_interval, interval
from agenticiqa.eval.metrics import Numbers, srcc
from agenticiqa.eval.report.run_scores import RESULTS, is_run
from agenticiqa.eval.research.command import parser_of, run_command
from agenticiqa.eval.research.local_damage import contents
from agenticiqa.programs import images
from agenticiqa.programs.batch.results_file import kept_rows, latest_rows
from agenticiqa.programs.cli import render
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.tools import toolbox
from agenticiqa.programs.tools.distort import KINDS, distort
from agenticiqa.programs.tools.numerics.pixels import RGB
from agenticiqa.programs.tools.planted import CORRECT, seed_of
from agenticiqa.signatures.categories import BLURS, BRIGHTNESS, COLOR, COMPRESSION, CONTRAST, NOISE, SHARPNESS
from agenticiqa.signatures.vocabulary import DETECTABLE, SEVERITIES, DetectableDistortion

Row = dict[str, Any]

JUDGE = "SSIMULACRA2"  # with the reference; no program that judges without one uses it
# The order in which a camera and what follows it do their damage.
ORDER: tuple[DetectableDistortion, ...] = (
    BRIGHTNESS,
    CONTRAST,
    COLOR,
    BLURS,
    NOISE,
    SHARPNESS,
    COMPRESSION,
)
LEVELS = (2, 4)  # the least and the greatest level
LONG_SIDE = 512  # larger photos are reduced


@dataclass(frozen=True)
class PlantedPair:
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


def pairs(photos: Sequence[Path], count: int, save: Callable[[str, RGB], None]) -> Iterator[PlantedPair]:
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
        yield PlantedPair(
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
    """Write images, ``labels.csv`` and ``planted.csv`` into a folder. Raises UserError where it has labels."""
    if (out / "labels.csv").exists():
        raise UserError(f"{out} has a labels.csv already; name another folder")
    (out / "images").mkdir(parents=True, exist_ok=True)
    made = pairs(photos, count, lambda name, pixels: Image.fromarray(pixels).save(out / name))
    found = list(render.progress(made, count, "planting"))
    with (out / "planted.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(PlantedPair)])
        writer.writeheader()
        writer.writerows(asdict(pair) for pair in found)
    with (out / "labels.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["image", "mos", "distortion", "level", "content"])
        for each in found:
            levels = f"{each.first_level}+{each.second_level}"
            rows.writerow([each.image, each.score, f"{each.first}+{each.second}", levels, each.content])


def read_pairs(file: Path) -> dict[str, PlantedPair]:
    """The rows of a ``planted.csv`` by the names of their images."""
    with file.open(newline="", encoding="utf-8") as lines:
        made = [
            PlantedPair(**{field.name: field.type(row[field.name]) for field in fields(PlantedPair)})  # type: ignore[operator]
            for row in csv.DictReader(lines)
        ]
    return {pair.image: pair for pair in made}


def named_first(row: Row) -> DetectableDistortion | None:
    """The most severe distortion of a row's analysis, of the image as a whole if it has any; ``None`` without."""
    analysis = (row.get("executor_evidence") or {}).get("distortion_analysis") or {}
    found = analysis.get("Global") or [each for region in analysis.values() for each in region]
    visible = [each for each in found if each["type"] in DETECTABLE and each["severity"] != SEVERITIES[0]]
    worst = max(visible, key=lambda each: SEVERITIES.index(each["severity"]), default=None)
    return worst["type"] if worst else None


def gains_of(pair: PlantedPair, named: DetectableDistortion) -> tuple[float, float, float]:
    """What a photo gains without the planted distortion of a name, on average over all names, and at best."""
    gains = {name: pair.gain_without(name) for name in DETECTABLE}
    return gains[named], fmean(gains.values()), max(pair.gain_without_first, pair.gain_without_second)


HEADINGS = ("n", "gain without what was named", "naming by chance", "difference", "best category", "gaining")


def line(gains: Sequence[tuple[float, float, float]], contents_of: Sequence[str]) -> str:
    """A Markdown row for HEADINGS: mean gains in levels with their intervals, and the share of images that gain."""
    named, chance, best = np.array(gains).T

    def mean(values: Numbers, minus: Numbers | float = 0.0) -> str:
        less = np.broadcast_to(minus, values.shape)
        return f"{difference_interval(lambda x, _: float(x.mean()), values, less, values, contents_of):+.3f}"

    cells = (mean(named), mean(chance), mean(named, chance), mean(best), f"{np.mean(named > 0):.2f}")
    return f"| {len(named)} | {' | '.join(cells)} |"


def judged(labels: Path, run: Path) -> list[tuple[LabeledImage, Row]]:
    """The labeled images with their rows of a run. Raises UserError where the run has none of them."""
    if not is_run(run):
        raise UserError(f"{run}: there is no {RESULTS}; run agenticiqa evaluate {labels} --out {run}")
    try:
        kept = [row for _, row in kept_rows(run / RESULTS)]
    except ValueError as error:
        raise UserError(f"{run / RESULTS}: a line is no row of a run ({error})") from error
    rows = {row["name"]: row for row in latest_rows(kept) if "error" not in row}
    found = [(label, rows[label.name]) for label in read_labels(labels) if label.name in rows]
    if not found:
        raise UserError(f"{run} has no result for an image of {labels}; run agenticiqa evaluate {labels} --out {run}")
    return found


def plant(args: Namespace) -> None:
    """Make the set."""
    references, photos = contents(args.labels, args.split)
    write_set([*references, *photos], args.count, args.out)
    print(f"{args.count} images, labels.csv and planted.csv are in {args.out}")


def measure(args: Namespace) -> None:
    """Print how faithful a run is."""
    rows = judged(args.folder / "labels.csv", args.run)
    pairs = read_pairs(args.folder / "planted.csv")
    named = [(label, name) for label, row in rows if (name := named_first(row))]
    scored = [(label, row["quality_score"]) for label, row in rows if row.get("quality_score") is not None]
    found, mos = [score for _, score in scored], [label.mos for label, _ in scored]
    agreement = interval(srcc, found, mos, [label.content for label, _ in scored])
    print(f"{len(rows)} images, {len(named)} of them with a named distortion")
    print(f"SRCC of the score {agreement:.3f} (n={agreement.n})")
    print(f"\n| {' | '.join(HEADINGS)} |\n|{' --- |' * len(HEADINGS)}")
    if named:
        print(line([gains_of(pairs[x.name], name) for x, name in named], [x.content for x, _ in named]))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = parser_of(__doc__)
    commands = parser.add_subparsers(required=True)
    planting = commands.add_parser("plant", help="make the set")
    planting.add_argument("labels", type=Path, nargs="+", help="labeled sets, with references or of authentic photos")
    planting.add_argument("--out", type=Path, required=True, help="the folder of the new set")
    planting.add_argument("--split", help="of the authentic photos")
    planting.add_argument("--count", type=int, default=200, help="how many images (%(default)s)")
    planting.set_defaults(do=plant)
    measuring = commands.add_parser("measure", help="measure a run on it")
    measuring.add_argument("folder", type=Path, help="the folder of the set")
    measuring.add_argument("run", type=Path, help="the folder of a run of `agenticiqa evaluate` on it")
    measuring.set_defaults(do=measure)
    return run_command(parser, lambda args: args.do(args), argv)


if __name__ == "__main__":
    raise SystemExit(main())
