"""Reports of results without labels (``assess --parquet`` or ``--jsonl``): what was found, and how two runs agree.

One file is read at a time, and only the columns that are needed; of an image a score and eight bytes of its hash are
kept, so a million take some 20 MB.
"""

import hashlib
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agenticiqa.eval.intervals import MOST_BLOCKS, interval
from agenticiqa.eval.metrics import plcc, srcc
from agenticiqa.eval.report.model import Report, ReportTable, figure, number
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.scale.names import SUCCESS
from agenticiqa.programs.scale.table import ShardFolder, result_rows
from agenticiqa.signatures.vocabulary import SEVERITIES

OF_A_ROW = ("image", "image_sha256", "query", "quality_score", "error", "executor_evidence")
OF_A_PAIR = ("image_sha256", "query", "quality_score")
SHARES = (5, 25, 50, 75, 95)  # percentiles that are shown
WORST = 10


@dataclass
class ShardFigures:
    """What the rows of a folder have in common: counts, scores in 1..5, main distortions, the worst images."""

    name: str
    images: int = 0
    failed: int = 0
    scores: "array[float]" = field(default_factory=lambda: array("d"))
    distortions: Counter[str] = field(default_factory=Counter)
    worst: list[tuple[float, str]] = field(default_factory=list)
    is_finished: bool = True

    @property
    def unscored(self) -> int:
        """How many images were judged and have no score."""
        return self.images - self.failed - len(self.scores)


def read_figures(place: Path, name: str) -> ShardFigures:
    """Read the rows of a folder or file once. Raises UserError where it holds something else."""
    found = ShardFigures(name, is_finished=place.is_file() or ShardFolder(place).described(SUCCESS) is not None)
    for row in result_rows(place, OF_A_ROW):
        found.images += 1
        if row.get("error") is not None:
            found.failed += 1
        elif (score := row.get("quality_score")) is not None:
            found.scores.append(score)
            found.worst = sorted([*found.worst, (score, row["image"])])[:WORST]
        if main := _main_distortion(row.get("executor_evidence") or {}):
            found.distortions[main] += 1
    return found


def shards_report(folders: Sequence[Path], names: Sequence[str]) -> Report:
    """What was found in each folder, and which images are the worst."""
    found = [read_figures(folder, name) for folder, name in zip(folders, names, strict=True)]
    figures = {each.name: _figures(each) for each in found}
    headings = ("run", "images", "failed", "without a score", "mean", *(f"{share} %" for share in SHARES))
    lines = [(each.name, *map(str, (each.images, each.failed, each.unscored)), *_cells(each.scores)) for each in found]
    kinds = [*dict.fromkeys(kind for each in found for kind, _ in each.distortions.most_common())]
    counts = [(kind, *(str(each.distortions[kind]) for each in found)) for kind in kinds]
    tables = [
        ReportTable("Scores, and the shares of images below them", headings, lines),
        ReportTable("Main distortion, by images", ("distortion", *(each.name for each in found)), counts),
        *(
            ReportTable(
                f"{each.name}: the lowest scores", ("score", "image"), [(number(s, ".2f"), n) for s, n in each.worst]
            )
            for each in found
        ),
    ]
    return Report(figures, tables, [_unfinished(each.name) for each in found if not each.is_finished])


def compare_shards(folders: Sequence[Path], names: Sequence[str]) -> Report:
    """How the scores of folders agree, two by two, on the images and questions that both scored."""
    if len(folders) < 2:
        raise UserError("name at least two folders or files of results to compare")
    scores = {name: _by_image(folder) for folder, name in zip(folders, names, strict=True)}
    lines, figures = [], []
    for first, second in combinations(scores, 2):
        (hashes, a), (others, b) = scores[first], scores[second]
        both, at, there = np.intersect1d(hashes, others, assume_unique=True, return_indices=True)
        x, y = a[at], b[there]
        blocks = [str(each) for each in (both % MOST_BLOCKS).tolist()]
        rank, line = (interval(measure, x, y, blocks) if len(x) else None for measure in (srcc, plcc))
        change = float(np.mean(y - x)) if len(x) else None
        moved = float(np.mean(np.abs(y - x) >= 0.5)) if len(x) else None
        about = f"{first} and {second}"
        shown = (figure(rank), figure(line), number(change, "+.3f"), number(moved, ".1%"))
        lines.append((about, str(len(both)), str(len(a) + len(b) - 2 * len(both)), *shown))
        figures.append({"runs": [first, second], "n": len(both), "mean_change": change, "moved_by_half": moved})
    headings = ("runs", "n", "scored by one only", "SRCC", "PLCC", "mean change", "changed by 0.5 or more")
    tables = [ReportTable("Agreement of scores", headings, lines)]
    sentences = ["There are no labels: this says how alike two runs are, not which one is right."]
    return Report(figures, tables, sentences)


def _by_image(place: Path) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
    """The hashes of image and question, sorted and each once, and the scores."""
    hashes, scores = array("Q"), array("d")
    for row in result_rows(place, OF_A_PAIR):
        if row.get("quality_score") is not None and row.get("image_sha256"):
            of_both = hashlib.blake2b(f"{row['image_sha256']} {row['query']}".encode(), digest_size=8)
            hashes.append(int.from_bytes(of_both.digest(), "big"))
            scores.append(row["quality_score"])
    unique, at = np.unique(np.asarray(hashes, dtype=np.uint64), return_index=True)
    return unique, np.asarray(scores)[at]


def _main_distortion(evidence: Mapping[str, Any]) -> str | None:
    """The most severe distortion that was found; ``None`` where there is none."""
    found = [item for items in (evidence.get("distortion_analysis") or {}).values() for item in items]
    main = max(found, key=lambda item: SEVERITIES.index(item["severity"]), default=None)
    return None if main is None or main["severity"] == SEVERITIES[0] else str(main["type"])


def _figures(found: ShardFigures) -> dict[str, Any]:
    cells = dict(zip(("mean", *map(str, SHARES)), _numbers(found.scores), strict=True))
    return {"images": found.images, "failed": found.failed, **cells, "distortions": dict(found.distortions)}


def _numbers(scores: Sequence[float]) -> list[float | None]:
    if not len(scores):
        return [None] * (1 + len(SHARES))
    return [float(np.mean(scores)), *map(float, np.percentile(scores, SHARES))]


def _cells(scores: Sequence[float]) -> list[str]:
    return [number(value, ".2f") for value in _numbers(scores)]


def _unfinished(name: str) -> str:
    return f"{name} is not finished: the command that made it goes on with it."
