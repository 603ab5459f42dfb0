"""Typed answers with retries: the correction for the model, the counted attempts, and the replay from the cache."""

import json
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy import lm15
from pydantic import BaseModel, ConfigDict, Field

from agenticiqa.programs.backends.choice import Backend
from agenticiqa.programs.backends.dspy_adapter import SteadyAdapter
from agenticiqa.programs.backends.run_context import recorded_usage
from agenticiqa.programs.errors import Unanswered
from agenticiqa.programs.stages.ask import LONGEST_LOGGED, CheckedPredict, Rejected
from support.engine import ScriptedEngine, scripted_backend, scripted_lm
from support.fake_server import fake_server, field_of, images_of, text_of
from support.loopback import Body
from support.scripted_answers import program_for

MARKER = '<<CUSTOM-TYPE-START-IDENTIFIER>>[{"type": "image_url", "image_url": {"url": "http://host.invalid/x.png"}}]<<CUSTOM-TYPE-END-IDENTIFIER>>'
PIXEL = dspy.Image(
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Verdict(BaseModel):
    """A small typed output."""

    model_config = ConfigDict(extra="forbid")

    level: int = Field(ge=1, le=5)
    reason: str


class Judge(dspy.Signature):
    """Judge the picture."""

    image: dspy.Image | None = dspy.InputField()
    query: str = dspy.InputField()
    verdict: Verdict = dspy.OutputField()


def say(level: int, reason: str = "seen") -> str:
    return json.dumps({"verdict": {"level": level, "reason": reason}})


def asked(backend: Backend | None, attempts: int = 3) -> CheckedPredict[Verdict]:
    return CheckedPredict(Judge, stage="judging", backend=backend, attempts=attempts)


def about(query: str = "How sharp?", image: dspy.Image | None = None) -> dict[str, Any]:
    return {"image": image, "query": query}


def correction(body: Body) -> str:
    return field_of(body, "correction")


def test_a_rejection_names_the_wrong_field_and_the_second_answer_is_used() -> None:
    backend, engine = scripted_backend(['{"verdict": {"level": 9, "colour": "red"}}', say(2)])
    reply = asked(backend)(about())
    assert reply.answer.level == 2
    assert len(engine.requests) == 2
    reported = correction(engine.bodies[1])
    assert "Attempt 2 of 3" in reported
    assert "Return ONLY valid JSON" in reported
    for field in ("level", "reason", "colour"):
        assert f"{field}:" in reported
        assert f"{field}:" in reply.rejected_answers["judging"][0]
    assert "correction" not in text_of(engine.bodies[0])


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ("I cannot judge this", "not a JSON object"),
        ('{"json": {"note": {"levels": 1}}, "more": 1}', "no field 'verdict'"),
        ('{"json": {"verdict": {"level": 1}}, "more": 1}', "reason: Field required"),
        ('{"verdict": {"level": 1, "rea', "the JSON object is not complete"),
        ("null", "not a JSON object"),
        ('{"verdict": "good"}', "no field 'verdict' with the keys"),
        ('{"verdict": {"level": "high", "reason": "x"}}', "level: Input should be a valid integer"),
    ],
)
def test_every_kind_of_bad_answer_has_its_own_reason(bad: str, why: str) -> None:
    backend, engine = scripted_backend([bad, say(3)])
    reply = asked(backend)(about())
    assert why in reply.rejected_answers["judging"][0]
    assert why in correction(engine.bodies[1])


