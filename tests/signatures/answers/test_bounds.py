"""Texts that are too long or too deep, or have huge numbers, are refused before any parser sees them."""

import json
import time
from collections.abc import Callable
from contextlib import suppress

import dspy
import pytest

from agenticiqa.programs.backends.dspy_adapter import SteadyAdapter, showing_images
from agenticiqa.programs.errors import Unanswered
from agenticiqa.programs.fusion.formula import ScoreFusion
from agenticiqa.programs.stages.salvage import salvaged_answers, salvaged_score
from agenticiqa.signatures.answers.answer_fields import begun_answer, read_answer, read_fields
from agenticiqa.signatures.answers.json_text import (
    DEEPEST,
    LONGEST,
    MOST_BRACKETS,
    MOST_DIGITS,
    Unreadable,
    too_much,
)
from agenticiqa.signatures.answers.letters import letter_of
from agenticiqa.signatures.executor import Detection
from agenticiqa.signatures.summarizer import Answer, ScoredAnswer

ANSWER = json.dumps({"final_answer": "the sky", "quality_reasoning": "seen"})
LEVEL = '{"quality_level": 4, "quality_probs": {"4": %s}, "quality_reasoning": "seen"}'

TOO_MUCH = {
    "an answer that is too long": (" " * LONGEST + ANSWER, "the answer is too long: it has 64,0"),
    "10 MB of thoughts": (f"<think>{'so ' * 3_000_000}</think>{ANSWER}", "too long: it has 9,000,"),
    "brackets in brackets": ("[" * (DEEPEST + 1) + ANSWER, "nested too deeply: more than 64 brackets"),
    "2,000 objects in objects": ('{"a": ' * 2000 + ANSWER + "}" * 2000, "nested too deeply"),
    "brackets side by side": ("{} " * MOST_BRACKETS + ANSWER, "too many brackets: more than 500"),
    "wide brackets in brackets": ("｛" * (DEEPEST + 1) + ANSWER, "nested too deeply"),
    "wide brackets side by side": ("｛｝ " * MOST_BRACKETS + ANSWER, "too many brackets"),
    "digits": (LEVEL % ("9" * (MOST_DIGITS + 1)), "more than 300 digits"),
    "hexadecimal digits": (LEVEL % ("0x" + "f" * 256), "more than 300 digits"),
    "full-width digits": (LEVEL % ("９" * (MOST_DIGITS + 1)), "more than 300 digits"),
    "digits with marks between": (LEVEL % ("9_" * MOST_DIGITS), "more than 300 digits"),
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_texts_beyond_the_limits_are_refused_with_a_short_reason(name: str) -> None:
    text, why = TOO_MUCH[name]
    field, model = ("assessment", ScoredAnswer) if "level" in text else ("answer", Answer)
    with pytest.raises(Unreadable, match=why) as caught:
        read_answer(text, field, model)
    assert len(str(caught.value)) < 120
    assert begun_answer(text, field, model) == {}


@pytest.mark.parametrize(
    "text",
    [
        ANSWER.rjust(LONGEST),
        f"<think>{'so ' * 100_000}</think>{ANSWER}",
        "[" * (DEEPEST - 1) + "]" * (DEEPEST - 1) + ANSWER,
        "{x} " * (MOST_BRACKETS // 10) + ANSWER,
        ANSWER.replace("seen", "7" * MOST_DIGITS),
    ],
    ids=["long", "long thoughts", "deep", "many brackets", "digits"],
)
def test_texts_within_the_limits_are_read(text: str) -> None:
    assert too_much(text) is None
    assert read_answer(text, "answer", Answer).model_dump()["final_answer"] == "the sky"


def test_no_other_parser_gets_a_text_beyond_the_limits() -> None:
    """This also holds for DSPy's own adapters and for signatures that this package does not read."""
    text = "{" * 1_000_000
    for adapter in (SteadyAdapter(), showing_images(dspy.ChatAdapter()), showing_images(dspy.JSONAdapter())):
        with pytest.raises(dspy.utils.exceptions.AdapterParseError, match="too long") as caught:
            adapter.parse(dspy.Signature("question -> answer"), text)
        assert isinstance(caught.value.__cause__, Unreadable)
    with pytest.raises(Unreadable, match="too long"):
        read_fields(text, dspy.Signature("question -> answer"))


@pytest.mark.parametrize(
    "text",
    [
        LEVEL % ("0x" + "f" * 249),
        json.dumps({"assessment": '{"quality_level": ' + "7" * 5000 + "}"}).replace("7", "\\u0037"),
        json.dumps({"assessment": '{"a": ' * 5000}).replace("{", "\\u007b"),
    ],
    ids=["a large number", "digits in a string", "brackets in a string"],
)
def test_exceptions_of_parsers_are_converted(text: str) -> None:
    with pytest.raises(Unreadable):
        read_answer(text, "assessment", ScoredAnswer)
    begun_answer(text, "assessment", ScoredAnswer)


UNITS = [
    *["{", "[", "｛", "“", "}", '"', "'", '\\"', '"\\', "\\", "7", "<think>", "/*", "a,"],
    *("7" * MOST_DIGITS + " ", " ", "\n", "the image is good, ", "- a: b\n", '{"a": 1} ', "{x} ", "A\n"),
]
AROUND = [
    ("", ""),
    ('{"quality_level": 4, "quality_reasoning": "', '"}'),
    ("{quality_level: 4, x: '", "'}"),
    ('{"answer": "{', '"}'),
]


def filled(unit: str, around: tuple[str, str], length: int) -> str:
    """Return a text of this length, with as many units as allowed, then blanks."""
    before, after = around
    count = (length - len(before) - len(after)) // len(unit)
    if unit.count("{") == unit.count("}") == 1:
        count = min(count, MOST_BRACKETS - 10)
    return f"{before}{unit * count}{after}".ljust(length)


def seconds(work: Callable[[], object]) -> float:
    """Return the processor time."""
    began = time.process_time()
    work()
    return time.process_time() - began


@pytest.fixture(scope="module")
def limit() -> float:
    """Return the time of forty million Python steps, five times that of the slowest text. A step for each pair of
    characters or brackets would take a hundred times as long, so a busy machine does not matter."""
    return 8 * min(seconds(lambda: [mark == "{" for mark in "x" * 5_000_000]) for _ in range(3))


@pytest.mark.slow
@pytest.mark.parametrize("length", [10_000, LONGEST])
@pytest.mark.parametrize("unit", UNITS, ids=repr)
def test_no_text_within_the_limits_takes_long(unit: str, length: int, limit: float) -> None:
    for around in AROUND:
        text = filled(unit, around, length)
        for work in (
            lambda text=text: with_suppressed(read_answer, text, "assessment", ScoredAnswer),
            lambda text=text: with_suppressed(read_answer, text, "detection", Detection),
            lambda text=text: salvaged_score(Unanswered("any", ["why"], outputs=[text]), ScoreFusion()),
            lambda text=text: [
                letter_of(each.final_answer, {"A": "good", "B": "bad"})
                for each in salvaged_answers(Unanswered("any", ["why"], outputs=[text]))
            ],
        ):
            assert any(seconds(work) < limit for _ in range(3)), (around, text[:100])


def with_suppressed(read: Callable[..., object], *args: object) -> None:
    with suppress(Unreadable):
        read(*args)


@pytest.mark.parametrize("unit", UNITS, ids=repr)
def test_ten_megabytes_are_refused_at_once(unit: str, limit: float) -> None:
    text = unit * (10_000_000 // len(unit))
    assert too_much(text)
    assert any(seconds(lambda: too_much(text)) < limit / 160 for _ in range(3))
