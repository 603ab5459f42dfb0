"""The log has exactly the texts that the server received and sent."""

import asyncio
import base64
import hashlib
import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dspy
import pytest
from pydantic import BaseModel, ConfigDict, Field

from agenticiqa.configs import StageConfig
from agenticiqa.programs.backends.choice import Backend
from agenticiqa.programs.backends.connect import connect
from agenticiqa.programs.cli.logs import logging_to
from agenticiqa.programs.errors import Unanswered
from agenticiqa.programs.images import LoadedImage, load
from agenticiqa.programs.stages.ask import CUT_OFF, CheckedPredict, Rejected
from agenticiqa.signatures.answers.answer_fields import UNFINISHED
from support.engine import scripted_backend
from support.fake_server import Server, fake_server, field_of, images_of, in_turn
from support.files import json_lines
from support.loopback import Body, Reply

KEY = "sk-a-key-that-nobody-may-see"
# Not as a library would write it: a fence, blanks, an escape, characters that no terminal may see, a key's order.
GOOD = '```json\n{ "verdict" :{"reason":"so\\u0066t \\u202e edges — ünsharp",   "level": 3.0} }\n```'
BAD = 'Well\x1b]0;owned\x07\u202e {"verdict": {"level": 9, "reason": ""}}'


class Verdict(BaseModel):
    """A small typed output."""

    model_config = ConfigDict(extra="forbid")

    level: float = Field(ge=1, le=5)
    reason: str


class Judge(dspy.Signature):
    """Judge the picture."""

    image: dspy.Image = dspy.InputField()
    query: str = dspy.InputField()
    verdict: Verdict = dspy.OutputField()


@pytest.fixture
def records() -> Iterator[list[logging.LogRecord]]:
    """Return every record of this package."""
    kept: list[logging.LogRecord] = []
    handler = logging.Handler(logging.DEBUG)
    handler.emit = kept.append  # type: ignore[method-assign]
    log = logging.getLogger("agenticiqa")
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    yield kept
    log.removeHandler(handler)
    log.setLevel(level)


@pytest.fixture
def image(examples: Path) -> LoadedImage:
    """A photo."""
    return load(examples / "coffee.webp")


def events(records: list[logging.LogRecord], name: str) -> list[dict[str, Any]]:
    return [vars(record) for record in records if vars(record).get("event") == name]


def configured(server: Server, **changes: Any) -> Backend:
    known: dict[str, Any] = {"structured_outputs": "json_schema", "logprobs": False}  # nothing is left to be found out
    found = connect(StageConfig(backend="vllm.test", api_base=server.url, **known, **changes))
    assert found is not None
    return found


def judge(backend: Backend, image: LoadedImage, attempts: int = 3, asynchronous: bool = False) -> Any:
    ask: CheckedPredict[Verdict] = CheckedPredict(Judge, stage="judging", backend=backend, attempts=attempts)
    inputs = {"image": image, "query": "Sharp?"}
    return asyncio.run(ask.acall(inputs)) if asynchronous else ask(inputs)


def texts_sent(body: Body) -> list[str]:
    """Return every text of a request as it arrived, in order."""
    contents = [message["content"] for message in body["messages"]]
    parts = [part for each in contents for part in ([{"text": each}] if isinstance(each, str) else each)]
    return [part["text"] for part in parts if "text" in part]


def texts_logged(prompt: dict[str, Any]) -> list[str]:
    parts = [part for message in prompt["messages"] for part in message["parts"]]
    return [prompt["system"], *(part for part in parts if isinstance(part, str))]


