"""Tables in memory, data sets and generators as inputs of ``assess_many`` and ``batch``, and results as a table."""

import io
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import datasets
import pandas
import pyarrow as pa
import pytest
from PIL import Image

from agenticiqa.configs import Config
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.batch.assess_many import assess_many
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.errors import ImageError, UserError
from agenticiqa.programs.images.tables import table_rows
from support.instant import instant
from support.shards import png, write_tar

QUERY = "Is it noisy?"
ROWS: list[dict[str, Any]] = [
    {"image": png(20), "caption": "one", "query": None},
    {"image": b"broken", "caption": "two", "query": QUERY},
    {"image": png(60), "caption": "three", "query": QUERY},
]
FEATURES = datasets.Features(
    {"image": datasets.Image(), "caption": datasets.Value("string"), "query": datasets.Value("string")}
)


@cache
def program() -> AgenticIQA:
    """Return the program with instant results."""
    return instant(Config())


def data_set() -> datasets.Dataset:
    stored = [row | {"image": {"bytes": row["image"], "path": None}} for row in ROWS]
    return datasets.Dataset.from_list(stored, features=FEATURES)


GIVEN: dict[str, Callable[[], Any]] = {
    "pandas": lambda: pandas.DataFrame(ROWS),
    "Polars": lambda: pytest.importorskip("polars").DataFrame(ROWS),
    "LazyFrame": lambda: pytest.importorskip("polars").LazyFrame(ROWS),
    "Arrow": lambda: pa.Table.from_pylist(ROWS),
    "Arrow batch": lambda: pa.RecordBatch.from_pylist(ROWS),
    "Arrow reader": lambda: pa.Table.from_pylist(ROWS).to_reader(),
    "Dataset": data_set,
    "Dataset of another format": lambda: data_set().with_format("numpy"),
    "IterableDataset": lambda: data_set().to_iterable_dataset(),
    "generator of rows": lambda: (row for row in ROWS),
}


@pytest.mark.parametrize("kind", GIVEN)
def test_each_row_is_a_job_and_a_damaged_one_fails_alone(kind: str) -> None:
    outcomes = {job.name: (job, outcome) for job, outcome in assess_many(program(), GIVEN[kind](), workers=1)}
    assert [*outcomes] == ["row 0", "row 1", "row 2"]
    assert str(outcomes["row 1"][1]).startswith("row 1: expected an image, found text that begins with 'broken'")
    assert [job.query == QUERY for job, _ in outcomes.values()] == [False, True, True]
    scores = [outcomes[name][1].quality_score for name in ("row 0", "row 2")]
    assert scores == pytest.approx([1 + 4 * 20 / 255, 1 + 4 * 60 / 255])
    batched = program().batch(GIVEN[kind](), num_threads=1, disable_progress_bar=True)
    assert [result and result.quality_score for result in batched] == [scores[0], None, scores[1]]


def test_images_in_bytes_have_names_of_their_own() -> None:
    outcomes = {job.name: outcome for job, outcome in assess_many(program(), [png(20), png(60)], workers=1)}
    assert [*outcomes] == ["image 0", "image 1"]


def test_a_data_set_is_named(tmp_path: Path) -> None:
    write_tar(tmp_path / "a.tar", {"0.png": png(20), "1.png": png(60)})
    outcomes = [*assess_many(program(), tmp_path / "a.tar", workers=1)]
    assert [job.name for job, _ in outcomes] == [f"{tmp_path}/a.tar/{number}.png" for number in range(2)]
    (failed,) = assess_many(program(), str(tmp_path / "none.tar"), workers=1)
    assert "there is no such file" in str(failed[1])


def test_the_splits_of_a_data_set_are_taken_one_by_one() -> None:
    with pytest.raises(ImageError, match=r"a data set with splits; take one, such as data\['train'\]"):
        [*assess_many(program(), datasets.DatasetDict(train=data_set()), workers=1)]


def test_a_generator_may_yield_images() -> None:
    images = (Image.open(io.BytesIO(row["image"])) for row in ROWS[::2])
    assert [outcome.final_answer for _, outcome in assess_many(program(), images, workers=1)] == [
        1 + 4 * 20 / 255, 1 + 4 * 60 / 255,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"picture": "a.png"}, "expected a column image or path, found picture"),
        ({"image": None}, "the row has no image"),
        ({"image": 3}, "row 0: the column has a int, expected the bytes or the path of an image"),
        ({"image": png(5), "question": QUERY}, "unknown key 'question': rename it to 'query'"),
        ({"image": png(5), "options": ["one"]}, "options"),
        ({"train": data_set()}, "expected a column image or path, found train"),
    ],
)
def test_a_row_that_cannot_be_read_is_a_failed_job_with_the_reason(row: dict[str, Any], reason: str) -> None:
    for given in (row, [row], iter([row])):
        [(_, outcome)] = assess_many(program(), given, workers=1)
        assert reason in str(outcome)
        assert isinstance(outcome, UserError)


def test_captions_are_no_questions() -> None:
    [(_, outcome)] = assess_many(program(), [{"image": png(5), "text": "A cup."}], workers=1)
    assert not isinstance(outcome, Exception)


def test_a_table_without_images_is_one_error() -> None:
    with pytest.raises(UserError, match="the table: expected a column image or path, found a, b"):
        next(assess_many(program(), pandas.DataFrame({"a": [1], "b": [2]})))


def test_only_tables_are_read_as_tables() -> None:
    assert [table_rows(given) for given in ([png(5)], png(5), Image.new("RGB", (9, 9)), iter(ROWS))] == [None] * 4


def test_results_become_a_frame_in_the_order_of_the_rows_that_can_be_joined() -> None:
    given = pandas.DataFrame(ROWS, index=[7, 3, 9])
    frame = assess_many(program(), given, workers=3).to_frame()
    assert frame.index.tolist() == [7, 3, 9]
    assert frame["image"].tolist() == ["row 0", "row 1", "row 2"]
    assert "expected an image" in frame.loc[3, "error"]
    joined = given.join(frame[["quality_score"]])
    assert joined["quality_score"].round(2).tolist()[::2] == [1.31, 1.94]
    assert {"main_distortion", "severity", "distortions", "caveats", "score_low_80"} <= {*frame.columns}


def test_a_frame_has_equal_jobs_and_rows_of_to_dict() -> None:
    same = Job(png(20))
    frame = assess_many(program(), [same, Job(png(60)), same], 1, lambda result: result.to_dict()).to_frame()
    assert frame["quality_score"].round(2).tolist() == [1.31, 1.94, 1.31]
    with pytest.raises(UserError, match="to_frame needs results, but postprocess returned float"):
        assess_many(program(), [same], 1, float).to_frame()
