"""A rating, a choice and a region from a real model: complete results of the right form, with real probabilities."""

import json
from pathlib import Path
from typing import Any

import pytest

from agenticiqa.signatures.answers.tokens import LEAST_MASS
from agenticiqa.signatures.types import FROM_REJECTED, LEVEL_KEYS
from support.llama_server import LlamaServer

pytestmark = pytest.mark.real_server

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def assessed(server: LlamaServer, run: Any, configure: Any, tmp_path: Path) -> Any:
    """Assess one photo with the tiny model, and return the exit status, the row and what was printed to stderr."""

    def one(photo: str, *options: str, **keys: Any) -> tuple[int, dict[str, Any], str]:
        file = configure(server, attempts=2, max_replan_iterations=0, **keys)
        rows = tmp_path / "rows.jsonl"
        ran = run("assess", EXAMPLES / photo, *options, "--config", file, "--jsonl", rows)
        return ran.status, json.loads(rows.read_text() or "{}") if rows.exists() else {}, ran.err

    return one


@pytest.mark.parametrize("mode", ["full", "fast"])
def test_a_rating_has_a_score_from_the_tokens_of_its_level(mode: str, assessed: Any) -> None:
    status, row, err = assessed("coffee_jpeg.jpg", "--mode", mode)
    assert status == 0, err
    assert 1 <= row["quality_score"] <= 5
    assert sorted(row["quality_probs"]) == sorted(LEVEL_KEYS)
    assert sum(row["quality_probs"].values()) == pytest.approx(1)
    assert "scoring" not in row["rejected_answers"]
    assert row["probability_source"] not in FROM_REJECTED
    assert 0 < row["probability_mass"] <= 1, "log-probabilities are read"
    assert (row["probability_source"] == "logprobs") == (row["probability_mass"] >= LEAST_MASS)


def test_a_choice_is_one_of_the_letters(assessed: Any) -> None:
    question = "Which distortion is the strongest? A. Blur B. Noise C. Compression D. None"
    status, row, err = assessed("astronaut_blur.png", "--query", question, "--mode", "fast")
    assert status == 0, err
    assert row["final_answer"] in ("A", "B", "C", "D")
    assert "answering" not in row["rejected_answers"]


def test_a_question_about_a_region_has_only_regions_that_it_names(assessed: Any) -> None:
    question = "Rate the quality of the cat."
    status, row, err = assessed("chelsea_noise.png", "--query", question)
    assert status == 0, err
    assert 1 <= row["quality_score"] <= 5
    scope = row["plan"]["query_scope"]
    assert scope == "Global" or all(region.casefold() in question.casefold() for region in scope)
    measured = {call["region"] for call in row["executor_evidence"]["tool_log"]}
    assert measured <= {*(["Global"] if scope == "Global" else scope)}


def test_the_level_of_a_prefilled_answer_is_read_and_refused_for_its_low_mass(assessed: Any) -> None:
    """The model was not trained to continue the sentence, so most of the probability is on other words."""
    status, row, err = assessed("coffee_jpeg.jpg", "--mode", "levels")
    assert status == 3
    assert row["quality_score"] is None
    (reason,) = row["rejected_answers"]["scoring"]
    assert "the words excellent, good, fair, poor and bad have a total probability of only 0." in reason
    assert "The model continued with 'The quality of the image is" in err
    assert row["usage_by_stage"]["scoring"]["output_tokens"] == 1
