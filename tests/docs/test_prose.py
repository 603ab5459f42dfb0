"""README and docs/ in plain English: short sentences, and one term for one thing. ``-s`` prints words and lengths."""

import re
from pathlib import Path
from statistics import fmean

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES = [ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *DOCS]
LONGEST, AVERAGE = 35, 20  # words of a sentence
MOST_WORDS = 16_000  # of README and docs, tables and code included
INSTEAD = {  # what is not written: what to write
    r"\btold\b": "reported, shown, logged, recognized",
    r"\btaught\b": "trained on",
    r"(?<!mean )\bopinions?\b": "MOS, subjective scores",
    r"\bjudg(es|ed|ing|ment|ments)\b": "assess, assessment",
    r"\breading of all\b": "the shared head",
    r"\bkept aside\b|\bleft out of the fit\b": "held out",
    r"\bis a level off\b": "differs by one quality level",
    r"\bhalf price\b|\bgoes as a batch\b|\bgo as batches\b": "the Batch API (half the price), is submitted as a batch",
    r"\bladders?\b": "distortion series",
    r"\bstranger's words\b": "free-form questions",
    r"\bundetermined\b": "not answered",
    r"\bthe house\b|\bfloors?\b": "packages, modules, layers",
    r"\bwhose\b|\bnobody\b|\bwhoever\b": "who does what",
}


def prose(page: Path) -> str:
    """The running text of a page: without code, tables, headings, pictures and addresses."""
    text = re.sub(r"^```.*?^```$|<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    text = re.sub(r"^(\||#|!\[).*$", "", text, flags=re.M)
    return re.sub(r"`[^`]+`", "code", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text))


def sentences(text: str) -> list[str]:
    """The sentences of a text; a list item and a line before a block or table end one, too."""
    parts = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )|(?<=[.!?])[)\"*]*\s+(?=[A-Z\d(`\"*]|code\b)", text)
    return [" ".join(part.split()) for part in parts if re.search(r"\w", part)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_plain_english(page: Path) -> None:
    text, lengths = prose(page), [len(each.split()) for each in sentences(prose(page))]
    print(
        f"{page.name}: {len(page.read_text().split())} words, {len(lengths)} sentences, {fmean(lengths):.1f} words each"
    )
    wrong = [
        f"{found[0]!r}: write {instead}" for term, instead in INSTEAD.items() for found in re.finditer(term, text, re.I)
    ]
    wrong += [f"{len(each.split())} words: {each}" for each in sentences(text) if len(each.split()) > LONGEST]
    assert not wrong, "\n".join(wrong)
    assert fmean(lengths) <= AVERAGE


def test_the_docs_are_short() -> None:
    text = " ".join(page.read_text(encoding="utf-8") for page in DOCS)
    assert sum(bool(re.search(r"\w", word)) for word in text.split()) <= MOST_WORDS
