"""Make sets of questions with known answers from your own photos.

    python -m agenticiqa.eval.questions.make PHOTOS... OUT [--seed 0] [--limit 40] [--wordings first]

PHOTOS are pristine photos, or folders of them. The command writes small copies with synthetic distortions and a
file of questions to OUT. `agenticiqa evaluate own-mcq --root OUT` asks them. The
same photos, order and seed give the same set. Its figures are not comparable with those of a public benchmark.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from agenticiqa.eval.questions.images import ImageMaker, image_makers
from agenticiqa.eval.questions.self_made import CHOICES
from agenticiqa.eval.questions.wordings import FIRST, WORDINGS, Wordings, in_turn
from agenticiqa.eval.research.distort import KINDS
from agenticiqa.programs.cli import render
from agenticiqa.programs.errors import AgenticIQAError, UserError
from agenticiqa.programs.images import find_images
from agenticiqa.programs.images.files import write_atomically
from agenticiqa.programs.tools import TOOLS

Row = dict[str, Any]
KEYS = tuple(FIRST.words)
LETTERS = "ABCDE"
GRADED = {"None": 0, "Mild": 1, "Moderate": 2, "Severe": 4}  # the words of the paper, by level of ``distort``
LOCAL = ("gaussian_blur", "white_noise", "jpeg", "impulse_noise")
HALVES = {"Left half": "half left", "Right half": "half right", "Upper half": "half top", "Lower half": "half bottom"}
QUARTERS = {
    "Upper left quarter": "quarter 0",
    "Upper right quarter": "quarter 1",
    "Lower left quarter": "quarter 2",
    "Lower right quarter": "quarter 3",
}
OBJECTS = ("Mast", "Awning", "Handrail", "Gravel", "Signpost", "Hedge", "Doorstep", "Chimney")
VERDICTS = {"Bad": 1, "Poor": 2, "Fair": 3, "Good": 4, "Excellent": 5}
YES_NO = ("Yes", "No")


def make_set(photos: Sequence[Path], out: Path, seed: int = 0, wordings: Wordings = FIRST) -> dict[str, int]:
    """Write the images and question files of these photos to ``out``; return how many rows each file has.

    Raises ImageError for a photo that cannot be read, and UserError for a folder that already has such a set.
    """
    if present := [name for name in FILES if (out / name).exists()]:
        raise UserError(f"{out} already contains a set ({present[0]}); name another folder")
    rows: dict[str, list[Row]] = {name: [] for name in FILES}
    for number, images in enumerate(render.progress(image_makers(photos, out, seed, wordings), len(photos))):
        for name, maker in FILES.items():
            rows[name] += maker(images, number)
    for name, made in rows.items():
        write_atomically(out / name, json.dumps(made, indent=1, ensure_ascii=False) + "\n")
    return {name: len(made) for name, made in rows.items()}


def kind_alone(images: ImageMaker, number: int) -> Iterator[Row]:
    """Yield the question which of four categories a strong distortion belongs to, without the original."""
    kind = KEYS[number % len(KEYS)]
    image = images.image(kind, 4 + number % 2)
    yield _row(
        "type", images, "executor_distortion", in_turn(images.wordings.which_step, number), image, *_kinds(images, kind)
    )


def kind_beside_original(images: ImageMaker, number: int) -> Iterator[Row]:
    """Yield the same question for a weaker distortion, with the original."""
    kind = KEYS[(number + 5) % len(KEYS)]
    image = images.image(kind, 3 + number % 3)
    options, true = _kinds(images, kind)
    asked = in_turn(images.wordings.which_change, number)
    yield _row("type, with original", images, "executor_distortion", asked, image, options, true, images.image())


def severity(images: ImageMaker, number: int) -> Iterator[Row]:
    """Yield the question how severe a distortion is, in the paper's four words."""
    kind, grades = LOCAL[number % len(LOCAL)], list(GRADED)
    true = grades[(number // len(LOCAL)) % len(grades)]
    image = images.image(kind, GRADED[true])
    asked = in_turn(images.wordings.severity, number, noun=images.wordings.words[kind][1])
    yield _row("severity", images, "executor_distortion", asked, image, grades if number % 2 else grades[::-1], true)


def region(images: ImageMaker, number: int) -> Iterator[Row]:
    """Yield the question in which half or quarter a distortion is."""
    kind, places = LOCAL[number % len(LOCAL)], (HALVES, QUARTERS)[(number // 2) % 2]
    true = images.draw(tuple(places))[0]
    asked = in_turn(images.wordings.whereabouts, number, noun=images.wordings.words[kind][1])
    yield _row("region", images, "executor_distortion", asked, images.image(kind, 4, places[true]), list(places), true)


def pair(images: ImageMaker, number: int) -> Iterator[Row]:
    """Yield the question which of two versions is more distorted."""
    kind, true = LOCAL[number % len(LOCAL)], ("The image", "The reference", "Neither of the two")[number % 3]
    damaged, clean = images.image(kind, 4), images.image()
    image = damaged if true == "The image" else clean
    reference = damaged if true == "The reference" else clean
    asked = in_turn(images.wordings.pair, number, noun=images.wordings.words[kind][1])
    options = ["The image", "The reference", "Neither of the two"]
    yield _row("pair", images, "executor_distortion", asked, image, options, true, reference)


def metric_without_original(images: ImageMaker, number: int) -> Iterator[Row]:
    """Yield the question which of four metrics needs no original."""
    alone = [tool.name for tool in TOOLS.values() if tool.kind == "NR"]
    compared = [tool.name for tool in TOOLS.values() if tool.kind == "FR"]
    (true,), others = images.draw(alone), images.draw(compared, 3)
    asked = in_turn(images.wordings.metric, number)
    yield _row("metric", images, "executor_tool", asked, images.image(), images.draw([true, *others], 4), true)


def metric_fits(images: ImageMaker, number: int) -> Iterator[Row]:
    """Yield the question if a metric, with its description, works without an original, in the paper's form."""
    tool = TOOLS[images.draw(tuple(TOOLS))[0]]
    asked = in_turn(images.wordings.metric_fits, number, tool=f"{tool.name}: {tool.description}")
    yield _row("metric, yes or no", images, "executor_tool", asked, images.image(), YES_NO, YES_NO[tool.kind == "FR"])


def named_object(images: ImageMaker, number: int) -> Iterator[Row]:
    """Yield the question which object a query names, in the paper's form."""
    first, *others = images.draw(OBJECTS, 3)
    kind = KEYS[number % len(KEYS)]
    named = number % 4 != 0
    noun, texts = images.wordings.words[kind][1], images.wordings
    query = in_turn(texts.query_with_thing, 0, noun=noun, thing=first.lower())
    asked = in_turn(texts.thing, number, query=query if named else in_turn(texts.query, 0, noun=noun))
    options = [*images.draw([first, *others], 3), "None"]
    yield _row("object of a query", images, "planner", asked, images.image(), options, first if named else "None")


def named_distortion(images: ImageMaker, number: int) -> Iterator[Row]:
    """Yield the question which distortion a query names."""
    kind = KEYS[(number + 3) % len(KEYS)]
    options, true = _kinds(images, kind)
    query = in_turn(images.wordings.query, 1, noun=images.wordings.words[kind][1])
    yield _row(
        "distortion of a query",
        images,
        "planner",
        in_turn(images.wordings.fault_of_query, number, query=query),
        images.image(),
        options,
        true,
    )


def verdict(images: ImageMaker, number: int) -> Iterator[Row]:
    """Yield the question which verdict follows from a metric's score, with a matching image, in the paper's form."""
    kind = KEYS[(number + 7) % len(KEYS)]
    level, true, score = ((0, "Excellent", 4.8), (3, "Fair", 3.1), (5, "Bad", 1.2))[number % 3]
    found = f"{images.wordings.words[kind][0]}, all over" if level else "no distortion"
    asked = in_turn(images.wordings.verdict, number, found=found, score=f"{score:.2f}")
    options = images.draw([true, *images.draw([name for name in VERDICTS if name != true], 3)], 4)
    yield _row("verdict", images, "summarizer", asked, images.image(kind, level), options, true)


MAKERS: tuple[Callable[[ImageMaker, int], Iterator[Row]], ...] = (
    kind_alone,
    kind_beside_original,
    severity,
    region,
    pair,
    metric_without_original,
    metric_fits,
    named_object,
    named_distortion,
    verdict,
)


def choices(images: ImageMaker, number: int) -> Iterator[Row]:
    """Yield all questions with options about one photo."""
    for maker in MAKERS:
        yield from maker(images, number)


def _kinds(images: ImageMaker, true: str) -> tuple[list[str], str]:
    """Return four kinds of different categories, as options, and the true one."""
    others: dict[str, str] = {}
    for kind in images.draw([kind for kind in KEYS if KINDS[kind].category != KINDS[true].category], len(KEYS)):
        others.setdefault(KINDS[kind].category, kind)
    offered = images.draw([true, *list(others.values())[:3]], 4)
    words = images.wordings.words
    return [words[kind][0] for kind in offered], words[true][0]


def _row(
    kind: str,
    images: ImageMaker,
    track: str,
    question: str,
    image: str,
    options: Sequence[str],
    true: str,
    reference: str | None = None,
) -> Row:
    letters = dict(zip(LETTERS, options, strict=False))
    return {
        "id": f"{images.content} {kind}",
        "question": question,
        "options": letters,
        "answer": next(letter for letter, text in letters.items() if text == true),
        "task_type": track,
        "reference_mode": "FR" if reference else "NR",
        "image_path": image,
        "reference_path": reference,
        "kind": kind,
        "content": images.content,
    }


FILES = {CHOICES: choices}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m agenticiqa.eval.questions.make",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("photos", metavar="PHOTOS", nargs="+", help="pristine photos, or folders of them")
    parser.add_argument("out", metavar="OUT", type=Path, help="folder of the new set")
    parser.add_argument("--seed", type=int, default=0, help="seed of all random choices (default: %(default)s)")
    parser.add_argument("--limit", metavar="N", type=int, help="use only N of the photos, evenly spaced")
    parser.add_argument(
        "--wordings",
        choices=WORDINGS,
        default="first",
        help="set of question wordings; evaluate the offline program with 'second', as 'first' was used to develop it",
    )
    args = parser.parse_args(argv)
    try:
        if args.seed < 0 or (args.limit is not None and args.limit < 1):
            raise UserError("--seed must be at least 0, and --limit at least 1")
        photos = find_images(args.photos)
        if args.limit and args.limit < len(photos):
            photos = [photos[index * len(photos) // args.limit] for index in range(args.limit)]
        counts = make_set(photos, args.out, args.seed, WORDINGS[args.wordings])
    except AgenticIQAError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{len(photos)} photos; " + ", ".join(f"{name} {count}" for name, count in counts.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
