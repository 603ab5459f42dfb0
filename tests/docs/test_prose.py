"""README and docs/ use one term for one thing."""

import re
from pathlib import Path

import pytest

from support.prose import INSTEAD, offences

ROOT = Path(__file__).resolve().parents[2]
DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES = [ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *DOCS]


def prose(page: Path) -> str:
    """Return the running text of a page, without code, tables, headings, pictures and addresses."""
    text = re.sub(r"^```.*?^```$|<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    text = re.sub(r"^(\||#|!\[|<).*$", "", text, flags=re.M)
    return re.sub(r"`[^`]+`", "code", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_plain_english(page: Path) -> None:
    wrong = offences(prose(page), INSTEAD)
    assert not wrong, "\n".join(wrong)
