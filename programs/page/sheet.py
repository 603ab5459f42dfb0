"""Write the contact sheet: all images of a run by score, with filters for distortion, level and name."""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from agenticiqa.programs.page.entry import Entry, worst_first
from agenticiqa.programs.page.render import inline, render
from agenticiqa.programs.page.thumbnails import folder_beside
from agenticiqa.signatures.vocabulary import LEVELS


def contact_sheet(
    entries: Sequence[Entry], thumbnails: Sequence[str | None], page: Path, title: str, failed: Sequence[str] = ()
) -> str:
    """Return the HTML of a contact sheet for the file ``page``.

    ``thumbnails`` has the name of each entry's file in ``thumbnails.folder_beside(page)``, or ``None``. ``failed`` has
    a line for each image that could not be assessed.
    """
    files = dict(zip(map(id, entries), thumbnails, strict=True))
    folder = quote(folder_beside(page).name)
    found = Counter(entry.main for entry in entries)
    return render(
        "page/sheet.html",
        {
            "title": title,
            "script": inline("sheet.js"),
            "distortions": found.most_common(),
            "failed": failed,
            "levels": _levels(entries),
            "cards": [
                (entry, link_to(entry.image, page), file and f"{folder}/{file}")
                for entry in worst_first([*entries])
                for file in [files[id(entry)]]
            ],
        },
    )


def link_to(image: str, page: Path) -> str | None:
    """Return the address of an image relative to the page that links to it; ``None`` if it is not a file."""
    if image.startswith("<") and image.endswith(">"):
        return None
    try:
        path = os.path.relpath(os.path.abspath(image), os.path.abspath(page.parent))
    except ValueError:  # on another drive of Windows
        return None
    return quote("./" + path.replace(os.sep, "/"))


def _levels(entries: Sequence[Entry]) -> list[tuple[str, int, int]]:
    """Return each quality level with its number and its count of images, best first."""
    counts = Counter(entry.level for entry in entries)
    return [(word, number, counts[word]) for word, number in sorted(LEVELS.items(), key=lambda level: -level[1])]
