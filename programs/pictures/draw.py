"""Draw an assessment: the image, maps of its local damage, the measured regions, and a card of the scores."""

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain, count
from os import PathLike
from pathlib import Path, PurePath
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from agenticiqa.programs.errors import UserError
from agenticiqa.programs.images import ImageSource, name_of
from agenticiqa.programs.images.files import digest, printable_path
from agenticiqa.programs.images.own import is_own
from agenticiqa.programs.page.findings import measured
from agenticiqa.programs.pictures.canvas import FAINT, Canvas, Place, drawable, families, format_of
from agenticiqa.programs.pictures.card import draw_answer, draw_tables, height_of_answer, height_of_tables
from agenticiqa.programs.pictures.heatmap import Heatmap, blend, heatmaps, paint
from agenticiqa.programs.result import Assessment
from agenticiqa.programs.tools.numerics.pixels import RGB
from agenticiqa.signatures.types import GLOBAL, Box, ExecutorOutput
from agenticiqa.signatures.vocabulary import everyday_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

logger = logging.getLogger(__name__)

# Inches. The size of a picture does not depend on the pixels of the image. The text is legible if the picture is 830
# pixels wide, as in a README.
WIDTH, MARGIN, GAP, TITLE = 11.0, 0.25, 0.25, 0.5
LEAST_SLOT, HIGHEST = 3.3, 4.2  # the least width for a caption, the greatest height of an image
CAPTION, NOTE = 0.65, 0.2  # the height of a caption of two lines, of a further line
BAR_WIDTH, BAR_HEIGHT = 1.3, 0.13
DPI = 200
WIDE = 4  # images that are wider than this for their height are drawn below each other
TINY = 3  # images enlarged by more than this are drawn with square pixels
MIDDLE_GRAY = 150.0
LONGEST_NAME = 255  # bytes, on most file systems
LABEL = 0.24  # the height of a region's name in inches
BOX_COLORS = ("#0072b2", "#009e73", "#cc79a7", "#56b4e9")  # the colors of Okabe and Ito that the map does not use


def draw_assessment(result: Assessment, path: str | PathLike[str]) -> None:
    """Write a picture with the image, one or two maps of its local damage, and the scores.

    ::

        draw_assessment(program("photo.jpg"), "photo_map.png")

    The maps come from the tool that measured the overall quality and the tool for the main distortion. A tool without a
    map is replaced by the best one that has a map. Damage is measured at the image's own resolution, or with a
    reference at no more than 1600 pixels. Named regions are framed. The picture is 2200 pixels wide.

    Args:
        result: The result of ``AgenticIQA``.
        path: The file to write. Its suffix decides the format: PNG, JPEG, WebP, TIFF, BMP, GIF, AVIF or PDF.

    Raises:
        OSError: The file cannot be written.
        UserError: The suffix names another format.
    """
    format_of(Path(path))  # an error before the work
    maps, size = heatmaps(result), result.image.size
    panels, notes = 1 + max(len(maps), 1), max((len(_notes(heatmap, size)) for heatmap in maps), default=0)
    columns = 1 if size[0] > WIDE * size[1] else panels
    room = (WIDTH - 2 * MARGIN - GAP * (columns - 1)) / columns
    scale = min(room / size[0], HIGHEST / size[1])
    panel_width, panel_height = (max(side * scale, 1 / DPI) for side in size)
    slot, row = max(panel_width, LEAST_SLOT) + GAP, panel_height + CAPTION + NOTE * notes
    top, tables = TITLE + height_of_answer(result), height_of_tables(result)
    height = top + row * panels / columns + tables + MARGIN
    canvas = Canvas(WIDTH, height, DPI)
    canvas.write(MARGIN, height - 0.38, _title(result), size=13, room=WIDTH - 2 * MARGIN)
    draw_answer(canvas, result, MARGIN, height - TITLE)
    left = (WIDTH + GAP - columns * slot) / 2
    places: list[Place] = [
        (
            left + number % columns * slot,
            height - top - panel_height - number // columns * row,
            panel_width,
            panel_height,
        )
        for number in range(panels)
    ]
    _draw_panels(canvas, result, maps, places)
    draw_tables(canvas, result, MARGIN, MARGIN + tables)
    canvas.save(Path(path), mark_of(result.image.source))


def drawing_into(
    folder: Path, images: Iterable[ImageSource], inputs: Iterable[str] = ()
) -> Callable[[Assessment], dict[str, Any]]:
    """Return :func:`draw_to_dict` for these images and a folder; ``inputs`` are the paths that led to the images.

    Raises UserError if a file in the folder that is no drawn picture would be overwritten.
    """
    return partial(draw_to_dict, picture_paths(folder, images, inputs))


