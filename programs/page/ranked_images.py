"""Write the HTML page of a comparison: the images side by side with their maps, the ranking and the metrics."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from agenticiqa.programs.page.entry import Entry, distinct_names
from agenticiqa.programs.page.render import inline, render
from agenticiqa.programs.page.sheet import link_to
from agenticiqa.programs.page.table import Table
from agenticiqa.programs.page.thumbnails import folder_beside

SHOWN_BY_BROWSERS = {".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".avif"}


def comparison_page(
    entries: Sequence[Entry],
    pictures: Sequence[str | None],
    maps: Mapping[str, tuple[str, str]],
    tables: Sequence[Table],
    failed: Sequence[str],
    page: Path,
) -> str:
    """Return the HTML of a comparison for the file ``page``; ``entries`` are in order of rank.

    ``pictures`` has the name of each entry's file in ``folder_beside(page)``, or ``None``. ``maps`` has the file of the
    map and its caption by image, ``tables`` the tables, and ``failed`` a line for each failed image.
    """
    folder = quote(folder_beside(page).name)
    reference = entries[0].shown.get("reference") if entries else None
    names = distinct_names(entry.image for entry in entries)
    images, choices = [], []
    for rank, (entry, file) in enumerate(zip(entries, pictures, strict=True), 1):
        picture = file and f"{folder}/{file}"
        map_file, caption = maps.get(entry.image) or (None, "not available for this image")
        files = {"link": link_to(entry.image, page), "picture": picture, "map": map_file and f"{folder}/{map_file}"}
        images.append({"rank": rank, "entry": entry, "caption": caption, **files})
        choices.append((f"{rank}. {names[entry.image]}", _full(entry.image, page) or picture))
    choices.append(("reference", _full(reference, page)))
    return render(
        "page/comparison.html",
        {
            "title": f"{len(entries)} images compared",
            "reference": reference,
            "tables": tables,
            "failed": failed,
            "images": images,
            "choices": [(name, address) for name, address in choices if address],
            "script": inline("comparison.js"),
        },
    )


def _full(image: str | None, page: Path) -> str | None:
    """Return the address of an image file if browsers can show it; a smaller copy would hide its damage."""
    return link_to(image, page) if image and Path(image).suffix.lower() in SHOWN_BY_BROWSERS else None
