"""The level that a free text states: sentences with the level that a human reader finds, or none."""

import csv
from pathlib import Path

import pytest

from agenticiqa.signatures.answers.level_in_words import level_named

# ``kept_aside``: held out while the parser was written. ``level``: empty if the text states none for the image.
with Path(__file__).with_name("level_sentences.csv").open(newline="") as file:
    SENTENCES = [(row["text"], int(row["level"]) if row["level"] else None) for row in csv.DictReader(file)]
STATED = sum(level is not None for _, level in SENTENCES)


@pytest.mark.parametrize(("text", "level"), SENTENCES)
def test_a_level_is_read_correctly_or_not_at_all(text: str, level: int | None) -> None:
    assert level_named(text) in (level, None)


def test_most_stated_levels_are_read() -> None:
    assert len(SENTENCES) - STATED >= 50, "sentences that state no level"
    assert sum(level_named(text) is not None for text, _ in SENTENCES) >= STATED - 3


@pytest.mark.parametrize("text", ["good " * 20_000, "the " * 20_000, "(" * 50_000, "not good, " * 10_000, "*" * 50_000])
def test_a_long_text_is_read_quickly(text: str) -> None:
    assert level_named(text) is None
