"""A model that the caller gives to DSPy is asked for the same as a configured one; what the caller set is kept."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.utils import DummyLM

from agenticiqa.configs import Config
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends import capabilities
from agenticiqa.programs.backends.sampling import RETRY_TEMPERATURE
from agenticiqa.programs.errors import Unanswered
from agenticiqa.programs.images import load
from agenticiqa.programs.stages.answerer import Answerer
from agenticiqa.programs.stages.planner import Planner
from agenticiqa.programs.stages.scorer import Scorer
from agenticiqa.programs.tools import toolbox
from agenticiqa.signatures.types import ExecutorOutput
from support.chat_request import images_of, stage_of
from support.engine import ScriptedEngine
from support.fake_server import Server, bad_json, by_stage, fake_server, in_turn
from support.loopback import Body, Reply, error_reply, spoken
from support.providers import ANTHROPIC, GEMINI, LLAMACPP, OPENAI, VLLM, Dialect, provider_server
from support.scripted_answers import ASSESSMENT, RATE, SCRIPT

SCORED = spoken(json.dumps({"assessment": ASSESSMENT}), {"Fair": {"Fair": -0.4, "Good": -1.5}})
ANSWERS = by_stage({**SCRIPT, "assessment": lambda body: SCORED if body.get("logprobs") else Reply(SCORED.content)})
SAMPLING = ("temperature", "top_p", "seed", "max_tokens", "max_completion_tokens", "logprobs", "top_logprobs")
Use = Callable[[dspy.LM], Any]


def given(server: Server, name: str = "openai/given", **settings: Any) -> dspy.LM:
    """Return a model as README's lines make it."""
    return dspy.LM(name, **{"api_base": server.url, "api_key": "none", "cache": False, "num_retries": 0, **settings})


def sent(body: Body) -> dict[str, Any]:
    """Return what a request asks for beside its texts."""
    form = body.get("response_format", {}).get("type")
    images = [mime for mime, _ in images_of(body)]
    return {**{name: body[name] for name in SAMPLING if name in body}, "form": form, "images": images}


@contextmanager
def configured(lm: dspy.LM) -> Iterator[AgenticIQA]:
    dspy.configure(lm=lm)
    try:
        yield AgenticIQA()
    finally:
        dspy.configure(lm=None)


@contextmanager
def enclosed(lm: dspy.LM) -> Iterator[AgenticIQA]:
    with dspy.context(lm=lm):
        yield AgenticIQA()


@contextmanager
def applied(lm: dspy.LM) -> Iterator[AgenticIQA]:
    program = AgenticIQA()
    program.set_lm(lm)
    yield program


@contextmanager
def passed(lm: dspy.LM) -> Iterator[AgenticIQA]:
    yield AgenticIQA(lm=lm)


@contextmanager
def ambient(lm: dspy.LM) -> Iterator[AgenticIQA]:
    sections = {name: {"backend": "dspy"} for name in ("planner", "executor", "summarizer", "replan")}
    with dspy.context(lm=lm):
        yield AgenticIQA.from_config(sections)


WAYS = {
    "lm=": passed,
    "set_lm": applied,
    "dspy.configure": configured,
    "dspy.context": enclosed,
    "backend: dspy": ambient,
}


@pytest.mark.slow
@pytest.mark.parametrize(("way", "engine"), [*((way, "auto") for way in WAYS), ("lm=", "litellm")])
def test_a_model_of_the_caller_is_asked_for_schema_logprobs_sampling_and_png(
    way: str, engine: str, examples: Path
) -> None:
    limit = "max_tokens" if engine == "litellm" else "max_completion_tokens"
    common = {"temperature": 0.0, "form": "json_schema", "images": ["image/png"]}
    with fake_server(ANSWERS) as server, WAYS[way](given(server, engine=engine)) as program:
        result = program(examples / "coffee.webp", RATE)
    stages = {stage_of(body): sent(body) for body in server.requests}
    assert stages["plan"] == {**common, "top_p": 0.1, limit: 2048}
    assert stages["detection"] == stages["analysis"] == {**common, limit: 2048}
    assert stages["assessment"] == {**common, limit: 512, "logprobs": True, "top_logprobs": 20}
    assert result.probability_source == "logprobs"
    used = {"structured_outputs": ["json_schema"], "logprobs": 20, "image_formats": ["jpeg", "png"]}
    assert result.capabilities == {"openai/given": used}
    assert result.sent == {"image": "measured pixels (PNG)"}


