"""The levels' probabilities read off the tokens of an answer."""

import math
from types import SimpleNamespace
from typing import Any

import pytest

from agenticiqa.programs.token_levels import level_probabilities_from_tokens

BEFORE, AFTER = ['{"', "assess", "ment", '": {"', "quality", "_level", '":'], ['", "', "quality_probs", '": {}}}']


def token(text: str, alternatives: dict[str, float] | None = None) -> dict[str, Any]:
    """A token with its alternatives' probabilities, in the form of an OpenAI-compatible server."""
    top = [{"token": name, "logprob": math.log(p), "bytes": None} for name, p in (alternatives or {text: 1.0}).items()]
    return {"token": text, "logprob": top[0]["logprob"], "bytes": None, "top_logprobs": top}


def answer(*value: dict[str, Any], before: list[str] = BEFORE) -> dict[str, Any]:
    return {"content": [*map(token, before), *value, *map(token, AFTER)]}


def test_the_alternatives_of_the_level_token_are_the_distribution() -> None:
    said = answer(token(' "'), token("Good", {"Good": 0.6, "Fair": 0.3, "Excellent": 0.1}))
    assert level_probabilities_from_tokens(said) == pytest.approx({1: 0, 2: 0, 3: 0.3, 4: 0.6, 5: 0.1})


def test_probabilities_sum_to_one_also_when_some_fall_on_no_level() -> None:
    said = answer(token(' "'), token("Good", {"Good": 0.5, "Fair": 0.25, "Nice": 0.2}))
    p = level_probabilities_from_tokens(said)
    assert p == pytest.approx({1: 0, 2: 0, 3: 1 / 3, 4: 2 / 3, 5: 0})


def test_a_level_counts_by_any_beginning_of_its_name_and_in_any_case() -> None:
    said = answer(token(' "'), token("Ex", {"Ex": 0.4, "excellent": 0.2, "E": 0.1, "Po": 0.2, "POOR": 0.1}))
    assert level_probabilities_from_tokens(said) == pytest.approx({1: 0, 2: 0.3, 3: 0, 4: 0, 5: 0.7})


@pytest.mark.parametrize(
    "value",
    [
        [token(' "Good', {' "Good': 0.9, ' "Bad': 0.1})],
        [token(' "'), token("Good", {"Good": 0.9, "Bad": 0.1})],
        [token(" "), token('"'), token("Go", {"Go": 0.9, "Ba": 0.1}), token("od")],
        [token(' "'), token('Good",', {'Good",': 0.9, "Bad": 0.1})],
    ],
)
def test_the_level_is_found_however_the_text_is_cut_into_tokens(value: list[dict[str, Any]]) -> None:
    assert level_probabilities_from_tokens(answer(*value)) == pytest.approx({1: 0.1, 2: 0, 3: 0, 4: 0.9, 5: 0})


def test_spaces_and_lines_between_name_and_value_do_not_matter() -> None:
    said = answer(token('": \n  "'), token("Fair"), before=['{"assessment": {\n  "quality_level'])
    assert level_probabilities_from_tokens(said) == pytest.approx({1: 0, 2: 0, 3: 1, 4: 0, 5: 0})


def test_of_two_answers_the_last_one_counts_as_it_does_for_the_parser() -> None:
    first, second = answer(token(' "'), token("Good")), answer(token(' "'), token("Bad"))
    said = {"content": [*first["content"], *second["content"]]}
    p = level_probabilities_from_tokens(said)
    assert p is not None
    assert p[1] == pytest.approx(1)


def test_objects_serve_as_well_as_mappings() -> None:
    def as_object(value: Any) -> Any:
        if isinstance(value, dict):
            return SimpleNamespace(**{name: as_object(item) for name, item in value.items()})
        return [as_object(item) for item in value] if isinstance(value, list) else value

    said = answer(token(' "'), token("Good", {"Good": 0.6, "Fair": 0.4}))
    assert level_probabilities_from_tokens(as_object(said)) == level_probabilities_from_tokens(said)


def test_without_alternatives_the_token_itself_counts() -> None:
    said = answer(token(' "'), {**token("Good", {"Good": 0.8}), "top_logprobs": []})
    assert level_probabilities_from_tokens(said) == pytest.approx({1: 0, 2: 0, 3: 0, 4: 1, 5: 0})


@pytest.mark.parametrize(
    "nothing",
    [
        None,
        {},
        {"content": None},
        {"content": []},
        SimpleNamespace(content=None),
        {"content": [token("Good")]},
        {"content": [*map(token, BEFORE), token(' "')]},
        {"content": [*map(token, BEFORE), token(" 4")]},
        answer(token(' "'), token("Good", {"Nice": 0.6, "Good": 0.4})),
        answer(token(' "'), token("", {"": 1.0})),
    ],
)
def test_where_no_level_is_told_there_is_no_distribution(nothing: Any) -> None:
    assert level_probabilities_from_tokens(nothing) is None
