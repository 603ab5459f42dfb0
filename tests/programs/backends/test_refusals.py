"""What a server refuses is found out at the first question, remembered, and never mistaken for a fault."""

import asyncio
import json
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dspy
import pytest

from agenticiqa.configs import Config, StageConfig
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.backends import refusals as module
from agenticiqa.programs.backends.connect import features_of, name_of
from agenticiqa.programs.backends.ledger import LimitReached, Limits, within
from agenticiqa.programs.backends.refusals import DAYS_KEPT, FEWER_LOGPROBS, ModelFeatures, cache_folder
from support.fake_server import Server, fake_server, server_error
from support.judging import ASSESSMENT
from support.loopback import Body, Reply, error_reply
from support.provider_base import spoken

SECRET = "hunter2-secret"
TODAY = datetime.now(UTC).date()
SCORED = spoken(json.dumps({"assessment": ASSESSMENT}), {"Fair": {"Fair": -0.4, "Good": -1.5}})
AGAIN = "Rate the quality of this image."  # another question, which is in no cache
Script = Callable[[Body], Reply]


def form_of(body: Body) -> str:
    form: str = body.get("response_format", {}).get("type", "off")
    return form


def asked_of(body: Body) -> tuple[str, int]:
    """How a request asks for JSON, and for how many log-probabilities."""
    return form_of(body), body.get("top_logprobs", 0)


def answer(body: Body) -> Reply:
    return SCORED if body.get("logprobs") else Reply(SCORED.content)


def refusing(*names: str, status: int = 400, most: int = 20, said: str = "that is not supported") -> Script:
    """A server that refuses requests with these fields or forms of JSON, or with more log-probabilities than that."""

    def script(body: Body) -> Reply:
        refused = {*body, form_of(body)} & {*names} or body.get("top_logprobs", 0) > most
        return error_reply(status, {"error": {"message": said}}) if refused else answer(body)

    return script


def at(number: int, reply: Reply, last: int | None = None) -> Script:
    """A server that refuses schemas, and answers its requests from this number (from 1) to the last one with that."""
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
    """Only the score is asked for: one question, with a form of JSON and log-probabilities."""
    return AgenticIQA.from_config(Config(summarizer=stage(server, **changes)))


def saved() -> dict[str, Any] | None:
    """What is in the one file of the cache, if there is one."""
    files = [*cache_folder().glob("*")]
    return json.loads(files[0].read_text())["refusal"] if files else None


@contextmanager
def another_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One that has the file, and not this process' memory."""
    with monkeypatch.context() as patch:
        patch.setattr(module, "_remembered", {})
        yield


