"""The tables of docs/fidelity.md, from tests/spec/scenarios.yaml."""

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS, PAGE = ROOT / "tests" / "spec" / "scenarios.yaml", ROOT / "docs" / "fidelity.md"
BEGIN = "<!-- The tables; CONTRIBUTING.md says how to write them again -->\n"


def parts() -> dict[str, dict[str, Any]]:
    """Return the parts of the specification by name."""
    return yaml.safe_load(SCENARIOS.read_text(encoding="utf-8"))


def tables() -> str:
    """Return a table for each part of the specification: clause, same or different, file."""
    return "\n".join(line for name, part in parts().items() for line in _table(name, part))


def _table(name: str, part: dict[str, Any]) -> list[str]:
    lines = [f"### {name}", "", "| clause | here | file |", "| --- | --- | --- |"]
    for row in part["scenarios"]:
        here = row.get("settled", "same").rstrip(".")
        file = part["files"][row["requirement"]]
        lines.append(f"| {row['scenario']} | {here} | [`{file}`](../{file}) |")
    return [*lines, ""]


def page() -> str:
    """Return the page with today's tables below its written beginning."""
    written, mark, _ = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return f"{written}{mark}\n{tables()}"
