"""Refused features are found at the first question and remembered by the process; faults do not count as refusals."""

import asyncio
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dspy
import pytest

from agenticiqa.configs import Config, StageConfig
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends import capabilities as module
from agenticiqa.programs.backends.capabilities import FEWER_LOGPROBS, RequestFeatures
from agenticiqa.programs.backends.connect import features_of
from agenticiqa.programs.backends.image_tokens import QWEN
from agenticiqa.programs.backends.limits import LimitReached, Limits, RunLimits
from agenticiqa.programs.backends.providers import PROVIDERS, Provider
from agenticiqa.programs.backends.run_context import within
from support.fake_server import Server, fake_server, server_error
from support.loopback import Body, Reply, error_reply, spoken
from support.scripted_answers import ASSESSMENT

SCORED = spoken(json.dumps({"assessment": ASSESSMENT}), {"Fair": {"Fair": -0.4, "Good": -1.5}})
AGAIN = "Rate the quality of this image."  # another question, which is in no cache
NO_FORM, NO_LOGPROBS = "'response_format.type' must be 'text'", "You are not allowed to request logprobs"
Script = Callable[[Body], Reply]


def asked_of(body: Body) -> tuple[str, int]:
    """Return the form of JSON and the number of log-probabilities that a request asks for."""
    return body.get("response_format", {}).get("type", "off"), body.get("top_logprobs", 0)


def answer(body: Body) -> Reply:
    return SCORED if body.get("logprobs") else Reply(SCORED.content)


def refusing(*forms: str, most: int = 20, status: int = 400, said: str = "") -> Script:
    """Return a script that refuses these forms of JSON and more log-probabilities, by name or with this message."""

    def script(body: Body) -> Reply:
        form, logprobs = asked_of(body)
        refused = NO_LOGPROBS if logprobs > most else NO_FORM if form in forms else None
        return error_reply(status, {"error": {"message": said or refused}}) if refused else answer(body)

    return script


def at(number: int, reply: Reply, last: int | None = None) -> Script:
    """Return a script that refuses schemas, and gives ``reply`` to its requests ``number`` (from 1) to ``last``."""
    lock, count = threading.Lock(), [0]

    def script(body: Body) -> Reply:
        with lock:
            count[0] += 1
            return reply if number <= count[0] <= (last or number) else refusing("json_schema")(body)

    return script


def stage(server: Server | None = None, **changes: Any) -> StageConfig:
    url = server.url if server else "http://host:8000/v1"
    return StageConfig(**{"backend": "vllm.test", "api_base": url, "max_retries": 0, "timeout": 5.0, **changes})


def program(server: Server, **changes: Any) -> AgenticIQA:
    """Return a program that asks one question, for the score, with a form of JSON and log-probabilities."""
    return AgenticIQA.from_config(Config(summarizer=stage(server, **changes)))


BOTH = ("json_schema", 20)
FOUND: dict[str, tuple[Script, tuple[str, int], int]] = {  # how it is asked in the end, requests before that
    "takes all": (answer, BOTH, 0),
    "schema, 400": (refusing("json_schema"), ("json_object", 20), 1),
    "schema, 422": (refusing("json_schema", status=422), ("json_object", 20), 1),
    "any JSON": (refusing("json_schema", "json_object"), ("off", 20), 2),
    "log-probabilities": (refusing(most=0), ("json_schema", 0), 2),
    "log-probabilities, 403": (refusing(most=0, status=403), ("json_schema", 0), 2),
    "more than five": (refusing(most=FEWER_LOGPROBS), ("json_schema", FEWER_LOGPROBS), 1),
    "all": (refusing("json_schema", "json_object", most=0), ("off", 0), 4),
}


