"""Options and the form of the answer, parsed from a question."""

import time
from pathlib import Path
from string import ascii_uppercase
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agenticiqa.programs.questions.options import parse_options, question_part
from agenticiqa.programs.questions.query_type import detect_query_type
from agenticiqa.programs.questions.scale import stated_scale
from agenticiqa.signatures.types import QueryType

TABLE = yaml.safe_load(Path(__file__).with_name("question_cases.yaml").read_text(encoding="utf-8"))
FORMS = TABLE.pop("forms")
CASES = [case for cases in TABLE.values() for case in cases]
ABC = {"A": "Sharp", "B": "A bit soft", "C": "Very blurry"}


@pytest.mark.parametrize("style", ["{}) {}", "{}. {}", "({}) {}", "{}: {}", "{}){}"])
@pytest.mark.parametrize("between", [" ", "\n", ", ", "; ", "\n\n", "\n- "])
@pytest.mark.parametrize("lower", [False, True])
def test_lettered_options_are_read_in_every_style_inline_and_one_per_line(
    style: str, between: str, lower: bool
) -> None:
    options = between.join(style.format(letter.lower() if lower else letter, text) for letter, text in ABC.items())
    query = f"How sharp is the sky?{between if between.startswith(chr(10)) else ' '}{options}"
    assert parse_options(query) == ABC
    assert question_part(query).rstrip(" -") == "How sharp is the sky?"


@pytest.mark.parametrize("count", [2, 5, 26])
def test_two_to_twenty_six_options_are_read(count: int) -> None:
    expected = {letter: f"choice {letter.lower()}{letter.lower()}" for letter in ascii_uppercase[:count]}
    assert parse_options("Which?\n" + "\n".join(f"{letter}. {text}" for letter, text in expected.items())) == expected


@given(st.lists(st.from_regex(r"[a-z]{3,9}( [a-z]{3,9}){0,3}", fullmatch=True), min_size=2, max_size=8))
def test_options_are_returned_as_written(texts: list[str]) -> None:
    lines = "\n".join(f"{letter}. {text}" for letter, text in zip(ascii_uppercase, texts, strict=False))
    texts = [text.removesuffix(" or") for text in texts]
    if not any(text.endswith(" and") for text in texts):
        assert list(parse_options(f"Which one?\n{lines}").values()) == texts


@pytest.mark.parametrize("case", CASES, ids=[case["query"][:80] for case in CASES])
def test_options_and_questions_of_users_and_benchmarks(case: dict[str, Any]) -> None:
    query, options = case["query"], case["options"]
    assert parse_options(query) == dict(zip(ascii_uppercase, options, strict=False))
    assert question_part(query) == case.get("rest", query)
    assert (detect_query_type(query) is QueryType.MCQ) == bool(options)
    assert (detect_query_type(query, "Other") is QueryType.MCQ) == bool(options)


@pytest.mark.parametrize(
    ("query", "ends"),
    [
        ("How good is the quality outta ten?", (0, 10)),
        ("I grade color retention from 0, bleached, up to 20, like new. Which grade is it?", (0, 20)),
        ("Rate the quality from 1, awful, to 7, perfect", (1, 7)),
    ],
)
def test_a_scale_may_be_stated_in_many_words(query: str, ends: tuple[float, float]) -> None:
    scale = stated_scale(query)
    assert scale
    assert (scale.low, scale.high) == ends


@pytest.mark.parametrize("query", ["\n" * 3999 + "?", "A " * 2000, "Please " * 570, "1. " * 1300, "(A)" * 1300])
def test_the_longest_queries_are_parsed_quickly(query: str) -> None:
    started = time.process_time()
    parse_options(query)
    assert time.process_time() - started < 2


@pytest.mark.parametrize("case", FORMS, ids=[case["query"] for case in FORMS])
def test_the_form_of_the_answer(case: dict[str, str]) -> None:
    assert detect_query_type(case["query"]) == case["form"]


def test_a_question_that_is_not_about_quality_is_never_scored() -> None:
    for query in ("Rate the aesthetic quality", "Rate this", "Assess the mood", "What is the quality score?"):
        assert detect_query_type(query, "Other") is QueryType.EXPLANATION


@given(st.text(alphabet="AaBbCc.):( \n?orYesNo,/", max_size=60))
def test_any_text_has_zero_or_two_to_twenty_six_options_and_some_question(query: str) -> None:
    options = parse_options(query)
    assert len(options) != 1
    assert list(options) == list(ascii_uppercase[: len(options)])
    assert all(text.strip() == text != "" for text in options.values())
    assert bool(question_part(query)) == bool(query.strip())
    assert (detect_query_type(query) is QueryType.MCQ) == bool(options)
