"""Draw a small damage map of a saved result for pages: measure the image again, without a model."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from PIL import Image

from agenticiqa.configs.options import ImageSettings
from agenticiqa.programs.images.own import webp
from agenticiqa.programs.images.pairs import load_checked
from agenticiqa.programs.pictures.heatmap import heatmaps, paint
from agenticiqa.programs.result import Assessment
from agenticiqa.signatures.categories import OVERALL
from agenticiqa.signatures.types import ExecutorOutput
from agenticiqa.signatures.vocabulary import everyday_name

SIDE = 320  # pixels of the longer side


class MapCopy(NamedTuple):
    """A WebP and its caption."""

    webp: bytes
    caption: str


def map_copy(row: Mapping[str, Any], side: int = SIDE) -> MapCopy | None:
    """Return the map of a result's main distortion or overall quality; ``None`` without a map.

    The longer side has at most ``side`` pixels. Raises ImageError if the image or its reference cannot be read.
    """
    settings = ImageSettings(align=bool((row.get("reference_check") or {}).get("aligned")))
    pair = load_checked(row["image"], row.get("reference"), settings, resize_reference=True)
    evidence = ExecutorOutput.model_validate(row["executor_evidence"])
    maps = heatmaps(Assessment(executor_evidence=evidence, image=pair.image, reference=pair.compared))
    if not maps:
        return None
    heatmap = maps[-1]
    scale = min(1.0, side / max(pair.image.size))
    width, height = (max(round(length * scale), 1) for length in pair.image.size)
    picture = Image.fromarray(paint(pair.image.pixels, heatmap, (width, height)))
    subject = everyday_name(heatmap.subject) if heatmap.subject != OVERALL else "overall quality"
    colors = "" if heatmap.absolute else "; colors relative to the worst area of this image"
    return MapCopy(webp(picture), f"{subject} ({heatmap.tool}){colors}")
