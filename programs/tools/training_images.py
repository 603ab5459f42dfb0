"""The images that the shipped tools were fitted on, known again by digests; the images do not ship.

A tool is fitted on an image in two ways: its model was trained on it (``Tool.trained_on``), or its calibration curve
was (``Calibration.fitted_on``). Agreement with opinions on such images is better than on new ones. The digests are in
``training_images.csv``, written by ``agenticiqa.eval.research.training_images``: of each image the first 12 hex
digits of the SHA-256 of its file and of its decoded pixels, so that a lossless copy in another format is known, too.
The detector and what finds local damage, which are no tools, were trained on the photos of the packages as well.
"""

import csv
import hashlib
import re
from collections.abc import Collection, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from PIL import Image, UnidentifiedImageError

from agenticiqa.programs.errors import ImageError
from agenticiqa.programs.images.files import sha256_of
from agenticiqa.programs.images.loading import load
from agenticiqa.programs.tools.calibration import Calibration
from agenticiqa.programs.tools.tool import Tool

FILE = Path(__file__).with_name("training_images.csv")
COLUMNS = ("set", "split", "size", "file", "pixels")
HEX_DIGITS = 12
REFERENCE = "reference"  # the split of what other images were made from, and of all that synthetic levels are made of
PACKAGE_PHOTOS = "package_photos"  # the set of the photos in free packages that ladders of distortions were made of
TITLES = {"live_r2": "LIVE r2", "clive": "CLIVE", "biq2021": "BIQ2021", "avt_ai": "AVT-AI"}  # in Calibration.fitted_on

Way: TypeAlias = Literal["model", "curve"]


class Part(NamedTuple):
    """A split of a data set: empty where the set has none, ``REFERENCE`` for references."""

    set: str
    split: str


def digests_of(path: Path) -> tuple[str, str, str]:
    """Size (the longer side first), digest of the file and digest of the pixels. Raises ImageError and OSError."""
    pixels = load(path).pixels
    content = hashlib.sha256(f"{pixels.shape}".encode() + pixels.tobytes()).hexdigest()
    return _size(pixels.shape[:2]), sha256_of(path)[:HEX_DIGITS], content[:HEX_DIGITS]


def parts_of(path: Path, file: Path | None = None) -> frozenset[Part]:
    """The parts of the sets in ``file`` (default: the shipped one) that an image is in; none for an unreadable image.

    An image is decoded only if one of its size is in the file.
    """
    known = _known(file or FILE)
    try:
        by_file = known.get(sha256_of(path)[:HEX_DIGITS], frozenset())
        if by_file:
            return by_file
        with Image.open(path) as image:
            size = _size(image.size)
        return known.get(digests_of(path)[2], frozenset()) if size in known else frozenset()
    except (ImageError, OSError, UnidentifiedImageError, ValueError, Image.DecompressionBombError):
        return frozenset()


def fitted_on(tool: Tool, parts: Collection[Part]) -> frozenset[Way]:
    """Whether a tool's model was trained on an image of these parts, and whether its calibration curve was fitted."""
    ways: set[Way] = set()
    if any(part.set in tool.trained_on for part in parts):
        ways.add("model")
    if isinstance(tool.calibration, Calibration) and any(_names(tool.calibration.fitted_on, part) for part in parts):
        ways.add("curve")
    return frozenset(ways)


def trained_on_count(tool: Tool, images: Iterable[Path]) -> int:
    """How many of these images a tool's model was trained on."""
    return sum("model" in fitted_on(tool, parts_of(image)) for image in images) if tool.trained_on else 0


def _names(sentence: str, part: Part) -> bool:
    names = "|".join(re.escape(name) for name in {part.set, TITLES.get(part.set, part.set)})
    splits = [REFERENCE] if sentence.startswith("synthetic") else re.findall(r"\bsplit (\w+)", sentence)
    return bool(re.search(rf"(?<!\w)(?:{names})(?!\w)", sentence)) and (not splits or part.split in splits)


def _size(sides: tuple[int, ...]) -> str:
    return f"{max(sides)}x{min(sides)}"


@lru_cache(maxsize=4)
def _known(file: Path) -> dict[str, frozenset[Part]]:
    """The parts by digest of file or pixels; the sizes are keys, too."""
    found: dict[str, set[Part]] = {}
    with file.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            for key in ("size", "file", "pixels"):
                found.setdefault(row[key], set()).add(Part(row["set"], row["split"]))
    return {key: frozenset(parts) for key, parts in found.items()}
