"""Untrusted rows: every reader skips an invalid row and reports its line."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from agenticiqa.eval.cli import main
from agenticiqa.eval.report.page.kept_run import read_run
from agenticiqa.eval.report.run_scores import read_scores
from agenticiqa.programs.batch.fit_fusion import unusable
from agenticiqa.programs.cli.status import OK
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.result_row import checked_rows
from support.run_folder import made_row, pictures, write_run

GOOD = 12
WRONG: list[Any] = [None, True, -1, 50, "x", "NaN", [], [1], {}, {"x": 1}, {"80": [1]}, [["a"]], {"Global": [{}]}]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("rows")
    images = pictures(folder, [f"{number}.png" for number in range(GOOD)])
    return [
        made_row(image, number, 1 + 4 * number / GOOD, 1 + 4 * ((number * 5) % GOOD) / GOOD) | {"query": "Rate it."}
        for number, image in enumerate(images)
    ]


def forged(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Yield the row with each value, also nested ones, replaced by each wrong value."""
    found = []
    for key, value in row.items():
        found += [row | {key: wrong} for wrong in WRONG]
        if isinstance(value, dict):
            found += [row | {key: value | {inner: wrong}} for inner in value for wrong in WRONG]
    return found


def test_no_forged_row_stops_a_reader(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    made = forged(rows[0] | {"name": "forged.png"})
    assert len(made) > 300
    run = write_run(tmp_path / "run", rows)
    with (run / "results.jsonl").open("a") as file:
        file.writelines(f"{json.dumps(each)}\n" for each in made)
    assert GOOD <= len(read_run(run).points) <= GOOD + 2 * len(WRONG)
    assert all(1 <= point.entry.score <= 5 for point in read_run(run).scored if point.entry.score is not None)
    scores = read_scores(run)
    assert all(1 <= score <= 5 for score in scores.values.values())
    for _, row in checked_rows(run / "results.jsonl", lambda _: ("image", "query")):
        unusable(row)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"quality_score": 50}, "quality_score is 50, expected 1 to 5"),
        ({"quality_score": "3"}, "quality_score: Input should be a valid number"),
        ({"mos": [3]}, "mos: Input should be a valid number"),
        ({"quality_probs": {"1": 7.0}}, "quality_probs.1: Input should be less than or equal to 1"),
        ({"timings_ms": [1]}, "timings_ms: Input should be a valid dictionary"),
        ({"usage_by_stage": {"planner": {"calls": 1, "x": 2}}}, "usage_by_stage.planner.x: Extra inputs"),
        ({"name": None}, "the key 'name' is missing"),
    ],
)
def test_an_invalid_row_is_skipped_with_its_line_number(
    change: dict[str, Any], why: str, rows: list[dict[str, Any]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = write_run(tmp_path / "run", rows)
    lines = [json.dumps(row) for row in [*rows[:3], rows[3] | change, *rows[4:]]]
    (run / "results.jsonl").write_text("\n".join([*lines, "nonsense", "[1]", '{"cut": ']))
    with caplog.at_level(logging.WARNING):
        assert len(read_run(run).points) == len(read_scores(run).values) == GOOD - 1
    assert f"line 4 is not a row of results: {why}" in caplog.text
    assert f"line {GOOD + 1} is not a row of results: it is not a JSON object; the line is skipped" in caplog.text


def test_without_a_valid_row_the_first_fault_is_raised(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("image,mos\na.png,3\n")
    with pytest.raises(UserError, match="line 1 is not a row of results: it is not a JSON object"):
        list(checked_rows(tmp_path / "labels.csv", lambda _: ()))


def test_commands_continue_without_an_invalid_row(
    rows: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "run", rows)
    with (run / "results.jsonl").open("a") as file:
        file.write(json.dumps(rows[0] | {"name": "x", "quality_score": 50}) + "\n")
    other = write_run(tmp_path / "other", rows)
    for words in (["report"], ["compare", str(other)]):
        assert main([*words, str(run)]) == OK
        assert f"line {GOOD + 1} is not a row of results: quality_score is 50" in capsys.readouterr().err


@pytest.mark.parametrize(
    "change",
    [
        {"image": 5},
        {"image_sha256": [1]},
        {"reference": {}},
        {"options": [["a"]]},
        {"run_fingerprint": {"x": 1}},
        {"quality_score": 50},
    ],
    ids=str,
)
def test_resuming_assesses_the_image_of_an_invalid_row_again(
    change: dict[str, Any], rows: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "assess",
        rows[0]["image"],
        "--jsonl",
        str(tmp_path / "r.jsonl"),
        "--resume",
        "--html",
        str(tmp_path / "s.html"),
    ]
    assert main(words) == OK
    row = json.loads((tmp_path / "r.jsonl").read_text())
    (tmp_path / "r.jsonl").write_text(json.dumps(row | change) + "\n")
    capsys.readouterr()
    assert main(words) == OK
    assert "line 1 is not a row of results: " in capsys.readouterr().err
    assert json.loads((tmp_path / "r.jsonl").read_text().splitlines()[1])["image_sha256"] == row["image_sha256"]


def test_unreadable_evidence_is_reported(
    rows: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["assess", rows[0]["image"], "--jsonl", str(tmp_path / "r.jsonl"), "--resume", "--csv", str(tmp_path / "t")]
    assert main(words) == OK
    row = json.loads((tmp_path / "r.jsonl").read_text())
    (tmp_path / "r.jsonl").write_text(json.dumps(row | {"executor_evidence": "x"}) + "\n")
    assert main(words) == OK
    assert "is invalid and was left out (executor_evidence" in capsys.readouterr().err


def test_a_file_without_any_result_is_not_continued(
    rows: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "foreign.jsonl"
    file.write_text('{"x": 1}\n')
    assert main(["assess", rows[0]["image"], "--jsonl", str(file), "--resume"]) == 2
    assert "no line is a row of results; move or rename the file" in capsys.readouterr().err
    assert file.read_text() == '{"x": 1}\n'
