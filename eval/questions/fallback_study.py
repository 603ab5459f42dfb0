"""Whether a classifier should read what the rules do not, without images: as if all were measured exactly.

    python -m agenticiqa.eval.questions.fallback_study [--test fresh]

Each wording without options is answered twice from made-up findings, with and without what it is about. Where the rules
do not tell, a classifier (as in ``reading_study``) that learned from the other sets reads what is asked, and of which
distortion; if it is sure enough of both, the question is asked again in plain words, "Is there blur?".
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from agenticiqa.eval.questions.concepts import CONCEPTS
from agenticiqa.eval.questions.marking import Form, Mark, mark
from agenticiqa.eval.questions.questions import OTHER_ANSWER, SEVERITIES
from agenticiqa.eval.questions.reading_study import FEATURES, NGRAMS, plain_wordings
from agenticiqa.eval.questions.report import MARKS, share_text
from agenticiqa.eval.questions.wordings import SPLITS, Wording
from agenticiqa.programs.offline.findings import Finding
from agenticiqa.programs.offline.language.answers import IMAGE, answer_from_evidence
from agenticiqa.programs.offline.language.measured_image import MeasuredImage
from agenticiqa.programs.tools.catalog import TOOLS
from agenticiqa.signatures.lexicon import terms_in
from agenticiqa.signatures.types import UNABLE, ExecutorOutput
from agenticiqa.signatures.vocabulary import DETECTABLE

PLAIN = {
    "presence": "Is there {}?",
    "negation": "Is it free of {}?",
    "degree": "How severe is the {}?",
    "which": "What is the main distortion?",
}
"""What is asked in plain words, by kind; of other kinds the classifier only learns that they are others."""
NOUNS = {
    "dark": "underexposure",
    "bright": "overexposure",
    "low_contrast": "low contrast",
    "high_contrast": "excessive contrast",
    "faded": "desaturation",
    "oversaturated": "oversaturation",
    "cast": "color cast",
    "oversharpened": "oversharpening",
    "motion_blur": "motion blur",
    "impulse_noise": "impulse noise",
    "exposure": "brightness change",
}
SURE = 0.6  # least probability of both readings, set before any answer was marked
SEVERE = 3.5  # severity of what is there


@dataclass(frozen=True)
class Reader:
    """Reads the kind and the concept of a text, each with its probability."""

    kind: "Classifier"
    concept: "Classifier"

    def plain(self, text: str, sure: float = SURE) -> str:
        """The question in plain words, "" if it is not sure."""
        (kind, likely), (concept, of) = self.kind.best(text), self.concept.best(text)
        return PLAIN.get(kind, "").format(noun(concept)) if min(likely, of if kind != "which" else 1.0) >= sure else ""


class Classifier:
    """Logistic regression on hashed character n-grams."""

    def __init__(self, texts: Sequence[str], labels: Sequence[str]) -> None:
        from sklearn.feature_extraction.text import HashingVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline

        grams = HashingVectorizer(analyzer="char_wb", ngram_range=NGRAMS, n_features=FEATURES)
        self.model = make_pipeline(grams, LogisticRegression(C=30.0, max_iter=500, class_weight="balanced"))
        self.model.fit(texts, labels)

    def best(self, text: str) -> tuple[str, float]:
        """The likeliest label and its probability."""
        shares = self.model.predict_proba([text])[0]
        return str(self.model.classes_[np.argmax(shares)]), float(shares.max())


def learned(splits: Sequence[str]) -> Reader:
    """A reader that learned from the wordings of these splits."""
    rows = [row for split in splits for row in plain_wordings(split)]
    named = [row for row in rows if row.about in CONCEPTS]
    kinds = [row.kind if row.kind in PLAIN else "other" for row in rows]
    return Reader(
        Classifier([row.text for row in rows], kinds),
        Classifier([row.text for row in named], [row.about for row in named]),
    )


def noun(concept: str) -> str:
    """The name of a concept in a plain question."""
    return NOUNS.get(concept, concept.replace("_", " "))


def measured(concept: str) -> MeasuredImage:
    """An image with severe damage of one concept, or with none for ""."""
    damaged = CONCEPTS[concept].category if concept else None
    kind = next((term.meaning.kind for term in terms_in(noun(concept))), "")
    damage, none = Finding(SEVERE, kind or noun(concept), ""), Finding(0.0, "", "")
    return MeasuredImage({name: damage if name == damaged else none for name in DETECTABLE}, 2.0 if concept else 4.8)


def answer(text: str, image: MeasuredImage) -> str:
    """What the rules answer of an image."""
    return answer_from_evidence(text, {}, lambda name: image if name == IMAGE else None, ExecutorOutput()).final_answer


def cases(row: Wording) -> Iterator[tuple[MeasuredImage, Form, tuple[str, ...]]]:
    """Images of which a wording is asked, with the form of the answer and the true ones."""
    if row.kind == "unanswerable":
        for concept in ("", "blur"):
            yield measured(concept), "undetermined", ("undetermined",)
    elif row.kind == "which":
        for concept in ("blur", "noise", "dark"):
            yield measured(concept), "category", (CONCEPTS[concept].category,)
    elif row.kind == "degree":
        yield measured(row.about), "severity", SEVERITIES[5]
        yield measured(""), "severity", SEVERITIES[0]
    else:
        yield measured(row.about), "yes_no", (row.truth,)
        yield measured(""), "yes_no", (OTHER_ANSWER[row.truth],)


def marks(rows: Sequence[Wording], reader: Reader | None, sure: float = SURE) -> Counter[Mark]:
    """How many answers are right, wrong and undetermined, by the rules alone or with a reader for what is left."""
    found: Counter[Mark] = Counter()
    for row in rows:
        plain = reader.plain(row.text, sure) if reader else ""
        for image, form, accepted in cases(row):
            said = answer(row.text, image)
            if said == UNABLE and plain:
                said = answer(plain, image)
            found[mark(said, form, accepted)] += 1
    return found


def asked(split: str) -> list[Wording]:
    """The wordings that the study asks: of the image as a whole, about one distortion or the main one."""
    return [row for row in plain_wordings(split) if row.kind in (*PLAIN, "unanswerable") and row.about not in TOOLS]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the shares of both, with 95 % Wilson intervals."""
    parser = argparse.ArgumentParser(prog="python -m agenticiqa.eval.questions.fallback_study", description=__doc__)
    parser.add_argument("--test", choices=SPLITS, default="fresh", help="the wordings that are asked (%(default)s)")
    parser.add_argument("--sure", type=float, default=SURE, help="least probability of a reading (%(default)s)")
    args = parser.parse_args(argv)
    rows = asked(args.test)
    reader = learned([split for split in ("dev", "heldout", "fresh") if split != args.test])
    print("| read by | n | right | wrong | undetermined |\n| --- | --- | --- | --- | --- |")
    for name, fallback in (("rules", None), ("rules, then the classifier", reader)):
        found: Mapping[Mark, int] = marks(rows, fallback, args.sure)
        n = sum(found.values())
        print(f"| {name} | {n} | {' | '.join(share_text(found[each], n) for each in MARKS)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
