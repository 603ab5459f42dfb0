"""The source of a model's probabilities over the levels, from a server and from the cache."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from agenticiqa.configs import Config, StageConfig
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends.connect import connect
from agenticiqa.programs.backends.run_context import recorded_usage
from agenticiqa.programs.errors import Unanswered
from agenticiqa.programs.fusion.equations import softmax
from agenticiqa.programs.fusion.formula import ScoreFusion
from agenticiqa.programs.images import load
from agenticiqa.programs.stages.protocols import Scored
from agenticiqa.programs.stages.scorer import Scorer
from agenticiqa.signatures.summarizer import ScoredAnswer
from agenticiqa.signatures.types import ExecutorOutput
from agenticiqa.signatures.vocabulary import LEVELS, Level
from support.fake_server import Server, by_stage, fake_server
from support.loopback import Reply
from support.scripted_answers import LOGS, NONE, RATE, plan

WRITTEN = softmax({int(level): log for level, log in LOGS.items()})


def reply(shares: Mapping[str, float] | None, level: Any = "Fair", logs: Any = LOGS) -> Reply:
    """Return an assessment with these probabilities of its level's token; ``None`` for no log-probabilities."""
    said = {"quality_level": level, "quality_probs": logs, "quality_reasoning": "Soft edges everywhere."}
    text = json.dumps({"assessment": said})
    value = json.dumps(level).strip('"')
    before, _, after = text.partition(value)
    tokens = [token(before), token(value, shares), token(after)] if shares else None
    return Reply(text, logprobs=tokens)


def token(text: str, shares: Mapping[str, float] | None = None) -> dict[str, Any]:
    top = [{"token": name, "logprob": math.log(p), "bytes": None} for name, p in (shares or {text: 1.0}).items()]
    return {"token": text, "logprob": top[0]["logprob"], "bytes": None, "top_logprobs": top}


def score(server: Server, photo: Path, **changes: Any) -> Scored:
    stage = StageConfig(backend="vllm.test", api_base=server.url, max_retries=0, **{"logprobs": True, **changes})
    scorer = Scorer(backend=connect(stage), attempts=1)
    return scorer(image=load(photo), query=RATE, evidence=ExecutorOutput(), reference=None)


@pytest.fixture
def photo(examples: Path) -> Path:
    return examples / "coffee_jpeg.jpg"


def test_token_probabilities_take_precedence_over_written_ones(photo: Path) -> None:
    with fake_server(reply({"Fair": 0.5, "Good": 0.25, "Nice": 0.25})) as server:
        shown = score(server, photo)
    assert (shown.source, shown.mass) == ("logprobs", pytest.approx(0.75))
    assert shown.probabilities == pytest.approx({1: 0, 2: 0, 3: 2 / 3, 4: 1 / 3, 5: 0})


def test_a_cached_answer_gives_the_same_probabilities_as_the_live_one(photo: Path) -> None:
    with fake_server(reply({"Fair": 0.6, "Poor": 0.3, "Nice": 0.1})) as server, recorded_usage() as usage:
        live, cached = score(server, photo), score(server, photo)
    assert len(server.requests) == 1
    assert (usage.stages["scoring"].calls, usage.stages["scoring"].cached) == (1, 1)
    assert cached == live
    assert live.source == "logprobs"


def without_alternatives() -> Reply:
    """Return each token with the log-probability 0, the placeholder of some servers."""
    text = reply(None).content
    before, _, after = text.partition("Fair")
    tokens = [{"token": part, "logprob": 0.0, "bytes": None, "top_logprobs": []} for part in (before, "Fair", after)]
    return Reply(text, logprobs=tokens)


@pytest.mark.parametrize(
    ("answer", "mass"),
    [(reply({"Fair": 0.05, "Nice": 0.9}), pytest.approx(0.05)), (reply(None), None), (without_alternatives(), None)],
    ids=["few tokens name a level", "no tokens", "no alternatives"],
)
def test_without_usable_tokens_the_written_probabilities_are_used(photo: Path, answer: Reply, mass: Any) -> None:
    with fake_server(answer) as server:
        found = score(server, photo)
    assert (found.source, found.mass) == ("quality_probs", mass)
    assert found.probabilities == pytest.approx(WRITTEN)


