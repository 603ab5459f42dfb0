"""The few fields of a result that overviews show instead of the whole row."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from agenticiqa.programs.page.findings import distortions_of, found_in, main_distortion_of, placed
from agenticiqa.programs.result_row import ALSO_SHOWN
from agenticiqa.signatures.types import ExecutorOutput
from agenticiqa.signatures.vocabulary import LEVELS, everyday_name

RESULTS, VERDICTS = "page/sheet.html", "page/gate.html"  # templates of the contact sheet: results of assess, of gate
NONE_FOUND, NO_CAUSE = "none found", "no single cause found"
GOOD_FROM = 3.5  # score on 1..5
NUMBERS: Mapping[str, int] = {str(word): number for word, number in LEVELS.items()}


@dataclass(frozen=True, slots=True)
class Entry:
    """One assessed image.

    ``score`` is in 1..5 or ``None``, and ``level`` is its quality level. ``low`` and ``high`` are the ends of the 80 %
    interval, which contains the MOS of 80 of 100 images. ``final_answer``, ``main_distortion``, ``severity``,
    ``distortions`` and ``caveats`` are those of the result. ``explanation`` is that of the main distortion.
    ``shown`` has the fields of ``result_row.ALSO_SHOWN`` that the result contains.
    """

    image: str
    sha256: str
    score: float | None
    low: float | None = None
    high: float | None = None
    level: str = ""
    main_distortion: str | None = None
    severity: str | None = None
    distortions: Sequence[Mapping[str, Any]] = ()
    explanation: str = ""
    final_answer: float | str | None = None
    caveats: Sequence[str] = ()
    shown: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the image without its folders."""
        return os.path.basename(self.image)

    @property
    def answer(self) -> str:
        """The answer to a question that requests no score; else empty."""
        return "" if self.score is not None else str(self.final_answer or "")

    @property
    def caveat(self) -> str:
        """Why the score is uncertain; empty if it is not."""
        return "; ".join(self.caveats)

    @property
    def summary(self) -> str:
        """The answer or the finding; without one, that there is none, or no single cause of a low score."""
        is_low = self.score is not None and self.score < GOOD_FROM
        return self.answer or self.finding or (NO_CAUSE if is_low else NONE_FOUND)

    @property
    def main(self) -> str:
        """The main distortion in everyday words."""
        return everyday_name(self.distortions[0]["category"]) if self.distortions else NONE_FOUND

    @property
    def level_number(self) -> int:
        """The level as a number, 1 (bad) to 5; 0 without a score."""
        return NUMBERS.get(self.level, 0)

    @property
    def finding(self) -> str:
        """The main distortion in everyday words: "severe noise, center"; empty without one."""
        return placed(f"{self.severity} {self.main}", self.distortions[0]["region"]) if self.distortions else ""


def entry_of(row: Mapping[str, Any]) -> Entry:
    """Return the entry of a result (as its JSON)."""
    evidence = ExecutorOutput.model_validate(row.get("executor_evidence") or {})
    distortions = found_in(evidence)
    main_distortion, severity = main_distortion_of(evidence)
    low, high = (row.get("score_interval") or {}).get("80") or (None, None)
    return Entry(
        image=row["image"],
        sha256=row.get("image_sha256") or "",
        score=row.get("quality_score"),
        low=low,
        high=high,
        level=row.get("quality_level") or "",
        main_distortion=main_distortion,
        severity=severity,
        distortions=distortions,
        explanation=distortions_of(evidence)[0][1].explanation if distortions else "",
        final_answer=row.get("final_answer"),
        caveats=row.get("caveats") or (),
        shown={name: row[name] for name in ALSO_SHOWN if row.get(name) is not None},
    )


class SheetCard(NamedTuple):
    """One image on a contact sheet.

    The score of the entry, or ``title`` if it has none, is the headline. ``caption`` is the line below; a click on it
    shows the entry's explanation. ``groups`` are the values by which the sheet filters images.
    """

    entry: Entry
    title: str
    caption: str
    groups: Sequence[str]


def result_card(entry: Entry) -> SheetCard:
    """Return the card of a result: its answer if it has no score, and its main distortion."""
    return SheetCard(entry, entry.answer or "no score", entry.finding or "no distortion found", [entry.main])


def distinct_names(images: Iterable[str]) -> dict[str, str]:
    """Return the name of each image without its folders, except for the folders that distinguish equal names.

    >>> distinct_names(["album/june/1.jpg", "album/july/1.jpg", "album/july/2.jpg"])
    {'album/june/1.jpg': 'june/1.jpg', 'album/july/1.jpg': 'july/1.jpg', 'album/july/2.jpg': '2.jpg'}
    """
    same: dict[str, dict[str, tuple[str, ...]]] = {}  # the parts of each path, by the name of the image
    for image in images:
        same.setdefault(os.path.basename(image), {})[image] = Path(os.path.abspath(image)).parts
    names: dict[str, str] = {}
    for paths in same.values():
        folders = zip(*(parts[:-1] for parts in paths.values()), strict=False)  # folders of all paths, level by level
        shared = len([*takewhile(lambda level: len({*level}) == 1, folders)])
        names |= {image: "/".join(parts[shared:]) for image, parts in paths.items()}
    return names


def worst_first(entries: list[Entry]) -> list[Entry]:
    """Return the entries by score, lowest first, then by name; entries without a score are the last."""
    return sorted(entries, key=worst_key)


def worst_key(entry: Entry) -> tuple[bool, float, str]:
    """Return the key that sorts entries as ``worst_first`` does."""
    return entry.score is None, entry.score or 0.0, entry.image
