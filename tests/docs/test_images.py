"""The pictures of README and docs are those that the scripts beside them make, are light, and load nothing."""

import re
import runpy
from pathlib import Path

from PIL import Image

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "images"
MOST_BYTES = 1_500_000


def pictures() -> list[Path]:
    return [path for path in FOLDER.iterdir() if path.suffix not in (".py", "") and path.is_file()]


def test_each_picture_is_made_by_a_script_and_each_script_makes_its_pictures() -> None:
    made = runpy.run_path(str(FOLDER / "make.py"), run_name="make")["FILES"]
    assert {path.name for path in pictures()} == {*made, "how-it-works.svg"}
    assert '"how-it-works.svg"' in (FOLDER / "how_it_works.py").read_text(encoding="utf-8")


def test_the_pictures_are_light_together() -> None:
    assert sum(path.stat().st_size for path in pictures()) <= MOST_BYTES


def test_a_drawing_loads_no_font_and_no_other_file() -> None:
    for path in FOLDER.glob("*.svg"):
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?:|@import|@font-face|url\((?!#)|href=\"(?!#)", text), path.name


def test_the_pictures_of_a_row_have_one_shape() -> None:
    sizes = [Image.open(path).size for path in FOLDER.glob("row-*.webp")]
    shares = [width / height for width, height in sizes]
    assert len(shares) == 3
    assert max(shares) < 1.02 * min(shares)