def test_the_same_is_requested_as_from_a_configured_model(examples: Path) -> None:
    with fake_server(ANSWERS) as server:
        AgenticIQA(backend="openai.given", api_base=server.url)(examples / "coffee.webp", RATE)
        before = [{**sent(body), "schema": body["response_format"]} for body in server.requests]
        AgenticIQA(lm=given(server))(examples / "coffee.webp", RATE)
    assert [{**sent(body), "schema": body["response_format"]} for body in server.requests[len(before) :]] == before


OWN: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {  # what the caller set, and what the scorer then requests
    "temperature": ({"temperature": 0.7}, {"temperature": 0.7, "max_completion_tokens": 512}),
    "a limit": ({"max_tokens": 99}, {"temperature": 0.0, "max_completion_tokens": 99}),
    "top_p and seed": (
        {"top_p": 0.5, "seed": 9},
        {"temperature": 0.0, "top_p": 0.5, "seed": 9, "max_completion_tokens": 512},
    ),
    "a model that reasons": ({"reasoning_effort": "low"}, {}),
    "samples of its own": ({"rollout_id": 3}, {"max_completion_tokens": 512}),
    "few alternatives": ({"logprobs": True, "top_logprobs": 2}, {"temperature": 0.0, "max_completion_tokens": 512}),
    "another form": ({"response_format": {"type": "json_object"}}, {"temperature": 0.0, "max_completion_tokens": 512}),
}


@pytest.mark.parametrize("name", OWN)
def test_what_the_caller_set_is_kept(name: str, examples: Path) -> None:
    own, sampling = OWN[name]
    with fake_server(ANSWERS) as server:
        rate(given(server, **own), examples)
    (body,) = server.requests
    expected = {"logprobs": True, "top_logprobs": own.get("top_logprobs", 20), **sampling}
    form = own.get("response_format", {}).get("type", "json_schema")
    assert sent(body) == {**expected, "form": form, "images": ["image/jpeg"]}


def test_a_temperature_of_the_caller_has_no_low_top_p_beside_it(examples: Path) -> None:
    with fake_server(ANSWERS) as server:
        make_plan(given(server, temperature=0.7), examples)
    assert {name: server.requests[0].get(name) for name in ("temperature", "top_p")} == {
        "temperature": 0.7,
        "top_p": None,
    }


def test_the_config_of_a_predictor_is_kept(examples: Path) -> None:
    scorer = Scorer()
    scorer.ask.predictor.config = {"temperature": 0.9}
    with fake_server(ANSWERS) as server, dspy.context(lm=given(server)):
        scorer(image=load(examples / "coffee_jpeg.jpg"), query=RATE, evidence=ExecutorOutput(), reference=None)
    assert server.requests[0]["temperature"] == 0.9


def test_a_section_with_the_model_of_dspy_sets_what_the_model_leaves_open(examples: Path) -> None:
    section = {"backend": "dspy", "temperature": 0.4, "max_tokens": 100, "logprobs": False, "structured_outputs": "off"}
    program = AgenticIQA.from_config({"summarizer": section})
    with fake_server(ANSWERS) as server, dspy.context(lm=given(server, max_tokens=70)):
        program(examples / "coffee_jpeg.jpg")
    assert sent(server.requests[0]) == {
        "temperature": 0.4,
        "max_completion_tokens": 70,
        "form": None,
        "images": ["image/jpeg"],
    }


SERVERS: dict[str, tuple[Dialect, str, dict[str, Any]]] = {  # and what the scorer's request has in the provider's words
    "openai": (OPENAI, "openai/gpt-4o-test", {"temperature": 0, "max_completion_tokens": 512, "top_logprobs": 20}),
    "vllm": (VLLM, "hosted_vllm/org/model-test", {"temperature": 0, "top_logprobs": 20}),
    "llamacpp": (LLAMACPP, "openai/model-test", {"temperature": 0, "max_completion_tokens": 512, "top_logprobs": 20}),
    "anthropic": (ANTHROPIC, "anthropic/claude-test", {"temperature": 0, "max_tokens": 512}),
    "gemini": (GEMINI, "gemini/gemini-test", {"temperature": 0, "maxOutputTokens": 512, "logprobs": 20}),
}
STRUCTURED = {"anthropic": "output_config.format", "gemini": "generationConfig.responseJsonSchema"}


