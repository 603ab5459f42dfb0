"""Read saved results of ``assess`` alike, from a file of JSON lines or from a folder of Parquet files."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.batch.results_file import latest_rows, question_of
from agenticiqa.programs.result_row import Row


class Store(Protocol):
    """Saved results: ``SavedLines``, or the ``ShardFolder`` of ``programs/scale``."""

    def rows(self, columns: Sequence[str] | None = None) -> Iterator[Row]:
        """Yield the valid row of each image and question; that of a failed image has an ``error``.

        With ``columns``, only these keys are needed. Raises UserError if there are no rows of results, and OSError if
        the place cannot be read.
        """
        ...


@dataclass(frozen=True)
class SavedLines:
    """A file of JSON lines, in which later rows replace earlier ones. It is only read, also during a run."""

    path: Path

    def rows(self, columns: Sequence[str] | None = None) -> Iterator[Row]:
        """Yield the valid rows, complete, as ``latest_rows`` does."""
        return latest_rows(self.path)


def results_in(rows: Iterable[Row], failed: list[str]) -> Iterator[tuple[Job, Row]]:
    """Yield each result with its job; for each row of a failed image, add a line to ``failed``."""
    for row in rows:
        if row.get("error") is not None:
            failed.append(f"{row['image']}: {row['error']}")
        else:
            yield Job(row["image"], question_of(row), row.get("reference")), row
