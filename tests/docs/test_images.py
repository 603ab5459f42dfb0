"""The pictures of README and docs are those that the scripts beside them make, are light, and load nothing."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]
FOLDER = ROOT / "docs" / "images"
MOST_BYTES = 1_500_000


def pictures() -> list[Path]:
    return [path for path in FOLDER.iterdir() if path.suffix not in (".py", "") and path.is_file()]


def script(name: str) -> dict[str, Any]:
    return runpy.run_path(str(FOLDER / name), run_name=name)


def test_each_picture_is_made_by_a_script_and_each_script_makes_its_pictures() -> None:
    assert {path.name for path in pictures()} == {*script("make.py")["FILES"], *script("how_it_works.py")["DRAWINGS"]}


def test_the_drawings_have_the_fields_of_the_code() -> None:
    for name, draw in script("how_it_works.py")["DRAWINGS"].items():
        assert (FOLDER / name).read_text(encoding="utf-8") == draw(), "run docs/images/how_it_works.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_command_that_made_a_picture_stands_on_the_page(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    commands = [line.split() for line in re.findall(r"agenticiqa ([^`\n]+)", text)]
    made = script("make.py")
    for name in re.findall(r"images/([\w-]+)\.webp", text):
        source = made["CARDS"][name][0] if name in made["CARDS"] else name
        words = set(made["COMMANDS"][source].split())
        assert any(words <= {*command} for command in commands), f"{page.name}: {name} is made by {words}"


def test_each_picture_of_readme_has_its_caption() -> None:
    parts = README.read_text(encoding="utf-8").split("\n\n")
    below = [parts[number + 1] for number, part in enumerate(parts) if "docs/images/" in part]
    assert len(below) == len({*below}) == 5
    assert [text for text in below if not re.match(r"\*\*[A-Z].+?\.\*\* ", text)] == []


def test_the_drawings_of_readme_are_legible_on_a_phone() -> None:
    """Check that text of 20 and of 13 units is 9 pixels high or more on a page of 358 pixels."""
    for name, size in (("terminal.svg", 20), ("how-it-works-narrow.svg", 13)):
        shown = re.match(r'<svg .*viewBox="0 0 (\d+) ', (FOLDER / name).read_text(encoding="utf-8"))
        assert shown, name
        assert round(358 / int(shown[1]) * size) >= 9, name


def test_the_pictures_are_light_together() -> None:
    assert sum(path.stat().st_size for path in pictures()) <= MOST_BYTES


def test_a_drawing_loads_no_font_and_no_other_file() -> None:
    for path in FOLDER.glob("*.svg"):
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?:|@import|@font-face|url\((?!#)|href=\"(?!#)", text), path.name
