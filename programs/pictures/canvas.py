"""Place text and image panels on a figure, in inches from the lower left corner."""

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias
from unicodedata import category

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import printable_path, write_atomically
from agenticiqa.programs.images.own import MADE_BY, encode

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Place: TypeAlias = tuple[float, float, float, float]  # left, bottom, width, height in inches

OTHER_FONTS = (
    *("Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans JP", "Noto Sans SC", "Noto Sans KR", "Source Han Sans"),
    *("Hiragino Sans", "PingFang SC", "Apple SD Gothic Neo", "Yu Gothic", "Microsoft YaHei", "Malgun Gothic"),
    *("WenQuanYi Zen Hei", "WenQuanYi Micro Hei", "IPAGothic", "IPAexGothic", "Droid Sans Fallback"),
    "Arial Unicode MS",
    *("Noto Sans Arabic", "Noto Sans Devanagari", "Noto Sans Thai", "Noto Emoji", "Symbola", "Segoe UI Emoji"),
)
FORMATS = ("PNG", "JPEG", "WEBP", "TIFF", "BMP", "GIF", "AVIF", "PDF")  # Pillow's names of the formats of pictures
# Unicode categories without a shape: controls, formats, spaces, line and paragraph ends.
BLANK = {"Cc", "Cf", "Zs", "Zl", "Zp"}
INK, FAINT, EDGE = "#1c1f23", "#50565d", "#b4bac1"
CUT = "..."


class Canvas:
    """A white figure of ``width`` x ``height`` inches, drawn at ``dpi`` pixels per inch."""

    def __init__(self, width: float, height: float, dpi: float) -> None:
        from matplotlib.figure import Figure

        self.width, self.height = width, height
        self.figure: Figure = Figure(figsize=(width, height), dpi=dpi, facecolor="white")

    def write(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = 10.5,
        color: str = INK,
        weight: str = "normal",
        align: Literal["left", "center", "right"] = "left",
        room: float | None = None,
    ) -> float:
        """Write one line of text with its left end, center or right end on the baseline at (x, y) inches.

        ``size`` is in points. A text longer than ``room`` inches loses its middle. Returns the right end in inches.
        """
        words = drawable(text)
        drawn = self.figure.text(
            x / self.width,
            y / self.height,
            words,
            fontfamily=families(),
            fontsize=size,
            color=color,
            fontweight=weight,
            horizontalalignment=align,
            parse_math=False,
        )
        room, kept = room or self.width, len(words)
        with _any_weight():
            while (box := drawn.get_window_extent()).width > room * self.figure.dpi and kept > 1:
                kept = min(kept - 1, int(kept * room * self.figure.dpi / box.width))
                drawn.set_text(words[: kept - kept // 3] + CUT + words[len(words) - kept // 3 :])
        return float(box.x1 / self.figure.dpi)

    def fill(self, place: Place, color: str) -> None:
        """Fill a rectangle; ``place`` is (left, bottom, width, height) in inches."""
        from matplotlib.patches import Rectangle

        x, y, width, height = place
        at, size = (x / self.width, y / self.height), (width / self.width, height / self.height)
        self.figure.add_artist(Rectangle(at, *size, color=color, linewidth=0, transform=self.figure.transFigure))

    def panel(self, place: Place) -> "Axes":
        """Add an empty panel with a thin frame; ``place`` is (left, bottom, width, height) in inches."""
        left, bottom, width, height = place
        share = (left / self.width, bottom / self.height, width / self.width, height / self.height)
        axes = self.figure.add_axes(share, xticks=[], yticks=[])
        for spine in axes.spines.values():
            spine.set_edgecolor(EDGE)
        return axes

    def image(self, place: Place, pixels: NDArray[np.uint8], size: tuple[int, int] | None = None) -> "Axes":
        """Add a panel that shows ``pixels`` (h, w, 3), uint8, not interpolated.

        The panel's coordinates are the pixels of an image of ``size`` (width, height), or those of ``pixels``.
        """
        height, width = pixels.shape[:2]
        width, height = size or (width, height)
        axes = self.panel(place)
        axes.imshow(pixels, extent=(0, width, height, 0), aspect="auto", interpolation="nearest")
        return axes

    def save(self, path: Path, image: str) -> None:
        """Write the figure atomically in the format of the suffix; a PNG has ``image`` as its text entry ``Image``.

        Raises OSError if the file cannot be written.
        """
        drawn = io.BytesIO()
        with _any_weight():
            self.figure.savefig(drawn, format="png", metadata={"Software": MADE_BY, "Image": image})
        file_format = format_of(path)
        content = drawn.getvalue() if file_format == "PNG" else encode(Image.open(drawn), file_format)
        write_atomically(path, content)


def format_of(path: Path) -> str:
    """Return the format in ``FORMATS`` that a suffix names. Raises UserError without one."""
    file_format = Image.registered_extensions().get(path.suffix.lower(), "")
    if file_format not in FORMATS:
        raise UserError(
            f"{printable_path(path)}: no picture can be written with the suffix {path.suffix!r}; name a .png, .jpg or "
            ".webp file"
        )
    return file_format


@cache
def families() -> list[str]:
    """Return the font families for text: matplotlib's own, then installed fonts for other scripts."""
    from matplotlib.font_manager import get_font_names

    there = {*get_font_names()}
    return ["DejaVu Sans", *(name for name in OTHER_FONTS if name in there)]


def drawable(text: str) -> str:
    """Return the text with a question mark for each character that no font has, instead of a box and a warning.

    Control characters except the line break become blanks.
    """
    if text.isascii() and text.isprintable():
        return text
    text = "".join(" " if category(char) in BLANK and char != "\n" else char for char in text)
    return "".join(char if char.isascii() or _has(char) else "?" for char in text)


@cache
def _has(character: str) -> bool:
    from matplotlib.font_manager import findfont, get_font

    with _any_weight():
        return any(get_font(findfont(name)).get_char_index(ord(character)) for name in families())


@contextmanager
def _any_weight() -> Iterator[None]:
    """Suppress matplotlib's warning that a font has no bold; its regular weight is drawn instead."""
    logger = logging.getLogger("matplotlib.font_manager")

    def is_other(record: logging.LogRecord) -> bool:
        return not str(record.msg).startswith("findfont: Failed to find font weight")

    logger.addFilter(is_other)
    try:
        yield
    finally:
        logger.removeFilter(is_other)
