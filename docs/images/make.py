"""Make the pictures of README and docs again: ``python docs/images/make.py``.

Needs Chromium and the font Inter (``apt-get install chromium fonts-inter``); their versions decide the last pixel.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from io import BytesIO, StringIO
from pathlib import Path
from typing import NamedTuple, TypeAlias

from PIL import Image, ImageDraw
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "examples"
TERMINAL_WIDTH = 64  # columns, the fewest with one line per tool
EDGE = (127, 127, 127, 110)  # a border that is visible on the white and on the dark pages of GitHub

# A picture, and the command that makes it in a folder with examples/: the pages with the picture have the same command.
COMMANDS = {
    "panel": "assess examples/coffee_jpeg.jpg --reference examples/coffee.webp --save-maps maps/",
    "sheet": "assess examples/ --html sheet.html",
    "compare": "compare examples/coffee.webp examples/coffee_jpeg.jpg "
    "--reference examples/coffee.webp --html compare.html",
    "report": "report runs/first --html report.html",
    "rate": "rate examples/ --out rate.html",
}
SHOWN = (  # the commands of terminal.svg, as they are typed
    "assess examples/coffee_jpeg.jpg \\\n    --reference examples/coffee.webp",
    'assess examples/chelsea_noise.png \\\n    --query "How noisy is the left half?"',
    'assess examples/chelsea_noise.png \\\n    --query "Is the cat happy?"',
)


Part: TypeAlias = tuple[float, float, float, float]  # left, top, right, bottom as shares of width and height


class Page(NamedTuple):
    """A screenshot of a page: its size in CSS pixels, and JavaScript that runs before it is taken."""

    name: str
    width: int
    height: int
    script: str = ""


PAGES = (
    Page("sheet", 900, 780, "document.querySelector('#cards details').open = true"),
    Page("compare", 1000, 1110),
    Page("report", 1000, 1606),
    Page(
        "rate",
        1200,
        760,
        "document.getElementById('rater').value = 'Kim';"
        "document.getElementById('begin').requestSubmit();"
        "for (const score of [2, 5, 2, 4, 2, 5, 2]) { shownAt = performance.now() - 9000; answer(score); }"
        "show(4)",
    ),
)
# Cards for README, legible on a phone: a picture, and its part.
CARDS = {
    "card-panel": ("panel", (0.0, 0.0, 0.662, 0.73)),
    "card-sheet": ("sheet", (0.0, 0.325, 0.662, 0.828)),
    "card-compare": ("compare", (0.0, 0.0, 1.0, 0.526)),
}
SCALE_OF_PANEL = (0.48, 0.09, 1.0, 0.23)  # its place, which the card would cut
WIDTH, CARD_WIDTH = 1600, 800  # pixels
FILES = ["terminal.svg", *(f"{name}.webp" for name in ("panel", *(page.name for page in PAGES), *CARDS))]

# A dark terminal; the sixteen colors are those of a common scheme.
COLORS = [(40, 44, 52), (235, 105, 100), (152, 195, 121), (229, 192, 123), (97, 175, 239), (198, 120, 221)]
THEME = TerminalTheme((24, 27, 33), (222, 226, 232), [*COLORS, (86, 182, 194), (222, 226, 232)])
SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {terminal_height}" width="600">
<style>
.{unique_id}-matrix {{
font: {char_height}px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
line-height: {line_height}px
}}
{styles}
</style>
<rect width="{width}" height="{terminal_height}" rx="8" fill="#181b21"/>
<g transform="translate(10, 12)">
{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g>
</g>
</svg>
"""


