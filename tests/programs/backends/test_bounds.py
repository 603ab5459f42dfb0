"""What is too long, too deep or too large a number is refused before any parser sees it."""

import json

import dspy
import pytest

from agenticiqa.programs.backends.adapter import SteadyAdapter, showing_images
from agenticiqa.programs.backends.bounds import DEEPEST, LONGEST, MOST_BRACKETS, MOST_DIGITS, too_much
from agenticiqa.programs.backends.reading import Unreadable, begun_answer, read_answer, read_fields
from agenticiqa.signatures.summarizer import Answer, Assessment

ANSWER = json.dumps({"final_answer": "the sky", "quality_reasoning": "seen"})
LEVEL = '{"quality_level": 4, "quality_probs": {"4": %s}, "quality_reasoning": "seen"}'

TOO_MUCH = {
    "an answer that is too long": (" " * LONGEST + ANSWER, "the answer is too long: it has 64,0"),
    "10 MB of thoughts": (f"<think>{'so ' * 3_000_000}</think>{ANSWER}", "too long: it has 9,000,"),
    "brackets in brackets": ("[" * (DEEPEST + 1) + ANSWER, "nested too deeply: more than 64 brackets"),
    "2,000 objects in objects": ('{"a": ' * 2000 + ANSWER + "}" * 2000, "nested too deeply"),
    "brackets side by side": ("{} " * MOST_BRACKETS + ANSWER, "too many brackets: more than 2,000"),
    "digits": (LEVEL % ("9" * (MOST_DIGITS + 1)), "more than 300 digits"),
    "hexadecimal digits": (LEVEL % ("0x" + "f" * 256), "more than 300 digits"),
    "full-width digits": (LEVEL % ("９" * (MOST_DIGITS + 1)), "more than 300 digits"),
    "digits with marks between": (LEVEL % ("9_" * MOST_DIGITS), "more than 300 digits"),
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_what_is_too_much_is_refused_with_a_short_true_reason(name: str) -> None:
    text, why = TOO_MUCH[name]
    field, model = ("assessment", Assessment) if "level" in text else ("answer", Answer)
    with pytest.raises(Unreadable, match=why) as caught:
        read_answer(text, field, model)
    assert len(str(caught.value)) < 120
    assert begun_answer(text, field, model) is None


@pytest.mark.parametrize(
    "text",
    [
        ANSWER.rjust(LONGEST),
        f"<think>{'so ' * 100_000}</think>{ANSWER}",
        "[" * (DEEPEST - 1) + "]" * (DEEPEST - 1) + ANSWER,
        "{x} " * (MOST_BRACKETS // 20) + ANSWER,
        ANSWER.replace("seen", "7" * MOST_DIGITS),
    ],
    ids=["long", "long thoughts", "deep", "many brackets", "digits"],
)
def test_what_is_within_the_bounds_is_read(text: str) -> None:
    assert too_much(text) is None
    assert read_answer(text, "answer", Answer).model_dump()["final_answer"] == "the sky"


def test_no_other_parser_gets_what_is_too_much() -> None:
    """Also where the user has set DSPy's own adapter, or has a signature that this package does not read."""
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
        "quality_level: 2001-13-45\nquality_probs: 2001-13-45\nquality_reasoning: seen",
        "quality_level: 0b_\nquality_probs: 0b_\nquality_reasoning: seen",
        LEVEL % ("0x" + "f" * 249),
        json.dumps({"assessment": '{"quality_level": ' + "7" * 5000 + "}"}).replace("7", "\\u0037"),
        json.dumps({"assessment": '{"a": ' * 5000}).replace("{", "\\u007b"),
    ],
    ids=["no date", "no number", "a large number", "digits in a string", "brackets in a string"],
)
def test_what_a_parser_raises_does_not_leave(text: str) -> None:
    with pytest.raises(Unreadable):
        read_answer(text, "assessment", Assessment)
    begun_answer(text, "assessment", Assessment)
