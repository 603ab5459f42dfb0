"""An assessment as a picture: the image, where it is bad, the regions that were measured, and a card of the scores."""

import logging
from collections.abc import Iterable, Mapping
from itertools import chain, count
from os import PathLike
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import dspy
import numpy as np
from PIL import Image

from agenticiqa.programs.errors import UserError
from agenticiqa.programs.pictures.canvas import FAINT, Canvas, Place, is_sheet
from agenticiqa.programs.pictures.card import ROW, draw_card, rows_of
from agenticiqa.programs.pictures.heatmap import Heat, blend, heats, paint
from agenticiqa.programs.result import to_json
from agenticiqa.signatures.types import GLOBAL, OVERALL, Box, ExecutorOutput

if TYPE_CHECKING:
    from matplotlib.axes import Axes

logger = logging.getLogger(__name__)

SMALLEST, LARGEST = 800, 1200  # pixels of a drawn image's longer side
LONGER_SIDE = 7.0  # the same in inches: text keeps its size beside the image, whatever the image's pixels
LEAST_WIDTH, LEAST_SLOT = 11.0, 3.4  # inches: of the sheet, for the card's columns, and under an image, for its caption
MARGIN, GAP, TITLE, CAPTION = 0.35, 0.45, 0.6, 1.2
BAR_WIDTH, BAR_HEIGHT = 3.2, 0.13
TINY = 3  # scaled up by more than this, pixels are drawn as squares
MIDDLE_GREY = 150.0
LABEL = 0.24  # the height of a region's name
BOX_COLOURS = ("#0072b2", "#009e73", "#cc79a7", "#56b4e9")  # Okabe and Ito's, without those near the map's


def draw_assessment(result: dspy.Prediction, path: str | PathLike[str]) -> None:
    """Draw what the program found, as a PNG: the image at the left, one map of its damage or two beside it, the scores.

    ``result`` is what ``AgenticIQA`` returns::

        draw_assessment(program("photo.jpg"), "photo_map.png")

    The maps are those of the tool that rated the quality overall and of the one for the main distortion; where a tool
    has no map, the best one that has. Images are drawn with a longer side of 800 to 1200 pixels; damage is measured at
    the image's own resolution, against a reference at no more than 1600 pixels. Named regions are framed. Raises
    OSError when the file cannot be written.
    """
    image, maps = result.image, heats(result)
    drawn = _drawn_size(image.size)
    wide, high = (LONGER_SIDE * side / max(drawn) for side in drawn)
    slot, panels = max(wide, LEAST_SLOT), 1 + max(len(maps), 1)
    taken = panels * slot + (panels - 1) * GAP
    rows = rows_of(result)
    card_height = ROW * (rows + 1)
    width, height = max(2 * MARGIN + taken, LEAST_WIDTH), TITLE + high + CAPTION + card_height + MARGIN
    sheet = Canvas(width, height, dpi=max(drawn) / LONGER_SIDE)
    bottom = height - TITLE - high
    places = [((width - taken) / 2 + number * (slot + GAP), bottom, wide, high) for number in range(panels)]
    boxes = _boxes(result.executor_evidence)
    sheet.write(MARGIN, height - 0.4, _title(result), size=13, weight="bold")
    squares = drawn[0] > TINY * image.width
    scaled = Image.fromarray(image.pixels).resize(
        drawn, Image.Resampling.NEAREST if squares else Image.Resampling.LANCZOS
    )
    _frame(sheet.image(places[0], np.asarray(scaled), image.size), places[0], boxes, image.size)
    sheet.write(places[0][0], bottom - 0.25, _size_told(image.size, drawn), colour=FAINT)
    for heat, place in zip(maps, places[1:], strict=False):
        _frame(sheet.image(place, paint(image.pixels, heat, drawn), image.size), place, boxes, image.size)
        _caption(sheet, place, heat, image.size)
    if not maps:
        told = "no tool has a map\nof such an image"
        sheet.panel(places[1]).text(0.5, 0.5, told, ha="center", va="center", color=FAINT)
    draw_card(sheet, result, (MARGIN, MARGIN, width - 2 * MARGIN, card_height))
    sheet.save(Path(path))


def picture_paths(folder: Path, images: Iterable[Path]) -> dict[str, Path]:
    """Where each image's picture goes: its stem, and where images share one, b.png, b-2.png in the order given.

    Raises UserError where a file would be replaced that is no such picture: one of the images, say.
    """
    paths: dict[str, Path] = {}
    taken: set[str] = set()
    for image in dict.fromkeys(images):
        names = chain([image.stem], (f"{image.stem}-{number}" for number in count(2)))
        name = next(name for name in names if name.lower() not in taken)  # file systems may not tell cases apart
        taken.add(name.lower())
        paths[str(image)] = path = folder / f"{name}.png"
        if path.exists() and not is_sheet(path):
            raise UserError(f"{path} is there already and is no picture of an assessment: name another folder")
    return paths


