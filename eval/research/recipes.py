"""The images of the questions: a photo with at most one distortion, all over or in one part, made once and kept.

A recipe is written as the photo's name, the kind, the level and the place: "palace", "palace/white_noise-4" or
"palace/white_noise-5@left". The same recipe always gives the same pixels.
"""

import csv
import io
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from agenticiqa.eval.questions.images import damaged
from agenticiqa.eval.research import DATA
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images.files import write_atomically
from agenticiqa.programs.tools.numerics.pixels import RGB
from agenticiqa.signatures.types import Box

LONGEST = 480  # pixels of an image's longer side
CONTENTS = DATA / "contents.csv"

PLACES: dict[str, tuple[float, float, float, float]] = {
    "left": (0, 0, 1 / 2, 1),
    "right": (1 / 2, 0, 1, 1),
    "top": (0, 0, 1, 1 / 2),
    "bottom": (0, 1 / 2, 1, 1),
    "center": (1 / 3, 1 / 3, 2 / 3, 2 / 3),
    "top left": (0, 0, 1 / 3, 1 / 3),
    "top right": (2 / 3, 0, 1, 1 / 3),
    "bottom left": (0, 2 / 3, 1 / 3, 1),
    "bottom right": (2 / 3, 2 / 3, 1, 1),
}
"""Halves and ninths of an image by name: left, top, right and bottom as shares of its width and height."""
OPPOSITE = {"left": "right", "right": "left", "top": "bottom", "bottom": "top"} | {
    "center": "top left",
    "top left": "bottom right",
    "top right": "bottom left",
    "bottom left": "top right",
    "bottom right": "top left",
}
"""A part of the image that shares no pixel with the named one."""

SAME_PHOTOS = dict.fromkeys(("press", "service", "market", "office", "club"), "public")
"""Splits that have the photos of another one; nothing was chosen or learned on either."""


@dataclass(frozen=True)
class Content:
    """One pristine photo: its name, file and package, its split, and what is known of it.

    ``is_sharp`` is true if no part is out of focus. ``is_neutral`` is true if the mean brightness is 75 to 165 of 255,
    the means of the channels differ by less than 45 % of that, and nothing seems to be done to its tones and colors.
    ``shows`` are the things in it that questions name ("people", "sky"), and "detail" where every ninth of it has some.
    """

    name: str
    file: str
    package: str
    split: str
    is_sharp: bool
    is_neutral: bool
    shows: tuple[str, ...]

    def suits(self, need: str) -> bool:
        """Whether it is what a question needs: "sharp", "neutral", "" for anything, "no people", or a thing shown."""
        known = {"sharp": self.is_sharp, "neutral": self.is_neutral, "": True, "no people": "people" not in self.shows}
        return known.get(need, need in self.shows)


@dataclass(frozen=True)
class Recipe:
    """A photo, and the distortion that it gets: none with ``kind`` "", all over with ``place`` ""."""

    content: str
    kind: str = ""
    level: int = 0
    place: str = ""

    def __str__(self) -> str:
        made = f"/{self.kind}-{self.level}" if self.kind else ""
        return f"{self.content}{made}{'@' + self.place if self.place else ''}"


def photos_of(split: str, contents: Iterable[Content]) -> list[Content]:
    """The photos that the questions of a split are asked of."""
    return [content for content in contents if content.split == SAME_PHOTOS.get(split, split)]


def read_contents(manifest: Path = CONTENTS) -> dict[str, Content]:
    """The photos of a manifest by name, in its order."""
    with manifest.open(encoding="utf-8", newline="") as file:
        return {
            row["content"]: Content(
                row["content"],
                row["file"],
                row["package"],
                row["split"],
                row["sharp"] == "yes",
                row["neutral"] == "yes",
                tuple(row["shows"].split()),
            )
            for row in csv.DictReader(file)
        }


def pixels_of(recipe: Recipe, photo: RGB) -> RGB:
    """The pixels that a recipe makes of its photo, uint8 of the same shape (H, W, 3)."""
    box = box_of(recipe.place, photo) if recipe.place else None
    return damaged(photo, recipe.kind, recipe.level, box, zlib.crc32(recipe.content.encode()))


def box_of(place: str, photo: RGB) -> Box:
    """The box of a photo that a place covers."""
    left, top, right, bottom = PLACES[place]
    height, width = photo.shape[:2]
    return round(left * width), round(top * height), round(right * width), round(bottom * height)


def image_file(recipe: Recipe, content: Content, packages: Path, cache: Path) -> Path:
    """The PNG of a recipe in the folder ``cache``; it is made if it is not there yet.

    Raises UserError, naming the package, if the photo is not in the folder ``packages``.
    """
    made = cache / f"{str(recipe).replace('/', '--').replace('@', '--').replace(' ', '-')}.png"
    if not made.is_file():
        encoded = io.BytesIO()
        Image.fromarray(pixels_of(recipe, photo_of(content, packages))).save(encoded, "PNG")
        write_atomically(made, encoded.getvalue())  # several runs may share the folder
    return made


def photo_of(content: Content, packages: Path) -> RGB:
    """A pristine photo, its longer side ``LONGEST`` pixels: scaled down, it has no noise and no coding of its own."""
    file = packages / content.file
    if not file.is_file():
        raise UserError(f"the photo {content.file} is missing in {packages}: unpack {content.package} there")
    with Image.open(file) as opened:
        opened.draft("RGB", (2 * LONGEST, 2 * LONGEST))
        photo = opened.convert("RGB")
    photo.thumbnail((LONGEST, LONGEST), Image.Resampling.LANCZOS)
    return np.asarray(photo)
