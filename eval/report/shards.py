"""Report results without labels (``assess --parquet`` or ``--jsonl``): the findings, and how two runs agree.

One file is read at a time, and only the columns that are needed. Only a score and eight bytes of the hash are kept per
image, so a million take some 20 MB.
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
SHARES = (5, 25, 50, 75, 95)  # percentiles in the table
WORST = 10


@dataclass
class ShardFigures:
    """A summary of a folder's rows: counts, scores in 1..5, main distortions, the worst images."""

    name: str
    images: int = 0
    failed: int = 0
    scores: "array[float]" = field(default_factory=lambda: array("d"))
    distortions: Counter[str] = field(default_factory=Counter)
    worst: list[tuple[float, str]] = field(default_factory=list)
    is_finished: bool = True

    @property
    def unscored(self) -> int:
        """Return how many assessed images have no score."""
        return self.images - self.failed - len(self.scores)


def read_figures(place: Path, name: str) -> ShardFigures:
    """Read the rows of a folder or file once. Raises UserError if it holds something else."""
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
    """Report the findings in each folder, and the worst images."""
    found = [read_figures(folder, name) for folder, name in zip(folders, names, strict=True)]
    figures = {each.name: _figures(each) for each in found}
    rows = [
        {"run": each.name}
        | {"images": number(each.images, "d"), "failed": number(each.failed, "d")}
        | {"without a score": number(each.unscored, "d")}
        | {key: number(value, ".2f") for key, value in _percentiles(each.scores).items()}
        for each in found
    ]
    kinds = dict.fromkeys(kind for each in found for kind, _ in each.distortions.most_common())
    counts = [
        {"distortion": kind, **{each.name: number(each.distortions[kind], "d") for each in found}} for kind in kinds
    ]
    lowest = {
        f"{each.name}: lowest scores": [{"score": number(score, ".2f"), "image": name} for score, name in each.worst]
        for each in found
    }
    tables = {"Mean and percentiles of the scores": rows, "Images by main distortion": counts, **lowest}
    unfinished = [
        f"{each.name}: the run is not finished. Repeat its command to continue it."
        for each in found
        if not each.is_finished
    ]
    notes = {"How to read it": unfinished}
    return Report(figures, [ReportTable(title, rows) for title, rows in tables.items() if rows], notes)


def compare_shards(folders: Sequence[Path], names: Sequence[str]) -> Report:
    """Compare the scores of folders, two by two, on the images and questions that both scored."""
    if len(folders) < 2:
        raise UserError("name at least two folders or files of results to compare")
    scores = {name: _by_image(folder) for folder, name in zip(folders, names, strict=True)}
    rows, figures = [], []
    for first, second in combinations(scores, 2):
        (hashes, a), (others, b) = scores[first], scores[second]
        both, at, there = np.intersect1d(hashes, others, assume_unique=True, return_indices=True)
        x, y = a[at], b[there]
        blocks = [str(each) for each in (both % MOST_BLOCKS).tolist()]
        change = float(np.mean(y - x)) if len(x) else None
        moved = float(np.mean(np.abs(y - x) >= 0.5)) if len(x) else None
        row = {
            "runs": f"{first} and {second}",
            "n": number(len(both), "d"),
            "scored by one only": number(len(a) + len(b) - 2 * len(both), "d"),
            "SRCC": figure(interval(srcc, x, y, blocks) if len(x) else None),
            "PLCC": figure(interval(plcc, x, y, blocks) if len(x) else None),
            "mean change": number(change, "+.3f"),
            "changed by 0.5 or more": number(moved, ".1%"),
        }
        rows.append(row)
        figures.append({"runs": [first, second], "n": len(both), "mean_change": change, "moved_by_half": moved})
    note = "Without labels, the table shows how well two runs agree, not which one is more accurate."
    return Report(figures, [ReportTable("Agreement of scores", rows)], {"How to read it": [note]})


def _by_image(place: Path) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
    """Return the sorted, distinct hashes of image and question, and their scores."""
    hashes, scores = array("Q"), array("d")
    for row in result_rows(place, OF_A_PAIR):
        if row.get("quality_score") is not None and row.get("image_sha256"):
            of_both = hashlib.blake2b(f"{row['image_sha256']} {row['query']}".encode(), digest_size=8)
            hashes.append(int.from_bytes(of_both.digest(), "big"))
            scores.append(row["quality_score"])
    unique, at = np.unique(np.asarray(hashes, dtype=np.uint64), return_index=True)
    return unique, np.asarray(scores)[at]


def _main_distortion(evidence: Mapping[str, Any]) -> str | None:
    """Return the most severe distortion that was found, or ``None``."""
    found = [item for items in (evidence.get("distortion_analysis") or {}).values() for item in items]
    main = max(found, key=lambda item: SEVERITIES.index(item["severity"]), default=None)
    return None if main is None or main["severity"] == SEVERITIES[0] else str(main["type"])


def _figures(found: ShardFigures) -> dict[str, Any]:
    percentiles = {key.removesuffix(" %"): value for key, value in _percentiles(found.scores).items()}
    return {"images": found.images, "failed": found.failed, **percentiles, "distortions": dict(found.distortions)}


def _percentiles(scores: Sequence[float]) -> dict[str, float | None]:
    """Return the mean and the percentiles that are shown, by heading."""
    values = [np.mean(scores), *np.percentile(scores, SHARES)] if len(scores) else [None] * (1 + len(SHARES))
    return dict(zip(("mean", *(f"{share} %" for share in SHARES)), map(_float, values), strict=True))


def _float(value: Any) -> float | None:
    return None if value is None else float(value)