def drawn_to_json(paths: Mapping[str, Path], result: dspy.Prediction) -> dict[str, Any]:
    """A result as ``result.to_json`` has it, after drawing it; a picture that fails is a warning, and no more."""
    source = result.image.source
    try:
        draw_assessment(result, paths[source])
    except Exception as error:  # whatever a drawing library raises, the result is worth more than its picture
        reason = " ".join(str(error).split())
        logger.warning("%s: judged, but no picture was drawn: %s: %s", source, type(error).__name__, reason)
    return to_json(result)


def _drawn_size(size: tuple[int, int]) -> tuple[int, int]:
    longer = max(size)
    scale = min(max(longer, SMALLEST), LARGEST) / longer
    width, height = (max(round(side * scale), 1) for side in size)
    return width, height


def _title(result: dspy.Prediction) -> str:
    name = Path(result.image.source).name
    return shorten(f"{name} vs {Path(result.reference.source).name}" if result.reference else name, 90)


def _size_told(size: tuple[int, int], drawn: tuple[int, int]) -> str:
    told = f"the image, {size[0]} x {size[1]} pixels"
    return told if size == drawn else f"{told}, drawn at {drawn[0]} x {drawn[1]}"


def _boxes(evidence: ExecutorOutput) -> dict[str, Box]:
    """Each named region with where it was found, or else with the crop of it that was measured."""
    measured = {call.region: call.box for call in evidence.tool_log}
    return {region: box for region, box in {**measured, **(evidence.boxes or {})}.items() if box and region != GLOBAL}


def _frame(axes: "Axes", place: Place, boxes: Mapping[str, Box], size: tuple[int, int]) -> None:
    """Frame and name the regions; a name that would cover another one moves down."""
    from matplotlib.patches import Rectangle

    width, height = size
    step = LABEL * height / place[3]
    named: list[tuple[float, float]] = []
    for number, (region, (left, top, right, bottom)) in enumerate(boxes.items()):
        colour = BOX_COLOURS[number % len(BOX_COLOURS)]
        for edge, thickness in (("white", 4.0), (colour, 2.2)):
            sides = Rectangle((left, top), right - left, bottom - top, fill=False, edgecolor=edge, linewidth=thickness)
            sides.set_clip_on(False)  # the outer half of a frame at the image's border
            axes.add_patch(sides)
        y = float(top)
        while any(abs(y - other) < step and abs(left - x) < width / 3 for x, other in named):
            y += step
        named.append((left, y))
        axes.annotate(
            shorten(region, 30, placeholder="..."),
            (left, y),
            xytext=(5, -5),
            textcoords="offset points",
            va="top",
            color="white",
            fontsize=9,
            parse_math=False,
            bbox={"facecolor": colour, "edgecolor": "white", "linewidth": 0.8, "pad": 2},
        )
    axes.set(xlim=(0, width), ylim=(height, 0))


def _caption(sheet: Canvas, place: Place, heat: Heat, size: tuple[int, int]) -> None:
    """What a map is of, and its scale as a bar with both ends in words."""
    left, bottom, _, _ = place
    subject = "quality overall" if heat.subject == OVERALL else heat.subject
    sheet.write(left, bottom - 0.25, f"where it is bad: {subject}, by {heat.tool}")
    shares = np.tile(np.linspace(0, 1, 256), (2, 1))
    sheet.image((left, bottom - 0.5, BAR_WIDTH, BAR_HEIGHT), blend(np.full(shares.shape, MIDDLE_GREY), shares))
    start = f"{heat.start:.2g}: usual" if heat.start else "0: nothing wrong"
    sheet.write(left, bottom - 0.68, start, size=8, colour=FAINT)
    end = "extreme distortion" if heat.absolute else "worst place here"
    sheet.write(left + BAR_WIDTH, bottom - 0.68, f"{heat.end:.2g}: {end}", size=8, colour=FAINT, align="right")
    notes = [] if heat.size == size else [f"measured at {heat.size[0]} x {heat.size[1]}"]
    notes += [] if heat.chosen else [f"{heat.tool} has no part in the rating"]
    sheet.write(left, bottom - 0.88, "; ".join(notes), size=8, colour=FAINT)
