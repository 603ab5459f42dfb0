"""Faults of servers and answers, one by one, over HTTP on loopback: the number of tries, the waits and the messages.

Each server answers in the form of the real one. Nothing waits: ``waits`` has the seconds that would have been waited.
"""

import contextlib
import json
import re
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy import lm15

from agenticiqa.configs import Price, StageConfig
from agenticiqa.programs.backends import choice, in_flight
from agenticiqa.programs.backends.choice import Backend
from agenticiqa.programs.backends.connect import connect
from agenticiqa.programs.backends.limits import LimitReached, Limits, RunLimits
from agenticiqa.programs.backends.run_context import recorded_usage, within
from agenticiqa.programs.backends.usage import Spent
from agenticiqa.programs.errors import Unanswered
from agenticiqa.programs.images import load
from agenticiqa.programs.stages.answerer import Answerer
from agenticiqa.programs.stages.ask import CheckedPredict
from agenticiqa.programs.stages.protocols import Scored
from agenticiqa.programs.stages.scorer import Scorer
from agenticiqa.signatures.replan import DecideReplan, Decision
from agenticiqa.signatures.types import ExecutorOutput
from support.fake_server import Server, by_stage, fake_server, field_of, in_turn
from support.faulty.profiles import HEALTHY, PROFILES
from support.faulty_server import faulty_server
from support.loopback import Arrived, Body, Reply, chat_completion, error_reply, loopback, spoken, tokens
from support.providers import (
    ANTHROPIC,
    GEMINI,
    LLAMACPP,
    OLLAMA,
    OPENAI,
    VLLM,
    Completion,
    Dialect,
    ProviderServer,
    cut_off,
    fault,
    provider_server,
    refusal,
)
from support.scripted_answers import ASSESSMENT, RATE, STAND

