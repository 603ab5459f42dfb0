"""The contact sheet: every image of a run with its score, sorted, to be filtered by distortion, level and name."""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from agenticiqa.programs.page.entry import Entry, worst_first
from agenticiqa.programs.page.render import inline, render
from agenticiqa.programs.page.thumbnails import folder_beside
from agenticiqa.signatures.vocabulary import LEVELS, everyday_name

NONE_FOUND = "none found"


def contact_sheet(
    entries: Sequence[Entry], thumbnails: Sequence[str | None], page: Path, title: str, failed: Sequence[str] = ()
) -> str:
    """The HTML of a contact sheet that will lie at ``page``.

    ``thumbnails`` has for each entry the name of its file in ``thumbnails.folder_beside(page)``, or ``None``;
    ``failed`` has a line for each image that could not be judged.
    """
    files = dict(zip(map(id, entries), thumbnails, strict=True))
    folder = quote(folder_beside(page).name)
    found = Counter(_main(entry) for entry in entries)
    return render(
        "page/sheet.html",
        {
            "title": title,
            "script": inline("sheet.js"),
            "distortions": found.most_common(),
            "failed": failed,
            "levels": _levels(entries),
            "entries": [_shown(entry, files[id(entry)], folder, page) for entry in worst_first([*entries])],
        },
    )


def link_to(image: str, page: Path) -> str | None:
    """The address of an image, relative to the page that links to it; ``None`` for what is not a file."""
    if image.startswith("<") and image.endswith(">"):
        return None
    try:
        path = os.path.relpath(os.path.abspath(image), os.path.abspath(page.parent))
    except ValueError:  # on another drive of Windows
        return None
    return quote("./" + path.replace(os.sep, "/"))


def _main(entry: Entry) -> str:
    """The main distortion as the cards name it."""
    return everyday_name(entry.distortion) if entry.distortion else NONE_FOUND


def _shown(entry: Entry, file: str | None, folder: str, page: Path) -> dict[str, Any]:
    score = entry.score
    return {
        "name": os.path.basename(entry.image),
        "image": entry.image,
        "link": link_to(entry.image, page),
        "thumbnail": f"{folder}/{file}" if file else None,
        "distortion": _main(entry),
        "finding": entry.finding,
        "explanation": entry.explanation,
        "score": "" if score is None else f"{score:.2f}",
        "level": entry.level_number,
        "word": entry.level,
        "interval": "" if entry.low is None or entry.high is None else f"{entry.low:.1f}, {entry.high:.1f}",
        "answer": entry.answer,
        "caveat": entry.caveat,
        "also": [*entry.shown.items()],
    }


def _levels(entries: Sequence[Entry]) -> list[tuple[str, int, int]]:
    """Each level word with its number and how many images have it, the best first."""
    counts = Counter(entry.level for entry in entries)
    return [(word, number, counts[word]) for word, number in sorted(LEVELS.items(), key=lambda level: -level[1])]
