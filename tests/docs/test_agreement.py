"""The table of docs/agreement.md is the one that its command prints."""

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_has_the_values_of_the_metrics_beside_the_official_ones(shared_data: Path) -> None:
    golden = shared_data / "golden"
    rows = runpy.run_path(str(ROOT / "benchmarks" / "agreement.py"))["rows"]
    table = list(rows(golden / "dist", golden / "ref", golden / "official_values.csv"))
    assert len(table) == 22
    assert "\n".join(table) in (ROOT / "docs" / "agreement.md").read_text()
