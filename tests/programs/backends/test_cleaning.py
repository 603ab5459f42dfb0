"""The answer in what a model wrote: found where it is whole, never changed, never put together of two."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenticiqa.programs.backends.cleaning import complete_objects, cut_short, the_answer, without_thoughts

FIELDS = {"plan"}
ANSWER = '{"plan": {"scope": ["a {b}", "<think>"], "note": "say \\"}\\" twice"}}'
DRAFT = '{"plan": {"scope": []}}'


@pytest.mark.parametrize(
    "text",
    [
        ANSWER,
        f"\n {ANSWER}\n",
        f"```json\n{ANSWER}\n```",
        f"Here it is:\n```\n{ANSWER}\n```\nI hope that it helps {{you}}.",
        f"<think>{DRAFT} or so</think>{ANSWER}",
        f"<think>\nif {{x}} then {{y\n</think>\n\n{ANSWER}",
        f"<Thinking>well</Thinking>\n{ANSWER}",
        f"It may be {DRAFT}, I think.\n</think>\n{ANSWER}",
        f"<think>It may be {{so}}.\n{ANSWER}",
        f"{DRAFT}\n{ANSWER}",
        f"{ANSWER}\n{DRAFT[:12]}",
        f'{ANSWER}\n{{"note": "done"}}',
        f'{{"json": {ANSWER}}}',
        f'{{ "the \\"answer\\"" :\n {ANSWER} }}',
    ],
)
def test_the_answer_is_found_and_not_changed(text: str) -> None:
    assert the_answer(text, FIELDS) == ANSWER


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I cannot say.",
        '{"note": "no plan"}',
        f'{{"one": {ANSWER}, "two": {DRAFT}}}',  # which of them?
        f'{{"a": {{"b": {ANSWER}}}}}',
        ANSWER[:-1],
        ANSWER[:-10],
        f"<think>It may be {DRAFT}, but then",
        "[1, 2]",
        "{'plan': {}}",
        '{"plan": ',
        "{" * 2000,
    ],
)
def test_what_is_not_clear_is_no_answer(text: str) -> None:
    assert the_answer(text, FIELDS) is None


def test_the_inside_of_an_answer_that_is_not_closed_is_not_taken_for_it() -> None:
    inner = '{"scope": "x", "plan": {"look": true}}'
    assert the_answer(f'{{"plan": {inner}}}', FIELDS) == f'{{"plan": {inner}}}'
    assert the_answer(f'{{"plan": {inner}', FIELDS) is None


def test_of_two_answers_it_is_the_whole_last_one_and_no_mixture() -> None:
    first, last = '{"plan": {"a": 1, "b": 2}}', '{"plan": {"a": 3}}'
    assert the_answer(first + last, FIELDS) == last


@pytest.mark.parametrize("text", [ANSWER, f"Look: {ANSWER}", "no thoughts", "", "a <b> c", "```<think>```"])
def test_text_without_thoughts_before_it_stays_as_it_is(text: str) -> None:
    assert without_thoughts(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "<think>let me see",
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


WORDS = st.text(st.characters(exclude_characters="<"))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)


@given(JSON, JSON, st.booleans())
def test_whatever_is_in_it_comes_out_again(value: object, before: object, fenced: bool) -> None:
    text = json.dumps({"plan": value})
    fence = "```" if fenced else ""
    drafted = json.dumps({"plan": before})
    assert the_answer(f"<think>{drafted}</think>{fence}{text}{fence}", FIELDS) == text
    assert the_answer(f"{drafted}\n{text}", FIELDS) == text
    assert list(complete_objects(f"{drafted} {text}")) == [drafted, text]
    assert not cut_short(text)


@given(st.text())
def test_any_text_is_taken(text: str) -> None:
    the_answer(text, FIELDS)
    cut_short(text)
    assert without_thoughts(text) in text
