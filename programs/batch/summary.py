"""The summary of a run: how many images were assessed, skipped or failed, and with which settings."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agenticiqa.programs.batch.results_file import ResultsFile
from agenticiqa.programs.images.files import write_atomically

SUFFIX = ".summary.json"


@dataclass
class Summary:
    """The counts of a run, kept up to date while it lasts.

    ``images`` is the number of named images, including those in folders. ``judged`` were assessed in this run,
    ``judged_before`` in earlier ones; ``failed`` has a line for each that could not be assessed, missing files
    included. ``unscored`` of those ``judged`` have neither a score nor an answer, because the model gave no usable one.
    ``judged_again`` counts those that the results file held an outdated or incomplete result of, by reason; ``skipped``
    what folders held that cannot be judged, by suffix or reason. ``settings`` are what the results of this run were
    made with (see ``batch.plan_run``). ``fusion`` describes the profile that ``--fuse auto`` fitted, else is empty.
    """

    images: int
    judged: int = 0
    unscored: int = 0
    judged_before: int = 0
    judged_again: Mapping[str, int] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    skipped: Mapping[str, int] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    fusion: Mapping[str, Any] = field(default_factory=dict)

    @property
    def not_judged(self) -> int:
        """Return how many images were not assessed because the run ended early."""
        return self.images - self.judged - self.judged_before - len(self.failed)

    def write(self, results: ResultsFile) -> Path:
        """Write the summary to ``<results file>.summary.json``, which replaces that of an earlier run.

        Beside the fields above it has ``not_judged``, ``rows`` (the number of lines in the results file),
        ``replaced_rows`` (those that have a later line of the same image, reference and question) and ``finished`` (ISO
        8601, UTC). Returns the path. Raises OSError.
        """
        content = {
            **asdict(self),
            "not_judged": self.not_judged,
            "rows": results.length,
            "replaced_rows": results.replaced,
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        path = results.path.with_name(f"{results.path.name}{SUFFIX}")
        write_atomically(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
        return path
