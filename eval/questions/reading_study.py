"""How well rules and a trained classifier read questions, without any image.

    python -m agenticiqa.eval.questions.reading_study [--test heldout]

The classifier is logistic regression on hashed character n-grams (scikit-learn). It learns from the dev wordings, and
from the lexicon's phrases in a few frames; the rules are ``programs/offline/language``. Both read what a wording of
another split asks for, and of which category of distortion; wordings with options are left out: both read these alike.
"""

import argparse
import sys
from collections.abc import Callable, Sequence

from agenticiqa.eval.questions.concepts import CONCEPTS
from agenticiqa.eval.questions.report import share_text
from agenticiqa.eval.questions.wordings import SPLITS, Wording, read_wordings, wordings_file
from agenticiqa.programs.images.regions import place_in_frame
from agenticiqa.programs.offline.by_region import BACKGROUND, SUBJECT
from agenticiqa.programs.offline.language.reader import read_question
from agenticiqa.programs.stages.options import parse_options
from agenticiqa.programs.tools.catalog import TOOLS
from agenticiqa.signatures.lexicon import LEXICON

Reader = Callable[[str], str]
ASKED = {
    **dict.fromkeys(("presence", "negation", "subject", "reference"), "presence"),
    **dict.fromkeys(("where", "half"), "where"),
    **{kind: kind for kind in ("degree", "compare", "metric", "rating", "unanswerable")},
    "which": "list",
}
NGRAMS, FEATURES = (2, 5), 2**18  # characters of an n-gram, and places of the hash
FRAMES = ("Is there {}?", "Is it {}?", "How {} is it?", "Does this image have {}?", "{}?", "Where is the {}?")


def asked_of(wording: Wording) -> str:
    """What a wording asks for, by its kind."""
    return "list" if wording.truth == "category" else ASKED[wording.kind]


def category_of(wording: Wording) -> str:
    """The category of distortion that a wording is about."""
    return CONCEPTS[wording.about].category


def plain_wordings(split: str) -> list[Wording]:
    """The wordings of a split that have no options."""
    rows = read_wordings(wordings_file(split))
    return [row for row in rows if row.kind in ASKED and not row.tags and len(parse_options(row.text)) < 3]


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


def trained(texts: Sequence[str], labels: Sequence[str]) -> Reader:
    """A classifier that learned the labels of texts."""
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    grams = HashingVectorizer(analyzer="char_wb", ngram_range=NGRAMS, n_features=FEATURES)
    model = make_pipeline(grams, LogisticRegression(C=30.0, max_iter=500, class_weight="balanced"))
    model.fit(texts, labels)
    return lambda text: str(model.predict([text])[0])


def lexicon_examples() -> list[tuple[str, str]]:
    """The lexicon's phrases in every frame, each with its category."""
    return [
        (frame.format(phrase.strip().replace("*", "")), words.meaning.subject)
        for words in LEXICON
        if words.meaning and words.meaning.subject in {concept.category for concept in CONCEPTS.values()}
        for phrase in words.phrases.split(",")
        for frame in FRAMES
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the share read rightly by each reader, with 95 % Wilson intervals."""
    parser = argparse.ArgumentParser(prog="python -m agenticiqa.eval.questions.reading_study", description=__doc__)
    parser.add_argument("--test", choices=SPLITS, default="heldout", help="the wordings to read (%(default)s)")
    args = parser.parse_args(argv)
    learned, tested = plain_wordings("dev"), plain_wordings(args.test)
    asked = trained([row.text for row in learned], [asked_of(row) for row in learned])
    phrases = lexicon_examples()
    about = [row for row in learned if row.about in CONCEPTS and row.kind != "unanswerable"]
    category = trained(
        [*(row.text for row in about), *(text for text, _ in phrases)],
        [*map(category_of, about), *(name for _, name in phrases)],
    )
    named = [row for row in tested if row.about in CONCEPTS and row.kind != "unanswerable"]
    print("| read | n | rules | classifier | both alike: n | right |\n| --- | --- | --- | --- | --- | --- |")
    for what, rows, truth, rules, model in (
        ("what is asked", tested, asked_of, rules_asked, asked),
        ("which distortion", named, category_of, rules_category, category),
    ):
        read = [(truth(row), rules(row.text), model(row.text)) for row in rows]
        alike = [each for each in read if each[1] == each[2]]
        shares = [share_text(sum(each[0] == each[place] for each in read), len(read)) for place in (1, 2)]
        agreed = share_text(sum(true == found for true, found, _ in alike), len(alike))
        print(f"| {what} | {len(read)} | {' | '.join(shares)} | {len(alike)} | {agreed} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