@pytest.mark.parametrize("name", SERVERS)
def test_each_provider_accepts_the_request_for_a_model_of_the_caller(name: str, examples: Path) -> None:
    dialect, model, sampling = SERVERS[name]
    with provider_server(dialect, ANSWERS) as server:
        rate(dspy.LM(model, api_base=server.url, api_key="key", cache=False, num_retries=0), examples, "coffee.webp")
    seen = server.seen[0]  # another one asks for probabilities, because this server reports no tokens
    assert server.refused == []
    assert sampling.items() <= seen.sampling.items()
    assert seen.structured == STRUCTURED.get(name, "response_format.json_schema")
    assert [mime for mime, _ in seen.images] == [f"image/{'png' if name in ('openai', 'llamacpp') else 'webp'}"]


# --- engines of the caller -------------------------------------------------------------------------------------------


def test_an_engine_of_the_caller_gets_nothing_that_it_does_not_declare(examples: Path) -> None:
    engine = ScriptedEngine([json.dumps({"assessment": ASSESSMENT})])
    rate(dspy.LM("test/x", engine=engine, cache=False), examples, "coffee.webp")
    (request,) = engine.requests
    asked = request.config
    assert (asked.temperature, asked.max_tokens, asked.logprobs, asked.response_format) == (None, None, None, None)
    assert [mime for mime, _ in images_of(engine.bodies[0])] == ["image/png"]


def test_an_engine_of_the_caller_gets_what_it_declares(examples: Path) -> None:
    engine = ScriptedEngine([json.dumps({"assessment": ASSESSMENT})])
    engine.supports_response_schema = True
    engine.supported_params = frozenset({"response_format", "temperature", "max_tokens"})
    rate(dspy.LM("test/x", engine=engine, cache=False), examples)
    (request,) = engine.requests
    asked = request.config
    assert (asked.temperature, asked.max_tokens, asked.logprobs) == (0.0, 512, None)
    assert (asked.response_format or {})["type"] == "json_schema"


def test_a_dummy_of_dspy_is_asked_as_before(examples: Path) -> None:
    lm = DummyLM([{"assessment": json.dumps(ASSESSMENT)}])
    assert rate(lm, examples).source == "quality_probs"


# --- refusals --------------------------------------------------------------------------------------------------------


def refusing(
    *named: str, status: int = 400, said: str = "Unsupported value: '{}' is not supported with this model"
) -> Any:
    """Return a script that refuses requests with one of these parameters by name."""

    def script(body: Body) -> Reply | str:
        name = next((name for name in named if name in body), None)
        return error_reply(status, {"error": {"message": said.format(name)}}) if name else ANSWERS(body)

    return script


