"""The answer in a model's text: found in any form if complete, and never combined from two."""

import json
from typing import Any

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenticiqa.signatures.answers.answer_fields import read_answer, read_fields
from agenticiqa.signatures.answers.json_text import (
    Unreadable,
    cut_short,
    ends_in_thoughts,
    in_plain_marks,
    json_values,
    without_thoughts,
)
from agenticiqa.signatures.answers.model_answer import ModelAnswer
from agenticiqa.signatures.replan import DecideReplan, Decision
from agenticiqa.signatures.summarizer import Answer

ANSWER = {"final_answer": "the {sky}", "quality_reasoning": 'A sign says "}" and <think>.'}
TEXT = json.dumps(ANSWER)
DRAFT = '{"final_answer": "the car", "quality_reasoning": "?"}'


def read(text: str) -> dict[str, Any]:
    return read_answer(text, "answer", Answer).model_dump()


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        f"\n {TEXT}\n",
        f"```json\n{TEXT}\n```",
        f"Here it is:\n```\n{TEXT}\n```\nI hope that it helps {{you}}.",
        f"<think>{DRAFT} or so</think>{TEXT}",
        f"<think>\nif {{x}} then {{y\n</think>\n\n{TEXT}",
        f"It may be {DRAFT}, I think.\n</think>\n{TEXT}",
        f"<think>It may be {{so}}.\n{TEXT}",
        f"{DRAFT}\nWait, that was the wrong object:\n{TEXT}",
        f"{TEXT}\n{DRAFT[:12]}",
        f'{TEXT}\n{{"note": "done"}}',
        f'{{"json": {TEXT}}}',
        f'{{ "the \\"answer\\"" :\n {TEXT} }}',
        f'{{"a": {{"b": {TEXT}}}}}',
        f"[{TEXT}]",
        f"[{TEXT}, {TEXT}]",
        json.dumps({"answer": TEXT}),
        json.dumps(TEXT),
        repr(ANSWER),
        repr({"answer": ANSWER}),
    ],
)
def test_the_answer_is_found_and_not_changed(text: str) -> None:
    assert read(text) == ANSWER


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "the answer was empty"),
        ("I cannot say.", "the answer was not a JSON object"),
        ("[1, 2]", "the answer was not a JSON object"),
        ('{"note": "none"}', "the JSON object has no field 'answer'"),
        ('{"answer": {"final_answer": "x"}}', "quality_reasoning: Field required"),
        (f'{{"one": {TEXT}, "two": {DRAFT}}}', "there are two different answers"),
        (f"{DRAFT}\n{TEXT}", "there are two different answers"),
        (f"[{TEXT}, {DRAFT}]", "there are two different answers"),
        ('{"final_answer": "a", "final_answer": "b", "quality_reasoning": "c"}', "is there twice"),
        ('{"Final Answer": "a", "final_answer": "b", "quality_reasoning": "c"}', "is there twice"),
        (f'{{"answer": {TEXT[:-10]}', "the JSON object is not complete"),
        (f"<think>It may be {DRAFT}, but then", "ends inside its reasoning"),
        ('{"answer": ', "the JSON object is not complete"),
        (f'{{"draft": {DRAFT}, "answer": {{"final_answer": "the', "the JSON object is not complete"),
    ],
)
def test_an_unclear_text_is_no_answer(text: str, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        read(text)


def test_a_text_field_beside_the_typed_answer_is_kept_or_empty() -> None:
    signature = DecideReplan.prepend("reasoning", dspy.OutputField(), str)
    decision = '{"need_replan": false, "replan_reason": ""}'
    both = read_fields(f'{{"reasoning": "because", "decision": {decision}}}', signature)
    alone = read_fields(decision, signature)
    plain = Decision(need_replan=False, replan_reason="")
    assert both is not None
    assert alone is not None
    assert (both["reasoning"], both["decision"].model_dump()) == ("because", plain.model_dump())
    assert (alone["reasoning"], alone["decision"].model_dump()) == ("", plain.model_dump())


def test_a_signature_without_one_typed_answer_is_not_read() -> None:
    assert read_fields("{}", dspy.Signature("question -> answer")) is None


WORDS = st.text(st.characters(exclude_characters="<", exclude_categories=["Cs"]), min_size=1).filter(
    lambda text: bool(text.strip())
)


@given(WORDS, WORDS, st.booleans())
def test_any_content_is_read_back_unchanged(answer: str, why: str, fenced: bool) -> None:
    text = json.dumps({"final_answer": answer, "quality_reasoning": why})
    fence = "```" if fenced else ""
    wanted = {"final_answer": answer.strip(), "quality_reasoning": why.strip()}
    assert read(f"<think>{DRAFT}</think>{fence}{text}{fence}") == wanted
    assert read(f'{DRAFT}\nFinal: {{"answer": {text}}}') == wanted
    assert [value.value for value in json_values(f"{DRAFT} {text}")] == [json.loads(DRAFT), json.loads(text)]


WHOLE = '{"plan": {"scope": ["a {b}", "<think>"], "note": "say \\"}\\" twice"}}'


@pytest.mark.parametrize("text", [WHOLE, f"Look: {WHOLE}", "no thoughts", "", "a <b> c", "```<think>```"])
def test_text_without_leading_thoughts_is_unchanged(text: str) -> None:
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
def test_thoughts_in_the_marks_of_any_model_family_are_removed(thoughts: str) -> None:
    assert without_thoughts(thoughts + WHOLE).strip() == WHOLE


@pytest.mark.parametrize("text", ["<think>let me see", "[THINK]so", "<|channel|>analysis<|message|>so"])
def test_thoughts_that_never_end_are_truncated_answers(text: str) -> None:
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
def test_an_answer_that_ends_inside_a_value_is_truncated(text: str) -> None:
    assert cut_short(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no JSON at all",
        WHOLE,
        f"{WHOLE} and so on",
        '{"plan": {"scope": "x"',
        '{"plan": {"rows": [1, 2]',
        '```json\n{"plan": {"rows": [1, 2]\n```',
        "{'plan': {'scope': 'x'}}",
        "{'plan': {'note': 'a 5\" screen'}}",
        "<think>well</think>",
    ],
)
def test_an_answer_that_lacks_only_closing_braces_is_complete(text: str) -> None:
    assert not cut_short(text)


