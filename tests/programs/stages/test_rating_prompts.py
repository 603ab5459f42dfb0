"""A prompt for a rating is one row: requests, cost estimates and saved prompts follow from it."""

from pathlib import Path
from typing import Any, get_args

import dspy
import pytest

from agenticiqa.configs import Config, Rating, SummarizerConfig
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.batch.cost import estimate
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.saving import scoring_prompt
from agenticiqa.programs.stages.scorer import LEVEL_FORM, RATINGS, RatingPrompt
from agenticiqa.signatures.summarizer import ScoreQuality
from agenticiqa.signatures.vocabulary import DEFAULT_QUERY
from support.fake_server import by_stage, fake_server, text_of
from support.scripted_answers import SCRIPT

INSTRUCTIONS = "You rate how well a picture is rendered. Be brief."


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The name of a further prompt, which is a row of the table alone."""
    row = RatingPrompt(ScoreQuality.with_instructions(INSTRUCTIONS), RATINGS["level"].token_form)
    monkeypatch.setitem(RATINGS, "brief", row)  # type: ignore[arg-type]
    return "brief"


def rating(name: Any, address: str = "http://127.0.0.1:9/v1") -> Config:
    config = Config().with_backend("vllm.test", address)
    return config.model_copy(update={"summarizer": config.summarizer.model_copy(update={"rating": name})})


def test_every_value_of_the_key_has_a_row() -> None:
    assert set(RATINGS) == {*get_args(Rating)}
    assert SummarizerConfig().rating in RATINGS


def test_a_signature_without_the_fields_that_the_scorer_sends_is_refused() -> None:
    for wrong in (ScoreQuality.delete("evidence"), ScoreQuality.append("mood", dspy.InputField())):
        with pytest.raises(TypeError, match="must have the fields of ScoreQuality, with their descriptions: refer"):
            RatingPrompt(wrong, LEVEL_FORM)


def test_a_description_that_the_form_in_tokens_would_replace_is_refused() -> None:
    with pytest.raises(TypeError, match="with their descriptions"):
        RatingPrompt(ScoreQuality.with_updated_fields("assessment", desc="the rating, in one word"), LEVEL_FORM)


def test_saved_prompts_tell_the_rows_apart_by_the_names_of_their_signatures() -> None:
    named = {row.signature.__name__: row.signature for row in RATINGS.values()}
    assert {*named.values()} == {row.signature for row in RATINGS.values()}
    assert "StringSignature" not in named, "write it as a class"


def test_prompts_tuned_for_another_rating_prompt_are_not_loaded(brief: Any, tmp_path: Path) -> None:
    AgenticIQA.from_config(rating("level")).save(tmp_path / "tuned.json")
    program = AgenticIQA.from_config(rating(brief))
    program.load(tmp_path / "tuned.json")  # the prompts of the other stages fit
    assert scoring_prompt(program) == scoring_prompt(AgenticIQA.from_config(rating(brief)))


def test_a_further_row_is_asked_estimated_and_told_apart(brief: Any, photo: Path) -> None:
    with fake_server(by_stage(SCRIPT)) as server:
        AgenticIQA.from_config(rating(brief, server.url))(photo)
    assert all(INSTRUCTIONS in text_of(request) for request in server.of("assessment"))
    tokens = {
        name: {stage.stage: stage.input_tokens for stage in estimate(rating(name), [Job(photo, DEFAULT_QUERY)]).stages}
        for name in ("level", brief)
    }
    assert tokens["level"]["scoring"] > tokens[brief]["scoring"]
    prompts = {name: scoring_prompt(AgenticIQA.from_config(rating(name))) for name in ("level", "letter", brief)}
    assert [prompt.is_tuned for prompt in prompts.values()] == [False] * 3
    assert len({prompt.digest for prompt in prompts.values()}) == 3