@pytest.mark.parametrize(("level", "name"), [(4, "Good"), ("4", "Good"), ("bad", "Bad")])
def test_a_level_given_as_a_number_is_read(photo: Path, level: Any, name: Level) -> None:
    logs = {number: -0.1 if int(number) == LEVELS[name] else -4.0 for number in LOGS}
    with fake_server(reply({json.dumps(level).strip('"'): 0.9, "3": 0.1}, level, logs)) as server:
        shown = score(server, photo)
    assert shown.source == "logprobs"
    assert shown.probabilities[LEVELS[name]] == pytest.approx(0.9)


@pytest.mark.parametrize("level", [0, 6, 4.5, True, "4.5", "Goodish", "Good/Fair", "not good", ["Good"]])
def test_an_unknown_level_is_rejected(level: Any) -> None:
    said = {"quality_level": level, "quality_probs": LOGS, "quality_reasoning": "Soft."}
    with pytest.raises(ValidationError, match="quality_level"):
        ScoredAnswer.model_validate(said)


def test_tokens_that_spell_another_level_than_the_text_are_rejected(photo: Path) -> None:
    stale = reply({"Bad": 0.9, "Poor": 0.1}, "Bad").logprobs
    mixed = Reply(reply(None).content, logprobs=stale)
    with fake_server(mixed) as server:
        shown = score(server, photo)
    assert (shown.source, shown.mass) == ("salvaged_level", None)
    assert max(shown.probabilities, key=lambda level: shown.probabilities[level]) == LEVELS["Fair"]
    assert "the tokens that came with it spell Bad" in shown.rejected_answers["scoring"][0]


@pytest.mark.parametrize(
    ("answer", "level"),
    [("Fair", 3), ("C", 3), ("C. Fair", 3), ("(D) Poor", 2), ("4", 4), ("B. Fair", None), ("A blurry photo", None)],
)
def test_a_level_or_letter_as_final_answer_is_what_the_model_said(photo: Path, answer: str, level: int | None) -> None:
    """The score is marked. A letter with the name of another level, and other words, are no level."""
    said = json.dumps({"final_answer": answer})
    with fake_server(said) as server:
        if level is None:
            with pytest.raises(Unanswered):
                score(server, photo)
            return
        shown = score(server, photo)
    assert (shown.source, shown.probabilities[level]) == ("salvaged_level", pytest.approx(0.7))


def test_only_the_scoring_question_pays_for_log_probabilities(photo: Path) -> None:
    script: dict[str, Any] = {
        "plan": plan(flags=NONE),
        "assessment": reply({"Fair": 0.5, "Good": 0.4, "Nice": 0.1}),
        "answer": {"final_answer": "Soft.", "quality_reasoning": "Edges."},
    }
    with fake_server(by_stage(script)) as server:
        stage = StageConfig(backend="vllm.test", api_base=server.url, logprobs=True)
        program = AgenticIQA.from_config(
            Config(planner={**stage.model_dump()}, summarizer=stage)  # type: ignore[arg-type]
        )
        row = program(photo, RATE).to_dict()
        program(photo, "Why is it soft?")
    assert (row["probability_source"], row["probability_mass"]) == ("logprobs", pytest.approx(0.9))
    assert [
        stage for request, stage in zip(server.requests, server.stages(), strict=True) if "logprobs" in request
    ] == ["assessment"]


@pytest.mark.parametrize("model_error", [0.0, 3.0])
def test_tiny_and_zero_probabilities_give_the_same_score(model_error: float) -> None:
    """A probability of zero or a millionth gives the same score in two decimals, unless tools contradict it."""
    fusion = ScoreFusion(model_error=model_error)
    sparse = {1: 0.0, 2: 0.0, 3: 0.6, 4: 0.4, 5: 0.0}
    dense = {level: (share + 1e-6) / (1 + 5e-6) for level, share in sparse.items()}
    for mean in (2.0, 2.5, 3.0, 3.5, 4.0, 4.5):
        assert fusion.fuse_scores([mean], sparse) == pytest.approx(fusion.fuse_scores([mean], dense), abs=0.005)