def agrees(prompt: dict[str, Any], body: Body) -> None:
    """Check that texts, schema, parameters and images of a logged prompt are those of the request that arrived."""
    assert texts_logged(prompt) == texts_sent(body)
    ((mime, data),) = images_of(body)
    logged = [part for message in prompt["messages"] for part in message["parts"] if isinstance(part, dict)]
    assert logged == [{"image": f"{mime}, sha256 {hashlib.sha256(data).hexdigest()}, {len(data)} bytes"}]
    assert prompt["parameters"] == {name: body[name] for name in ("temperature", "top_p", "max_tokens", "seed")}
    assert prompt["response_format"] == body["response_format"]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_each_attempt_is_logged_as_sent_and_each_reply_as_received(
    records: list[logging.LogRecord], image: LoadedImage, asynchronous: bool
) -> None:
    with fake_server(in_turn(BAD, GOOD)) as server:
        backend = configured(server, temperature=0.25, top_p=0.5, seed=7, max_tokens=99)
        assert judge(backend, image, asynchronous=asynchronous).answer.level == 3
    prompts, replies = events(records, "prompt"), events(records, "reply")
    assert [each["attempt"] for each in prompts] == [each["attempt"] for each in replies] == [1, 2]
    for prompt, body in zip(prompts, server.requests, strict=True):
        agrees(prompt, body)
    assert "Attempt 2 of 3" in texts_logged(prompts[1])[-1]
    assert [each["text"] for each in replies] == [BAD, GOOD]
    assert [each["length"] for each in replies] == [len(BAD), len(GOOD)]
    assert {(each["finish_reason"], each["from_cache"]) for each in replies} == {("stop", False)}
    for record in records:
        json.dumps({name: value for name, value in vars(record).items() if name != "args"}, default=str)


def test_a_cached_answer_is_logged_as_cached_with_its_original_text(
    records: list[logging.LogRecord], image: LoadedImage
) -> None:
    with fake_server(in_turn(BAD, GOOD)) as server:
        backend = configured(server, seed=7)
        judge(backend, image)
        sent = events(records, "prompt")
        records.clear()
        judge(backend, image)
    assert len(server.requests) == 2
    prompts, replies = events(records, "prompt"), events(records, "reply")
    assert [each["text"] for each in replies] == [BAD, GOOD]
    assert {each["from_cache"] for each in replies} == {True}
    assert [texts_logged(each) for each in prompts] == [texts_logged(each) for each in sent]
    assert [each["messages"] for each in prompts] == [each["messages"] for each in sent]


def test_calls_of_the_callers_own_model_are_logged_without_its_key(
    records: list[logging.LogRecord], image: LoadedImage
) -> None:
    repeats_the_key = f'{{"verdict": {{"level": 2, "reason": "{KEY}"}}}}'
    with fake_server(in_turn(BAD, repeats_the_key)) as server:
        lm = dspy.LM("hosted_vllm/theirs", api_base=server.url, api_key=KEY, temperature=0.5, max_tokens=50)
        with dspy.context(lm=lm):
            assert judge(Backend.ambient(), image).answer.level == 2
            assert server.headers[0]["authorization"] == f"Bearer {KEY}"
            first = [*records]
            assert judge(Backend.ambient(), image).answer.level == 2
            assert len(server.requests) == 2
    assert {each["from_cache"] for each in events(records[len(first) :], "reply")} == {True}
    del records[len(first) :]
    prompts, replies = events(records, "prompt"), events(records, "reply")
    for prompt, body in zip(prompts, server.requests, strict=True):
        assert texts_logged(prompt) == texts_sent(body)
        ((mime, data),) = images_of(body)
        assert f"{mime}, sha256 {hashlib.sha256(data).hexdigest()}, {len(data)} bytes" in str(prompt["messages"])
        assert (prompt["parameters"]["temperature"], prompt["parameters"]["max_tokens"]) == (0.5, 50)
    assert [each["text"] for each in replies] == [BAD, repeats_the_key.replace(KEY, "***")]
    assert {(each["finish_reason"], each["from_cache"]) for each in replies} == {(None, False)}, "DSPy tells no reason"
    everything = "".join(f"{record.getMessage()}{vars(record)}" for record in records)
    assert KEY not in everything
    assert base64.b64encode(image.data).decode()[:60] not in everything