KEY, KEY_ENV = "sk-faults-4711", "FAULTS_TEST_KEY"
ANSWER = json.dumps({"decision": STAND})
OTHER = json.dumps({"decision": {"need_replan": True, "replan_reason": "a draft"}})
Make = Callable[[Dialect], Reply]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of every server of this file, in the environment."""
    monkeypatch.setenv(KEY_ENV, KEY)


def thoughts(text: Any, content: Any = None, key: str = "reasoning_content", finish: str = "stop") -> Reply:
    """Return a completion of a server that mistakes this text for reasoning."""
    body = json.loads(chat_completion(Reply(content, usage=(10, 2048 if finish == "length" else 5)), "test"))
    body["choices"][0]["message"][key] = text
    body["choices"][0]["finish_reason"] = finish
    return Reply(raw_body=json.dumps(body).encode())


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning", "thinking", "thought", "reasoning_details"])
@pytest.mark.parametrize("written", [ANSWER, f"\n```json\n{ANSWER}\n```\n"], ids=["bare", "fenced"])
@pytest.mark.parametrize("content", [None, ""])
def test_an_answer_that_a_server_took_for_reasoning_is_used(key: str, written: str, content: str | None) -> None:
    given = [{"type": "reasoning.text", "text": written}] if key == "reasoning_details" else written
    with fake_server(thoughts(given, content, key)) as server:
        assert judge(server).answer.need_replan is False
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "said",
    [
        thoughts("First I look at the edges. They are soft."),
        thoughts(f"Perhaps {OTHER}? No."),
        thoughts(OTHER, finish="length"),
        thoughts(OTHER[:-3]),
    ],
    ids=["prose", "a draft in prose", "cut off", "not closed"],
)
def test_reasoning_is_not_an_answer_and_the_server_option_is_named(said: Reply) -> None:
    with fake_server(in_turn(said, thoughts("I look.", ANSWER))) as server:
        reply = judge(server)
    assert reply.answer.need_replan is False
    (reason,) = reply.rejected_answers["replan"]
    assert ("--reasoning-parser" in reason) or "cut off" in reason
    assert reason.partition(" (")[0] in field_of(server.requests[1], "correction")


TEXT = {"type": "text", "text": "I look."}


@pytest.mark.parametrize(
    ("field", "given", "content"),
    [
        ("reasoning_content", "I look.", None),
        ("thinking", "I look.", ""),
        ("reasoning_details", [{"type": "reasoning.summary", "summary": "I look."}], None),
        ("reasoning_details", [{"type": "reasoning.encrypted", "data": "c2VjcmV0"}], None),
        ("thinking_blocks", [{"type": "thinking", "thinking": "I look."}], None),
        ("thinking", None, [{"type": "thinking", "thinking": [TEXT]}]),
    ],
)
def test_the_field_with_the_whole_response_is_named(field: str, given: Any, content: Any) -> None:
    """Reasoning beside an answer does not change it."""
    with fake_server(in_turn(thoughts(given, content, field), ANSWER)) as server:
        (reason,) = judge(server).rejected_answers["replan"]
    assert f"all text was in `{field}`" in reason
    assert "--reasoning-parser" in reason
    beside = [{"type": "thinking", "thinking": [TEXT]}, {"type": "text", "text": ANSWER}]
    with fake_server(thoughts(OTHER, beside, field)) as server:
        assert judge(server).rejected_answers == {}


def judge(server: Server) -> Any:
    backend = connect(StageConfig(backend="vllm.test", api_base=server.url, logprobs=False), cache=False)
    return CheckedPredict(DecideReplan, stage="replan", backend=backend)(
        dict.fromkeys(DecideReplan.input_fields, "none")
    )


def stage(dialect: Dialect, url: str, **changes: Any) -> StageConfig:
    """Return a stage on this server, with a strict schema and no log-probabilities."""
    known = {"structured_outputs": "json_schema", "logprobs": False}
    settings: dict[str, Any] = {"max_retries": 2, "timeout": 5.0, **known, **changes}
    return StageConfig(backend=dialect.backend, api_base=url, api_key_env=KEY_ENV, **settings)


def ask(to: StageConfig | Backend, attempts: int = 1) -> dspy.Prediction:
    """Ask one question about replanning, the smallest of the signatures."""
    backend = connect(to) if isinstance(to, StageConfig) else to
    question = dict.fromkeys(("query", "plan", "evidence", "doubts"), "none")
    return CheckedPredict(DecideReplan, stage="replan", backend=backend, attempts=attempts)(question)


def asked_of(server: ProviderServer, **changes: Any) -> StageConfig:
    return stage(server.dialect, server.url, **changes)


@contextmanager
def spent() -> Iterator[Spent]:
    """Record the usage of the one question in the block."""
    found = Spent()
    with recorded_usage() as usage:
        try:
            yield found
        finally:
            for each in usage.stages.values():
                found.add(each)


APART: Body = {"promptTokenCount": 1000, "candidatesTokenCount": 50, "thoughtsTokenCount": 900}
CHAT: Body = {"prompt_tokens": 1000, "completion_tokens": 50}
INSIDE: Body = {"completion_tokens": 950, "completion_tokens_details": {"reasoning_tokens": 900}}


@pytest.mark.parametrize(
    ("dialect", "usage"),
    [
        (GEMINI, {**APART, "totalTokenCount": 1950}),
        (GEMINI, APART),
        (GEMINI, {"promptTokenCount": 1000, "thoughtsTokenCount": 950, "totalTokenCount": 1950}),
        (VLLM, {**CHAT, "total_tokens": 1950}),
        (VLLM, {**CHAT, "total_tokens": 1950, "completion_tokens_details": {"reasoning_tokens": 900}}),
        (VLLM, {"prompt_tokens": 1000, "total_tokens": 1950}),
        (OPENAI, {**CHAT, **INSIDE, "total_tokens": 1950}),
        (OPENAI, {**CHAT, **INSIDE}),
    ],
    ids=["Gemini", "without total", "only thoughts", "total", "xAI", "only total", "inside", "inside without total"],
)
def test_hidden_reasoning_is_billed_once(dialect: Dialect, usage: Body) -> None:
    body = {**dialect.write(Completion(ANSWER, "m")), ("usageMetadata" if dialect is GEMINI else "usage"): usage}
    said = Reply(raw_body=json.dumps(body).encode())
    price = Price(input=1, output=10)
    with provider_server(dialect, said, key=KEY) as server, spent() as took, dspy.track_usage() as dspy_usage:
        ask(asked_of(server, price=price))
    assert (took.input_tokens, took.output_tokens) == (1000, 950)
    assert took.usd == pytest.approx((1000 * 1 + 950 * 10) / 1e6)
    ((counted,),) = dspy_usage.usage_data.values()
    assert counted["completion_tokens"] == 950


def test_reasoning_beyond_max_tokens_raises_later_price_limits() -> None:
    """If a server does not count it towards ``max_tokens``, only one answer may exceed the limit in USD."""
    thought = json.dumps({**json.loads(chat_completion(Reply(ANSWER), "m")), "usage": {**CHAT, "total_tokens": 51_000}})
    limits = RunLimits(Limits(max_usd=0.9))
    with provider_server(VLLM, Reply(raw_body=thought.encode()), key=KEY) as server, within(limits):
        backend = connect(asked_of(server, price=Price(input=1, output=10)), cache=False)
        ask(backend)
        with pytest.raises(LimitReached):
            ask(backend)
    assert limits.own.usd == pytest.approx(0.501)


def says(status: int, message: str, **headers: str) -> Make:
    return lambda dialect: error_reply(status, {"error": {"message": message}}, headers)


def kind(name: Any, retry_after: float | None = None) -> Make:
    return lambda dialect: fault(dialect, name, retry_after)


def text(content: str | None) -> Make:
    return lambda dialect: Reply(content)


def page(status: int) -> Make:
    """Return the page of a proxy instead of the server's answer."""
    return lambda dialect: Reply(status=status, raw_body=b"<html><body>Bad gateway</body></html>")


