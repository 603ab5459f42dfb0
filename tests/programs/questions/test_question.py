"""Options, and the form of the answer, as read off the question."""

import time
from pathlib import Path
from string import ascii_uppercase
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agenticiqa.programs.questions.options import numbers_options, parse_options, question_part
from agenticiqa.programs.questions.query_type import detect_query_type
from agenticiqa.programs.questions.scale import stated_scale
from agenticiqa.signatures.types import QueryType

TABLE = yaml.safe_load(Path(__file__).with_name("question_cases.yaml").read_text(encoding="utf-8"))
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
def test_options_come_back_as_they_were_written(texts: list[str]) -> None:
    lines = "\n".join(f"{letter}. {text}" for letter, text in zip(ascii_uppercase, texts, strict=False))
    texts = [text.removesuffix(" or") for text in texts]
    if not any(text.endswith(" and") for text in texts):
        assert list(parse_options(f"Which one?\n{lines}").values()) == texts


@pytest.mark.parametrize(
    ("query", "options", "rest"),
    [
        ("Is quality: A) Excellent B) Good C) Fair?", ["Excellent", "Good", "Fair"], "Is quality:"),
        ("Is the image A) sharp or B) blurry?", ["sharp", "blurry"], "Is the image"),
        ("Is it good? A. Yes B. No. Explain your choice.", ["Yes", "No"], "Is it good? Explain your choice."),
        ("Noisy?\nA.Yes\nB.No\nAnswer with the letter.", ["Yes", "No"], "Noisy?"),
        ("By A. Smith. Good? A. Yes B. No", ["Yes", "No"], "By A. Smith. Good?"),
        ("The 8x8 squares are A. visible or B. not visible", ["visible", "not visible"], "The 8x8 squares are"),
        ("Rich in vitamin C) or not? A) yes B) no", ["yes", "no"], "Rich in vitamin C) or not?"),
        ("Q?\nA. x1 B. y1\nC. z1 D. w1", ["x1", "y1", "z1", "w1"], "Q?"),
        ("A) one (b) two\nB) three", ["one (b) two", "three"], "A) one (b) two\nB) three"),
        ("Option A: sharp, option B: blurry", ["sharp", "blurry"], "Option A: sharp, option B: blurry"),
        ("How is it? Choose from: high, medium or low.", ["high", "medium", "low"], "How is it?"),
        ("How is it? Choose from high, medium and low.", ["high", "medium", "low"], "How is it?"),
        ("Choose between sharp and blurry.", ["sharp", "blurry"], "Choose between sharp and blurry."),
        ("How is it?\nOptions:\n- good\n- bad", ["good", "bad"], "How is it?"),
        ("How is it? Select one: sharp / blurry / noisy", ["sharp", "blurry", "noisy"], "How is it?"),
        ("Pick one of 1, 2 or 3", ["1", "2", "3"], "Pick one of 1, 2 or 3"),
        ("Is it sharp? Yes or No?", ["Yes", "No"], "Is it sharp?"),
        ("Is it sharp (yes/no)", ["yes", "no"], "Is it sharp"),
        ("Is it sharp? Yes, No", ["Yes", "No"], "Is it sharp?"),
        ("Is it sharp?\nNo\nYes", ["No", "Yes"], "Is it sharp?"),
        ("Is it sharp? Answer yes or no.", ["yes", "no"], "Is it sharp?"),
        ("Yes or no: is it sharp?", ["Yes", "no"], "is it sharp?"),
    ],
)
def test_the_options_and_what_is_left_without_them(query: str, options: list[str], rest: str) -> None:
    assert list(parse_options(query).values()) == options
    assert list(parse_options(query)) == list(ascii_uppercase[: len(options)])
    assert question_part(query) == rest
    assert detect_query_type(query) is detect_query_type(query, "Other") is QueryType.MCQ


def test_the_table_has_as_many_questions_as_promised() -> None:
    assert len(TABLE["first"]) >= 30 <= len(TABLE["second"])


