"""Make sets of questions that are true by construction from photos of your own.

    python -m agenticiqa.eval.mcq.make PHOTOS... OUT [--seed 0] [--limit 40] [--wordings first]

PHOTOS are pristine photos, or folders of them. OUT gets small copies with planted distortions and three files, which
`agenticiqa evaluate own-mcq --root OUT` (and own-plans, own-descriptions) asks. The same photos in the same order and
the same seed give the same set. It is self-made: no public benchmark, and its figures are not comparable with one.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from agenticiqa.eval.mcq.own import CHOICES, DESCRIPTIONS, PLANS
from agenticiqa.eval.mcq.own_choices import Row, choices
from agenticiqa.eval.mcq.own_images import workshops
from agenticiqa.eval.mcq.own_plans import descriptions, plans
from agenticiqa.eval.mcq.own_wordings import FIRST, WORDINGS, Wordings
from agenticiqa.programs.cli import render
from agenticiqa.programs.errors import AgenticIQAError, UserError
from agenticiqa.programs.images import find_images
from agenticiqa.programs.images.files import write_atomically

FILES = {CHOICES: choices, PLANS: plans, DESCRIPTIONS: descriptions}


def make_set(photos: Sequence[Path], out: Path, seed: int = 0, wordings: Wordings = FIRST) -> dict[str, int]:
    """Write the images and the files of questions of these photos to ``out``; returns how many rows each file has.

    Raises ImageError for a photo that cannot be read, and UserError for a folder that has such a set already.
    """
    if present := [name for name in FILES if (out / name).exists()]:
        raise UserError(f"{out} has {present[0]} already: name another folder, or move it away")
    rows: dict[str, list[Row]] = {name: [] for name in FILES}
    for number, shop in enumerate(render.progress(workshops(photos, out, seed, wordings), len(photos))):
        for name, maker in FILES.items():
            rows[name] += maker(shop, number)
    for name, made in rows.items():
        write_atomically(out / name, json.dumps(made, indent=1, ensure_ascii=False) + "\n")
    return {name: len(made) for name, made in rows.items()}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m agenticiqa.eval.mcq.make",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("photos", metavar="PHOTOS", nargs="+", help="pristine photos, or folders of them")
    parser.add_argument("out", metavar="OUT", type=Path, help="a folder for the set")
    parser.add_argument("--seed", type=int, default=0, help="what is drawn at random (default: %(default)s)")
    parser.add_argument("--limit", metavar="N", type=int, help="only N of the photos, evenly spread")
    parser.add_argument(
        "--wordings",
        choices=WORDINGS,
        default="first",
        help="of the questions with options: the offline reader knows the first, the second are for measuring it",
    )
    args = parser.parse_args(argv)
    try:
        if args.seed < 0 or (args.limit is not None and args.limit < 1):
            raise UserError("--seed is at least 0, and --limit at least 1")
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