def picture_paths(folder: Path, images: Iterable[ImageSource], inputs: Iterable[str] = ()) -> dict[str, Path]:
    """Return the file for each image's picture, by the image's name; subfolders are repeated below ``folder``.

    An image below the current folder keeps its relative path: the picture of ``album/a.jpg`` is ``album/a.png``. The
    path of any other image starts at the folder in ``inputs`` that contains it, else at its own folder. An image
    without a path is named by its kind, as in bytes.png. The picture of another image, of this or an earlier run, is
    not overwritten: the next name is a-2.png. A name has at most 255 bytes.

    Raises UserError if a file that is no drawn picture (one of the images, say) would be overwritten.
    """
    roots = [os.path.abspath(name) for name in inputs]
    paths: dict[str, Path] = {}
    taken: set[str] = set()
    for source in dict.fromkeys(map(name_of, images)):
        place = _place(source, roots)
        below = folder.joinpath(*(_shortened(part) for part in place.parent.parts))
        endings = chain([".png"], (f"-{number}.png" for number in count(2)))
        own = place.name if "#" in place.suffix else place.stem  # a row of a table, as in train.parquet#12
        files = (below / _shortened(own, ending) for ending in endings)
        paths[source] = next(file for file in files if str(file).lower() not in taken and _is_free(file, source))
        taken.add(str(paths[source]).lower())  # file systems may ignore case
    return paths


def draw_to_dict(paths: Mapping[str, Path], result: Assessment) -> dict[str, Any]:
    """Draw a result to its path in ``paths``, and return its ``to_dict()`` with that path under ``map``.

    A picture that cannot be drawn is logged as an error, and ``map`` is then ``None``.
    """
    source = result.image.source
    try:
        draw_assessment(result, paths[source])
    except Exception as error:  # any error, because the result is kept if its picture cannot be drawn
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        if isinstance(error, OSError) and error.strerror:  # ``write_atomically`` renames: its error has two names
            reason = f"{printable_path(paths[source])} cannot be written ({error.strerror})"
        logger.error("%s: the image was assessed, but its picture could not be drawn: %s", source, reason)
        return {**result.to_dict(), "map": None}
    return {**result.to_dict(), "map": printable_path(paths[source])}


def _place(source: str, roots: Iterable[str]) -> PurePath:
    """Return the path of an image's picture below the folder of pictures, still with the image's suffix."""
    if source.startswith("<"):
        return PurePath(source.strip("<>"))
    path = Path(os.path.abspath(source))
    if path.is_relative_to(Path.cwd()):
        return path.relative_to(Path.cwd())
    root = next((root for name in roots if (root := Path(name)) in path.parents), path.parent)
    return PurePath(root.name, path.relative_to(root))


def _shortened(name: str, ending: str = "") -> str:
    """Return a file name with an ending, cut to the length that file systems allow."""
    room = LONGEST_NAME - len(ending)
    return name.encode(errors="replace")[:room].decode(errors="ignore") + ending


def _is_free(file: Path, source: str) -> bool:
    """Return whether a picture can be drawn to a file: it is new, or an earlier picture of the same image.

    Raises UserError for a file that this program has not drawn.
    """
    if not os.path.lexists(file) or is_own(file, mark_of(source)):
        return True
    if not (is_own(file) or file.is_dir()):
        raise UserError(
            f"{printable_path(file)}: the file exists and is not a picture of an assessment; name another folder"
        )
    return False


def mark_of(source: str) -> str:
    """Return the mark that identifies the image in a drawn file: a digest, so that the path is not disclosed."""
    return digest(os.path.abspath(source))


def _draw_panels(canvas: Canvas, result: Assessment, maps: Sequence[Heatmap], places: Sequence[Place]) -> None:
    """Draw the image and its maps, each with the frames of the regions, and a caption below it."""
    image, boxes, place = result.image, _boxes(result.executor_evidence), places[0]
    drawn = (max(round(place[2] * DPI), 1), max(round(place[3] * DPI), 1))
    _frame(canvas.image(place, _scaled(image.pixels, drawn), image.size), place, boxes, image.size)
    canvas.write(place[0], place[1] - 0.22, f"the image, {image.size[0]} x {image.size[1]} pixels")
    for heatmap, place in zip(maps, places[1:], strict=False):
        _frame(canvas.image(place, paint(image.pixels, heatmap, drawn), image.size), place, boxes, image.size)
        _caption(canvas, place, heatmap, image.size)
    if not maps:
        canvas.panel(places[1])
        canvas.write(places[1][0], places[1][1] - 0.22, "no damage map is available for this image", color=FAINT)


