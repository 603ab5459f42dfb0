"""Assess a labeled set in Python: finished rows are kept and the others assessed, in the order of the labels."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from PIL import Image

from agenticiqa.configs import Config
from agenticiqa.eval.benchmark import evaluate, scoring_question
from agenticiqa.eval.labels.own_data import read_labels
from agenticiqa.eval.runs import default_folder
from agenticiqa.eval.scorers.rows import NewRows, assess_set
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.batch.results_file import ResultsFile
from agenticiqa.programs.errors import UserError
from agenticiqa.signatures.vocabulary import DEFAULT_QUERY


@pytest.fixture
def program() -> AgenticIQA:
    return AgenticIQA.from_config(Config())


def test_a_changed_reference_is_assessed_again_but_a_moved_folder_is_not(
    program: AgenticIQA, make_labels: Callable[..., Path], tmp_path: Path
) -> None:
    path = make_labels(scenes=1, levels=(2,), references=True)
    with ResultsFile(tmp_path / "results.jsonl") as results:
        assess_set(program, read_labels(path), results, query=DEFAULT_QUERY)
    moved = path.parent.rename(tmp_path / "moved")
    labels = read_labels(moved / "labels.csv")
    new: list[int] = []

    def watch(rows: NewRows, finished: int, total: int) -> NewRows:
        new.append(total - finished)
        return rows

    with ResultsFile(tmp_path / "results.jsonl") as results:
        assess_set(program, labels, results, query=DEFAULT_QUERY, watch=watch)
    (moved / "scene0.png").write_bytes((moved / "scene0_2.png").read_bytes())
    with ResultsFile(tmp_path / "results.jsonl") as results:
        assess_set(program, labels, results, query=DEFAULT_QUERY, watch=watch)
    assert new == [0, 1]


def test_a_question_without_a_score_is_refused() -> None:
    assert scoring_question(" Rate its quality. ") == "Rate its quality."
    with pytest.raises(UserError, match="does not request a score"):
        scoring_question("What is in the picture?")


def test_the_default_folder_names_the_data_and_the_backend() -> None:
    assert default_folder("live r2", None, "offline") == Path("runs/live_r2-offline")
    assert default_folder("live_r2", "dev", "vllm.Qwen/Qwen3-VL") == Path("runs/live_r2-dev-vllm.Qwen_Qwen3_VL")


GRAYS = {"a.png": 40, "b.png": 160, "c.png": 220, "d.png": 90}  # levels, which are also the MOS


@pytest.fixture
def grays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    monkeypatch.chdir(tmp_path)
    for name, level in GRAYS.items():
        Image.new("RGB", (64, 64), (level,) * 3).save(name)
    return [*GRAYS.items()]


def mean(pixels: Any) -> float:
    return float(pixels.mean())


def darkness(pixels: Any) -> float:
    return 255 - float(pixels.mean())


FORMS: dict[str, Callable[[list[tuple[str, int]]], Any]] = {
    "pairs": lambda pairs: pairs,
    "generator": lambda pairs: ((Path(name), np.float32(mos)) for name, mos in pairs),
    "dicts": lambda pairs: [{"image": name, "mos": mos} for name, mos in pairs],
    "DataFrame": lambda pairs: pandas.DataFrame(pairs, columns=["image", "mos"]),
    "other names": lambda pairs: pandas.DataFrame(pairs, columns=["filename", "score"]),
    "index": lambda pairs: pandas.DataFrame(pairs, columns=["image", "mos"]).set_index("image"),
    "missing reference": lambda pairs: pandas.DataFrame(pairs, columns=["image", "mos"]).assign(reference=np.nan),
}


@pytest.mark.parametrize("form", FORMS)
def test_labels_in_memory_are_evaluated_and_read(form: str, grays: list[tuple[str, int]]) -> None:
    rows = evaluate(mean, FORMS[form](grays)).rows
    assert [(row["name"], row["mos"], row["quality_score"]) for row in rows] == [(*pair, pair[1]) for pair in grays]
    assert [(label.name, label.mos) for label in read_labels(FORMS[form](grays))] == grays


@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        (["a.png"], r"row 1 has type str; give labels as \(image, mos\) pairs"),
        ([("a.png", 3, 4)], "row 1 has type tuple"),
        (7, "found type int; give labels"),
        (pandas.DataFrame({"image": []}), "no rows found"),
        (pandas.DataFrame({"image": ["a.png"], "x": [1]}), "no mos column found .*rename a column"),
        (pandas.DataFrame({"image": ["a.png"], "mos": [np.nan]}), "row 1: mos is '', expected a number"),
        ([(np.zeros((9, 9)), 3)], "expected the path or the bytes of an image, found a ndarray"),
    ],
)
def test_other_labels_are_refused_with_what_to_give(labels: Any, problem: str, grays: object) -> None:
    for read in (read_labels, lambda labels: evaluate(mean, labels)):
        with pytest.raises(UserError, match=problem):
            read(labels)


def test_an_evaluation_shows_its_table_and_compares_itself(grays: list[tuple[str, int]]) -> None:
    one, other = evaluate(mean, grays), evaluate(darkness, grays)
    assert "test_benchmark:mean has an SRCC of 1.000" in repr(one)
    assert "<th>SRCC</th>" in one._repr_html_()
    report = one.compare(other)
    assert "test_benchmark:mean - tests.eval.test_benchmark:darkness" in repr(report)
    assert report._repr_html_().count("<table") == 2
    assert one.to_frame()["mos"].tolist() == [mos for _, mos in grays]
    with pytest.raises(UserError, match="needs another Evaluation"):
        one.compare(grays)  # type: ignore[arg-type]
