"""Find where an image lies in its reference, and describe it."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from agenticiqa.programs.images.files import one_line
from agenticiqa.programs.images.loaded import LoadedImage
from agenticiqa.programs.images.recolored import recoloring
from agenticiqa.programs.images.registration import SAME_ELSEWHERE, Match, Size, corners, find_match, find_turn
from agenticiqa.signatures.types import Box

Kind = Literal["identical", "in place", "shifted", "part", "scaled", "another picture", "unknown"]

LEAST_SHIFT = 0.5  # pixels: a smaller shift is ignored
WHOLE = 0.15  # pixels: a shift this near to a whole number is reported as that number
ADVICE = "set align (--align) to compare only the area that both show"


class ReferenceCheck(BaseModel):
    """The place of an image in its reference, by their structure.

    ``relation``: ``identical`` pixels; ``in place``; ``shifted`` by ``shift``, (right, down) in the image's pixels;
    ``part``, where the image shows only ``box`` of the reference (left, top, right, bottom), or more than all of it, at
    ``scale`` reference pixels per pixel of its own; ``scaled``, all of the reference at another size; ``another
    picture``, with which no comparison is made; ``unknown``, where a side is below 32 pixels or there is no structure.

    ``similarity`` is the correlation of structure where both overlap, up to 1, ``confidence`` the height of the peak of
    the phase correlation, 0 to 1. ``colors`` says that red and blue of the reference are swapped in the image, else is
    empty. ``aligned`` says that the overlap was measured. ``sentence`` is a remark for the reader, empty if there is no
    problem.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_serialization_defaults_required=True)

    relation: Kind
    shift: tuple[float, float] | None = None
    scale: float | None = None
    box: Box | None = None
    similarity: float | None = None
    confidence: float | None = None
    colors: str = ""
    aligned: bool = False
    sentence: str = ""

    @property
    def fits(self) -> bool:
        """Return whether the reference may be compared with the image, as far as known."""
        return self.relation != "another picture"


@dataclass(frozen=True)
class Relation:
    """The relation of an image and its reference: ``turn`` is how the image is turned, ``colors`` as in the check."""

    kind: Kind
    match: Match | None = None
    turn: str = ""
    colors: str = ""


def relate(image: LoadedImage, reference: LoadedImage) -> Relation:
    """Find where an image lies in its reference, of any size."""
    if image.same_pixels(reference):
        return Relation("identical")
    match = find_match(image.pixels, reference.pixels)
    if match is None:
        return Relation("unknown", colors=recolored(image, reference) if image.size == reference.size else "")
    turn = find_turn(match) if match.similarity < SAME_ELSEWHERE else ""
    if turn or not match.shows_same:
        return Relation("another picture", match, turn)
    return Relation(_kind(match), match, colors=recolored(image, reference, match))


def _kind(match: Match) -> Kind:
    if match.one_size and match.one_scale:
        return "in place" if np.abs(match.shift).max() < LEAST_SHIFT else "shifted"
    beyond = np.abs(match.in_reference() - [(0, 0), match.reference.size]).max()
    return "scaled" if beyond <= max(1.0, match.scale[0]) and not match.one_size else "part"


def recolored(image: LoadedImage, reference: LoadedImage, match: Match | None = None) -> str:
    """Describe how the image has the reference's channels swapped, or return "": see ``images.recolored``.

    It is computed once, where ``match`` places the image in the reference, by default in place.
    """

    def compute() -> str:
        if match is None:
            return recoloring(image.pixels, reference.pixels)
        here, there = corners(match.overlap), corners(match.within_reference(match.overlap))
        return recoloring(image.pixels, reference.pixels, here, there)

    return reference.memo.once(("recolored", image.sha256, image.size), compute)


