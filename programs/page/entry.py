"""The few fields of a result that overviews show instead of the whole row."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from agenticiqa.programs.page.findings import distortions_of, place_of
from agenticiqa.programs.result_row import ALSO_SHOWN
from agenticiqa.programs.tools.outside_training import SHORT
from agenticiqa.signatures.types import GLOBAL, ExecutorOutput
from agenticiqa.signatures.vocabulary import LEVELS, SEVERITIES, everyday_name

RESULTS, VERDICTS = "page/sheet.html", "page/gate.html"  # templates of the contact sheet: results of assess, of gate
NONE_FOUND, NO_CAUSE = "none found", "no single cause found"
GOOD_FROM = 3.5  # score on 1..5
NUMBERS: Mapping[str, int] = {str(word): number for word, number in LEVELS.items()}


@dataclass(frozen=True, slots=True)
class Entry:
    """One assessed image.

    ``score`` is in 1..5 or ``None``, and ``level`` is its quality level. ``low`` and ``high`` are the ends of the 80 %
    interval, which contains the MOS of 80 of 100 images. ``distortion``, ``severity``, ``place`` and ``explanation``
    describe the most severe distortion and are empty if there is none; ``place`` is empty for the whole image.
    ``answer`` is the answer to a question that requests no score. ``caveat`` says why the score is uncertain, if it is.
    ``shown`` has the fields of ``result_row.ALSO_SHOWN`` that the result contains.
    """

    image: str
    sha256: str
    score: float | None
    low: float | None = None
    high: float | None = None
    level: str = ""
    distortion: str = ""
    severity: str = ""
    place: str = ""
    explanation: str = ""
    answer: str = ""
    caveat: str = ""
    shown: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the image without its folders."""
        return os.path.basename(self.image)

    @property
    def summary(self) -> str:
        """The answer or the finding; without one, that there is none, or no single cause of a low score."""
        is_low = self.score is not None and self.score < GOOD_FROM
        return self.answer or self.finding or (NO_CAUSE if is_low else NONE_FOUND)

    @property
    def main(self) -> str:
        """The main distortion in everyday words."""
        return everyday_name(self.distortion) if self.distortion else NONE_FOUND

    @property
    def level_number(self) -> int:
        """The level as a number, 1 (bad) to 5; 0 without a score."""
        return NUMBERS.get(self.level, 0)

    @property
    def finding(self) -> str:
        """The main distortion in everyday words: "severe noise, center"; empty without one."""
        if not self.distortion:
            return ""
        return f"{self.severity} {self.main}{self.place and f', {self.place}'}"


def entry_of(row: Mapping[str, Any]) -> Entry:
    """Return the entry of a result (as its JSON)."""
    evidence = ExecutorOutput.model_validate(row.get("executor_evidence") or {})
    region, main = next(iter(distortions_of(evidence)), (GLOBAL, None))
    if main is None or main.severity == SEVERITIES[0]:
        distortion = severity = place = explanation = ""
    else:
        distortion, severity, explanation = main.type, main.severity, main.explanation
        where = place_of(evidence, region, main.type)
        place = "" if where == GLOBAL else where
    score = row.get("quality_score")
    low, high = (row.get("score_interval") or {}).get("80") or (None, None)
    return Entry(
        image=row["image"],
        sha256=row.get("image_sha256") or "",
        score=score,
        low=low,
        high=high,
        level=row.get("quality_level") or "",
        distortion=distortion,
        severity=severity,
        place=place,
        explanation=explanation,
        answer="" if score is not None else str(row.get("final_answer") or ""),
        caveat=_caveat(row),
        shown={name: row[name] for name in ALSO_SHOWN if row.get(name) is not None},
    )


def _caveat(row: Mapping[str, Any]) -> str:
    """Return why the score is uncertain: no photo, model and tools disagree, or the reference may not match."""
    reasons = [SHORT.get(reason, reason) for reason in row.get("outside_training") or ()]
    if apart := row.get("disagreement"):
        reasons.append(f"model and tools differ by {apart:.1f} levels")
    return "; ".join([*reasons, *filter(None, [(row.get("reference_check") or {}).get("sentence")])])


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
