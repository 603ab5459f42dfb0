"""The folder of shards opens with the usual readers of Parquet, and has the fields to filter by as typed columns."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pds
import pytest
from PIL import Image

from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.batch.columns import columns_of, row_of
from agenticiqa.programs.cli.main import main
from agenticiqa.programs.result import Assessment
from agenticiqa.programs.scale.table import SCHEMA

FOLDER = "scores"
FIELDS = ("main_distortion", "severity", "distortions", "caveats", "quality_score", "quality_level", "final_answer")


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory, examples: Path) -> tuple[Path, list[dict[str, Any]]]:
    """A folder with two small photos and a broken one, assessed into shards and CSV, and the rows of the photos."""
    folder = tmp_path_factory.mktemp("readers")
    for name in ("chelsea_noise.png", "coffee.webp"):
        Image.open(examples / name).crop((0, 0, 200, 150)).save(folder / f"{name[:6]}.png")
    (folder / "broken.png").write_bytes(b"no image")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        main(["assess", ".", "--workers", "1", "--parquet", FOLDER, "--shard-images", "2", "--csv", "rows.csv"])
        program = AgenticIQA.offline()
        lines = [json.dumps(program(f"{name}.png").to_dict()) for name in ("chelse", "coffee")]
    return folder, [json.loads(line) for line in lines]


def of_pandas(folder: str) -> list[dict[str, Any]]:
    frame: list[dict[str, Any]] = pytest.importorskip("pandas").read_parquet(folder).to_dict("records")
    return frame


def of_polars(folder: str) -> list[dict[str, Any]]:
    table: list[dict[str, Any]] = pytest.importorskip("polars").read_parquet(folder).to_dicts()
    return table


def of_duckdb(folder: str) -> list[dict[str, Any]]:
    table: list[dict[str, Any]] = (
        pytest.importorskip("duckdb").sql(f"SELECT * FROM '{folder}/*.parquet'").to_arrow_table().to_pylist()
    )
    return table


def of_datasets(folder: str) -> list[dict[str, Any]]:
    return [*pytest.importorskip("datasets").load_dataset("parquet", data_dir=folder, split="train")]


def of_pyarrow(folder: str) -> list[dict[str, Any]]:
    table: list[dict[str, Any]] = pds.dataset(folder, format="parquet").to_table().to_pylist()
    return table


@pytest.mark.parametrize(
    "read", [of_pandas, of_polars, of_duckdb, of_pyarrow, pytest.param(of_datasets, marks=pytest.mark.slow)]
)
def test_a_reader_opens_the_folder_and_finds_the_fields_of_the_json_lines(
    read: Callable[[str], list[dict[str, Any]]], rows: tuple[Path, list[dict[str, Any]]]
) -> None:
    folder, lines = rows
    table = {row["image"]: row for row in read(str(folder / FOLDER))}
    assert len(table) == 3
    assert "expected an image" in table["broken.png"]["error"]
    for line in lines:
        row = table[line["image"]]
        for name in FIELDS[:-1]:
            value = row[name]
            assert ([*value] if isinstance(line[name], list) else value) == line[name], name
        assert row["final_answer"] == str(line["final_answer"])
        assert row["timings_ms"].keys() == {"planner", "executor", "summarizer", "replan"}


def test_the_table_for_spreadsheets_has_the_same_names(rows: tuple[Path, list[dict[str, Any]]]) -> None:
    folder, lines = rows
    with (folder / "rows.csv").open(encoding="utf-8-sig", newline="") as file:
        table = {row["image"]: row for row in csv.DictReader(file)}
    for line in lines:
        row = table[line["image"]]
        assert row.keys() <= {*SCHEMA.names, "map"}
        for name in ("main_distortion", "severity", "quality_level"):
            assert row[name] == line[name]
        assert float(row["quality_score"]) == pytest.approx(line["quality_score"], abs=5e-5)
        assert row["caveats"] == "; ".join(line["caveats"])
        assert len(row["distortions"].split("; ")) == max(len(line["distortions"]), 1)
    assert table["chelse.png"]["distortions"].startswith("severe Noise")


def test_no_distortion_is_told_from_none_that_was_looked_for(rows: tuple[Path, list[dict[str, Any]]]) -> None:
    folder, (noisy, clean) = rows
    assert (noisy["main_distortion"], noisy["severity"]) == ("Noise", "severe")
    assert noisy["distortions"] == [{"region": "Global", "category": "Noise", "strength": 3}]
    assert (clean["main_distortion"], clean["severity"], clean["distortions"]) == ("none", "none", [])
    unanswered = AgenticIQA.offline()(folder / "coffee.png", "Is the cat happy?")
    assert (unanswered.main_distortion, unanswered.severity, unanswered.distortions) == (None, None, [])


@pytest.mark.parametrize("answer", [2.5, "2.5", 3, "B", "50 of 100", None])
def test_an_answer_is_a_column_of_text_and_is_read_back_as_it_was(answer: Any) -> None:
    row = {"image": "a.png", "final_answer": answer, "quality_score": 2.5}
    columns = columns_of(row)
    assert columns["final_answer"] == (None if answer is None else str(answer))
    stored = pa.Table.from_pylist([{"place": 0, **columns}], SCHEMA).to_pylist()[0]
    read = row_of(stored)["final_answer"]
    assert (read, type(read)) == (answer, type(answer))


def test_content_of_one_form_has_its_type() -> None:
    as_text = {name for name in SCHEMA.names if pa.types.is_string(SCHEMA.field(name).type)}
    typed = ("distortions", "caveats", "outside_training", "replan_history", "reference_check", "timings_ms", "sent")
    assert not as_text & {*typed}
    assert {*Assessment().keys(), *as_text} >= {"plan", "executor_evidence"}  # by region, as the question asks
