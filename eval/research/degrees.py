"""How often the degree of a distortion, told without a reference, is one that is true, by distortion and by word.

    python -m agenticiqa.eval.research.degrees DATA --cache CACHE [--splits fresh,trade,research]

DATA and CACHE are those of ``eval.research.ask``. Each photo of the splits that has what a distortion needs is
measured as it is, and with ``distort`` at levels 1 to 5. The last column counts what the program leaves undetermined:
where the colors of the scene may hide it, and degrees that are told too low (``MeasuredImage.may_be_more``).
"""

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from agenticiqa.eval.research.ask import Images
from agenticiqa.eval.research.command import parser_of, run_command
from agenticiqa.eval.research.concepts import CONCEPTS
from agenticiqa.eval.research.questions import SEVERITIES as TRUE_OF_LEVEL
from agenticiqa.eval.research.recipes import Recipe, photos_of
from agenticiqa.programs.cli import render
from agenticiqa.programs.images import load
from agenticiqa.programs.offline.answers.measured_image import VISIBLE, MeasuredImage
from agenticiqa.programs.offline.answers.question_reader import fault_named
from agenticiqa.programs.offline.by_region import measured_image
from agenticiqa.programs.offline.findings import severity_word
from agenticiqa.signatures.vocabulary import SEVERITIES

UNDETERMINED = "undetermined"
Measured = tuple[str, str, bool]  # a distortion, the word for its degree, and whether that is true


def recipes_of(images: Images, splits: Sequence[str]) -> list[tuple[str, Recipe]]:
    """Every distortion with each of the images to measure it in."""
    photos = [photo for split in splits for photo in photos_of(split, images.contents.values())]
    return [
        (name, Recipe(photo.name, concept.shown_by[0], level) if level else Recipe(photo.name))
        for name, concept in CONCEPTS.items()
        for photo in photos
        if photo.suits(concept.needs)
        for level in TRUE_OF_LEVEL
    ]


def told(images: Images, asked: Iterable[tuple[str, Recipe]]) -> Iterator[tuple[Measured, str]]:
    """What is told of each image, and what is then answered: the same word, or undetermined."""
    of_recipe: dict[Recipe, MeasuredImage] = {}
    for name, recipe in asked:
        if recipe not in of_recipe:
            of_recipe[recipe] = measured_image(load(images.path(recipe)), None, parts=True)
        measured, fault = of_recipe[recipe], fault_named(name)
        severity = measured.severity(fault) if fault else None
        if fault is None or severity is None:
            continue
        word = severity_word(severity)
        open_ = measured.may_be_more(fault) or (severity < VISIBLE and measured.may_hide(fault))
        yield (name, word, word in TRUE_OF_LEVEL[recipe.level]), UNDETERMINED if open_ else word


def table(rows: Iterable[tuple[Measured, str]]) -> list[str]:
    """A line for each distortion: of each word how often it was told and true, and how many are not said."""
    counts: Counter[tuple[str, str, bool]] = Counter()
    left: Counter[str] = Counter()
    for each, answer in rows:
        counts[each] += 1
        left[each[0]] += answer == UNDETERMINED
    names = list(dict.fromkeys(name for name, _, _ in counts))
    lines = [
        f"| distortion | {' | '.join(SEVERITIES)} | {UNDETERMINED} |",
        f"| --- |{' --- |' * (len(SEVERITIES) + 1)}",
    ]
    for name in names:
        shares = []
        for word in SEVERITIES:
            right, wrong = counts[name, word, True], counts[name, word, False]
            shares.append(f"{right} of {right + wrong}" if right + wrong else "-")
        lines.append(f"| {name} | {' | '.join(shares)} | {left[name]} |")
    return lines


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = parser_of(__doc__)
    parser.add_argument("data", metavar="DATA", type=Path, help="where the photos are")
    parser.add_argument("--cache", type=Path, required=True, help="a folder for the images")
    parser.add_argument("--splits", default="fresh,trade,research", help="of the photos (%(default)s)")

    def run(args: argparse.Namespace) -> None:
        images = Images(args.data, args.cache)
        asked = recipes_of(images, args.splits.split(","))
        print("\n".join(table(render.progress(told(images, asked), len(asked)))))

    return run_command(parser, run, argv)


if __name__ == "__main__":
    raise SystemExit(main())