@pytest.mark.parametrize("name", FOUND)
def test_refused_features_are_not_requested_after_the_first_question(
    name: str, photo: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    script, (form, logprobs), before = FOUND[name]
    with fake_server(script) as server:
        results = [program(server)(photo, *query) for query in ((), (), (AGAIN,))]
        shown = [record for record in caplog.records if "refused a request parameter" in record.message]
        monkeypatch.setattr(module, "_known", {})  # as another process, with the cache of this one
        results += [program(server)(photo), program(server)(photo, AGAIN.lower())]
    assert asked_of(server.requests[0]) == BOTH
    answered = [(form, logprobs)] * 2
    assert [asked_of(body) for body in server.requests[before : before + 2]] == answered, "the same is in the cache"
    assert len(server.requests) == 2 * before + 3
    assert asked_of(server.requests[-1]) == (form, logprobs)
    used = {"structured_outputs": [form], "logprobs": logprobs, "image_formats": ["jpeg", "png", "webp"]}
    for result in results:
        assert result.capabilities == {"vllm/test": used}
        assert result.summarizer_result.probability_source == ("logprobs" if logprobs else "quality_probs")
        assert result.quality_score == results[0].quality_score
    assert results[0].usage_by_stage["scoring"]["calls"] == before + 1
    assert len(shown) == bool(before)


TEXTS = {  # of real servers: the words, and what they refuse
    "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.": "form",
    "This response_format type is unavailable now": "form",
    "response_format value as json_schema is enabled only for api versions 2024-08-01-preview and later": "form",
    "body.response_format.type: Input should be 'text' or 'json_object'": "form",
    "JSON mode is not enabled for models/gemini-test": "form",
    "output_config.format: Extra inputs are not permitted": "form",
    "The provided JSON schema contains features not supported by xgrammar.": "form",
    "You are not allowed to request logprobs from this model": "logprobs",
    "Logprobs is not supported for the current model.": "logprobs",
    "Requested sample logprobs of 20, which is greater than max allowed: 5": "logprobs",
    "5 is greater than the maximum of 1 - 'top_logprobs'": "logprobs",
    "log-probabilities cannot be combined with response_format": "logprobs",
    "Unsupported image": None,
    "Bad Request": None,
}


@pytest.mark.parametrize("said", TEXTS)
def test_the_message_of_an_error_names_the_refused_feature(said: str) -> None:
    change = features_of(stage()).without_refused(RequestFeatures(*BOTH), dspy.LMInvalidRequestError(said, status=400))
    assert [*(change or ())] == ([TEXTS[said]] if TEXTS[said] else [])


NO_REFUSALS: dict[str, tuple[Script, int]] = {  # and the requests that are sent
    "everything, by a name of no feature": (lambda body: error_reply(400, {"error": {"message": "no"}}), 1),
    "everything, by the name of one": (lambda body: error_reply(422, {"error": {"message": NO_FORM}}), 3),
    "a request too large": (refusing("json_schema", status=413), 1),
    "a wrong key": (refusing("json_schema", status=401), 1),
    "no such model": (refusing("json_schema", status=404), 1),
    "forbidden": (refusing(most=0, status=403, said="no"), 1),
    "too long": (refusing("json_schema", said="This model's maximum context length is 4096 tokens"), 1),
    "busy": (refusing("json_schema", status=503), 1),
    "broken": (refusing("json_schema", status=500), 1),
    "the model refuses": (
        lambda body: Reply(raw_body=json.dumps({"choices": [{"message": {"refusal": NO_FORM}}]}).encode()),
        1,
    ),
    "an outage in between": (at(2, server_error()), 2),
    "cut off in between": (at(2, Reply("no", cut=True)), 2),
    "no answer in between": (at(2, Reply(raw_body=b"{}")), 2),
    "another refusal in between": (at(2, error_reply(400, {})), 2),
}


@pytest.mark.parametrize("name", NO_REFUSALS)
def test_faults_do_not_disable_features(name: str, photo: Path) -> None:
    script, requests = NO_REFUSALS[name]
    with fake_server(script) as server:
        judge = program(server)
        with pytest.raises(dspy.LMError):
            judge(photo)
        assert len(server.requests) == requests
    assert asked_of(server.requests[0]) == BOTH
    assert (features_of(stage(server)).form, features_of(stage(server)).top_logprobs) == BOTH


def test_a_feature_accepted_once_is_kept(photo: Path) -> None:
    with fake_server(lambda body: (refusing("json_schema") if server.requests[1:] else answer)(body)) as server:
        judge = program(server)
        judge(photo)
        with pytest.raises(dspy.LMInvalidRequestError, match="must be 'text'"):
            judge(photo, AGAIN)
        assert len(server.requests) == 2
    assert features_of(stage(server)).form == "json_schema"


@pytest.mark.parametrize("form", ["json_schema", "json_object", "off"])
@pytest.mark.parametrize("logprobs", [True, False])
def test_a_configured_feature_is_kept(photo: Path, form: str, logprobs: bool) -> None:
    with fake_server(refusing(form, most=0)) as server, pytest.raises(dspy.LMInvalidRequestError):
        program(server, structured_outputs=form, logprobs=logprobs)(photo)
    assert [asked_of(body) for body in server.requests] == [(form, 20 if logprobs else 0)]


def test_an_accepted_feature_is_kept_even_if_the_answer_is_unusable(photo: Path) -> None:
    with fake_server(lambda body: refusing("json_schema")(body) if asked_of(body) == BOTH else Reply("?")) as server:
        program(server)(photo)
    assert [asked_of(body)[0] for body in server.requests] == ["json_schema", *["json_object"] * 3]


def test_simultaneous_first_questions_end_with_the_same_features(photo: Path) -> None:
    with fake_server(refusing("json_schema")) as server:
        questions = [f"{AGAIN} {number}" for number in range(8)]
        with ThreadPoolExecutor(8) as pool:
            results = [*pool.map(lambda query: program(server)(photo, query), questions)]
        asked = [asked_of(body) for body in server.requests]
        judge = program(server)

        async def together() -> list[Any]:
            return list(await asyncio.gather(*(judge.acall(photo, f"{query}!") for query in questions)))

        results += asyncio.run(together())
        assert [asked_of(body) for body in server.requests[len(asked) :]] == [("json_object", 20)] * 8
    assert len({result.quality_score for result in results}) == 1
    assert asked.count(("json_object", 20)) == 8
    assert len(asked) <= 8 + 8, "each is refused once at most"


def test_the_fallback_answers_if_an_outage_follows_a_refusal(photo: Path) -> None:
    with fake_server(at(2, server_error(), 99)) as down, fake_server(answer) as up:
        result = program(down, fallback_backend="vllm.spare", fallback_api_base=up.url)(photo)
    assert result.answered_by == {"scoring": ["vllm/spare"]}
    assert [*result.capabilities] == ["vllm/spare"]


def test_requests_count_towards_the_limits_of_the_run(photo: Path) -> None:
    limits = RunLimits(Limits(max_calls=2))
    with fake_server(refusing("json_schema", "json_object")) as server, within(limits), pytest.raises(LimitReached):
        program(server)(photo)
    assert (limits.own.calls, len(server.requests)) == (2, 2)


NAMES = ("max_tokens", "max_completion_tokens")


def forbidden(name: str) -> Reply:
    """Return the reply of a server that checks requests with Pydantic, such as Mistral's."""
    wrong = {"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted", "input": 512}
    return error_reply(422, {"object": "error", "message": {"detail": [wrong]}, "type": "invalid_request_error"})


def unsupported(name: str) -> Reply:
    """Return the reply of OpenAI."""
    (other,) = {*NAMES} - {name}
    said = f"Unsupported parameter: '{name}' is not supported with this model. Use '{other}' instead."
    error = {"message": said, "type": "invalid_request_error", "param": name, "code": "unsupported_parameter"}
    return error_reply(400, {"error": error})


def unrecognized(name: str) -> Reply:
    return error_reply(400, {"error": f"Unrecognized request argument supplied: {name}"})


def forbidden_in_words(name: str) -> Reply:
    return error_reply(422, {"detail": f"extra_forbidden: {name}"})


@pytest.mark.parametrize("refusal", [forbidden, forbidden_in_words, unsupported, unrecognized])
@pytest.mark.parametrize(("backend", "refused"), [("vllm.test", NAMES[0]), ("openai.test", NAMES[1])])
def test_a_refused_name_of_the_token_limit_is_replaced_once_and_remembered(
    backend: str, refused: str, refusal: Callable[[str], Reply], photo: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (other,) = {*NAMES} - {refused}
    with fake_server(lambda body: refusal(refused) if refused in body else answer(body)) as server:
        results = [program(server, backend=backend)(photo, *query) for query in ((), (AGAIN,))]
    assert [[name for name in NAMES if name in body] for body in server.requests] == [[refused], [other], [other]]
    assert len({body[other] for body in server.requests[1:]}) == 1
    assert all(asked_of(body) == BOTH for body in server.requests), "nothing else is left out"
    assert [result.usage_by_stage["scoring"]["calls"] for result in results] == [2, 1]
    (logged,) = [record.getMessage() for record in caplog.records if "refused a request parameter" in record.message]
    assert logged.endswith(f"later requests use token_limit {other}")


def test_a_name_is_replaced_also_if_another_question_has_replaced_it_since_the_request() -> None:
    features, refusal = features_of(stage()), "Unsupported parameter: 'max_tokens' is not supported with this model"
    at_first = RequestFeatures(token_limit=features.token_limit)
    features.keep({"token_limit": NAMES[1]})
    change = features.without_refused(at_first, dspy.LMInvalidRequestError(refusal, status=400))
    assert change == {"token_limit": NAMES[1]}


BOTH_REFUSED: dict[str, tuple[Script, int]] = {
    "neither name": (lambda body: forbidden(next(name for name in NAMES if name in body)), 2),
    "a value": (lambda body: error_reply(400, {"error": "max_tokens is too large: 512, the model supports 256"}), 1),
    "another parameter": (lambda body: forbidden("max_tokens_per_image"), 1),
}


@pytest.mark.parametrize("name", BOTH_REFUSED)
def test_another_refusal_does_not_change_the_name_of_the_token_limit(name: str, photo: Path) -> None:
    script, requests = BOTH_REFUSED[name]
    with fake_server(script) as server, pytest.raises(dspy.LMInvalidRequestError):
        program(server, structured_outputs="off", logprobs=False)(photo)
    assert len(server.requests) == requests
    assert features_of(stage(server)).token_limit == "max_tokens"


def test_a_provider_that_forbids_other_parameters_needs_one_row(photo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mistral's API refuses ``max_completion_tokens``, ``seed`` and log-probabilities with status 422."""
    row = Provider("MISTRAL_API_KEY", "https://api.mistral.ai/v1", logprobs=0, seed=False, image_tokens=QWEN)
    monkeypatch.setitem(PROVIDERS, "mistral", row)
    known = {"model", "messages", "temperature", "top_p", "max_tokens", "random_seed", "response_format", "n", "stop"}

    def strict(body: Body) -> Reply:
        extra = [name for name in body if name not in known]
        return forbidden(extra[0]) if extra else answer(body)

    with fake_server(strict) as server:
        result = program(server, backend="mistral.mistral-medium-latest", seed=7)(photo)
    (body,) = server.requests
    assert (asked_of(body), body["max_tokens"]) == (("json_schema", 0), 512)
    assert result.answered_by == {"scoring": ["mistral/mistral-medium-latest"]}


OTHERS: list[dict[str, Any]] = [
    {"backend": "vllm.other"},
    {"backend": "ollama.test"},
    {"api_base": "http://host:8001/v1"},
    {"api_base": "http://elsewhere:8000/v1"},
    {"backend": "openai.test", "api_base": None},
    {"structured_outputs": "json_schema"},
]
SAME: list[dict[str, Any]] = [
    {"api_base": "http://host:8000/v1/", "temperature": 1.0, "api_key_env": "X", "fallback_backend": "openai.gpt-4o"},
    {"api_base": "http://user:word@host:8000/v1?key=word", "api_key_env": "MY_KEY"},
]


@pytest.mark.parametrize("changes", [*SAME, *OTHERS], ids=str)
def test_features_are_remembered_per_backend(changes: dict[str, Any]) -> None:
    features_of(stage()).keep({"form": "json_object"})
    assert features_of(stage(**changes)).form == ("json_object" if changes in SAME else "json_schema")


AT_ONCE = {  # what is asked for at first, by backend at its own address
    "openai.gpt-4o": BOTH,
    "openai.gpt-4.1-mini": BOTH,
    "openai.gpt-5.4": BOTH,
    "openai.gpt-5-mini": ("json_schema", 0),
    "openai.o3": ("json_schema", 0),
    "openai.o4-mini-2025-04-16": ("json_schema", 0),
    "openai.gpt-4-turbo": ("json_object", 20),
    "openai.gpt-4o-2024-05-13": ("json_object", 20),
    "anthropic.claude-sonnet-4-5": ("json_schema", 0),
    "anthropic.claude-opus-4-1": ("json_schema", 0),
    "anthropic.claude-opus-4-20250514": ("off", 0),
    "anthropic.claude-3-5-haiku-latest": ("off", 0),
    "google.gemini-2.5-flash": BOTH,
}


@pytest.mark.parametrize("backend", AT_ONCE)
def test_the_name_of_a_model_selects_features_at_its_provider_only(backend: str) -> None:
    here, elsewhere = features_of(StageConfig(backend=backend)), features_of(stage(backend=backend))
    assert (here.form, here.top_logprobs) == AT_ONCE[backend]
    assert (elsewhere.form, elsewhere.top_logprobs) == (("json_schema", 0) if "claude" in backend else BOTH)