def test_the_texts_of_another_adapter_are_logged(records: list[logging.LogRecord], image: LoadedImage) -> None:
    with fake_server(in_turn("no fields at all", GOOD)) as server, dspy.context(adapter=dspy.ChatAdapter()):
        judge(configured(server), image)
    assert [texts_logged(each) for each in events(records, "prompt")] == [texts_sent(each) for each in server.requests]
    assert [each["text"] for each in events(records, "reply")] == ["no fields at all", GOOD]
    assert "[[ ## completed ## ]]" in texts_logged(events(records, "prompt")[0])[0]


def test_the_users_own_callbacks_are_still_called(image: LoadedImage) -> None:
    class Counted(dspy.utils.callback.BaseCallback):
        calls = 0

        def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
            self.calls += 1

    counted = Counted()
    backend, _ = scripted_backend([GOOD])
    with dspy.context(callbacks=[counted]):
        judge(backend, image)
    assert counted.calls == 1


def test_the_log_file_has_complete_texts_and_the_terminal_no_control_characters(
    tmp_path: Path, image: LoadedImage, capsys: pytest.CaptureFixture[str]
) -> None:
    long = BAD + "\x9b2J" + "x" * 6000
    with fake_server(in_turn(long, GOOD)) as server, logging_to(2, str(tmp_path / "log")):
        judge(configured(server), image)
    shown, written = capsys.readouterr().err, (tmp_path / "log").read_text()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", shown)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", written)
    assert "characters left out" in shown
    assert len(shown) < 20_000
    rows = json_lines(tmp_path / "log")
    assert [row["text"] for row in rows if row["event"] == "reply"] == [long, GOOD]
    assert next(row for row in rows if row["event"] == "prompt")["system"] == texts_sent(server.requests[0])[0]


def test_a_warning_with_text_of_a_model_is_harmless_without_v(
    image: LoadedImage, capsys: pytest.CaptureFixture[str]
) -> None:
    def never(verdict: Verdict) -> None:
        raise Rejected("no such letter: \x1b]0;owned\x07")

    backend, _ = scripted_backend([GOOD])
    ask: CheckedPredict[Verdict] = CheckedPredict(Judge, stage="judging", backend=backend, attempts=1)
    with logging_to(0), pytest.raises(Unanswered):
        ask({"image": image, "query": "Sharp?"}, check=never)
    shown = capsys.readouterr().err
    assert "no such letter" in shown
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", shown)


CUT = '{"verdict": {"level": 3, "reason": "soft ed'


def cut_off(text: str) -> Reply:
    """Return an answer that, by its server, ended at the token limit."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "length"}
    return Reply(raw_body=json.dumps({"id": "1", "model": "test", "choices": [choice], "usage": {}}).encode())


@pytest.mark.parametrize(("first", "why"), [(cut_off(CUT), CUT_OFF), (CUT, UNFINISHED)], ids=["length", "stop"])
def test_an_answer_is_cut_off_only_if_the_server_reported_it_also_in_a_repeated_run(
    image: LoadedImage, first: Reply | str, why: str
) -> None:
    with fake_server(in_turn(first, GOOD)) as server:
        runs = [judge(configured(server), image) for _ in range(2)]
    assert [run.rejected_answers for run in runs] == [{"judging": [why]}] * 2
    assert why in field_of(server.requests[1], "correction")
    assert len(server.requests) == 2, "the second run is replayed from the cache, correction and all"


def test_facts_that_dspy_does_not_report_are_not_guessed(image: LoadedImage) -> None:
    with fake_server(in_turn(cut_off(CUT), GOOD)) as server:
        lm = dspy.LM("hosted_vllm/theirs", api_base=server.url, api_key=KEY, max_tokens=50)
        with dspy.context(lm=lm):
            assert judge(Backend.ambient(), image).rejected_answers == {"judging": [UNFINISHED]}
