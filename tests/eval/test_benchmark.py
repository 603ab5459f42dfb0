"""Assess a labeled set in Python: finished rows are kept and the others assessed, in the order of the labels."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agenticiqa.configs import Config
from agenticiqa.eval.benchmark import scoring_question
from agenticiqa.eval.labels.reading import read_labels
from agenticiqa.eval.runs import default_folder
from agenticiqa.eval.scorers.rows import NewRows, assess_set
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.batch.results_file import ResultsFile
from agenticiqa.programs.errors import UserError
from agenticiqa.signatures.vocabulary import DEFAULT_QUERY


@pytest.fixture
def program() -> AgenticIQA:
    return AgenticIQA.from_config(Config())


def test_a_labeled_set_is_assessed_and_continued_in_python(
    program: AgenticIQA, make_labels: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = read_labels(make_labels(scenes=1, levels=(0, 2, 4)))
    watched: list[tuple[int, int, list[str]]] = []

    def watch(rows: NewRows, finished: int, total: int) -> NewRows:
        new = list(rows)
        watched.append((finished, total, [label.name for label, _ in new]))
        return iter(new)

    with ResultsFile(tmp_path / "results.jsonl") as results:
        (first,) = assess_set(program, labels[1:2], results, query=DEFAULT_QUERY, watch=watch)
    with ResultsFile(tmp_path / "results.jsonl") as results:
        rows = assess_set(program, labels, results, query=DEFAULT_QUERY, watch=watch)
    assert [row["name"] for row in rows] == [label.name for label in labels]
    assert [*rows][1] == first
    assert watched == [(0, 1, ["scene0_2.png"]), (1, 3, ["scene0_0.png", "scene0_4.png"])]
    assert capsys.readouterr() == ("", "")


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


def test_a_broken_image_is_a_row_with_an_error_that_names_it_once(
    program: AgenticIQA, make_labels: Callable[..., Path], tmp_path: Path
) -> None:
    labels = read_labels(make_labels(scenes=1, levels=(0, 2)))
    labels[0].image.write_bytes(b"no image")
    with ResultsFile(tmp_path / "results.jsonl") as results:
        broken, fine = assess_set(program, labels, results, query=DEFAULT_QUERY)
    assert broken["error"].startswith(f"ImageError: {labels[0].image}: ")
    assert broken["error"].count(labels[0].name) == 1
    assert "error" not in fine


def test_a_question_without_a_score_is_refused() -> None:
    assert scoring_question(" Rate its quality. ") == "Rate its quality."
    with pytest.raises(UserError, match="does not request a score"):
        scoring_question("What is in the picture?")


def test_the_default_folder_names_the_data_and_the_backend() -> None:
    assert default_folder("live r2", None, "offline") == Path("runs/live_r2-offline")
    assert default_folder("live_r2", "dev", "vllm.Qwen/Qwen3-VL") == Path("runs/live_r2-dev-vllm.Qwen_Qwen3_VL")