@pytest.mark.parametrize(
    ("refused", "left"),
    [
        (["temperature"], {"top_p": 0.1, "max_completion_tokens": 2048}),
        (["top_p"], {"temperature": 0.0, "max_completion_tokens": 2048}),
        (["max_completion_tokens"], {"temperature": 0.0, "top_p": 0.1}),
        (["temperature", "top_p", "max_completion_tokens"], {}),
    ],
)
def test_a_refused_parameter_is_left_out_and_remembered(
    refused: list[str], left: dict[str, Any], examples: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with fake_server(refusing(*refused)) as server:
        for _ in range(2):
            make_plan(given(server), examples)
        assert len(server.requests) == len(refused) + 2
        result = AgenticIQA(lm=given(server))(examples / "coffee_jpeg.jpg", RATE)
    left_out = {"form": "json_schema", "images": ["image/jpeg"], **left}
    assert [sent(body) for body in server.requests[len(refused) : len(refused) + 2]] == [left_out] * 2
    omitted = ["max_tokens" if name == "max_completion_tokens" else name for name in refused]
    assert sorted(result.capabilities["openai/given"]["omitted"]) == sorted(omitted)
    assert f"later requests use no {omitted[0]}" in caplog.text


def test_a_parameter_that_the_caller_set_is_not_left_out(examples: Path) -> None:
    with (
        fake_server(refusing("temperature")) as server,
        pytest.raises(dspy.LMInvalidRequestError, match="'temperature'"),
    ):
        make_plan(given(server, temperature=0.5), examples)
    assert len(server.requests) == 1


def test_top_p_is_left_out_first_where_it_is_refused_beside_a_temperature(examples: Path) -> None:
    said = "`temperature` and `top_p` cannot both be specified for this model"

    def script(body: Body) -> Reply | str:
        return error_reply(400, {"error": {"message": said}}) if {"temperature", "top_p"} <= {*body} else ANSWERS(body)

    with fake_server(script) as server:
        make_plan(given(server), examples)
    assert sent(server.requests[-1])["temperature"] == 0.0
    assert "top_p" not in server.requests[-1]


def test_a_configured_model_is_asked_without_a_refused_temperature(examples: Path) -> None:
    with fake_server(refusing("temperature")) as server:
        program = AgenticIQA(backend="vllm.test", api_base=server.url)
        program(examples / "coffee_jpeg.jpg", RATE)
    assert ["temperature" in body for body in server.requests] == [True] + [False] * (len(server.requests) - 1)


UNREADABLE = {  # the words of servers for a format that they cannot decode
    "llama.cpp": (400, "Failed to load image or audio file"),
    "vLLM": (400, "cannot identify image file <_io.BytesIO object at 0x7f>"),
    "Ollama": (500, "Failed to create new sequence: failed to process inputs: image: unknown format"),
    "OpenAI": (400, "You uploaded an unsupported image. Please make sure your image is valid."),
    "Anthropic": (400, "Could not process image"),
    "Gemini": (400, "Unsupported MIME type: image/webp"),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("is_configured", "server_name"), [*((True, name) for name in UNREADABLE), (False, "Ollama"), (False, "OpenAI")]
)  # DSPy raises another error for each status of a model of the caller; the words are matched alike
def test_after_a_refused_image_the_format_is_changed_once_and_remembered(
    is_configured: bool, server_name: str, examples: Path, caplog: pytest.LogCaptureFixture
) -> None:
    status, said = UNREADABLE[server_name]

    def script(body: Body) -> Reply | str:
        webp = any(mime == "image/webp" for mime, _ in images_of(body))
        return error_reply(status, {"error": {"message": said}}) if webp else ANSWERS(body)

    with fake_server(script) as server:
        section = {"backend": "vllm.given", "api_base": server.url, "max_retries": 0}
        summarizer = section if is_configured else {"backend": "dspy"}
        program = AgenticIQA.from_config(Config.model_validate({"summarizer": summarizer}))
        with dspy.context(lm=None if is_configured else given(server, "hosted_vllm/given")):
            results = [program(examples / name) for name in ("coffee.webp", "chelsea.webp")]
    types = [[mime for mime, _ in images_of(body)] for body in server.requests]
    assert types == [["image/webp"], ["image/png"], ["image/png"]]
    assert {body["response_format"]["type"] for body in server.requests} == {"json_schema"}, "nothing else is left out"
    assert {result.sent["image"] for result in results} == {"measured pixels (PNG)"}
    assert "later requests use images as jpeg or png" in caplog.text


def test_an_image_that_is_refused_as_png_too_is_not_sent_again(examples: Path) -> None:
    with fake_server(error_reply(400, {"error": {"message": "Failed to load image or audio file"}})) as server:
        for name, requests in (("coffee_jpeg.jpg", 1), ("coffee.webp", 3)):
            with pytest.raises(dspy.LMInvalidRequestError):
                rate(given(server, "hosted_vllm/given"), examples, name)
            assert len(server.requests) == requests


def test_openai_at_another_address_gets_png_for_webp(examples: Path) -> None:
    with fake_server(ANSWERS) as server:
        AgenticIQA(backend="openai.given", api_base=server.url)(examples / "coffee.webp", RATE)
    assert {mime for body in server.requests for mime, _ in images_of(body)} == {"image/png"}


def test_images_of_examples_are_sent_in_a_format_of_the_server(examples: Path) -> None:
    scorer = Scorer()
    demo = {"query": RATE, "evidence": "none", "assessment": ASSESSMENT}
    original = load(examples / "coffee.webp").to_dspy()
    scorer.ask.predictor.demos = [{**demo, "image": examples / "coffee.webp"}, {**demo, "image": original}]
    with fake_server(ANSWERS) as server, dspy.context(lm=given(server)):
        scorer(image=load(examples / "coffee_jpeg.jpg"), query=RATE, evidence=ExecutorOutput(), reference=None)
    assert [mime for mime, _ in images_of(server.requests[0])] == ["image/png", "image/png", "image/jpeg"]


# --- after a rejected answer -----------------------------------------------------------------------------------------

RETRIED = [{"temperature": RETRY_TEMPERATURE, "seed": 1}, {"temperature": RETRY_TEMPERATURE, "seed": 2}]


def sampled(body: Body) -> dict[str, Any]:
    return {name: body[name] for name in ("temperature", "top_p", "seed") if name in body}


@pytest.mark.parametrize("is_configured", [True, False])
def test_attempts_after_a_rejection_are_sampled_and_recorded(is_configured: bool, examples: Path) -> None:
    script = by_stage({**SCRIPT, "plan": [bad_json(), bad_json(), SCRIPT["plan"]]})
    with fake_server(script) as server:
        at = {"backend": "vllm.given", "api_base": server.url} if is_configured else {"lm": given(server)}
        result = AgenticIQA(**at)(examples / "coffee_jpeg.jpg", RATE)
    (name,) = result.capabilities
    first, *others = [sampled(body) for body in server.of("plan")]
    assert first == {"temperature": 0.0, "top_p": 0.1}
    assert others == RETRIED, "with a top_p of 0.1 the likeliest token would be taken again"
    assert {json.dumps(sampled(body)) for body in server.of("analysis")} == {'{"temperature": 0.0}'}
    assert result.capabilities[name]["retried_with"] == [RETRIED[1]]


KEPT: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "temperature": ({"temperature": 0.0}, {"temperature": 0.0, "seed": 1}),
    "seed": ({"seed": 7}, {"temperature": RETRY_TEMPERATURE, "seed": 7}),
    "a higher temperature and a seed": ({"temperature": 0.8, "seed": 7}, {"temperature": 0.8, "seed": 7}),
}