BOTH = ("json_schema", 20)
FOUND: dict[
    str, tuple[Script, tuple[str, int], int]
] = {  # the server, how it is asked in the end, requests before that
    "takes all": (answer, BOTH, 0),
    "schema, 400": (refusing("json_schema"), ("json_object", 20), 6),
    "schema, 422": (refusing("json_schema", status=422), ("json_object", 20), 6),
    "any JSON": (refusing("response_format"), ("off", 20), 7),
    "log-probabilities": (refusing("logprobs"), ("json_schema", 0), 8),
    "log-probabilities, 403": (
        refusing("logprobs", status=403, said="You are not allowed to request logprobs from this model"),
        ("json_schema", 0),
        8,
    ),
    "more than five": (refusing(most=FEWER_LOGPROBS), ("json_schema", FEWER_LOGPROBS), 6),
    "all": (refusing("response_format", "logprobs"), ("off", 0), 11),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_a_server_refuses_is_left_out_from_the_first_question_on(
    name: str, photo: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    script, (form, logprobs), before = FOUND[name]
    with fake_server(script) as server:
        first = program(server)(photo)
        again = program(server)(photo)
        other = program(server)(photo, AGAIN)
        with another_process(monkeypatch):
            warm = program(server)(photo, AGAIN.lower())
    assert asked_of(server.requests[0]) == BOTH
    assert [asked_of(body) for body in server.requests[before:]] == [(form, logprobs)] * 3, "the same is in the cache"
    found = None if name == "takes all" else TODAY.isoformat()
    used = {"structured_outputs": [form], "logprobs": logprobs, "found": found}
    for result in (first, again, other, warm):
        assert result.capabilities == {"vllm/test": {**used, "image_formats": ["jpeg", "png", "webp"]}}
        assert result.summarizer_result.probability_source == ("logprobs" if logprobs else "quality_probs")
        assert result.quality_score == first.quality_score
    assert first.usage_by_stage["scoring"]["calls"] == before + 1
    assert len([record for record in caplog.records if "is asked without from now on" in record.message]) == bool(found)
    assert bool(saved()) == bool(found)


NO_REFUSALS: dict[str, tuple[Script, int]] = {  # and the requests that are sent
    "everything, 400": (refusing("model"), 2),
    "everything, 422": (refusing("model", status=422), 2),
    "a request too large": (refusing("json_schema", status=413), 1),
    "a wrong key": (refusing("json_schema", status=401), 1),
    "no such model": (refusing("json_schema", status=404), 1),
    "forbidden": (refusing("logprobs", status=403), 1),
    "too long": (refusing("json_schema", said="This model's maximum context length is 4096 tokens"), 1),
    "busy": (refusing("json_schema", status=503), 1),
    "broken": (refusing("json_schema", status=500), 1),
    "the model refuses": (
        lambda body: Reply(raw_body=json.dumps({"choices": [{"message": {"refusal": "No."}}]}).encode()),
        1,
    ),
    "each feature by itself is taken": (
        lambda body: refusing("model")(body) if asked_of(body) == BOTH else answer(body),
        4,
    ),
    "everything from request 2 on": (at(2, error_reply(400, {}), 99), 2),
    "everything from request 3 on": (at(3, error_reply(400, {}), 99), 11),
    "everything from request 4 on": (at(4, error_reply(400, {}), 99), 11),
    **{f"busy at request {number}": (at(number, server_error()), number) for number in (2, 3, 4, 5, 6)},
    **{f"cut off at request {number}": (at(number, Reply("no", cut=True)), number) for number in (2, 3, 4, 5, 6)},
    **{f"no answer at request {number}": (at(number, Reply(raw_body=b"{}")), number) for number in (2, 3, 4, 5, 6)},
}


@pytest.mark.parametrize("name", NO_REFUSALS)
def test_nothing_is_learned_from_a_fault(name: str, photo: Path) -> None:
    script, requests = NO_REFUSALS[name]
    with fake_server(script) as server:
        judge = program(server)
        with pytest.raises(dspy.LMError):
            judge(photo)
        assert len(server.requests) == requests
    assert saved() is None
    assert (features_of(stage(server)).form, features_of(stage(server)).top_logprobs) == BOTH


@pytest.mark.parametrize("number", [3, 4, 5, 6])
def test_a_single_refusal_of_a_question_in_between_is_no_finding(number: int, photo: Path) -> None:
    with fake_server(at(number, error_reply(400, {}))) as server:
        assert program(server)(photo).capabilities["vllm/test"]["structured_outputs"] == ["json_object"]
        assert asked_of(server.requests[-1]) == ("json_object", 20)


def test_what_was_taken_once_is_not_in_doubt(photo: Path) -> None:
    with fake_server(lambda body: (refusing("model") if len(server.requests) > 1 else answer)(body)) as server:
        judge = program(server)
        judge(photo)
        with pytest.raises(dspy.LMInvalidRequestError, match="that is not supported"):
            judge(photo, AGAIN)
        assert len(server.requests) == 2


@pytest.mark.parametrize("form", ["json_schema", "json_object", "off"])
@pytest.mark.parametrize("logprobs", [True, False])
def test_what_the_configuration_says_is_not_in_doubt(photo: Path, form: str, logprobs: bool) -> None:
    with fake_server(refusing("model")) as server, pytest.raises(dspy.LMInvalidRequestError):
        program(server, structured_outputs=form, logprobs=logprobs)(photo)
    assert [asked_of(body) for body in server.requests] == [(form, 20 if logprobs else 0)]


def test_building_a_program_sends_and_writes_nothing() -> None:
    with fake_server("never") as server:
        program(server)
    assert server.requests == []
    assert not cache_folder().exists()


def test_first_questions_at_the_same_time_find_it_out_once(photo: Path) -> None:
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
    assert asked.count(("off", 0)) == 1, "one of them found it out"
    assert asked.count(("json_object", 20)) == 8
    assert len(asked) <= 8 + 5 + 8


def test_a_fallback_takes_over_where_an_outage_ends_the_search(photo: Path) -> None:
    with fake_server(at(2, server_error(), 99)) as down, fake_server(answer) as up:
        result = program(down, fallback_backend="vllm.spare", fallback_api_base=up.url)(photo)
    assert result.answered_by == {"scoring": ["vllm/spare"]}
    assert [*result.capabilities] == ["vllm/spare"]


def test_requests_count_towards_the_limits_of_the_run(photo: Path) -> None:
    limits = Limits(max_calls=3)
    with fake_server(refusing("json_schema")) as server, within(limits), pytest.raises(LimitReached):
        program(server)(photo)
    assert (limits.calls, len(server.requests), saved()) == (3, 3, None)


def keep(when: str = TODAY.isoformat(), **changes: Any) -> None:
    """Save that a stage's server refuses schemas and log-probabilities."""
    features_of(stage(**changes)).remember(module.Refusal("json_object", 0, when))


@pytest.mark.parametrize(("days", "is_known"), [(0, True), (DAYS_KEPT, True), (DAYS_KEPT + 1, False), (-5, False)])
def test_what_was_refused_is_remembered_for_30_days(days: int, is_known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(when=(TODAY - timedelta(days)).isoformat())
    with another_process(monkeypatch):
        known = features_of(stage())
        assert (known.form, known.top_logprobs) == (("json_object", 0) if is_known else BOTH)
        told = features_of(stage(structured_outputs="json_schema", logprobs=True))
        assert (told.form, told.top_logprobs, told.refusal) == (*BOTH, None)


OTHERS: list[dict[str, Any]] = [
    {"backend": "vllm.other"},
    {"backend": "ollama.test"},
    {"api_base": "http://host:8001/v1"},
    {"api_base": "http://elsewhere:8000/v1"},
    {"backend": "openai.test", "api_base": None},
    {"backend": "gguf.test", "api_base": None},
]
SAME: list[dict[str, Any]] = [
    {"api_base": "http://host:8000/v1/", "temperature": 1.0, "api_key_env": "X", "fallback_backend": "openai.gpt-4o"},
    {"api_base": f"http://user:{SECRET}@host:8000/v1?key={SECRET}", "api_key_env": "MY_KEY"},
]


def test_every_backend_is_known_for_itself_and_no_secret_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", SECRET)
    keep(**SAME[1])
    for changes in (*SAME, *OTHERS):
        assert (features_of(stage(**changes)).form == "json_object") == (changes in SAME), changes
    (file,) = cache_folder().iterdir()
    assert SECRET not in file.name + file.read_text()
    assert json.loads(file.read_text())["backend"] == "vllm@host:8000/v1//test"


def test_a_model_in_process_is_known_by_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = [
        name_of(StageConfig(backend=f"gguf.{file}", projector=projector))
        for file, projector in (("m.gguf", None), (f"{tmp_path}/m.gguf", None), ("m.gguf", "eyes.gguf"))
    ]
    assert names[0] == names[1] != names[2]


UNREADABLE = [
    *("", "{", "[]", "null", "{}", "\x00" * 10),
    json.dumps({"backend": "vllm@host:8000/v1//test", "capabilities": {"schema": "refused"}}),  # of version 0.3
    json.dumps({"backend": "vllm@host:8000/v1//test", "refusal": [1, 2]}),
    json.dumps({"backend": "vllm@host:8000/v1//another", "refusal": vars(module.Refusal("off", 0, "2026-01-01"))}),
    json.dumps({"backend": "vllm@host:8000/v1//test", "refusal": vars(module.Refusal("maybe", 0, "2026-01-01"))}),
]


@pytest.mark.parametrize("text", UNREADABLE)
def test_a_file_that_cannot_be_read_is_as_none(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    keep()
    (file,) = cache_folder().iterdir()
    file.write_text(text)
    with another_process(monkeypatch):
        assert features_of(stage()).refusal is None
        keep()
    with another_process(monkeypatch):
        assert features_of(stage()).form == "json_object"


def test_a_cache_that_cannot_be_written_is_only_worth_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("AGENTICIQA_CACHE", str(tmp_path / "file"))
    keep()
    assert features_of(stage()).form == "json_object"
    assert "is not saved" in caplog.text


def test_writers_at_once_leave_a_whole_file_that_only_the_user_reads() -> None:
    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(lambda _: [keep() for _ in range(20)], range(8)):
            pass
    (file,) = cache_folder().iterdir()
    assert saved() == vars(module.Refusal("json_object", 0, TODAY.isoformat()))
    assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0


def test_where_the_files_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTICIQA_CACHE", "/a/b")
    assert cache_folder() == Path("/a/b/capabilities")
    monkeypatch.delenv("AGENTICIQA_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert cache_folder() == Path("/x/agenticiqa/capabilities")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache/agenticiqa/capabilities"


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
def test_the_name_of_a_model_says_what_is_asked_for_at_its_provider_alone(backend: str) -> None:
    here, elsewhere = features_of(StageConfig(backend=backend)), features_of(stage(backend=backend))
    assert (here.form, here.top_logprobs) == AT_ONCE[backend]
    assert (elsewhere.form, elsewhere.top_logprobs) == (("json_schema", 0) if "claude" in backend else BOTH)


def test_without_settings_nothing_is_read() -> None:
    assert (ModelFeatures().form, ModelFeatures().top_logprobs, ModelFeatures().refusal) == ("json_schema", 0, None)
