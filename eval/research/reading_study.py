"""How well the rules and the network read questions, without any image.

    python -m agenticiqa.eval.research.reading_study [--test club]

The rules are ``programs/offline/language``, the network is the one that ships beside them, which has learned the
wordings of every split but ``press``, ``service``, ``office`` and ``club``. Both read what a wording asks for, and of
which category of distortion; wordings with options are left out.
"""

import argparse
import sys
from collections.abc import Sequence

from agenticiqa.eval.research.concepts import CONCEPTS
from agenticiqa.eval.research.report import share_text
from agenticiqa.eval.research.wordings import SPLITS, Wording, offers_options, read_wordings, wordings_file
from agenticiqa.programs.images.regions import place_in_frame
from agenticiqa.programs.offline.by_region import BACKGROUND, SUBJECT
from agenticiqa.programs.offline.language.question_reader import read_text
from agenticiqa.programs.offline.language.reader import read_question
from agenticiqa.programs.tools.catalog import TOOLS

ASKED = {
    **dict.fromkeys(("presence", "negation", "subject", "reference"), "presence"),
    **dict.fromkeys(("where", "half"), "where"),
    **{kind: kind for kind in ("degree", "compare", "metric", "rating", "unanswerable")},
    "which": "list",
}
OF_INTENTS = {
    **dict.fromkeys(("yes", "no", "part-yes", "part-no", "reference-yes", "reference-no"), "presence"),
    **dict.fromkeys(("where", "half", "half-clean"), "where"),
    **dict.fromkeys(("compare-yes", "compare-no", "compare-image", "compare-reference"), "compare"),
    **dict.fromkeys(("which", "compare-category", "part-which"), "list"),
    "part-degree": "degree",
    **dict.fromkeys(("rating-high", "rating-low"), "rating"),
}


def asked_of(wording: Wording) -> str:
    """What a wording asks for, by its kind."""
    return "list" if wording.truth == "category" else ASKED[wording.kind]


def category_of(wording: Wording) -> str:
    """The category of distortion that a wording is about."""
    return CONCEPTS[wording.about].category


def plain_wordings(split: str) -> list[Wording]:
    """The wordings of a split that have no options."""
    rows = read_wordings(wordings_file(split))
    return [row for row in rows if row.kind in ASKED and not offers_options(row)]


def rules_asked(text: str) -> str:
    """What the rules read."""
    question = read_question(text, {}, tools=TOOLS)
    if question.asked == "metric":
        return "metric"
    placed = (
        place_in_frame(name, (100, 100)) or SUBJECT.fullmatch(name) or BACKGROUND.fullmatch(name)
        for name in question.regions
    )
    unknown_part = question.asked != "where" and "sky" not in question.regions and not all(placed)
    return "unanswerable" if unknown_part or not question.is_sure else question.asked


def rules_category(text: str) -> str:
    """The category that the rules read; "" for none or several."""
    meanings = read_question(text, {}, tools=TOOLS).claim.meanings
    found = {
        category if meaning.kind == "oversharpening" or category != "Sharpness" else "Blurs"
        for meaning in meanings
        for category in (meaning.categories if meaning.subject != "any" else ())
    }
    return found.pop() if len(found) == 1 else ""


def network_asked(text: str) -> str:
    """What the network reads."""
    intent = read_text(text).intent.name
    return OF_INTENTS.get(intent, intent)


def network_category(text: str) -> str:
    """The category that the network reads; "" for none."""
    name = read_text(text).meaning.name
    return CONCEPTS[name].category if name in CONCEPTS else ""


def main(argv: Sequence[str] | None = None) -> int:
    """Print the share read rightly by each reader, with 95 % Wilson intervals."""
    parser = argparse.ArgumentParser(prog="python -m agenticiqa.eval.research.reading_study", description=__doc__)
    parser.add_argument("--test", choices=SPLITS, default="club", help="the wordings to read (%(default)s)")
    args = parser.parse_args(argv)
    tested = plain_wordings(args.test)
    named = [row for row in tested if row.about in CONCEPTS and row.kind != "unanswerable"]
    print("| read | n | rules | network | both alike: n | right |\n| --- | --- | --- | --- | --- | --- |")
    for what, rows, truth, rules, network in (
        ("what is asked", tested, asked_of, rules_asked, network_asked),
        ("which distortion", named, category_of, rules_category, network_category),
    ):
        read = [(truth(row), rules(row.text), network(row.text)) for row in rows]
        alike = [each for each in read if each[1] == each[2]]
        shares = [share_text(sum(each[0] == each[place] for each in read), len(read)) for place in (1, 2)]
        agreed = share_text(sum(true == found for true, found, _ in alike), len(alike))
        print(f"| {what} | {len(read)} | {' | '.join(shares)} | {len(alike)} | {agreed} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