def main() -> None:
    """Run the commands in a temporary folder, and keep pictures of what they write."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(EXAMPLES, folder / "examples")
        run(["evaluate", "examples/labels.csv", "--out", "runs/first"], folder)  # for the report
        for command in COMMANDS.values():
            run(command.split(), folder)
        with Image.open(folder / "maps" / "examples" / "coffee_jpeg.png") as drawing:
            save(drawing, "panel")
        for page in PAGES:
            save(screenshot(folder, page), page.name)
    for name, (source, part) in CARDS.items():
        save_card(name, source, part)
    (HERE / "terminal.svg").write_text(terminal(), encoding="utf-8")


def run(arguments: Sequence[str], folder: Path, **variables: str) -> str:
    """Run ``agenticiqa`` in a folder, without its progress, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "agenticiqa", *arguments],
        cwd=folder,
        env={**os.environ, **variables},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout


def screenshot(folder: Path, page: Page) -> Image.Image:
    """Return a picture of a page in a light theme, at two pixels per CSS pixel."""
    html = (folder / f"{page.name}.html").read_text(encoding="utf-8")
    style = "<style>body { font-family: Inter, sans-serif } .cards > li { content-visibility: visible }</style>"
    shown = folder / "shown.html"
    shown.write_text(f"{html}{style}<script>{page.script}</script>", encoding="utf-8")
    command = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "chromium")
    flags = (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--force-device-scale-factor=2",
        "--run-all-compositor-stages-before-draw",
    )
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        subprocess.run(
            [
                *(command, *flags, f"--user-data-dir={profile}", "--virtual-time-budget=5000"),
                f"--window-size={page.width},{page.height}",
                f"--screenshot={folder / 'shown.png'}",
                shown.as_uri(),
            ],
            check=True,
            stderr=subprocess.DEVNULL,
        )
    return Image.open(BytesIO((folder / "shown.png").read_bytes()))


def save(picture: Image.Image, name: str, width: int = WIDTH) -> None:
    """Write a picture as WebP of a width, with a thin border and round corners."""
    size = (width, round(picture.height * width / picture.width))
    picture = picture.convert("RGB").resize(size, Image.Resampling.LANCZOS).convert("RGBA")
    corners = Image.new("L", (2 * size[0], 2 * size[1]), 0)
    box, radius = (0, 0, 2 * size[0] - 1, 2 * size[1] - 1), width // 50
    ImageDraw.Draw(corners).rounded_rectangle(box, radius, fill=255)
    border = Image.new("RGBA", corners.size)
    ImageDraw.Draw(border).rounded_rectangle(box, radius, outline=EDGE, width=max(2, width // 400))
    picture.alpha_composite(border.resize(size, Image.Resampling.LANCZOS))
    picture.putalpha(corners.resize(size, Image.Resampling.LANCZOS))
    picture.save(HERE / f"{name}.webp", quality=80, method=6)


def save_card(name: str, source: str, part: Part) -> None:
    """Write a part of a saved picture as a card."""
    with Image.open(HERE / f"{source}.webp") as picture:
        if source == "panel":
            ImageDraw.Draw(picture).rectangle(box_of(SCALE_OF_PANEL, picture), fill="white")
        save(picture.crop(box_of(part, picture)), name, CARD_WIDTH)


def box_of(part: Part, picture: Image.Image) -> tuple[int, int, int, int]:
    """Return shares of a picture in pixels."""
    left, top, right, bottom = part
    width, height = picture.size
    return round(left * width), round(top * height), round(right * width), round(bottom * height)


def terminal() -> str:
    """Return commands and their output in color as an SVG that loads no font."""
    console = Console(record=True, width=TERMINAL_WIDTH, file=StringIO())
    for command in SHOWN:
        console.print(Text.assemble(("$ ", "bold green"), (f"agenticiqa {command}", "bold")))
        words = shlex.split(command.replace("\\\n", ""))
        printed = run(words, EXAMPLES.parent, FORCE_COLOR="1", COLUMNS=str(TERMINAL_WIDTH))
        console.print(Text.from_ansi(printed))
    svg = console.export_svg(theme=THEME, code_format=SVG, unique_id="t")
    return re.sub(r' clip-path="[^"]*"', "", svg)


if __name__ == "__main__":
    main()
