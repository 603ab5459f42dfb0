"""Links of README, docs and the other pages of the checkout lead to files and headings that exist."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOP = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "examples/README.md")]
PAGES = [*TOP, *sorted((ROOT / "docs").glob("*.md"))]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"")


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    plain = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in re.findall(r"^#+ (.+)$", text, re.M)]
    return {heading.strip().replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_to_files_and_headings(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    wrong = []
    for link in ("".join(found) for found in LINK.findall(text)):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if re.match(r"https?://|mailto:", link):
            continue
        if not target.exists() or (anchor and anchor not in anchors(target)):
            wrong.append(link)
    assert not wrong


def test_the_index_and_the_readme_link_every_page() -> None:
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    for index, folder in ((ROOT / "docs", ""), (ROOT, "docs/")):
        text = (index / "README.md").read_text(encoding="utf-8")
        assert pages - set(re.findall(rf"\]\({folder}([\w-]+\.md)", text)) == set(), index
