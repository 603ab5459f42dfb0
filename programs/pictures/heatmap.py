"""Where an image is bad, as colours over it: which tool's map to show, on what scale, and how it is painted."""

import logging
from dataclasses import dataclass

import dspy
import numpy as np
import scipy
from PIL import Image

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.tools import Tool, toolbox
from agenticiqa.programs.tools.numerics.pixels import RGB, Plane
from agenticiqa.programs.tools.tool import best_for
from agenticiqa.signatures.types import GLOBAL, OVERALL, ExecutorOutput
from agenticiqa.signatures.vocabulary import SEVERITIES

logger = logging.getLogger(__name__)

# ColorBrewer's YlOrRd: brightness falls all the way, so it also reads without colour vision.
STOPS = np.array([(255, 255, 204), (254, 217, 118), (253, 141, 60), (227, 26, 28), (128, 0, 38)], dtype=float)
DENSEST = 0.9  # how much of the grey image the colour covers at the scale's end; at no damage nothing
WORKING = 1600  # pixels of the longer side at which a pair is compared; noise and blocking alone need every pixel
AVERAGED = 80  # local damage is averaged over about this part of the longer side: where it is bad, not each pixel of it


@dataclass(frozen=True)
class Heat:
    """One map: whose it is, what it is about, local damage of shape (h, w), and the damage at both ends of the colours.

    ``size`` (width, height) is that of the image as it was measured. ``chosen``: whether the assessment itself used the
    tool. ``absolute``: whether ``end`` is the same for every image; else it is the largest damage of this one.
    """

    tool: str
    subject: str
    damage: Plane
    size: tuple[int, int]
    start: float
    end: float
    chosen: bool
    absolute: bool


def heats(result: dspy.Prediction) -> list[Heat]:
    """The maps of a finished assessment: of quality overall, then of the main distortion, if another tool shows that.

    The tool that the assessment chose for it, or where that has no map the best that has one; without a reference one
    made for the distortion, where the same tool was chosen for both. Empty when none can be drawn of this image.
    """
    evidence: ExecutorOutput = result.executor_evidence
    image, reference = result.image, result.reference
    kind = "FR" if reference is not None else "NR"
    with_map = {name: card for name, card in toolbox().items() if card.map and _fits(card, image, kind)}
    found: dict[str, Heat] = {}
    for subject in filter(None, (OVERALL, main_distortion(evidence))):
        used = _chosen(evidence, subject)
        card = with_map.get(used or "") or best_for(subject, [*with_map.values()])
        if card is not None and card.name in found:
            card = _more_specific(subject, [other for name, other in with_map.items() if name not in found], kind)
        if card and (heat := _heat(card, subject, image, reference, chosen=card.name == used)):
            found[card.name] = heat
    return [*found.values()]


def main_distortion(evidence: ExecutorOutput) -> str | None:
    """The distortion of the highest severity, the first of several; ``None`` if none is there."""
    seen = [item for items in (evidence.distortion_analysis or {}).values() for item in items]
    worst = max(seen, key=lambda item: SEVERITIES.index(item.severity), default=None)
    return None if worst is None or worst.severity == SEVERITIES[0] else worst.type


def paint(pixels: RGB, heat: Heat, size: tuple[int, int]) -> RGB:
    """The image in grey under the colours of its damage, at ``size`` (width, height), uint8."""
    grey = np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.BILINEAR).convert("L"), float)
    return blend(grey, (drawn_damage(heat.damage, heat.size, size) - heat.start) / (heat.end - heat.start))


def blend(grey: Plane, share: Plane) -> RGB:
    """Grey levels (h, w) in 0..255 under the colours of a share of the scale: (h, w, 3), uint8."""
    share = np.clip(share, 0, 1)
    cover = DENSEST * share[..., None] ** 0.6
    at = np.linspace(0, 1, len(STOPS))
    colours = np.stack([np.interp(share, at, channel) for channel in STOPS.T], axis=-1)
    return np.rint((1 - cover) * grey[..., None] + cover * colours).astype(np.uint8)


def drawn_damage(damage: Plane, measured: tuple[int, int], size: tuple[int, int]) -> Plane:
    """A map (h, w) of square cells from the top left of an image, averaged and drawn; sizes are (width, height).

    The last cells may reach beyond the image: the cell's side is found by what divides both sides of the image so.
    """
    (width, height), (rows, columns) = measured, damage.shape
    sides = [s for s in range(1, max(height, width) + 1) if -(-height // s) == rows and -(-width // s) == columns]
    side = max(sides, key=lambda side: side & -side, default=None)  # the one with most factors of two
    covered = (width / side, height / side) if side else (columns, rows)
    plane = Image.fromarray(damage.astype(np.float32)).resize(size, Image.Resampling.BILINEAR, box=(0, 0, *covered))
    return scipy.ndimage.gaussian_filter(np.asarray(plane, float), max(size) / AVERAGED, mode="nearest")


def _fits(card: Tool, image: LoadedImage, kind: str) -> bool:
    return card.kind == kind and card.smallest <= min(image.size)


def _chosen(evidence: ExecutorOutput, subject: str) -> str | None:
    """The tool that measured a distortion or the quality overall: of the whole image, if that was measured."""
    scores = evidence.quality_scores or {}
    for by_subject in (scores.get(GLOBAL, {}), *scores.values()):
        for key, (tool, _) in by_subject.items():
            if key.startswith(subject):
                return tool
    return None


def _more_specific(subject: str, cards: list[Tool], kind: str) -> Tool | None:
    """A tool made for the distortion that shows where it is. A full-reference map shows every distortion already."""
    made_for = [card for card in cards if subject in card.good_at]
    return best_for(subject, made_for) if kind == "NR" else None


def _heat(card: Tool, subject: str, image: LoadedImage, reference: LoadedImage | None, *, chosen: bool) -> Heat | None:
    assert card.map
    pair = [image.pixels, *([reference.pixels] if reference else [])]
    if reference and max(image.size) > WORKING:
        pair = [_reduced(pixels) for pixels in pair]
    try:
        damage = card.map(*pair)
    except ToolError as error:
        logger.info("no map of %s: %s", card.name, error)
        return None
    end, largest = card.map_end, float(damage.max(initial=0))
    absolute = end is not None or largest == 0
    size, start = (pair[0].shape[1], pair[0].shape[0]), card.map_start
    return Heat(card.name, subject, damage, size, start, end or largest or 1.0, chosen, absolute)


def _reduced(pixels: RGB) -> RGB:
    image = Image.fromarray(pixels)
    scale = WORKING / max(image.size)
    width, height = (max(round(side * scale), 1) for side in image.size)
    return np.asarray(image.resize((width, height), Image.Resampling.LANCZOS))