def checked_reference(relation: Relation, reference: LoadedImage, how: str = "") -> ReferenceCheck:
    """Return the check with its sentence; ``how`` describes the alignment, by default none."""
    kind, match = relation.kind, relation.match
    values: dict[str, Any] = {"similarity": 1.0, "confidence": 1.0} if kind == "identical" else {}
    sentences = []
    if relation.colors:
        sentences.append(f"Compared with the reference, {relation.colors}; this lowers the score.")
    if match:
        values["similarity"] = round(match.similarity, 4)
    if match and kind == "another picture":
        shows = f"shows the image {relation.turn}" if relation.turn else "shows another picture"
        sentences.append(
            f"The reference {reference.source} {shows} (structural similarity {max(match.similarity, 0.0):.2f}). It "
            "was not used for the score. Only tools that the question names compare the image with it."
        )
    elif match:
        values["confidence"] = round(match.confidence, 4)
        if kind == "shifted":
            values["shift"] = [round(offset, 2) + 0.0 for offset in match.shift.tolist()]
        elif kind in ("part", "scaled"):
            values |= {"scale": round(float(match.scale.mean()), 4), "box": _box(match)}
        if kind in ("shifted", "part") or how:
            effect = how or f"without alignment, this lowers the score; {ADVICE}"
            sentences.append(f"{place_in_words(kind, match)}: {effect}.")
    sentence = one_line(" ".join(sentences))
    return ReferenceCheck(relation=kind, colors=relation.colors, aligned=bool(how), sentence=sentence, **values)


def refusal_of_size(relation: Relation, image: Size, reference: Size) -> str:
    """Return why a reference of another size is refused, the relation found, and what to do."""
    wanted, got = (f"{width}x{height}" for width, height in (image, reference))
    refused = f"expected a reference of the image's size {wanted}, got {got}"
    kind, match = relation.kind, relation.match
    if match is None:
        return f"{refused}; give one of that size, or set resize_reference"
    if relation.turn:
        return f"{refused}; the reference shows the image {relation.turn}: rotate or mirror one of them"
    if kind == "another picture":
        return f"{refused}; the reference shows another picture: give the image's own reference"
    place = place_in_words(kind, match)
    refused = f"{refused}: {place[0].lower()}{place[1:]}"
    if kind == "scaled":
        return f"{refused}; set resize_reference (--resize-reference) or align (--align)"
    return f"{refused}; {ADVICE}; resize_reference would distort the reference"


def place_in_words(kind: Kind, match: Match) -> str:
    """Describe where a shifted or scaled image lies in its reference, or which picture is a part of the other."""
    across, down = match.scale.tolist()
    if kind == "shifted":
        offsets = zip(match.shift.tolist(), (("right", "left"), ("down", "up")), strict=True)
        parts = [f"{_pixels(abs(by))} {words[by < 0]}" for by, words in offsets if abs(by) >= WHOLE]
        sure = f"(confidence {match.confidence:.2f})"
        return f"The image is shifted by {', '.join(parts)} relative to its reference {sure}"
    if kind == "scaled":
        if abs(across - down) < 0.01 * across:
            return f"The reference shows the same scene at {across:.3g} times the size"
        return f"The reference shows the same scene, {across:.3g} times as wide and {down:.3g} times as high"
    scale = (across + down) / 2
    is_resized = abs(scale - 1) >= 0.002
    start, end = match.in_reference()
    if start.min() >= -1 and (end <= np.add(match.reference.size, 1)).all():
        size = f" at {1 / scale:.3g} times its size" if is_resized else ""
        return f"The image shows only the part {list(_box(match))} of its reference{size}"
    size = f", at {scale:.3g} times its size" if is_resized else ""
    return f"The reference shows only the part {[round(end) for end in match.overlap.flat]} of the image{size}"


def _box(match: Match) -> Box:
    """Return the part of the reference that the image shows, in whole pixels."""
    left, top, right, bottom = (round(end) for end in corners(match.within_reference()))
    return left, top, right, bottom


def _pixels(offset: float) -> str:
    return f"{offset:.0f} px" if abs(offset - round(offset)) <= WHOLE else f"{offset:.1f} px"
