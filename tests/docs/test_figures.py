"""Figures of limits and names of options and keys on the pages are those of the code.

``FIGURES`` has parts of the text of each page, with ``{}`` in place of a figure, and the value in the code. A page that
states another figure fails, and so does one from which the sentence was removed.
"""

import re
from pathlib import Path

import pytest

from agenticiqa.configs.user_files import MOST_PLAIN_BYTES
from agenticiqa.programs.images.decoding import MAX_PIXELS
from support.texts import helps

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
OPTION = r"(?<![\w-])--[a-z][a-z-]+"
OF_OTHER_PROGRAMS = {
    "--enable-log-requests",
    "--no-deps",
    "--limit-mm-per-prompt",
    "--mmproj",
    "--kills",
    "--data",
    "--tool",
    "--write",
    "--reasoning-parser",
}
MILLION, MIB = 10**6, 2**20
FIGURES: dict[str, list[tuple[str, object]]] = {
    "albums.md": [
        ("Images of up to {} million pixels", MAX_PIXELS // MILLION),
        ("(TIFF, BMP: {})", MOST_PLAIN_BYTES // MIB),
    ],
}


@pytest.mark.parametrize("page", FIGURES)
def test_a_page_has_the_figures_of_the_code(page: str) -> None:
    text = " ".join((ROOT / "docs" / page).read_text(encoding="utf-8").split())
    expected = [part.format(value) for part, value in FIGURES[page]]
    assert [part for part in expected if part not in text] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_options_on_a_page_exist(page: Path) -> None:
    known = set(re.findall(OPTION, "\n".join(helps().values()))) | OF_OTHER_PROGRAMS
    assert set(re.findall(OPTION, page.read_text(encoding="utf-8"))) - known == set()