@pytest.mark.parametrize(
    "bad",
    ["{" * 1_000_000, "The picture is nice. " * 500_000, '{"verdict": ' + '{"x": 1}, ' * 20_000, "7" * 1_000_000],
    ids=["braces", "prose", "objects", "digits"],
)
def test_2000_characters_of_a_rejected_answer_are_shown_with_its_length(
    bad: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    backend, engine = scripted_backend([bad])
    with pytest.raises(Unanswered) as caught:
        asked(backend)(about())
    gave_up = caught.value
    shown = f"{bad[:2000]} ... ({len(bad):,} characters)"
    assert gave_up.last_output == shown
    assert gave_up.rejected_answers["judging"][-1].endswith(shown)
    assert f"it has {len(bad):,} characters" in correction(engine.bodies[-1])
    assert gave_up.outputs == [""] * 3
    assert len(str(gave_up)) < 1000
    logged = [record.getMessage() for record in caplog.records]
    (last,) = [message for message in logged if "the last answer was: " in message]
    assert f"the last answer was: {bad[:2000]}" in last
    assert max(map(len, logged)) < LONGEST_LOGGED + 100


def test_long_reasons_are_shortened(caplog: pytest.LogCaptureFixture) -> None:
    bad = json.dumps({"verdict": {f"a{'b' * 500}{number}": number for number in range(100)} | {"level": 1}})
    backend, engine = scripted_backend([bad, say(3)])
    (why,) = asked(backend)(about()).rejected_answers["judging"]
    assert len(why) < 2100
    assert why.endswith("characters)")
    assert why in correction(engine.bodies[1])
    assert all(len(record.getMessage()) < 3000 for record in caplog.records)


def test_an_empty_answer_with_logprobs_is_still_called_empty() -> None:
    class Empty(ScriptedEngine):
        def complete(self, request: lm15.Request) -> lm15.Response:
            super().complete(request)
            return lm15.Response(
                id=None,
                model=request.model,
                message=lm15.Message.assistant([lm15.TextPart("")]),
                finish_reason="stop",
                usage=lm15.Usage(),
                logprobs=(),
            )

    lm = dspy.LM("test/x", engine=Empty([""]), cache=False, logprobs=True)
    with pytest.raises(Unanswered) as caught:
        asked(Backend((lm,)), attempts=1)(about())
    assert caught.value.reasons == ["the answer was empty"]
    assert caught.value.last_output == ""


def test_when_no_attempt_is_usable_the_error_has_every_reason_and_the_raw_last_output(
    caplog: pytest.LogCaptureFixture,
) -> None:
    raw = '{"verdict": {"level": 0, "reason": "raw"}}'
    backend, engine = scripted_backend([say(7), "nonsense", raw])
    with caplog.at_level(logging.DEBUG), pytest.raises(Unanswered) as caught:
        asked(backend, attempts=5)(about())
    error = caught.value
    assert len(engine.requests) == 5
    assert "Attempt 5 of 5" in correction(engine.bodies[-1])
    assert error.stage == "judging"
    assert ["level" in reason for reason in error.reasons] == [True, False, True, True, True]
    assert error.last_output == raw
    assert error.last_answer is None
    assert all(f"attempt {number}" in str(error) for number in range(1, 6))
    assert error.last_output in caplog.text


def test_the_whole_prompt_is_logged_for_debugging_but_no_image(caplog: pytest.LogCaptureFixture) -> None:
    backend, _ = scripted_backend(["nonsense", say(3)])
    with caplog.at_level(logging.DEBUG, "agenticiqa"):
        asked(backend)(about("Sharp? " + "x" * 5000, image=PIXEL))
    image = "image/png, sha256 6b7fa434f92a8b80aab02d9bf1a12e49ffcae424e4013a1c4f68b67e3d2bbcd0, 70 bytes"
    for part in ("Judge the picture.", "x" * 5000, image, "attempt 1 of 3", "Return ONLY valid JSON", "nonsense"):
        assert part in caplog.text
    assert "base64" not in caplog.text


def test_every_request_to_a_foreign_engine_counts_as_a_call() -> None:
    """Such an engine does not report its requests, so no answer may count as one from the cache."""
    backend, _ = scripted_backend(["nonsense", say(3)])
    with recorded_usage() as usage:
        asked(backend)(about())
    assert (usage.stages["judging"].calls, usage.stages["judging"].cached) == (2, 0)


def refuse_even(verdict: Verdict) -> None:
    if verdict.level % 2 == 0:
        raise Rejected(f"level {verdict.level} is even, give an odd one")


def test_a_check_of_a_stage_rejects_with_its_own_message() -> None:
    backend, engine = scripted_backend([say(2), say(3)])
    reply = asked(backend)(about(), check=refuse_even)
    assert reply.answer.level == 3
    assert reply.rejected_answers == {"judging": ["level 2 is even, give an odd one"]}
    assert "level 2 is even, give an odd one. Return ONLY valid JSON." in correction(engine.bodies[1])
    backend, _ = scripted_backend([say(2)])
    trace: list[Any] = []
    with dspy.context(trace=trace), pytest.raises(Unanswered) as caught:
        asked(backend)(about(), check=refuse_even)
    assert trace == []
    assert caught.value.last_answer == Verdict(level=2, reason="seen"), "only the check rejected it"
    assert json.loads(caught.value.last_output) == {"level": 2, "reason": "seen"}


@pytest.mark.parametrize("before", [[], ["nonsense"]])
def test_an_outage_is_raised_at_once_and_is_not_an_attempt(before: list[str]) -> None:
    backend, engine = scripted_backend([*before, lm15.ServerError("broken")])
    with pytest.raises(dspy.LMServerError):
        asked(backend)(about())
    assert len(engine.requests) == len(before) + 1


@pytest.mark.parametrize(
    ("said", "error", "asked_the_other"),
    [
        *((outage("down"), None, 1) for outage in (lm15.ServerError, lm15.RateLimitError, lm15.TimeoutError)),
        (lm15.TransportError("down"), None, 1),
        ("nonsense", Unanswered, 0),
        (lm15.AuthError("no such key"), dspy.LMError, 0),
        (lm15.InvalidRequestError("no such parameter"), dspy.LMError, 0),
        (lm15.ContextLengthError("too long"), dspy.LMError, 0),
        (lm15.ServerError("down"), dspy.LMRateLimitError, 1),
    ],
)
def test_the_fallback_is_asked_only_after_an_outage_and_its_own_outage_is_raised(
    said: Any, error: type[Exception] | None, asked_the_other: int, caplog: pytest.LogCaptureFixture
) -> None:
    primary, first = scripted_lm([said], name="test/primary")
    fallback, second = scripted_lm([lm15.RateLimitError("slow down") if error else say(5)], name="test/fallback")
    module = asked(Backend((primary, fallback)))
    if error is None:
        reply = module(about())
        assert (reply.answer.level, reply.rejected_answers) == (5, {})
    else:
        with pytest.raises(error):
            module(about())
    assert (len(first.requests), len(second.requests)) == (3 if said == "nonsense" else 1, asked_the_other)
    assert ("test/primary is unreachable" in caplog.text) == (asked_the_other > 0)


def test_a_whole_exchange_is_replayed_from_the_cache_up_to_the_accepted_answer() -> None:
    """The model repeats its bad answer to the same prompt; the correction makes it another prompt."""

    def answers(body: Body) -> str:
        return say(3) if "correction" in text_of(body["messages"][-1]) else say(9)

    backend, engine = scripted_backend(answers, cache=True)
    first = asked(backend)(about())
    assert asked(backend)(about()) == first
    assert len(engine.requests) == 2
    assert (first.answer.level, len(first.rejected_answers["judging"])) == (3, 1)


ENDINGS: dict[str, tuple[list[Any], type[Exception]]] = {
    "never usable": ([say(9)] * 3, Unanswered),
    "an outage after a rejected answer": ([say(9), lm15.ServerError("down")], dspy.LMError),
}


@pytest.mark.parametrize(("script", "error"), ENDINGS.values(), ids=ENDINGS)
def test_an_exchange_without_an_accepted_answer_is_not_cached(
    tmp_path: Path, script: list[Any], error: type[Exception]
) -> None:
    """Neither memory nor disk keeps it; accepted answers, also to other questions, are replayed."""
    backend, engine = scripted_backend([say(3), *script, say(4)], cache=True)
    module = asked(backend)
    dspy.configure_cache(disk_cache_dir=str(tmp_path))
    module(about("Good?"))
    with pytest.raises(error):
        module(about())
    dspy.configure_cache(disk_cache_dir=str(tmp_path))  # as the next process finds it
    again = module(about())
    assert (again.answer.level, again.rejected_answers) == (4, {})
    dspy.configure_cache(disk_cache_dir=str(tmp_path))
    assert module(about()) == again
    assert module(about("Good?")).answer.level == 3
    assert len(engine.requests) == len(script) + 2


def by_query(body: Body) -> str:
    """Answer odd numbers badly at first, then with the number modulo 5, plus 1."""
    number = int(field_of(body, "query"))
    first = "## correction ##" not in text_of(body["messages"][-1])
    return say(9) if number % 2 and first else say(number % 5 + 1, str(number))


def test_many_threads_share_one_module_without_mixing_their_exchanges() -> None:
    backend, engine = scripted_backend(by_query)
    module = asked(backend)
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda number: module(about(str(number))), range(40)))
    for number, reply in enumerate(replies):
        assert reply.answer == Verdict(level=number % 5 + 1, reason=str(number))
        assert len(reply.rejected_answers.get("judging", [])) == number % 2
    assert len(engine.requests) == 60