@pytest.mark.parametrize("name", KEPT)
def test_a_rejection_does_not_change_what_the_caller_set(name: str, examples: Path) -> None:
    own, second = KEPT[name]
    with fake_server(in_turn(bad_json(), ANSWERS)) as server:
        rate(given(server, **own), examples)
    assert [sampled(body) for body in server.requests][1] == second


def test_a_configured_seed_is_counted_on_and_a_configured_temperature_kept(examples: Path) -> None:
    with fake_server(in_turn(bad_json(), ANSWERS)) as server:
        section = {"backend": "vllm.given", "api_base": server.url, "seed": 40, "temperature": 0.6}
        AgenticIQA.from_config({"summarizer": section})(examples / "coffee_jpeg.jpg")
    assert [sampled(body) for body in server.requests] == [
        {"temperature": 0.6, "seed": 40},
        {"temperature": 0.6, "seed": 41},
    ]


def test_a_provider_without_seeds_gets_another_temperature(examples: Path) -> None:
    with provider_server(ANTHROPIC, in_turn(bad_json(), ANSWERS)) as server:
        rate(dspy.LM("anthropic/claude-test", api_base=server.url, api_key="key", cache=False), examples)
    assert server.refused == []
    assert [seen.sampling["temperature"] for seen in server.seen] == [0, RETRY_TEMPERATURE]


def test_a_repeated_run_replays_the_attempts_from_the_cache(examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    with fake_server(in_turn(bad_json(), bad_json(), ANSWERS)) as server:
        for _ in range(2):
            monkeypatch.setattr(capabilities, "_known", {})  # as in another process
            results.append(rate(given(server, cache=True), examples))
        assert len(server.requests) == 3
    assert results[0].rejected_answers == results[1].rejected_answers
    assert results[0].probabilities == results[1].probabilities


def test_samples_of_best_of_n_keep_their_temperature(examples: Path) -> None:
    answerer = Answerer()
    answerer.ask.predict = dspy.BestOfN(answerer.ask.predict, N=2, reward_fn=lambda given, made: 0.0, threshold=1.0)
    with fake_server(ANSWERS) as server, dspy.context(lm=given(server)):
        answerer(
            image=load(examples / "coffee_jpeg.jpg"),
            query="Is it sharp?",
            evidence=ExecutorOutput(),
            reference=None,
            options={},
        )
    assert [body["temperature"] for body in server.requests] == [1.0, 1.0]


def rate(lm: dspy.BaseLM, examples: Path, name: str = "coffee_jpeg.jpg") -> Any:
    """Ask the scorer about a photo."""
    with dspy.context(lm=lm):
        return Scorer(strict=True)(image=load(examples / name), query=RATE, evidence=ExecutorOutput(), reference=None)


def make_plan(lm: dspy.BaseLM, examples: Path) -> Any:
    """Ask the planner about a photo."""
    with dspy.context(lm=lm):
        return Planner(toolbox())(image=load(examples / "coffee_jpeg.jpg"), query=RATE, reference=None, feedback="")


def test_an_exchange_without_an_accepted_answer_is_asked_again(examples: Path) -> None:
    with fake_server(bad_json()) as server:
        for _ in range(2):
            with pytest.raises(Unanswered):
                rate(given(server, cache=True), examples)
        assert [sampled(body).get("seed") for body in server.requests] == [None, 1, 2] * 2
