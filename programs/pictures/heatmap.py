"""Select damage maps of tools, set their color scales, and paint them over the gray image."""

import logging
from dataclasses import dataclass

import numpy as np
import scipy
from PIL import Image

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.offline.measured.patches import patch_severities
from agenticiqa.programs.page.findings import distortions_of
from agenticiqa.programs.result import Assessment
from agenticiqa.programs.tools import Tool, toolbox
from agenticiqa.programs.tools.numerics.pixels import RGB, Plane
from agenticiqa.programs.tools.tool import best_for
from agenticiqa.signatures.categories import OVERALL
from agenticiqa.signatures.types import GLOBAL, DistortionAnalysis, ExecutorOutput
from agenticiqa.signatures.vocabulary import SEVERITIES

logger = logging.getLogger(__name__)

# ColorBrewer's YlOrRd: brightness falls monotonically, which also works without color vision.
STOPS = np.array([(255, 255, 204), (254, 217, 118), (253, 141, 60), (227, 26, 28), (128, 0, 38)], dtype=float)
DENSEST = 0.9  # opacity of the color over the gray image at the scale's end; 0 where there is no damage
WORKING = 1600  # pixels of the longer side at which a pair is compared; without a reference every pixel is used
DETECTOR = "the detector"  # what found the distortion, if no tool did
SEEN = 0.5  # the least severity that is visible
VISIBLE_SHARE = 0.15  # share of a color scale from which a color is visible on gray
AVERAGED = 80  # the map is smoothed with a Gaussian of 1/80 of the longer side, to show areas, not pixels


@dataclass(frozen=True)
class Heatmap:
    """One map: the tool, its subject (a distortion or "Overall"), local damage (h, w) >= 0, and its color scale.

    ``size`` (width, height) is the size of the measured image. Colors run from damage ``start`` to ``end``. ``chosen``
    is whether the assessment used the tool. ``absolute`` is whether ``end`` is the same for every image; otherwise it
    is the largest damage in this one.
    """

    tool: str
    subject: str
    damage: Plane
    size: tuple[int, int]
    start: float
    end: float
    chosen: bool
    absolute: bool


def heatmaps(result: Assessment) -> list[Heatmap]:
    """Return at most two maps: of the overall quality, and of the main distortion if another tool shows it.

    Each comes from the tool that the assessment chose, or if it has no map, from the best tool that has one. If the
    same tool was chosen for both and there is no reference, the second comes from a tool made for the distortion. If
    the main distortion is in a part of the image, or the tool's map does not show it, the second comes from the
    detector. The list is empty if no tool has a map of the image.
    """
    evidence, image, reference = result.executor_evidence, result.image, result.reference
    kind = "FR" if reference is not None else "NR"
    with_map = {name: tool for name, tool in toolbox().items() if tool.map and _fits(tool, image, kind)}
    maps: dict[str, Heatmap] = {}
    for subject in filter(None, (OVERALL, main_distortion(evidence))):
        used = _chosen(evidence, subject)
        tool = with_map.get(used or "") or best_for(subject, [*with_map.values()])
        if tool is not None and tool.name in maps:
            tool = _more_specific(subject, [other for name, other in with_map.items() if name not in maps], kind)
        if tool and (heatmap := _heatmap(tool, subject, image, reference, chosen=tool.name == used)):
            maps[tool.name] = heatmap
    main = main_finding(evidence)
    if main and reference is None:
        finding_map = next((heatmap for heatmap in maps.values() if heatmap.subject == main.type), None)
        if main.type in _local_types(evidence) or finding_map is None or not _shows_anything(finding_map):
            maps = {name: heatmap for name, heatmap in maps.items() if heatmap.subject == OVERALL}
            if own := _detectors_map(image, main):
                maps[DETECTOR] = own
    return [*maps.values()]


def main_distortion(evidence: ExecutorOutput) -> str | None:
    """Return the first distortion of the highest severity; ``None`` if there is none."""
    main = main_finding(evidence)
    return main.type if main else None


def main_finding(evidence: ExecutorOutput) -> DistortionAnalysis | None:
    """Return the analysis of the main distortion; ``None`` if there is none."""
    _, worst = next(iter(distortions_of(evidence)), (None, None))
    return None if worst is None or worst.severity == SEVERITIES[0] else worst


def paint(pixels: RGB, heatmap: Heatmap, size: tuple[int, int]) -> RGB:
    """Return the gray image with the colors of its damage: uint8 (h, w, 3) at ``size`` (width, height)."""
    gray = np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.BILINEAR).convert("L"), float)
    damage = drawn_damage(heatmap.damage, heatmap.size, size)
    return blend(gray, (damage - heatmap.start) / (heatmap.end - heatmap.start))


