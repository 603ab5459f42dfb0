"""The files of a report in the folder of a run."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agenticiqa.eval.report.sentences import sentences
from agenticiqa.eval.report.table import breakdown, further, headline, markdown
from agenticiqa.programs.images.files import write_atomically


def write(report: Mapping[str, Any], folder: Path, name: str = "report") -> None:
    """Write ``report.json`` and ``report.md``, or files of another ``name``, into the folder of the run."""
    write_atomically(folder / f"{name}.json", json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    first = headline(report)
    text = [f"# {first.title}", "", markdown(first), *(f"- {sentence}" for sentence in sentences(report)), ""]
    for cells in (further(report), *(breakdown(report, by) for by in report["breakdowns"])):
        text += [f"## {cells.title}", "", markdown(cells)]
    write_atomically(folder / f"{name}.md", "\n".join(text).rstrip() + "\n")
