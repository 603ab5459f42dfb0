"""The levels scorer against a scripted server: one request for an image, the probabilities of five words."""

import asyncio
import hashlib
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from scipy.stats import spearmanr

from agenticiqa.configs import Config, ConfigError, LevelsConfig, StageConfig
from agenticiqa.eval.cli import main
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.batch.cost import estimate
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.errors import BackendError, UserError
from agenticiqa.programs.images.files import sha256_of
from agenticiqa.signatures.answers.tokens import level_words
from agenticiqa.signatures.types import UNABLE
from support.fake_server import Server, by_stage, fake_server, images_of, text_of
from support.loopback import Body, Reply
from support.scripted_answers import ASSESSMENT, plan

SURE = {" good": 0.5, " excellent": 0.3, " fair": 0.1, " poor": 0.05, " bad": 0.05}


def tokens(shares: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return one token with these alternatives; the first one is drawn."""
    top = [{"token": name, "logprob": math.log(p), "bytes": None} for name, p in shares.items()]
    return [{**top[0], "top_logprobs": top}]


def words(shares: Mapping[str, float]) -> Reply:
    return Reply(next(iter(shares)), logprobs=tokens(shares))


def asking(server: Server, provider: str = "vllm", **changes: Any) -> Config:
    stage = StageConfig(backend=f"{provider}.test", api_base=server.url, max_retries=0)
    return Config(summarizer=stage.model_dump(exclude_unset=True), mode="levels", **changes)


@pytest.fixture
def photo(examples: Path, tmp_path: Path) -> Path:
    """Return a small part of a photo, so that measurements take no time."""
    with Image.open(examples / "coffee_jpeg.jpg") as whole:
        whole.crop((0, 0, 96, 96)).save(tmp_path / "photo.png")
    return tmp_path / "photo.png"


def test_one_request_gives_the_expectation_of_the_five_words(photo: Path) -> None:
    with fake_server(words(SURE)) as server:
        result = AgenticIQA.from_config(asking(server))(photo)
    (request,) = server.requests
    expected = 4 * 0.5 + 5 * 0.3 + 3 * 0.1 + 2 * 0.05 + 0.05
    assert result.quality_score == pytest.approx(expected)
    assert result.summarizer_result.quality_probs == pytest.approx({"1": 0.05, "2": 0.05, "3": 0.1, "4": 0.5, "5": 0.3})
    shown = result.to_dict()
    assert (shown["probability_source"], shown["probability_mass"]) == ("logprobs", pytest.approx(1.0))
    assert shown["usage_by_stage"]["scoring"]["calls"] == 1
    assert result.backend == "vllm.test (levels)"
    user, begun = request["messages"]
    assert [part["type"] for part in user["content"]] == ["image_url", "text"]
    assert text_of(user) == "How would you rate the quality of this image?"
    assert begun == {"role": "assistant", "content": "The quality of the image is"}
    assert {name: request[name] for name in ("max_tokens", "temperature", "logprobs", "top_logprobs")} == {
        "max_tokens": 1,
        "temperature": 0.0,
        "logprobs": True,
        "top_logprobs": 20,
    }
    assert not {"response_format", "top_p"} & request.keys()


@pytest.mark.parametrize(
    ("provider", "sent"),
    [
        ("vllm", {"continue_final_message": True, "add_generation_prompt": False}),
        ("sglang", {"continue_final_message": True}),
        ("llamacpp", {"chat_template_kwargs": {"enable_thinking": False}}),
    ],
)
def test_each_server_is_asked_in_its_own_way_to_continue(photo: Path, provider: str, sent: Body) -> None:
    with fake_server(words(SURE)) as server:
        asyncio.run(AgenticIQA.from_config(asking(server, provider)).acall(photo))
    (request,) = server.requests
    shown = {"continue_final_message", "add_generation_prompt", "chat_template_kwargs"}
    assert {name: request[name] for name in shown & request.keys()} == sent


@pytest.mark.parametrize("prompt", ["q-align", "onealign", "deqa-score"])
def test_the_image_is_last_for_families_trained_that_way(photo: Path, prompt: Any) -> None:
    with fake_server(words(SURE)) as server:
        levels = LevelsConfig(backend="vllm.test", api_base=server.url, prompt=prompt)
        AgenticIQA.from_config(Config(levels=levels, mode="levels"))(photo)
    user, _ = server.requests[0]["messages"]
    assert [part["type"] for part in user["content"]] == ["text", "image_url"]
    assert text_of(user) == "How would you rate the quality of this image?\n"


@pytest.mark.parametrize("provider", ["openai", "ollama", "lmstudio"])
def test_a_server_that_cannot_continue_an_answer_is_refused(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    config = Config(levels=LevelsConfig(backend=f"{provider}.test", api_base="http://127.0.0.1:1/v1"))
    with pytest.raises(BackendError, match=r"use vllm\.<model>, sglang\.<model>, llamacpp\.<model>"):
        AgenticIQA.from_config(config)


def test_the_profile_needs_a_model(capsys: pytest.CaptureFixture[str], photo: Path) -> None:
    with pytest.raises(ConfigError, match="name one with --backend"):
        Config(mode="levels").in_mode()
    assert main(["assess", str(photo), "--mode", "levels"]) == 2
    assert "--mode levels needs a model" in capsys.readouterr().err


def test_another_question_is_refused_and_not_answered(photo: Path) -> None:
    with fake_server(words(SURE)) as server:
        program = AgenticIQA.from_config(asking(server))
        with pytest.raises(UserError, match="can only rate quality, not answer"):
            program(photo, "Is it blurry? A. Yes B. No")
    assert server.requests == []


LITTLE = "the words excellent, good, fair, poor and bad have a total probability of only 0.40"
NONE = "the server returned no log-probabilities"


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (words({" a": 0.55, " good": 0.3, " poor": 0.1}), LITTLE),
        *((Reply(" good", logprobs=logprobs), NONE) for logprobs in (None, [], tokens({" good": 1.0}))),
    ],
)
def test_an_image_is_unscored_if_the_words_have_less_than_half_of_the_probability(
    photo: Path, reply: Reply, why: str
) -> None:
    with fake_server(reply) as server:
        result = AgenticIQA.from_config(asking(server))(photo)
    assert (result.final_answer, result.quality_score, result.is_unscored) == (UNABLE, None, True)
    (reason,) = result.rejected_answers["scoring"]
    assert reason.startswith(why)


@pytest.mark.parametrize(
    ("shares", "probabilities", "mass"),
    [
        ({" good": 0.6, " bad": 0.2}, {4: 0.75, 1: 0.25}, 0.8),
        ({"good": 0.6, "bad": 0.3, " good": 0.05}, {4: 2 / 3, 1: 1 / 3}, 0.9),  # the form with more
        ({" good": 0.6, " Good": 0.2, " goo": 0.1}, {4: 1.0}, 0.6),  # one token for each word
        ({" ex": 0.5, " e": 0.1, " po": 0.4}, {5: 5 / 9, 2: 4 / 9}, 0.9),  # tokens of a word in parts
        ({"Ġgood": 0.7, "Ġfair": 0.3}, {4: 0.7, 3: 0.3}, 1.0),  # a tokenizer's own marks
        ({" goods": 0.3, " fairly": 0.3, " poor": 0.4}, None, 0.4),
    ],
)
def test_the_words_are_read_like_in_the_published_code(
    shares: dict[str, float], probabilities: dict[int, float] | None, mass: float
) -> None:
    found = level_words({"content": tokens(shares)})
    assert found is not None
    assert found.mass == pytest.approx(mass)
    if probabilities is None:
        assert found.probabilities is None
    else:
        assert found.probabilities == pytest.approx(dict.fromkeys(range(1, 6), 0.0) | probabilities)


def test_in_the_full_program_the_levels_replace_the_scorer(photo: Path) -> None:
    with fake_server(words(SURE)) as server, fake_server(by_stage({"plan": plan(), "assessment": ASSESSMENT})) as agent:
        levels = LevelsConfig(backend="vllm.levels", api_base=server.url)
        config = Config(planner={"backend": "vllm.agent", "api_base": agent.url}, levels=levels)
        result = AgenticIQA.from_config(config)(photo, "Rate the quality of the cup.")
        offline = AgenticIQA.from_config(Config(levels=levels))(photo)
    assert agent.stages() == ["plan"]
    assert len(server.requests) == 1  # the second program asks the same, and is answered from the cache
    assert result.answered_by["scoring"] == ["vllm/levels"]
    assert offline.summarizer_result.probability_source == "logprobs"
    assert offline.executor_evidence.tool_log
    assert offline.summarizer_result.score_without_model is not None


def test_the_estimate_is_one_call_for_an_image(photo: Path) -> None:
    with fake_server(words(SURE)) as server:
        config = asking(server)
        found = estimate(config, [Job(photo)])
        AgenticIQA.from_config(config)(photo)
    (scoring,) = found.stages
    assert (scoring.stage, scoring.model, scoring.calls) == ("scoring", "vllm.test", 1)
    assert scoring.output_tokens == 1
    assert len(server.requests) == 1


def test_a_run_has_the_figures_of_the_published_script(shared_data: Path, tmp_path: Path) -> None:
    """Each image gets probabilities derived from its bytes; SRCC and scores must be those of the script."""
    table = (shared_data / "clive" / "labels.csv").read_text().splitlines()
    chosen = table[1::180]
    labels = tmp_path / "labels.csv"
    folder = shared_data / "clive"
    labels.write_text("\n".join([table[0], *(re.sub(r"^images", f"{folder}/images", row) for row in chosen)]))

    def shares_of(digest: str) -> dict[str, float]:
        weights = [1 + int(digest[2 * n : 2 * n + 2], 16) for n in range(5)]
        words = sorted(
            zip((" excellent", " good", " fair", " poor", " bad"), weights, strict=True), key=lambda w: -w[1]
        )
        return {word: weight / sum(weights) for word, weight in words}

    def script(request: Body) -> Reply:
        ((_, data),) = images_of(request)
        return words(shares_of(hashlib.sha256(data).hexdigest()))

    with fake_server(script) as server:
        command = ["evaluate", str(labels), "--backend", "vllm.test", "--api-base", server.url, "--mode", "levels"]
        assert main([*command, "--out", str(tmp_path / "run")]) == 0
    level = {" excellent": 5, " good": 4, " fair": 3, " poor": 2, " bad": 1}
    images = [folder / row.split(",")[0] for row in chosen]
    expected = [sum(level[word] * p for word, p in shares_of(sha256_of(image)).items()) for image in images]
    rows = {row["name"]: row for row in map(json.loads, (tmp_path / "run" / "results.jsonl").read_text().splitlines())}
    assert [rows[str(image)]["quality_score"] for image in images] == pytest.approx(expected)
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    mos = [float(row.split(",")[2]) for row in chosen]
    assert report["systems"][0]["srcc"]["value"] == pytest.approx(spearmanr(expected, mos).statistic)
    assert len(server.requests) == len(images)