def blend(gray: Plane, share: Plane) -> RGB:
    """Return gray levels (h, w) in 0..255 with the colors of ``share`` (h, w), clipped to 0..1: uint8 (h, w, 3)."""
    share = np.clip(share, 0, 1)
    cover = DENSEST * share[..., None] ** 0.6
    at = np.linspace(0, 1, len(STOPS))
    colors = np.stack([np.interp(share, at, channel) for channel in STOPS.T], axis=-1)
    return np.rint((1 - cover) * gray[..., None] + cover * colors).astype(np.uint8)


def drawn_damage(damage: Plane, measured: tuple[int, int], size: tuple[int, int]) -> Plane:
    """Return a map (h, w) of square cells from the image's top left corner, smoothed and scaled to ``size``.

    ``measured`` and ``size`` are (width, height). The last cells may reach beyond the image, so the side of a cell is
    derived from both sides of the image and the shape of the map.
    """
    (width, height), (rows, columns) = measured, damage.shape
    sides = [s for s in range(1, max(height, width) + 1) if -(-height // s) == rows and -(-width // s) == columns]
    side = max(sides, key=lambda side: side & -side, default=None)  # the one with most factors of two
    covered = (width / side, height / side) if side else (columns, rows)
    plane = Image.fromarray(damage.astype(np.float32)).resize(size, Image.Resampling.BILINEAR, box=(0, 0, *covered))
    return scipy.ndimage.gaussian_filter(np.asarray(plane, float), max(size) / AVERAGED, mode="nearest")


def _fits(tool: Tool, image: LoadedImage, kind: str) -> bool:
    return tool.kind == kind and tool.smallest <= min(image.size)


def _chosen(evidence: ExecutorOutput, subject: str) -> str | None:
    """Return the tool that measured a distortion or the overall quality, preferably of the whole image."""
    scores = evidence.quality_scores or {}
    for by_subject in (scores.get(GLOBAL, {}), *scores.values()):
        for key, (name, _) in by_subject.items():
            if key.startswith(subject):
                return name
    return None


def _local_types(evidence: ExecutorOutput) -> set[str]:
    """Return the distortions that are only in a part of the image."""
    return {part.type for parts in (evidence.local_damage or {}).values() for part in parts}


def _shows_anything(heatmap: Heatmap) -> bool:
    """Return whether a map has a visible color in at least 1 % of the image."""
    share = (heatmap.damage - heatmap.start) / (heatmap.end - heatmap.start)
    return bool(np.mean(share > VISIBLE_SHARE) >= 0.01)


def _detectors_map(image: LoadedImage, main: DistortionAnalysis) -> Heatmap | None:
    """Return the detector's severity of one category in each patch of an image; ``None`` without patches.

    A distortion that was found in the whole image but in no patch, such as a color cast, has one value everywhere.
    """
    patches = patch_severities(image)
    if patches is None or main.type not in patches.by_category:
        return None
    damage = patches.by_category[main.type]
    severity = SEVERITIES.index(main.severity)
    damage = np.maximum(damage, severity) if np.quantile(damage, 0.99) < SEEN else damage
    return Heatmap(DETECTOR, main.type, damage, image.size, SEEN, len(SEVERITIES) - 1.0, chosen=True, absolute=True)


def _more_specific(subject: str, tools: list[Tool], kind: str) -> Tool | None:
    """Return the best no-reference tool made for a distortion; a full-reference map shows every distortion."""
    made_for = [tool for tool in tools if subject == tool.measures]
    return best_for(subject, made_for) if kind == "NR" else None


def _heatmap(
    tool: Tool, subject: str, image: LoadedImage, reference: LoadedImage | None, *, chosen: bool
) -> Heatmap | None:
    """Return the map of one tool; ``None`` if the tool cannot measure the image."""
    assert tool.map
    pair = [image.pixels, *([reference.pixels] if reference else [])]
    if reference and max(image.size) > WORKING:
        pair = [_reduced(pixels) for pixels in pair]
    try:
        damage = tool.map(*pair)
    except ToolError as error:
        logger.info("%s has no damage map of this image: %s", tool.name, error)
        return None
    end, largest = tool.map_end, float(damage.max(initial=0))
    absolute = end is not None or largest == 0
    size, start = (pair[0].shape[1], pair[0].shape[0]), tool.map_start
    return Heatmap(tool.name, subject, damage, size, start, end or largest or 1.0, chosen, absolute)


def _reduced(pixels: RGB) -> RGB:
    image = Image.fromarray(pixels)
    scale = WORKING / max(image.size)
    width, height = (max(round(side * scale), 1) for side in image.size)
    return np.asarray(image.resize((width, height), Image.Resampling.LANCZOS))