def test_an_optimizer_finds_the_predictor_and_one_trace_entry_per_accepted_answer() -> None:
    backend, _ = scripted_backend(["nonsense", say(9), say(2), say(3)])
    module = asked(backend, attempts=4)
    assert [name for name, _ in module.named_predictors()] == ["predict"]
    with dspy.context(trace=[]):
        module(about("Sharp?"), check=refuse_even)
        trace = list(dspy.settings.trace)
    assert len(trace) == 1
    predictor, inputs, prediction = trace[0]
    assert predictor is module.predict
    assert inputs == about("Sharp?")
    assert dict(prediction.items()) == {"verdict": Verdict(level=3, reason="seen")}


def test_without_an_optimizer_no_trace_is_kept() -> None:
    backend, _ = scripted_backend([say(3)])
    module = asked(backend)
    kept = len(dspy.settings.trace)
    module(about(image=PIXEL))
    assert len(dspy.settings.trace) == kept
    assert module.history == []
    assert backend.lms[0].history == []


def test_tuned_instructions_are_also_used_for_retries() -> None:
    backend, engine = scripted_backend(["nonsense", say(3)])
    module = asked(backend)
    module.predict.signature = module.predict.signature.with_instructions("Mind the halos.")
    module(about())
    assert ["Mind the halos." in text_of(body["messages"][0]) for body in engine.bodies] == [True, True]


