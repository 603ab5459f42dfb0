"""Assess a labeled set in Python: finished rows are kept and the others assessed, in the order of the labels."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agenticiqa.configs import Config
from agenticiqa.eval.benchmark import scoring_question
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
