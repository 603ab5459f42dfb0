"""Golden requests: the exact request of each stage, so that every change of a prompt is a diff to review."""

import json
import os
from pathlib import Path
from typing import Any

import dspy
import pytest

from agenticiqa.eval.optimize.reflection import names_of_answer
from agenticiqa.programs.stages.ask import CheckedPredict
from agenticiqa.programs.stages.box_forms import box_form
from agenticiqa.programs.stages.levels import LevelsAdapter
from agenticiqa.programs.stages.scorer import RATINGS
from agenticiqa.signatures.executor import AnalyzeDistortions, DetectDistortions, LocateRegions, SelectTools
from agenticiqa.signatures.planner import Plan, plan_signature
from agenticiqa.signatures.replan import DecideReplan
from agenticiqa.signatures.summarizer import AnswerQuestion, NameLevel, ScoreQuality
from agenticiqa.signatures.vocabulary import LEVELS, SEVERITIES
from support.engine import scripted_backend
from support.fake_server import images_of, text_of
from support.golden_requests import all_signatures
from support.loopback import Body
from support.recorded import RECORD

GOLDEN = Path(__file__).with_name("golden")

IMAGE, REFERENCE = (
    dspy.Image(f"data:image/{mime};base64,{data}") for mime, data in (("jpeg", "aW1hZ2U="), ("png", "cmVm"))
)
QUERY = "Is the vehicle blurry? A. Yes B. No"
FORM = box_form("vllm/Qwen3-VL-8B", (640, 480)).asked
BOXES = f'{{"vehicle": [120, 400, 560, 830]}}\nEach is {FORM}'
DISTORTIONS = '{"vehicle": ["Blurs"], "sky": ["Noise"]}'
EVIDENCE = 'Tool scores (1-5 scale, higher is better):\n{"vehicle": {"Blurs": ["GMSD", 2.6]}}'
SEEN = {"image": IMAGE, "reference": None, "query": QUERY}
PLANNED = {
    "available_tools": "GMSD, NIQE",
    "query": QUERY,
    "feedback": None,
}

CASES: dict[str, tuple[type[dspy.Signature], dict[str, Any]]] = {
    "plan": (Plan, {**SEEN, **PLANNED}),
    "plan_without_images": (plan_signature(sees_images=False), PLANNED),
    "location": (
        LocateRegions,
        {"image": IMAGE, "regions": '["vehicle", "sky"]', "form": FORM},
    ),
    "detection": (DetectDistortions, {**SEEN, "query_scope": '["vehicle", "sky"]', "boxes": BOXES}),
    "detection_with_reference": (
        DetectDistortions,
        {**SEEN, "reference": REFERENCE, "query_scope": '["Global"]', "boxes": "none"},
    ),
    "analysis": (AnalyzeDistortions, {**SEEN, "distortion_set": DISTORTIONS, "boxes": BOXES}),
    "selection": (SelectTools, {"available_tools": PLANNED["available_tools"], "distortion_set": DISTORTIONS}),
    "assessment": (ScoreQuality, {**SEEN, "query": "Rate the perceptual quality.", "evidence": EVIDENCE}),
    "level_word": (NameLevel, {"image": IMAGE}),
    "answer": (AnswerQuestion, {**SEEN, "options": "A. Yes\nB. No", "evidence": EVIDENCE}),
    "decision": (
        DecideReplan,
        {
            "query": QUERY,
            "plan": '{"query_type": "IQA"}',
            "evidence": EVIDENCE,
            "doubts": "Contradictory evidence for vehicle: severe Blurs but GMSD scores 4.60",
        },
    ),
}
RATED = CASES["assessment"][1]
CASES |= {f"{name}_in_tokens": (row.token_form.signature(row.signature), RATED) for name, row in RATINGS.items()}
CASES |= {f"{name}_rating": (row.signature, RATED) for name, row in RATINGS.items() if row.signature != ScoreQuality}