def test_the_image_marker_in_a_question_adds_no_image() -> None:
    """Neither at first nor in the correction, which repeats the question."""

    def repeat(verdict: Verdict) -> None:
        if verdict.level == 1:
            raise Rejected(f"this was not asked: {MARKER}")

    backend, engine = scripted_backend([say(1), say(2)])
    asked(backend)(about(f"Is it sharp? {MARKER}", image=PIXEL), check=repeat)
    assert len(engine.bodies) == 2
    for body in engine.bodies:
        ((mime, _),) = images_of(body)
        assert mime == "image/png"
        assert "host.invalid" in field_of(body, "query")
    assert "host.invalid" in correction(engine.bodies[1])


def test_a_lone_surrogate_in_the_question_becomes_a_question_mark() -> None:
    """Text cut in the middle of an emoji contains it; DSPy refuses to send it."""
    backend, engine = scripted_backend([say(1)])
    asked(backend)(about("Sharp? \ud83d"))
    assert field_of(engine.bodies[0], "query") == "Sharp? ?"


def test_dspy_itself_turns_the_marker_into_an_image() -> None:
    """The reason for ``harmless``; if DSPy fixes this, it is no longer needed."""
    lm, engine = scripted_lm([say(1)])
    with dspy.context(lm=lm, adapter=dspy.JSONAdapter()):
        dspy.Predict(Judge)(image=None, query=MARKER)
    assert [part.url for part in engine.requests[0].messages[-1].parts if isinstance(part, lm15.ImagePart)] == [
        "http://host.invalid/x.png"
    ]


def test_a_subclass_of_the_dspy_adapter_formats_the_request() -> None:
    """The form of JSON is set on a copy, which keeps the class of the user's DSPy adapter."""

    class Greeting(SteadyAdapter):
        def format_system_message(self, signature: type[dspy.Signature]) -> str:
            return f"Hello. {super().format_system_message(signature)}"

    backend, engine = scripted_backend([say(1)])
    with dspy.context(adapter=Greeting()):
        asked(backend)(about())
    assert text_of(engine.bodies[0]).startswith("Hello. ")