def about(seconds: float) -> Any:
    """Return whether a wait is this number of seconds, or up to a quarter more."""
    return pytest.approx(1.125 * seconds, rel=0.12)


FIRST, SECOND = about(1), about(2)
DOUBLING = [FIRST, SECOND]

PASSING: dict[str, tuple[Dialect, Make, list[Any], type[Exception], str]] = {
    "429 with retry-after": (
        OPENAI,
        kind("rate_limit", 3),
        [about(3)] * 2,
        dspy.LMRateLimitError,
        "the server asks to wait 3 s",
    ),
    "429 without": (VLLM, says(429, "slow down"), DOUBLING, dspy.LMRateLimitError, "slow down"),
    "429 with a wait in words": (GEMINI, kind("rate_limit", 7), [about(7)] * 2, dspy.LMRateLimitError, "to wait 7 s"),
    "500": (OPENAI, kind("server"), DOUBLING, dspy.LMServerError, "server had an error"),
    "502 of a proxy": (VLLM, page(502), DOUBLING, dspy.LMServerError, "Bad gateway"),
    "503": (VLLM, kind("overloaded"), DOUBLING, dspy.LMServerError, "Service Unavailable"),
    "529 of Anthropic": (ANTHROPIC, kind("overloaded"), DOUBLING, dspy.LMServerError, "Overloaded"),
    "an error with status 200": (
        VLLM,
        lambda dialect: Reply(raw_body=b'{"error": {"message": "the model crashed"}}'),
        DOUBLING,
        dspy.LMServerError,
        "the model crashed",
    ),
    "cut in mid-body": (VLLM, lambda dialect: Reply(ANSWER, cut=True), DOUBLING, dspy.LMTransportError, "closed"),
    "a page that is no JSON": (VLLM, page(200), DOUBLING, dspy.LMServerError, "is not JSON"),
}


@pytest.mark.parametrize("name", PASSING)
def test_a_temporary_fault_is_retried_without_a_new_attempt(name: str, waits: list[float]) -> None:
    dialect, make, expected, _, _ = PASSING[name]
    with provider_server(dialect, in_turn(make(dialect), ANSWER), key=KEY) as server, spent() as took:
        reply = ask(asked_of(server))
    assert (reply.answer, reply.rejected_answers) == (Decision(**STAND), {})
    assert waits == expected[:1]
    assert (took.calls, took.retries) == (2, 1)


@pytest.mark.parametrize("name", PASSING)
def test_a_lasting_fault_is_reported_after_the_last_retry(name: str, waits: list[float]) -> None:
    dialect, make, expected, error, shown = PASSING[name]
    with (
        provider_server(dialect, make(dialect), key=KEY) as server,
        pytest.raises(error, match=shown) as caught,
        spent() as took,
    ):
        ask(asked_of(server), attempts=3)
    assert waits == expected
    assert (took.calls, took.retries) == (3, 2)
    assert "\n" not in str(caught.value)
    assert "To fix" not in str(caught.value)


def test_a_wait_of_an_hour_is_reported_without_waiting(waits: list[float]) -> None:
    with (
        provider_server(OPENAI, fault(OPENAI, "rate_limit", 3600), key=KEY) as server,
        pytest.raises(dspy.LMRateLimitError, match="the server asks to wait 3600 s"),
    ):
        ask(asked_of(server))
    assert (len(server.seen), waits) == (1, [])


