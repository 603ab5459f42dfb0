"""The page of images that are compared: their ranking, metric by metric, and their maps side by side."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from agenticiqa.programs.page.entry import Entry, Lines
from agenticiqa.programs.page.render import inline, render
from agenticiqa.programs.page.sheet import link_to
from agenticiqa.programs.page.thumbnails import folder_beside

SHOWN_BY_BROWSERS = {".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".avif"}


def comparison_page(
    entries: Sequence[Entry],
    pictures: Sequence[str | None],
    maps: Mapping[str, tuple[str, str]],
    tables: Mapping[str, Lines],
    failed: Sequence[str],
    page: Path,
) -> str:
    """The HTML of a comparison that will lie at ``page``; ``entries`` are in the order of their rank.

    ``pictures`` has for each entry its file in ``folder_beside(page)``, or ``None``; ``maps`` the file of the map and
    its caption by image, ``tables`` the tables by title, ``failed`` a line for each image that could not be judged.
    """
    folder = quote(folder_beside(page).name)
    reference = entries[0].shown.get("reference") if entries else None
    images = [
        _shown(rank, entry, picture, maps.get(entry.image), folder, page)
        for rank, (entry, picture) in enumerate(zip(entries, pictures, strict=True), 1)
    ]
    named = [(f"{image['rank']}. {Path(image['image']).name}", image["full"]) for image in images]
    return render(
        "page/comparison.html",
        {
            "title": f"{len(entries)} images compared",
            "reference": reference,
            "tables": tables,
            "failed": failed,
            "images": images,
            "choices": [
                (name, address) for name, address in (*named, ("reference", _full(reference, page))) if address
            ],
            "script": inline("comparison.js"),
        },
    )


def _full(image: str | None, page: Path) -> str | None:
    """The address of an image file that browsers can show: a smaller copy would hide its damage."""
    return link_to(image, page) if image and Path(image).suffix.lower() in SHOWN_BY_BROWSERS else None


def _shown(
    rank: int, entry: Entry, picture: str | None, shown: tuple[str, str] | None, folder: str, page: Path
) -> dict[str, Any]:
    return {
        "rank": rank,
        "image": entry.image,
        "link": link_to(entry.image, page),
        "picture": f"{folder}/{picture}" if picture else None,
        "full": _full(entry.image, page) or (f"{folder}/{picture}" if picture else None),
        "map": f"{folder}/{shown[0]}" if shown else None,
        "caption": shown[1] if shown else "no tool has a map of such an image",
        "score": "no score" if entry.score is None else f"{entry.score:.2f}",
        "level": entry.level_number,
        "word": entry.level,
        "finding": entry.finding or "no distortion found",
        "explanation": entry.explanation,
    }
