"""Write the summary of a run: how many images were assessed, skipped or failed, and with which settings."""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agenticiqa.programs.batch.results_file import ResultsFile, Row
from agenticiqa.programs.images.files import write_atomically
from agenticiqa.programs.result import is_unscored
from agenticiqa.signatures.types import FROM_REJECTED

SUFFIX = ".summary.json"


def counts_of(rows: Collection[Row]) -> dict[str, int]:
    """Return how many rows there are, and how many have an error, no score or answer, or an incomplete answer."""
    assessed = [row for row in rows if "error" not in row]
    return {
        "images": len(rows),
        "failed": len(rows) - len(assessed),
        "unscored": sum(map(is_unscored, assessed)),
        "incomplete": sum(row.get("probability_source") in FROM_REJECTED for row in assessed),
    }


def failed_before(results: ResultsFile) -> set[str]:
    """Return what may be the name of an image that failed in the last run, by its summary: each text before ": "."""
    try:
        lines = json.loads(summary_of(results).read_bytes())["failed"]
        return {line[: colon.start()] for line in lines for colon in re.finditer(": ", line)}
    except (OSError, ValueError, LookupError, TypeError):  # there is no summary, or another file has its name
        return set()


def summary_of(results: ResultsFile) -> Path:
    """Return the path of the summary beside a results file."""
    return results.path.with_name(f"{results.path.name}{SUFFIX}")


@dataclass
class Summary:
    """The counts of a run, updated during the run.

    ``images`` is the number of named images, including those in folders. ``assessed`` images were assessed in this run,
    ``assessed_before`` in earlier runs. ``failed`` has a line for each image that could not be assessed, including
    missing files. ``unscored`` counts assessed images without a score or answer, because the model gave no usable one.
    ``incomplete`` counts scores from incomplete answers of the model (``FROM_REJECTED``).
    ``assessed_again`` counts images with an outdated or incomplete result in the results file, by reason, and
    ``kept_earlier`` those of them that keep the earlier result, because the new one is worse. ``skipped`` counts files
    in folders that cannot be assessed, by suffix or reason. ``settings`` are the settings of this run (see
    ``batch.plan_run``).
    """

    images: int
    assessed: int = 0
    unscored: int = 0
    incomplete: int = 0
    assessed_before: int = 0
    assessed_again: Mapping[str, int] = field(default_factory=dict)
    kept_earlier: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: Mapping[str, int] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)

    def count(self, row: Row) -> None:
        """Count the result of an image."""
        counts = counts_of([row])
        self.assessed += 1
        self.unscored += counts["unscored"]
        self.incomplete += counts["incomplete"]

    @property
    def not_assessed(self) -> int:
        """The number of images that were not assessed because the run ended early."""
        return self.images - self.assessed - self.assessed_before - len(self.failed)

    def write(self, results: ResultsFile) -> Path:
        """Write the summary to ``<results file>.summary.json``, replacing that of an earlier run; return the path.

        In addition to the fields above, it has ``not_assessed``, ``rows`` (the number of lines in the results file),
        ``replaced_rows`` (lines with a later line of the same image, reference and question) and ``finished`` (ISO
        8601, UTC). Raises OSError.
        """
        content = {
            **asdict(self),
            "not_assessed": self.not_assessed,
            "rows": results.length,
            "replaced_rows": results.replaced,
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        path = summary_of(results)
        write_atomically(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
        return path