def sent(name: str, attempt: int = 1) -> Body:
    """Return the request of that attempt, after empty answers to the earlier ones."""
    signature, inputs = CASES[name]
    backend, engine = scripted_backend([""])
    adapter = LevelsAdapter("q-realign") if signature is NameLevel else None
    with pytest.raises(Exception, match="the answer was empty"):
        CheckedPredict(signature, stage=name, backend=backend, attempts=attempt, adapter=adapter)(inputs)
    return engine.bodies[attempt - 1]


def readable(request: Body) -> str:
    """Return a request as text, with the type and size of each image."""
    images = iter(images_of(request))
    written = []
    for message in request["messages"]:
        content = message["content"]
        for part in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            if part["type"] != "text":
                mime, data = next(images)
                part = {"text": f"<image: {mime}, {len(data)} bytes>"}
            written.append(f"=== {message['role']} ===\n{part['text'].rstrip()}\n")
    return "\n".join("\n".join(line.rstrip() for line in part.splitlines()) + "\n" for part in written)


def compare(name: str, text: str, *, recording: bool) -> None:
    path = GOLDEN / f"{name}.txt"
    if recording:
        path.write_text(text, encoding="utf-8")
    expected = path.read_text(encoding="utf-8") if path.exists() else ""
    assert text == expected, f"the request of {name!r} is not the one in {path.name}: {RECORD}"


@pytest.mark.recorded
@pytest.mark.parametrize("name", CASES)
def test_the_first_request_is_word_for_word_the_golden_one(name: str, recording: bool) -> None:
    compare(name, readable(sent(name)), recording=recording)


@pytest.mark.recorded
def test_the_second_request_differs_from_the_first_by_the_correction_only(recording: bool) -> None:
    first, second = text_of(sent("answer")), text_of(sent("answer", attempt=2))
    added = [line for line in second.splitlines() if line not in first.splitlines()]
    compare("correction", "\n".join(added) + "\n", recording=recording)


EXPERT = "Assess the photo like an expert."


def instructed(signature: type[dspy.Signature], adapter: dspy.Adapter | None = None) -> str:
    """Return the text of a request with instructions that explain nothing."""
    backend, engine = scripted_backend([""])
    name = next(name for name, (each, _) in CASES.items() if each is signature)
    question = CheckedPredict[Any](signature, stage=name, backend=backend, attempts=1)
    question.predictor.signature = signature.with_instructions(EXPERT)
    with dspy.context(adapter=adapter), pytest.raises(Exception, match="the answer was empty"):
        question(CASES[name][1])
    return text_of(engine.bodies[0])


@pytest.mark.parametrize("adapter", [None, dspy.ChatAdapter, dspy.JSONAdapter, dspy.XMLAdapter])
def test_other_instructions_leave_the_meaning_of_the_five_numbers(adapter: type[dspy.Adapter] | None) -> None:
    text = instructed(ScoreQuality, adapter and adapter())
    assert EXPERT in text
    assert ScoreQuality.instructions not in text
    assert 'for EACH level, under "1" to "5", the probability that an observer would choose it' in text
    assert "five numbers from 0 to 1 that sum to 1" in text
    assert all(f"{number}, {level}: " in text for level, number in LEVELS.items())


@pytest.mark.parametrize("signature", sorted(all_signatures() - {NameLevel}, key=lambda each: each.__name__))
def test_other_instructions_leave_the_description_of_every_key(signature: type[dspy.Signature]) -> None:
    described = instructed(signature).partition("You answer with:")[2].partition("Answer with this JSON object")[0]
    keys = {key for key in names_of_answer(signature) if key.islower() and key not in SEVERITIES}
    assert [key for key in keys if key not in described] == []


def test_every_golden_file_belongs_to_a_request() -> None:
    assert {path.stem for path in GOLDEN.glob("*")} == {*CASES, "correction"}


def test_every_signature_has_a_golden_request() -> None:
    assert {signature for signature, _ in CASES.values()} >= all_signatures() != set()


def test_the_requests_hold_no_secret_of_this_machine() -> None:
    for name in CASES:
        text = json.dumps(sent(name))
        assert str(Path.home()) not in text
        assert os.getcwd() not in text
