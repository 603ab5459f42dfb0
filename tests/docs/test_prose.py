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
SHORTEST_AVERAGE = 12  # words of a sentence, over all pages
MOST_WORDS = 16_000  # of README and docs, without tables and code
LINKS = (
    "because|so that|therefore|however|for example|for instance|this means|in other words|similarly|instead|"
    "in this case|if you"
)
FEWEST_LINKS = 0.10  # share of sentences with one of LINKS; the pages of httpx and scikit-learn have .11 to .27


def prose(page: Path) -> str:
    """Return the running text of a page, without code, tables, headings, pictures and addresses."""
    text = re.sub(r"^```.*?^```$|<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    text = re.sub(r"^(\||#|!\[|<).*$", "", text, flags=re.M)
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
    text = " ".join(prose(page) for page in DOCS)
    assert sum(bool(re.search(r"\w", word)) for word in text.split()) <= MOST_WORDS


def test_sentences_connect() -> None:
    """Check the share of sentences with a link word, and that sentences are not chopped."""
    found = [each for page in DOCS for each in sentences(prose(page))]
    linked = fmean(bool(re.search(rf"\b({LINKS})\b", each, re.I)) for each in found)
    length = fmean(len(each.split()) for each in found)
    print(f"{len(found)} sentences, {length:.1f} words each, {linked:.1%} with a link word")
    assert linked >= FEWEST_LINKS
    assert length >= SHORTEST_AVERAGE
