"""The summary of a results file."""

import json
from pathlib import Path

from agenticiqa.programs.batch.results_file import ResultsFile
from agenticiqa.programs.batch.summary import Summary


def test_the_summary_is_written_beside_the_results_and_replaces_the_earlier_one(tmp_path: Path) -> None:
    summary = Summary(images=7, assessed=2, assessed_before=1, failed=["a.png: broken"], skipped={".cr2": 3})
    with ResultsFile(tmp_path / "scores.jsonl") as results:
        for score in (1, 2):
            results.append({"image": "b.png", "query": "?", "score": score})
        results.append({"image": "c.png", "query": "?", "score": 3})
        assert Summary(images=1).write(results) == summary.write(results) == tmp_path / "scores.jsonl.summary.json"
    kept = json.loads((tmp_path / "scores.jsonl.summary.json").read_text())
    assert kept.pop("finished").endswith("+00:00")
    assert kept == {
        "images": 7,
        "assessed": 2,
        "unscored": 0,
        "assessed_before": 1,
        "assessed_again": {},
        "failed": ["a.png: broken"],
        "skipped": {".cr2": 3},
        "settings": {},
        "not_assessed": 3,
        "rows": 3,
        "replaced_rows": 1,
    }