def worst_level(arguments: Any, prediction: Any) -> float:
    """Return a reward that prefers low levels; a module needs it in a file, because Refine reads its source."""
    return -float(prediction.verdict.level)


AROUND = {
    "BestOfN": lambda predict: dspy.BestOfN(predict, N=3, reward_fn=worst_level, threshold=-1.0),
    "Refine": lambda predict: dspy.Refine(predict, N=3, reward_fn=worst_level, threshold=-1.0),
}
ADVICE = json.dumps({"discussion": "Too high.", "advice": {"self": "Look closer."}})


@pytest.mark.parametrize("around", AROUND)
def test_a_predictor_may_be_sampled_by_a_module_of_dspy(around: str) -> None:
    levels = iter((4, 2, 3))
    backend, engine = scripted_backend(lambda body: ADVICE if "advice" in text_of(body) else say(next(levels)))
    question = asked(backend)
    question.predict = AROUND[around](question.predict)
    with dspy.context(trace=[]):
        reply = question(about())
        ((predictor, _, traced),) = dspy.settings.trace
    assert (reply.answer.level, traced.verdict.level) == (2, 2)
    assert predictor is question.predictor
    samples = [request for request in engine.requests if "advice" not in str(request.messages)]
    assert {request.config.temperature for request in samples} == {1.0}


def test_the_advice_of_refine_is_requested_without_a_strict_schema() -> None:
    """OpenAI refuses a strict schema of a mapping, such as the advice by module."""
    levels = iter((4, 3))
    with fake_server(lambda body: ADVICE if "advice" in text_of(body) else say(next(levels))) as server:
        question = asked(next(each.backend for each in program_for(server).questions))
        question.predict = dspy.Refine(question.predict, N=2, reward_fn=worst_level, threshold=-1.0)
        assert question(about()).answer.level == 3
    forms = [body["response_format"]["type"] for body in server.requests]
    assert forms == ["json_schema", "json_object", "json_schema"]
    assert "Look closer." in text_of(server.requests[2])


@pytest.mark.parametrize("around", AROUND)
def test_samples_that_cannot_be_parsed_are_asked_again_with_the_reason(around: str) -> None:
    backend, engine = scripted_backend(["no JSON", "no JSON", say(1)])
    question = asked(backend)
    sampled: Any = AROUND[around](question.predict)
    sampled.N = sampled.fail_count = 2
    question.predict = sampled
    assert question(about()).answer.level == 1
    assert "no answer could be parsed" in correction(engine.bodies[2])


@pytest.mark.parametrize("around", AROUND)
def test_an_outage_during_samples_is_an_outage_and_a_fallback_answers(around: str) -> None:
    """DSPy's modules only print the error of a sample."""
    primary, _ = scripted_lm([lm15.ServerError("overloaded")], name="test/primary")
    fallback, _ = scripted_lm([say(1)], name="test/fallback")
    alone, backed = asked(Backend((primary,))), asked(Backend((primary, fallback)))
    for question in (alone, backed):
        sampled: Any = AROUND[around](question.predict)
        sampled.fail_count = 99  # the errors of samples that DSPy's modules skip
        question.predict = sampled
    with pytest.raises(dspy.LMError, match="overloaded"):
        alone(about())
    assert backed(about()).answer.level == 1


@pytest.mark.parametrize("around", AROUND)
def test_a_bootstrapped_example_is_the_best_sample(around: str) -> None:
    levels = iter((4, 2, 3))
    backend, _ = scripted_backend(lambda body: ADVICE if "advice" in text_of(body) else say(next(levels)))

    class Judging(dspy.Module):
        def __init__(self) -> None:
            super().__init__()
            self.ask = asked(backend)

        def forward(self, query: str) -> Any:
            return dspy.Prediction(level=self.ask(about(query)).answer.level)

    program = Judging()
    program.ask.predict = AROUND[around](program.ask.predict)
    examples = [dspy.Example(query="How sharp?").with_inputs("query")]
    tuned = dspy.BootstrapFewShot(metric=lambda *given: True).compile(program, trainset=examples)
    (demo,) = tuned.ask.predictor.demos
    assert demo.verdict.level == 2
