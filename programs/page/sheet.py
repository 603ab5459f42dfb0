"""Write the contact sheet: all images of a run by score, with filters for distortion, level and name."""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from agenticiqa.programs.page.entry import RESULTS, Entry, SheetCard, distinct_names
from agenticiqa.programs.page.render import inline, render
from agenticiqa.programs.page.thumbnails import folder_beside
from agenticiqa.signatures.vocabulary import LEVELS

FILES = ("map", "reference")  # fields of an entry that name a file, which a card links to


def contact_sheet(
    cards: Sequence[SheetCard],
    thumbnails: Sequence[str | None],
    page: Path,
    title: str,
    failed: Sequence[str] = (),
    template: str = RESULTS,
) -> str:
    """Return the HTML of a contact sheet for the file ``page``, with the cards in their order.

    ``thumbnails`` has the name of each card's file in ``thumbnails.folder_beside(page)``, or ``None``. ``failed`` has a
    line for each image that could not be assessed. ``template`` is ``RESULTS`` or ``VERDICTS``.
    """
    folder, names = quote(folder_beside(page).name), distinct_names(card.entry.image for card in cards)
    values = [
        {
            "card": card,
            "name": names[card.entry.image],
            "link": link_to(card.entry.image, page),
            "thumbnail": file and f"{folder}/{file}",
            "shown": [
                (name, value, name in FILES and link_to(value, page)) for name, value in card.entry.shown.items()
            ],
        }
        for card, file in zip(cards, thumbnails, strict=True)
    ]
    return render(
        template,
        {
            "title": title,
            "script": inline("sheet.js"),
            "groups": Counter(group for card in cards for group in card.groups).most_common(),
            "failed": failed,
            "levels": _levels([card.entry for card in cards]),
            "cards": values,
        },
    )


def link_to(image: str, page: Path) -> str | None:
    """Return the address of an image relative to the page that links to it; ``None`` if it is not a file."""
    table, is_row, _ = image.rpartition("#")  # as in train.parquet#12; a file may have such a name, too
    is_in_data_set = os.path.isfile(os.path.dirname(image)) or (is_row and os.path.exists(table))
    if (image.startswith("<") and image.endswith(">")) or "://" in image or is_in_data_set:
        return None
    try:
        path = os.path.relpath(os.path.abspath(image), os.path.abspath(page.parent))
    except ValueError:  # a file on another drive of Windows
        return None
    return quote(os.fsencode("./" + path.replace(os.sep, "/")))  # bytes, because a name may not be UTF-8


def _levels(entries: Sequence[Entry]) -> list[tuple[str, int, int]]:
    """Return each quality level with its number and its count of images, best first."""
    counts = Counter(entry.level for entry in entries)
    return [(word, number, counts[word]) for word, number in sorted(LEVELS.items(), key=lambda level: -level[1])]
