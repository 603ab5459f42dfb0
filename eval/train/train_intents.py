"""Train the classifier of what a question asks for, on wordings alone; no image is needed.

    python -m agenticiqa.eval.train.train_intents [--out intents.npz]

It learns from the wordings of ``eval/questions`` without options, but for those of ``public``, which are only for
measuring, and from ``teaching.csv`` beside them. Prints how it reads each set that was written by others, trained on
the rest; --out trains on all, writes the weights and prints their SHA-256.
"""

import argparse
import io
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agenticiqa.eval.questions import wordings
from agenticiqa.eval.questions.reading_study import plain_wordings
from agenticiqa.eval.questions.report import share_text
from agenticiqa.eval.questions.wordings import SPLITS, Wording, read_wordings
from agenticiqa.programs.images.files import sha256_of, write_atomically
from agenticiqa.programs.offline.language.intents import INTENTS, likeliest
from agenticiqa.programs.offline.language.plain_question import RESTATED
from agenticiqa.programs.offline.language.reader import read_question
from agenticiqa.programs.offline.language.word_patterns import BUCKETS, hashed_ngrams

MEASURED_ONLY = "public"
BY_OTHERS = ("trade", "research")
TEACHING = Path(wordings.__file__).with_name("teaching.csv")
STRENGTH = 30.0  # inverse of the regularization; 100 was not better on the sets by others

Weights = Mapping[str, NDArray[np.float64]]


def intent_label(wording: Wording) -> str:
    """The intent of a wording, by its kind and truth."""
    kind, truth = wording.kind, wording.truth
    if kind in ("presence", "negation"):
        return truth
    if kind == "subject":
        return f"part-{truth.partition(':')[2]}"
    if kind == "half":
        return "half-clean" if truth.endswith("clean") else kind
    return f"{kind}-{truth}" if kind in ("reference", "compare") else kind


def train(rows: Sequence[Wording]) -> Weights:
    """The weights (``BUCKETS`` x intents, whole numbers up to 127 with a scale for each intent) and biases."""
    from sklearn.linear_model import LogisticRegression

    distinct = {(tuple(sorted(_ngrams(row).items())), intent_label(row)) for row in rows}
    examples = sorted(distinct, key=lambda each: (each[1], each[0]))
    model = LogisticRegression(C=STRENGTH, max_iter=300, class_weight="balanced")
    model.fit(_matrix([dict(ngrams) for ngrams, _ in examples]), [label for _, label in examples])
    weights = np.zeros((BUCKETS, len(INTENTS)))
    bias = np.full(len(INTENTS), -np.inf)
    for name, row, start in zip(model.classes_, model.coef_, model.intercept_, strict=True):
        weights[:, INTENTS.index(name)], bias[INTENTS.index(name)] = row, start
    scale = np.abs(weights).max(axis=0) / 127
    return {
        "weights": np.rint(weights / scale),
        "scale": scale.astype(np.float32).astype(np.float64),
        "bias": bias.astype(np.float32).astype(np.float64),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Print how the sets by others are read, and train."""
    parser = argparse.ArgumentParser(prog="python -m agenticiqa.eval.train.train_intents", description=__doc__)
    parser.add_argument("--out", metavar="FILE", type=Path, help="write the weights there")
    args = parser.parse_args(argv)
    sets = {split: plain_wordings(split) for split in SPLITS if split != MEASURED_ONLY}
    sets["teaching"] = read_wordings(TEACHING)
    print("| set | n | intent right | of the sure ones | their share |")
    print("| --- | --- | --- | --- | --- |")
    for held_out in BY_OTHERS:
        weights = train([row for name, rows in sets.items() if name != held_out for row in rows])
        asked = [row for row in sets[held_out] if not row.is_template]
        found = [likeliest(weights, _ngrams(row)) for row in asked]
        right = np.array([intent.name == intent_label(row) for intent, row in zip(found, asked, strict=True)])
        sure = np.array([intent.probability >= RESTATED for intent in found])
        shown = f"{share_text(int(right.sum()), len(asked))} | {share_text(int(right[sure].sum()), int(sure.sum()))}"
        print(f"| {held_out} | {len(asked)} | {shown} | {sure.mean():.2f} |", flush=True)
    if args.out:
        made, buffer = train([row for rows in sets.values() for row in rows]), io.BytesIO()
        np.savez_compressed(
            buffer,
            weights=made["weights"].astype(np.int8),
            scale=made["scale"].astype(np.float32),
            bias=made["bias"].astype(np.float32),
        )
        write_atomically(args.out, buffer.getvalue())
        print(f"{args.out}: {len(buffer.getvalue())} bytes, sha256 {sha256_of(args.out)}")
    return 0


def _ngrams(row: Wording) -> Mapping[int, float]:
    return hashed_ngrams(row.text, read_question(row.text, {}).text)


def _matrix(rows: Sequence[Mapping[int, float]]) -> Any:
    from scipy.sparse import csr_matrix

    starts = np.cumsum([0, *map(len, rows)])
    columns = [bucket for row in rows for bucket in row]
    return csr_matrix(([value for row in rows for value in row.values()], columns, starts), shape=(len(rows), BUCKETS))


if __name__ == "__main__":
    sys.exit(main())