def test_a_slow_first_byte_is_accepted(waits: list[float]) -> None:
    with provider_server(VLLM, Reply(ANSWER, delay=0.3), key=KEY) as server:
        assert ask(asked_of(server, timeout=3.0)).answer == Decision(**STAND)
    assert (len(server.seen), waits) == (1, [])


def test_a_hang_past_the_timeout_is_tried_twice(waits: list[float]) -> None:
    with (
        provider_server(VLLM, Reply(ANSWER, delay=30), key=KEY) as server,
        pytest.raises(dspy.LMTimeoutError, match=r"no answer within 0\.2 s; for a slow model, set a longer --timeout"),
    ):
        ask(asked_of(server, timeout=0.2, max_retries=5))
    assert len(server.seen) == 2
    assert waits == [FIRST]


def test_an_unreachable_server_is_reported_with_its_address(waits: list[float]) -> None:
    with provider_server(VLLM, ANSWER) as server:
        unreachable = asked_of(server)
    with pytest.raises(dspy.LMTransportError, match=r"127\.0\.0\.1.*refused"):
        ask(unreachable)
    assert waits == DOUBLING


def test_an_unknown_host_is_reported_with_its_name(waits: list[float]) -> None:
    with pytest.raises(dspy.LMTransportError, match=r"nowhere\.invalid"):
        ask(stage(VLLM, "http://nowhere.invalid/v1"))
    assert waits == DOUBLING


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an untrusted certificate with its key, made by ``openssl``."""
    folder = tmp_path_factory.mktemp("certificate")
    file, own_key = folder / "certificate.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    names = ["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    try:
        subprocess.run([*command, *names, "-keyout", str(own_key), "-out", str(file)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no certificate can be made here: {error}")
    file.write_bytes(file.read_bytes() + own_key.read_bytes())
    return file


def test_an_untrusted_certificate_is_reported_without_retries(certificate: Path, waits: list[float]) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    arrived: list[str] = []
    with (
        serving(arrived, tls=context) as port,
        pytest.raises(dspy.LMTransportError, match="certificate verify failed"),
    ):
        ask(stage(VLLM, f"https://127.0.0.1:{port}/v1"))
    assert (arrived, waits) == ([], [])


@contextmanager
def serving(arrived: list[str], port: int = 0, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """Run a server on this port that always answers; ``arrived`` gets the path of each request."""

    def respond(request: Arrived) -> Reply:
        arrived.append(request.path)
        return Reply(raw_body=chat_completion(Reply(ANSWER), "m"))

    with loopback(respond, port, tls) as address:
        yield int(address.rpartition(":")[2])


def test_a_restarted_server_is_reached_again(monkeypatch: pytest.MonkeyPatch) -> None:
    before: list[str] = []
    after: list[str] = []
    with serving(before) as port:
        backend = connect(stage(VLLM, f"http://127.0.0.1:{port}/v1", max_retries=5))
        assert backend is not None
        ask(backend)
    attempts: list[int] = []
    with contextlib.ExitStack() as stack:

        def restart_after_two(attempt: int, error: lm15.LM15Error) -> float:
            attempts.append(attempt)
            if attempt == 2:
                stack.enter_context(serving(after, port))
            return 0.0

        monkeypatch.setattr(in_flight, "seconds_to_wait", restart_after_two)
        dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=False)
        assert ask(backend).answer == Decision(**STAND)
    assert (len(before), len(after), attempts) == (1, 1, [1, 2])


REJECTED: dict[str, tuple[Dialect, Make, str]] = {
    "cut off at max_tokens": (VLLM, lambda dialect: cut_off(dialect, ANSWER[:30]), "cut off"),
    "an end within a value": (VLLM, text(ANSWER[:-4]), "the JSON object is not complete"),
    "an end in its thoughts": (VLLM, text("<think>It may be so, or"), "the answer ends inside its reasoning"),
    "an end in thoughts with JSON": (
        VLLM,
        text(f"<think>It may be {OTHER}, or"),
        "the answer ends inside its reasoning",
    ),
    "wrong types": (OPENAI, text('{"decision": {"need_replan": [], "replan_reason": 3}}'), "need_replan: "),
    "another object": (GEMINI, text('{"verdict": 3}'), "no field 'decision'"),
    "words": (ANTHROPIC, text("I would let it stand."), "not a JSON object"),
    "empty": (OPENAI, text(""), "empty"),
    "null": (VLLM, text(None), "empty"),
}


@pytest.mark.parametrize("name", REJECTED)
def test_an_unusable_answer_is_sent_back_with_the_reason(name: str, waits: list[float]) -> None:
    dialect, make, why = REJECTED[name]
    with provider_server(dialect, in_turn(make(dialect), ANSWER), key=KEY) as server:
        reply = ask(asked_of(server), attempts=3)
    assert reply.answer == Decision(**STAND)
    assert len(server.seen) == 2
    ((reason,),) = reply.rejected_answers.values()
    assert why in reason
    assert reason.rstrip(".") in field_of(server.seen[1].as_chat(), "correction")
    assert waits == [], "it is no fault of the server"


@pytest.mark.parametrize("name", REJECTED)
def test_unusable_answers_are_reported_attempt_by_attempt(name: str) -> None:
    dialect, make, why = REJECTED[name]
    with (
        provider_server(dialect, make(dialect), key=KEY) as server,
        pytest.raises(Unanswered, match="no usable answer in 3 attempts") as caught,
    ):
        ask(asked_of(server), attempts=3)
    assert len(server.seen) == 3
    assert all(why in reason for reason in caught.value.reasons)


FULL = "is full: {} tokens of the prompt and 12 of the answer{}; set a larger context at the server ({})"


@pytest.mark.parametrize(
    ("dialect", "asked", "shown"),
    [
        (LLAMACPP, 8180, FULL.format("8,180", ", of 8,192", "-c, which llama.cpp divides among its -np slots")),
        (VLLM, 32756, FULL.format("32,756", ", of 32,768", "--max-model-len")),
        (OLLAMA, 4084, FULL.format("4,084", ", of 4,096", "OLLAMA_CONTEXT_LENGTH, or num_ctx of the model")),
        (OPENAI, 100, FULL.format("100", "", "the option of the server for it")),
    ],
    ids=lambda value: value.name if isinstance(value, Dialect) else "",
)
def test_an_answer_cut_off_by_a_full_context_is_an_error_and_is_not_repeated(
    dialect: Dialect, asked: int, shown: str
) -> None:
    with (
        provider_server(dialect, cut_off(dialect, ANSWER[:30], (asked, 12)), key=KEY) as server,
        pytest.raises(dspy.ContextWindowExceededError) as caught,
        spent() as took,
    ):
        ask(asked_of(server), attempts=3)
    assert re.search(r"cut off after 12 of at most [\d,]+ tokens, because the context of the server", str(caught.value))
    assert shown in str(caught.value)
    assert (len(server.seen), took.input_tokens, took.output_tokens) == (1, asked, 12)


@pytest.mark.parametrize("usage", [(100, 12), (8180, 2000)], ids=["a limit of the server", "max_tokens"])
def test_another_cut_of_an_answer_is_not_called_a_full_context(usage: tuple[int, int]) -> None:
    with provider_server(LLAMACPP, in_turn(cut_off(LLAMACPP, ANSWER[:30], usage), ANSWER), key=KEY) as server:
        reply = ask(asked_of(server), attempts=3)
    assert "cut off" in reply.rejected_answers["replan"][0]


def test_a_rating_cut_off_by_a_full_context_is_an_answer_if_its_tokens_give_the_levels(photo: Path) -> None:
    written = json.dumps({"assessment": ASSESSMENT})[:60]
    entries = tokens(written, {"Fair": {"Fair": -0.2, "Good": -1.8}})

    def reply(body: Body) -> Reply:
        given = entries if body.get("logprobs") else None
        return Reply(raw_body=cut_completion(written, (500, 12), given))

    with fake_server(reply) as server:
        config = StageConfig(backend="vllm.test", api_base=server.url)
        score_of = Scorer(backend=connect(config, cache=False), attempts=1)
        with contextlib.suppress(Unanswered):
            score_of(image=load(photo), query=RATE, evidence=ExecutorOutput(), reference=None)
        without = config.model_copy(update={"logprobs": False})
        score_of = Scorer(backend=connect(without, cache=False), attempts=1)
        with pytest.raises(dspy.ContextWindowExceededError):
            score_of(image=load(photo), query=RATE, evidence=ExecutorOutput(), reference=None)


def cut_completion(text: str, usage: tuple[int, int], entries: Any) -> bytes:
    """Return a chat completion that ended with the reason "length"."""
    body = json.loads(chat_completion(Reply(text, usage=usage, logprobs=entries), "test"))
    body["choices"][0]["finish_reason"] = "length"
    return json.dumps(body).encode()


def test_a_server_that_loads_its_model_is_waited_for(waits: list[float], caplog: pytest.LogCaptureFixture) -> None:
    loading = [fault(LLAMACPP, "overloaded")] * 8
    with provider_server(LLAMACPP, in_turn(*loading, ANSWER), key=KEY) as server:
        assert ask(asked_of(server)).answer == Decision(**STAND)
    assert (len(server.seen), waits) == (9, [])
    (line,) = [record.getMessage() for record in caplog.records]
    assert "the server is loading its model (status 503: Loading model" in line
    assert line.endswith("waiting up to 90 s for it")


def test_a_model_that_does_not_load_is_reported(waits: list[float]) -> None:
    with (
        provider_server(LLAMACPP, fault(LLAMACPP, "overloaded"), key=KEY) as server,
        pytest.raises(dspy.LMServerError, match="Loading model"),
    ):
        ask(asked_of(server))
    assert len(server.seen) == 1 + in_flight.LOADING_RETRIES
    with provider_server(LLAMACPP, fault(LLAMACPP, "overloaded"), key=KEY) as server, pytest.raises(dspy.LMServerError):
        ask(asked_of(server, max_retries=0))
    assert len(server.seen) == 1


def test_the_waits_for_a_model_last_as_long_as_the_message_says() -> None:
    slot, error = in_flight.Slot(), lm15.ServerError("Loading model", status=503)
    waited = [in_flight.next_wait(slot, error, 3, loading=True) or 0.0 for _ in range(in_flight.LOADING_RETRIES)]
    assert sum(waited) == pytest.approx(in_flight.LOADING_SECONDS, rel=0.1)
    assert in_flight.next_wait(slot, error, 3, loading=True) is None


def test_a_server_that_answered_before_is_waited_for_and_then_no_longer(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tried: list[int] = []
    monkeypatch.setattr(in_flight, "seconds_to_wait", lambda attempt, error: tried.append(attempt) or 0.0)
    with serving([]) as port:
        backend = connect(stage(VLLM, f"http://127.0.0.1:{port}/v1"), cache=False)
        assert backend is not None
        ask(backend)
    for expected in (1 + in_flight.LOADING_RETRIES, 3, 3):
        with pytest.raises(dspy.LMTransportError, match="refused"):
            ask(backend)
        assert len(tried) == expected
        tried.clear()
    assert sum("waiting up to 90 s" in record.getMessage() for record in caplog.records) == 1


READ: dict[str, str] = {
    "thoughts before it": f"<think>Maybe {OTHER}.</think>\n{ANSWER}",
    "thoughts that the prompt began": f"Maybe {OTHER}.\n</think>\n{ANSWER}",
    "thoughts that never end": f"<think>Maybe {{so}}.\n{ANSWER}",
    "a fence": f"Here you are:\n```json\n{ANSWER}\n```\nAnything else?",
    "a wrapper key": json.dumps({"json": {"decision": STAND}}),
    "two objects": f"{OTHER}\nWait, the corrected object is:\n{ANSWER}",
    "a second object that is cut off": f"{ANSWER}\n{OTHER[:40]}",
    "a missing brace": ANSWER[:-1],
}


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("form", ["json_schema", "off"])
def test_text_around_an_answer_costs_no_further_call(name: str, form: Any) -> None:
    with provider_server(VLLM, READ[name], key=KEY) as server:
        reply = ask(asked_of(server, structured_outputs=form), attempts=3)
    assert (reply.answer, reply.rejected_answers, len(server.seen)) == (Decision(**STAND), {}, 1)


@pytest.fixture(scope="module")
def photo(examples: Path) -> Path:
    return examples / "astronaut_blur.png"


def score(server: ProviderServer, photo: Path, **changes: Any) -> Scored:
    scorer = Scorer(backend=connect(asked_of(server, **changes)))
    return scorer(image=load(photo), query=RATE, evidence=ExecutorOutput(), reference=None)


def rated(fault: str, photo: Path) -> Scored:
    """Return the rating of a server with this fault of the table."""
    with faulty_server(fault) as server:
        config = StageConfig(backend="vllm.test", api_base=server.url, api_key_env=KEY_ENV, max_retries=3, timeout=1)
        scorer = Scorer(backend=connect(config, cache=False))
        return scorer(image=load(photo), query=RATE, evidence=ExecutorOutput(), reference=None)


@pytest.mark.slow
@pytest.mark.parametrize("expect", ["assessed", "any", "undetectable"])
def test_a_rating_during_each_fault_of_the_table_is_right_or_an_error(
    photo: Path, expect: str, waits: list[float]
) -> None:
    """It is always right if the table says so."""
    right, wrong = rated(HEALTHY.name, photo).probabilities, {}
    for row in PROFILES.values():
        if row.expect != expect or row.slow:
            continue
        try:
            found = rated(row.name, photo)
        except (dspy.LMError, Unanswered) as error:
            if expect == "assessed" or KEY in str(error):
                wrong[row.name] = str(error)
            continue
        if (
            expect != "undetectable"
            and not found.rejected_answers
            and found.probabilities != pytest.approx(right, abs=0.02)
        ):
            wrong[row.name] = str(found)
    assert wrong == {}


@pytest.mark.parametrize("number", ["NaN", "Infinity"])
def test_an_invalid_number_is_sent_back(photo: Path, number: str) -> None:
    good = json.dumps({"assessment": ASSESSMENT})
    with provider_server(VLLM, in_turn(good.replace("-0.3", number), good), key=KEY) as server:
        reply = score(server, photo)
    assert "finite" in reply.rejected_answers["scoring"][0]
    assert (len(server.seen), reply.source) == (2, "quality_probs")


def test_a_letter_that_was_not_offered_is_rejected(photo: Path) -> None:
    answers = ({"final_answer": letter, "quality_reasoning": "Soft."} for letter in ("E", "B"))
    with provider_server(VLLM, by_stage({"answer": list(answers)}), key=KEY) as server:
        answerer = Answerer(backend=connect(asked_of(server)))
        given: dict[str, Any] = {"query": "Blurry?", "evidence": ExecutorOutput(), "reference": None}
        reply = answerer(image=load(photo), options={"A": "Yes", "B": "No"}, **given)
    assert reply.final_answer == "B"
    assert "none of the letters offered (A, B)" in reply.rejected_answers["answering"][0]
    assert len(server.seen) == 2


def level_shares(**shares: float) -> Reply:
    """Return an assessment with these log-probabilities for the token of the level."""
    return spoken(json.dumps({"assessment": ASSESSMENT}), {"Fair": shares})


@pytest.mark.parametrize(
    ("dialect", "answer", "requests"),
    [
        (ANTHROPIC, json.dumps({"assessment": ASSESSMENT}), 1),
        (VLLM, Reply(json.dumps({"assessment": ASSESSMENT}), logprobs=[]), 2),
        (VLLM, level_shares(Fair=-3.2, Nice=-0.1), 2),
    ],
    ids=["never given", "asked for and not given", "cover less than a tenth"],
)
def test_without_log_probabilities_the_model_is_asked_to_write_the_probabilities(
    photo: Path, dialect: Dialect, answer: Any, requests: int
) -> None:
    with provider_server(dialect, answer, key=KEY) as server:
        reply = score(server, photo, logprobs=True)
    assert (reply.source, reply.rejected_answers, len(server.seen)) == ("quality_probs", {}, requests)
    assert max(reply.probabilities, key=reply.probabilities.get) == 3


REFUSED: dict[str, tuple[Dialect, Make, type[Exception], str]] = {
    "refusal of OpenAI": (OPENAI, refusal, dspy.LMInvalidRequestError, "refused to answer: I'm sorry"),
    "refusal of Anthropic": (ANTHROPIC, refusal, dspy.LMInvalidRequestError, "refused to answer"),
    "block of Gemini": (GEMINI, refusal, dspy.LMInvalidRequestError, "blocked: PROHIBITED_CONTENT"),
    "context of vLLM": (VLLM, kind("context"), dspy.ContextWindowExceededError, "maximum context length"),
    "context of llama.cpp": (
        LLAMACPP,
        kind("context"),
        dspy.ContextWindowExceededError,
        "try increasing it.*-np slots",
    ),
    "context of Gemini": (GEMINI, kind("context"), dspy.ContextWindowExceededError, "input token count"),
    "context of Anthropic": (ANTHROPIC, kind("context"), dspy.ContextWindowExceededError, "prompt is too long"),
    "image of OpenAI": (OPENAI, kind("image"), dspy.LMInvalidRequestError, "Image is too large"),
    "image of Anthropic": (ANTHROPIC, kind("image"), dspy.LMInvalidRequestError, "image exceeds 5 MB"),
    "413 of a proxy": (VLLM, says(413, "Request Entity Too Large"), dspy.LMInvalidRequestError, "Too Large"),
    "422 of FastAPI": (
        VLLM,
        lambda dialect: error_reply(422, {"detail": [{"loc": ["body", "seed"], "msg": "not a number"}]}),
        dspy.LMInvalidRequestError,
        "body.seed: not a number",
    ),
    "no images": (LLAMACPP, kind("no_images"), dspy.LMInvalidRequestError, "image input is not supported"),
    "one image": (VLLM, kind("one_image"), dspy.LMInvalidRequestError, "At most 1 image"),
    "key of OpenAI": (OPENAI, kind("bad_key"), dspy.LMAuthError, "Incorrect API key"),
    "key of Anthropic": (ANTHROPIC, kind("bad_key"), dspy.LMAuthError, "invalid x-api-key"),
    "key of Gemini": (GEMINI, kind("bad_key"), dspy.LMAuthError, "API key not valid"),
    "key of vLLM": (VLLM, kind("bad_key"), dspy.LMAuthError, "Unauthorized"),
    "quota of OpenAI": (OPENAI, kind("quota"), dspy.LMBillingError, "billing"),
    "credit of Anthropic": (ANTHROPIC, kind("quota"), dspy.LMBillingError, "credit balance"),
    "model of OpenAI": (OPENAI, kind("no_model"), dspy.LMUnsupportedModelError, "does not exist"),
    "model of Ollama": (OLLAMA, kind("no_model"), dspy.LMUnsupportedModelError, "not found"),
    "no such address": (
        VLLM,
        says(404, "Not Found"),
        dspy.LMUnsupportedModelError,
        "check api_base .most servers need /v1",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_permanent_faults_are_reported_without_retries(name: str, waits: list[float]) -> None:
    dialect, make, error, shown = REFUSED[name]
    with provider_server(dialect, make(dialect), key=KEY) as server, pytest.raises(error, match=shown) as caught:
        ask(asked_of(server), attempts=3)
    assert (len(server.seen), waits) == (1, [])
    message = str(caught.value)
    assert "\n" not in message
    assert dialect.backend.partition(".")[2] in message, "it says which model"
    assert "To fix" not in message


def test_an_unreachable_primary_model_is_skipped_for_a_minute(
    waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=False)
    with provider_server(VLLM, fault(VLLM, "server"), key=KEY) as first, provider_server(OLLAMA, ANSWER) as second:
        fallback = {"fallback_backend": OLLAMA.backend, "fallback_api_base": second.url}
        backend = connect(asked_of(first, **fallback))
        assert backend is not None
        for _ in range(3):
            assert ask(backend).answer == Decision(**STAND)
        assert (len(first.seen), len(second.seen)) == (3, 3)
        monkeypatch.setattr(choice, "SKIP_SECONDS", 0.0)
        backend.out_of_reach(backend.lms[0])  # as if the minute were over
        ask(backend)
        assert (len(first.seen), len(second.seen)) == (6, 4)
    assert waits == [*DOUBLING, *DOUBLING]


def test_an_unreachable_fallback_is_reported(waits: list[float]) -> None:
    with provider_server(VLLM, fault(VLLM, "server"), key=KEY) as first, provider_server(OLLAMA, ANSWER) as unreachable:
        fallback = {"fallback_backend": OLLAMA.backend, "fallback_api_base": unreachable.url}
        config = asked_of(first, **fallback)
    with pytest.raises(dspy.LMTransportError, match="ollama"):
        ask(config)
    assert waits == [*DOUBLING, *DOUBLING]


@pytest.mark.parametrize("name", ["key of vLLM", "413 of a proxy", "context of vLLM"])
def test_requests_that_the_primary_model_refuses_are_not_sent_to_the_fallback(name: str) -> None:
    dialect, make, error, _ = REFUSED[name]
    with (
        provider_server(dialect, make(dialect), key=KEY) as first,
        provider_server(OLLAMA, ANSWER) as second,
        pytest.raises(error),
    ):
        ask(asked_of(first, fallback_backend=OLLAMA.backend, fallback_api_base=second.url))
    assert (len(first.seen), len(second.seen)) == (1, 0)
