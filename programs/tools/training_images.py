"""Recognize images that the shipped tools were fitted on, by digests; the images do not ship.

A tool is fitted on an image in two ways: its model was trained on it (``Tool.trained_on``), or its curve
was (``ToolCurve.fitted_to``). Agreement with MOS on these images is better than on new ones. The digests are in
``training_images.csv``, written by ``agenticiqa.eval.research.training_images``: of each image the first 4 bytes of
the SHA-256 of its file and of its decoded pixels, so that a lossless copy in another format is also recognized. One in
a hundred thousand other images is recognized by mistake.
The detectors of distortions and of local damage, which are not tools, were also trained on the photos of the packages.
"""

import base64
import csv
import hashlib
from collections.abc import Collection, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from agenticiqa.programs.errors import ImageError
from agenticiqa.programs.images.files import sha256_of
from agenticiqa.programs.images.loading import load_pixels, size_of
from agenticiqa.programs.tools.tool import Tool
from agenticiqa.programs.tools.tool_curves import ToolCurve

FILE = Path(__file__).with_name("training_images.csv")
DIGEST = 4  # bytes
REFERENCE = "reference"  # the split of source images, and of all sources of synthetic levels
ADAPTER = "adapter"  # the "set" of an image that the adapter was fitted to
Way: TypeAlias = Literal["model", "curve", "adapter"]


class Part(NamedTuple):
    """A split of a data set: empty where the set has none, ``REFERENCE`` for references."""

    set: str
    split: str

    def __str__(self) -> str:
        return f"{self.set}/{self.split}"


def digests_of(path: Path) -> tuple[str, bytes, bytes]:
    """Return size (longer side first), digest of the file, digest of the pixels. Raises ImageError and OSError."""
    pixels = load_pixels(path)
    content = hashlib.sha256(f"{pixels.shape}".encode() + pixels.tobytes()).digest()
    return _size(pixels.shape[:2]), _of_file(path), content[:DIGEST]


def parts_of(path: Path, file: Path | None = None) -> frozenset[Part]:
    """Return the parts of the sets in ``file`` (default: shipped) that contain an image; none if it is unreadable.

    An image is decoded only if one of its size is in the file.
    """
    known = _known(file or FILE)
    try:
        if by_file := known.get(_of_file(path)):
            return by_file
        is_known = _size(size_of(path)) in known
        return known.get(digests_of(path)[2], frozenset()) if is_known else frozenset()
    except (ImageError, OSError):
        return frozenset()


def fitted_on(tool: Tool, parts: Collection[Part]) -> frozenset[Way]:
    """Return whether a tool's model was trained on an image of these parts, and whether its curve was fitted on one."""
    ways: set[Way] = set()
    if any(part.set in tool.trained_on for part in parts):
        ways.add("model")
    if tool.name == "LEARNED-IQA" and any(part.set == ADAPTER for part in parts):
        ways.add("adapter")
    curve = tool.curve
    if isinstance(curve, ToolCurve) and any({part.set, str(part)} & {*curve.fitted_to} for part in parts):
        ways.add("curve")
    return frozenset(ways)


def parts_named(images: Iterable[Path]) -> tuple[str, ...]:
    """Return the parts of the shipped sets that contain any of these images, as "SET/SPLIT", sorted."""
    return tuple(sorted({str(part) for image in images for part in parts_of(image)}))


def trained_on_count(tool: Tool, images: Iterable[Path]) -> int:
    """Return how many of these images a tool's model was trained on."""
    return sum("model" in fitted_on(tool, parts_of(image)) for image in images) if tool.trained_on else 0


def _size(sides: tuple[int, ...]) -> str:
    return f"{max(sides)}x{min(sides)}"


def _of_file(path: Path) -> bytes:
    return bytes.fromhex(sha256_of(path))[:DIGEST]


@lru_cache(maxsize=4)
def _known(file: Path) -> dict[str | bytes, frozenset[Part]]:
    """Return the parts by digest of file or pixels; the sizes are also keys."""
    sets: dict[str | bytes, set[Part]] = {}
    with file.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            digests = base64.b64decode(row["digests"])
            for key in (row["size"], *(digests[at : at + DIGEST] for at in range(0, len(digests), DIGEST))):
                sets.setdefault(key, set()).add(Part(row["set"], row["split"]))
    return {key: frozenset(parts) for key, parts in sets.items()}
