"""Reasoning before an answer is taken off, and an answer that breaks off is told from one that lacks a bracket."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenticiqa.programs.backends.cleaning import cut_short, ends_in_thoughts, without_thoughts

ANSWER = '{"plan": {"scope": ["a {b}", "<think>"], "note": "say \\"}\\" twice"}}'


@pytest.mark.parametrize("text", [ANSWER, f"Look: {ANSWER}", "no thoughts", "", "a <b> c", "```<think>```"])
def test_text_without_thoughts_before_it_stays_as_it_is(text: str) -> None:
    assert without_thoughts(text) == text


@pytest.mark.parametrize(
    "thoughts",
    [
        "<think>a draft {}</think>",
        "<Thinking>well</Thinking>\n",
        "It may be {}, I think.\n</think>\n",
        "◁think▷ so ◁/think▷",
        "[THINK]so[/THINK]",
        "<|begin_of_thought|>so<|end_of_thought|>",
        "<|channel|>analysis<|message|>so {}<|end|><|start|>assistant<|channel|>final<|message|>",
        "<|channel|>final<|message|>",
    ],
)
def test_thoughts_in_any_familys_marks_are_taken_off(thoughts: str) -> None:
    assert without_thoughts(thoughts + ANSWER).strip() == ANSWER


@pytest.mark.parametrize("text", ["<think>let me see", "[THINK]so", "<|channel|>analysis<|message|>so"])
def test_thoughts_that_never_end_are_cut_short(text: str) -> None:
    assert ends_in_thoughts(text)
    assert cut_short(text)


@pytest.mark.parametrize(
    "text",
    [
        "<think>let me see {so}",
        '{"plan": {"scope": "an open te',
        '{"plan": {"box": [1, 2, 75',
        '{"plan": {"logs": {"1": -4',
        '{"plan": {"look": tr',
        '{"plan": {"scope": "x", "note"',
        '{"plan": {"rows": [{"a": 1}',
        '```json\n{"plan": {"scope": ["x", ',
    ],
)
def test_an_answer_that_breaks_off_within_a_value_is_cut_short(text: str) -> None:
    assert cut_short(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no JSON at all",
        ANSWER,
        f"{ANSWER} and so on",
        '{"plan": {"scope": "x"',
        '{"plan": {"rows": [1, 2]',
        '```json\n{"plan": {"rows": [1, 2]\n```',
        "{'plan': {'scope': 'x'}}",
        "{'plan': {'note': 'a 5\" screen'}}",
        "<think>well</think>",
    ],
)
def test_an_answer_that_lacks_no_more_than_closing_braces_is_not(text: str) -> None:
    assert not cut_short(text)


@given(st.text())
def test_any_text_is_taken(text: str) -> None:
    assert without_thoughts(text) in text
    assert not cut_short(json.dumps({"note": text}))