def _scaled(pixels: RGB, size: tuple[int, int]) -> RGB:
    """Return pixels (h, w, 3) at ``size`` (width, height), as squares if they are enlarged a lot."""
    squares = size[0] > TINY * pixels.shape[1]
    resampling = Image.Resampling.NEAREST if squares else Image.Resampling.LANCZOS
    return np.asarray(Image.fromarray(pixels).resize(size, resampling))


def _title(result: Assessment) -> str:
    name = Path(result.image.source).name
    return f"{name}, compared with {Path(result.reference.source).name}" if result.reference else name


def _boxes(evidence: ExecutorOutput) -> dict[str, Box]:
    """Return the box of each named region (as found, else the measured crop) and of each damaged part."""
    measured = {call.region: call.box for call in evidence.tool_log}
    parts: dict[Box, list[str]] = {}
    for part in chain.from_iterable((evidence.local_damage or {}).values()):
        parts.setdefault(part.box, []).append(part.type)
    damaged = {", ".join(dict.fromkeys(types)): box for box, types in parts.items()}
    regions = {**measured, **(evidence.boxes or {})}
    return {region: box for region, box in regions.items() if box and region != GLOBAL} | damaged


def _frame(axes: "Axes", place: Place, boxes: Mapping[str, Box], size: tuple[int, int]) -> None:
    """Frame the regions and write their names, and move a name down if it would cover another one."""
    from matplotlib.patches import Rectangle

    width, height = size
    step = LABEL * height / place[3]
    places: list[tuple[float, float]] = []
    for number, (region, (left, top, right, bottom)) in enumerate(boxes.items()):
        color = BOX_COLORS[number % len(BOX_COLORS)]
        for edge, thickness in (("white", 4.0), (color, 2.2)):
            sides = Rectangle((left, top), right - left, bottom - top, fill=False, edgecolor=edge, linewidth=thickness)
            sides.set_clip_on(False)  # the outer half of a frame at the image's border
            axes.add_patch(sides)
        y = float(top)
        while any(abs(y - other) < step and abs(left - x) < width / 3 for x, other in places):
            y += step
        places.append((left, y))
        axes.annotate(
            drawable(shorten(region, 30, placeholder="...")),
            (left, y),
            xytext=(5, -5),
            textcoords="offset points",
            va="top",
            color="white",
            fontfamily=families(),
            fontsize=9,
            parse_math=False,
            bbox={"facecolor": color, "edgecolor": "white", "linewidth": 0.8, "pad": 2},
        )
    axes.set(xlim=(0, width), ylim=(height, 0))


def _caption(canvas: Canvas, place: Place, heatmap: Heatmap, size: tuple[int, int]) -> None:
    """Write the caption below a map: what was measured by which tool, the legend of the colors, and notes."""
    left, bottom, width, _ = place
    subject = measured(heatmap.tool, heatmap.subject)
    about = subject if subject == "overall quality" else everyday_name(subject)
    about = f"damage map: {about} ({heatmap.tool})"
    canvas.write(left, bottom - 0.22, about, size=10, room=max(width, LEAST_SLOT) + GAP / 2)
    x = canvas.write(left, bottom - 0.45, "as in good photos" if heatmap.start else "none") + 0.1
    shares = np.tile(np.linspace(0, 1, 256), (2, 1))
    canvas.image((x, bottom - 0.47, BAR_WIDTH, BAR_HEIGHT), blend(np.full(shares.shape, MIDDLE_GRAY), shares))
    canvas.write(x + BAR_WIDTH + 0.1, bottom - 0.45, "extreme" if heatmap.absolute else "worst here")
    for number, note in enumerate(_notes(heatmap, size)):
        canvas.write(left, bottom - 0.66 - NOTE * number, note, size=9.5, color=FAINT)


def _notes(heatmap: Heatmap, size: tuple[int, int]) -> list[str]:
    """Return the lines below the legend of a map of an image of ``size`` (width, height)."""
    reduced = [f"measured at {heatmap.size[0]} x {heatmap.size[1]} pixels"] if heatmap.size != size else []
    return reduced if heatmap.chosen else [*reduced, f"{heatmap.tool} did not contribute to the result"]