@given(st.text())
def test_any_text_is_accepted(text: str) -> None:
    assert without_thoughts(text) in text
    assert not cut_short(json.dumps({"note": text}))


TYPOGRAPHIC = {
    "full-width colons": '{"level"： "Good", "reason"："Sharp, 2：1", "shares"：[0.5, 1]}',
    "full-width commas": '{"level": "Good"， "reason": "Sharp, 2：1"，"shares": [0.5， 1]}',
    "full-width braces": '｛"level": "Good", "reason": "Sharp, 2：1", "shares": ［0.5, 1］｝',
    "all full-width": "｛＂level＂：＂Good＂，＂reason＂：＂Sharp, 2：1＂，＂shares＂：［0.5，1］｝",
    "guillemets": "{«level»: «Good», «reason»: «Sharp, 2：1», «shares»: [0.5, 1]}",
    "reversed guillemets": "{»level«: »Good«, »reason«: »Sharp, 2：1«, »shares«: [0.5, 1]}",
    "English": "{“level”: “Good”, “reason”: “Sharp, 2：1”, “shares”: [0.5, 1]}",
    "German": "{„level“: „Good“, „reason“: „Sharp, 2：1“, „shares“: [0.5, 1]}",
    "single": "{‘level’: ‘Good’, ‘reason’: ‘Sharp, 2：1’, ‘shares’: [0.5, 1]}",
    "Japanese": "{「level」: 「Good」, 「reason」: 「Sharp, 2：1」, 「shares」: [0.5, 1]}",
    "HTML": '{"level": "Good", "reason": "Sharp, 2：1", "shares": [0.5, 1]}'.replace('"', "&quot;"),
    "numbers of HTML": '{"level": "Good", "reason": "Sharp, 2：1", "shares": [0.5, 1]}'.replace('"', "&#34;"),
    "single guillemets": "{‹level›: ‹Good›, ‹reason›: ‹Sharp, 2：1›, ‹shares›: [0.5, 1]}",
    "small colons": '{"level"﹕"Good", "reason"∶"Sharp, 2：1", "shares": [0.5, 1]}',
    "named quotation marks": '{"level": "Good", "reason": "Sharp, 2：1", "shares": [0.5, 1]}'.replace('"', "&laquo;"),
    "a closing mark": '{"level": "Good”, "reason": "Sharp, 2：1", "shares": [0.5, 1]}',
    "a last closing mark": '{"shares": [0.5, 1], "level": "Good", "reason": "Sharp, 2：1”}',
    "an opening mark": '{"level": “Good", "reason": "Sharp, 2：1", "shares": [0.5, 1]}',
    "a closing mark of a key": '{"level”: "Good", "reason": "Sharp, 2：1", "shares": [0.5, 1]}',
}


class Typed(ModelAnswer):
    level: str
    reason: str
    shares: list[float]


@pytest.mark.parametrize("form", TYPOGRAPHIC)
@pytest.mark.parametrize(
    "around", ["{}", "Here «it» is, “so”:\n```json\n{}\n```\n", "<think>“a”: {{}}</think>{} 「end」"]
)
def test_typographic_marks_of_json_are_read(form: str, around: str) -> None:
    text = around.format(TYPOGRAPHIC[form])
    answer = read_answer(text, "answer", Typed)
    assert answer.model_dump() == {"level": "Good", "reason": "Sharp, 2：1", "shares": [0.5, 1.0]}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"level": "Good", "reason": "a “b”, c", "shares": [1]}', "a “b”, c"),
        ('{“level”: “Good”, “reason”: “a "b" c”, “shares”: [1]}', 'a "b" c'),
        ("{«level»: «Good», «reason»: «dogs’ fur：“b”, c», «shares»: [1]}", "dogs’ fur：“b”, c"),
        (r'{"level"： "Good", "reason": "a \"b\" c", "shares": [1]}', 'a "b" c'),
        ("{&apos;level&apos;: &apos;Good&apos;, &#39;reason&#39;: &#39;a, b&#39;, &#39;shares&#39;: [1]}", "a, b"),
        ("{“level”: “Good”, “reason”: “《a》、‹b›”, “shares”: [1]}", "《a》、‹b›"),
    ],
)
def test_typographic_marks_inside_of_strings_are_kept(text: str, reason: str) -> None:
    assert read_answer(text, "answer", Typed).model_dump()["reason"] == reason


@given(st.text())
def test_valid_json_keeps_its_marks(text: str) -> None:
    valid = json.dumps({"note": text}, ensure_ascii=False)
    assert in_plain_marks(valid) == valid
