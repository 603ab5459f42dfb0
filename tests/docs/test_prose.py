"""README and docs/ are in plain English: short sentences and consistent terms. ``-s`` prints words and lengths."""

import re
from pathlib import Path
from statistics import fmean

import pytest

from support.prose import INSTEAD, offences, sentences

ROOT = Path(__file__).resolve().parents[2]
DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES = [ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *DOCS]
LONGEST, AVERAGE = 35, 20  # words of a sentence
MOST_WORDS = 16_000  # of README and docs, tables and code included


def prose(page: Path) -> str:
    """Return the running text of a page, without code, tables, headings, pictures and addresses."""
    text = re.sub(r"^```.*?^```$|<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    text = re.sub(r"^(\||#|!\[).*$", "", text, flags=re.M)
    return re.sub(r"`[^`]+`", "code", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_plain_english(page: Path) -> None:
    text, lengths = prose(page), [len(each.split()) for each in sentences(prose(page))]
    print(
        f"{page.name}: {len(page.read_text().split())} words, {len(lengths)} sentences, {fmean(lengths):.1f} words each"
    )
    wrong = offences(text, INSTEAD, LONGEST)
    assert not wrong, "\n".join(wrong)
    assert fmean(lengths) <= AVERAGE


def test_the_docs_are_short() -> None:
    text = " ".join(page.read_text(encoding="utf-8") for page in DOCS)
    assert sum(bool(re.search(r"\w", word)) for word in text.split()) <= MOST_WORDS
