"""The letter that an answer means: a table of answers, and properties of all texts."""

from pathlib import Path
from string import ascii_uppercase

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agenticiqa.signatures.answers.letters import letter_of

TABLE = yaml.safe_load(Path(__file__).with_name("letter_cases.yaml").read_text(encoding="utf-8"))
OPTIONS = TABLE.pop("options")
CASES = [case for cases in TABLE.values() for case in cases]

texts = st.lists(st.from_regex(r"[b-z]{3,9}( [b-z]{3,9}){0,2}", fullmatch=True), min_size=2, max_size=8, unique=True)
FORMS = ["{0}", "({0})", "**{0}**", "{0}. {1}", "{0}) {1}", "{1}", "{1}.", "The answer is ({0}).", "\\boxed{{{0}}}"]


@pytest.mark.parametrize("case", CASES, ids=[repr(case["answer"]) for case in CASES])
def test_an_answer_means_one_letter_or_is_not_read(case: dict[str, str | None]) -> None:
    answer = case["answer"]
    assert answer is not None
    assert letter_of(answer, OPTIONS[case["options"]]) == case["letter"]


@given(offered=texts, chosen=st.integers(0, 7), form=st.sampled_from(FORMS))
def test_every_form_of_every_option_is_read(offered: list[str], chosen: int, form: str) -> None:
    options = dict(zip(ascii_uppercase, offered, strict=False))
    letter = list(options)[chosen % len(options)]
    assert letter_of(form.format(letter, options[letter]), options) == letter


@given(offered=texts, form=st.sampled_from(["{0}. {1}", "{0}) {1}", "({0}) {1}", "The answer is {0}: {1}"]))
def test_a_letter_with_the_text_of_another_option_is_not_read(offered: list[str], form: str) -> None:
    options = dict(zip(ascii_uppercase, offered, strict=False))
    assert letter_of(form.format("A", options["B"]), options) is None


@given(st.text(max_size=60))
def test_any_text_means_an_offered_letter_or_none(answer: str) -> None:
    options = {"A": "Noise", "B": "Blur", "C": "No", "D": "!", "E": "?"}
    assert letter_of(answer, options) in (*options, None)
