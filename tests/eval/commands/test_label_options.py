"""The kind of data for ``calibrate fusion`` is recognized by name, form and, for JSON lines, by the first one."""

import json
from pathlib import Path

from agenticiqa.eval.commands.label_options import sorted_by_kind

ROW = {"image": "a.png", "query": "Rate it.", "image_sha256": "0", "quality_score": 3.0}
LABEL = {"image": "a.png", "mos": 3.0}


def written(path: Path, row: dict[str, object]) -> Path:
    path.write_text("\n" + json.dumps(row) + "\n")
    return path


def test_labels_rows_and_photos_are_distinguished(tmp_path: Path) -> None:
    rows, labels = written(tmp_path / "results.jsonl", ROW), written(tmp_path / "labels.jsonl", LABEL)
    photos = tmp_path / "photos"
    photos.mkdir()
    assert sorted_by_kind([rows, photos, labels]) == ([labels], [rows], [photos])
    for data in (Path("hub:owner/name@main"), Path("kadid10k"), Path("mine.parquet"), Path("MINE.CSV")):
        assert sorted_by_kind([data]) == ([data], [], [])
    (photos / "metadata.csv").touch()
    assert sorted_by_kind([photos, rows]) == ([photos], [rows], [])


def test_unreadable_json_lines_are_passed_to_the_reader_of_rows(tmp_path: Path) -> None:
    (tmp_path / "broken.jsonl").write_text("{")
    files = [tmp_path / "broken.jsonl", tmp_path / "absent.jsonl"]
    assert sorted_by_kind(files) == ([], files, [])


def test_several_tables_of_labels_are_labels() -> None:
    files = [Path("a.csv"), Path("b.tsv")]
    assert sorted_by_kind(files) == (files, [], [])