@pytest.mark.parametrize("case", CASES, ids=[case["query"][:80] for case in CASES])
def test_options_and_question_of_people_and_benchmarks(case: dict[str, Any]) -> None:
    assert list(parse_options(case["query"]).values()) == case["options"]
    assert question_part(case["query"]) == case.get("rest", case["query"])
    assert (detect_query_type(case["query"]) is QueryType.MCQ) == bool(case["options"])


@pytest.mark.parametrize(
    ("query", "numbered"),
    [("Which?\n1) Blur\n2) Noise", True), ("Which?\nA) 1\nB) 2", False), ("Is it sharp?", False)],
)
def test_numbered_options_are_known_as_such(query: str, numbered: bool) -> None:
    assert numbers_options(query) is numbered


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("How blurry is it? Do not explain.", QueryType.EXPLANATION),
        ("Rate the quality. Do not explain why.", QueryType.SCORING),
        ("Measure the noise. Think step by step and describe nothing.", QueryType.SCORING),
        ("Measure the noise. Do not explain what you see.", QueryType.SCORING),
        ("Measure the noise.\nAnswer the question using a single word or phrase.", QueryType.SCORING),
        ("Spot the difference in quality between mine and the original", QueryType.EXPLANATION),
    ],
)
def test_how_to_answer_is_not_what_is_asked(query: str, expected: QueryType) -> None:
    assert detect_query_type(query) is expected


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
def test_the_longest_queries_are_read_in_time(query: str) -> None:
    started = time.process_time()
    parse_options(query)
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    "query",
    [
        "Is this a good image?",
        "A nice photo. Is it sharp?",
        "Is the portrait by A. Smith sharp?",
        "Does the portrait of A. Smith by B. Jones look sharp?",
        "Is the label of vitamin C) readable?",
        "Rate the U.S.A. style of this.",
        "Was it taken at 5 a.m. or b. later?",
        "How noisy are (a) the sky and (b) the sea?",
        "Is image (A) sharper than image (B)?",
        "Region A: sky, region B: grass. Which is noisier?",
        "Is it A) good?",
        "Good? A. Yes B. No D. Perhaps",
        "Choose from 1 to 5.",
        "Yes, no doubt it is sharp",
        "There is no noise, is there?",
        "What options do I have to sharpen it?",
        "",
    ],
)
def test_what_only_looks_like_options_is_none(query: str) -> None:
    assert parse_options(query) == {}
    assert question_part(query) == query
    assert detect_query_type(query) is not QueryType.MCQ


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Rate the perceptual quality of this image", QueryType.SCORING),
        ("What is the quality score?", QueryType.SCORING),
        ("Assess the image quality", QueryType.SCORING),
        ("How is the image quality?", QueryType.SCORING),
        ("How's the quality?", QueryType.SCORING),
        ("How good is this image?", QueryType.SCORING),
        ("How would you rate the clarity?", QueryType.EXPLANATION),
        ("Could you rate this?", QueryType.SCORING),
        ("Measure the noise.", QueryType.SCORING),
        ("Rate the quality and explain why.", QueryType.SCORING),
        ("Why is the quality score so low?", QueryType.EXPLANATION),
        ("Explain how you rate the quality.", QueryType.EXPLANATION),
        ("Describe the image.", QueryType.EXPLANATION),
        ("What is wrong?", QueryType.EXPLANATION),
        ("Evaluate the claim that it is noisy. Reply yes if it holds.", QueryType.EXPLANATION),
        ("Before I score anything: is the reference blurry?", QueryType.EXPLANATION),
        ("Is it any good? Rate its quality.", QueryType.SCORING),
        ("Is the vehicle blurry?", QueryType.EXPLANATION),
        ("dose it hav more grian then the othr", QueryType.EXPLANATION),
        ("Your verdict, please.", QueryType.SCORING),
        ("I would like to have your verdict on this photograph.", QueryType.SCORING),
        ("How blurry is the vehicle?", QueryType.EXPLANATION),
        ("How does the compression rate affect the quality?", QueryType.EXPLANATION),
        ("Is this an accurate picture of high quality?", QueryType.EXPLANATION),
    ],
)
def test_the_form_of_the_answer_about_quality(query: str, expected: QueryType) -> None:
    assert detect_query_type(query) is expected


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
