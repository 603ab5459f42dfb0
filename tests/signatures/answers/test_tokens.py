"""The probabilities of the levels, read from the tokens of an answer."""

import math
import pickle
from types import SimpleNamespace
from typing import Any

import pytest
from dspy import lm15
from hypothesis import given
from hypothesis import strategies as st

from agenticiqa.signatures.answers.tokens import (
    LevelReading,
    level_in_tokens,
    level_probabilities_from_tokens,
    level_token_only,
)

BEFORE, AFTER = ['{"', "assess", "ment", '": {"', "quality", "_level", '":'], ['", "', "quality_probs", '": {}}}']


def token(text: str, alternatives: dict[str, float] | None = None) -> dict[str, Any]:
    """Return a token with the probabilities of its alternatives, as an OpenAI-compatible server returns it."""
    top = [{"token": name, "logprob": math.log(p), "bytes": None} for name, p in (alternatives or {text: 1.0}).items()]
    top += [{"token": "~", "logprob": -40.0, "bytes": None}] if len(top) == 1 else []  # servers list at least two
    own = next((each["logprob"] for each in top if each["token"] == text), -20.0)
    return {"token": text, "logprob": own, "bytes": None, "top_logprobs": top}


def answer(*value: dict[str, Any], before: list[str] = BEFORE) -> dict[str, Any]:
    return {"content": [*map(token, before), *value, *map(token, AFTER)]}


def read(said: Any) -> LevelReading:
    found = level_probabilities_from_tokens(said)
    assert found is not None
    return found


def levels(said: Any) -> dict[int, float]:
    """Return the levels with a share above zero."""
    p = read(said).probabilities
    assert p is not None
    assert list(p) == [1, 2, 3, 4, 5]
    assert math.fsum(p.values()) == pytest.approx(1)
    return {level: share for level, share in p.items() if share}


def test_the_alternatives_of_the_level_token_are_normalized_over_the_levels() -> None:
    said = answer(token(' "'), token("Good", {"Good": 0.6, "Fair": 0.3, "Excellent": 0.1}))
    assert (levels(said), read(said).mass) == (pytest.approx({3: 0.3, 4: 0.6, 5: 0.1}), pytest.approx(1))
    said = answer(token(' "'), token("Good", {"Good": 0.5, "Fair": 0.25, "Nice": 0.2}))
    assert (levels(said), read(said).mass) == (pytest.approx({3: 1 / 3, 4: 2 / 3}), pytest.approx(0.75))


def test_a_letter_is_a_choice_among_a_to_e_and_no_beginning_of_a_word() -> None:
    before = ['{"', "final_answer", '": "']
    said = answer(token("C", {"C": 0.4, "B": 0.2, "E": 0.2, "Excellent": 0.1, "Bad": 0.1}), before=before)
    assert (levels(said), read(said).mass) == (pytest.approx({1: 0.25, 3: 0.5, 4: 0.25}), pytest.approx(0.8))
    assert level_in_tokens(answer(token("C. Fair"), before=before)) == 3
    said = answer(token('"'), token("Good", {"Good": 0.9, "Fair": 0.1}), before=['{"final_answer": "B", ', *BEFORE[4:]])
    assert max(levels(said)) == 4, "an answer with a level may have further keys"


SPELLINGS = {
    5: ["Excellent", "excellent", " EXCELLENT", "E", "Ex", '"Excell', 'Excellent",', "5", '5"', "5,", "▁Excellent"],
    4: ["Good", "good", ' "Good', "G", 'Good"', 'Good",', "4", '"4"', " 4}", "ĠGood"],
    3: ["Fair", "FAIR", "F", "Fa", ' "fair', "3"],
    2: ["Poor", "poor", "P", 'Poor"}', "2"],
    1: ["Bad", "bad", "B", "\n  Bad", "1"],
}  # fmt: skip


@pytest.mark.parametrize(("level", "text"), [(level, text) for level, texts in SPELLINGS.items() for text in texts])
def test_every_spelling_of_a_level_counts_for_it(level: int, text: str) -> None:
    said = answer(token(' "'), token("Fair", {"Fair": 0.5, text: 0.4} if text != "Fair" else {"Fair": 0.9}))
    assert levels(said) == pytest.approx({3: 1.0} if level == 3 else {3: 5 / 9, level: 4 / 9})


def test_spellings_of_one_level_add_up() -> None:
    said = answer(token(' "'), token("Ex", {"Ex": 0.4, "excellent": 0.2, "E": 0.1, "5": 0.1, "Po": 0.1, "POOR": 0.1}))
    assert levels(said) == pytest.approx({2: 0.2, 5: 0.8})


@pytest.mark.parametrize("text", ["Goodness", "Extreme", "good-ish", "45", "0", "6", "-4", "null", '"', "{", "", "Ġ"])
def test_words_that_resemble_a_level_do_not_count(text: str) -> None:
    said = answer(token(' "'), token("Fair", {"Fair": 0.7, text: 0.3}))
    assert levels(said) == {3: 1.0}
    assert read(said).mass == pytest.approx(0.7)


@pytest.mark.parametrize(
    "value",
    [
        [token(' "Good', {' "Good': 0.9, ' "Bad': 0.1})],
        [token(' "'), token("Good", {"Good": 0.9, "Bad": 0.1})],
        [token(" "), token('"'), token("Go", {"Go": 0.9, "Ba": 0.1}), token("od")],
        [token(' "G', {' "G': 0.9, ' "B': 0.1}), token("oo"), token("d")],
        [token(' "'), token('Good",', {'Good",': 0.9, "Bad": 0.1})],
        [token(' "'), token(""), token("Good", {"Good": 0.9, "Bad": 0.1}), token("")],
        [token(" "), token("4", {"4": 0.9, "1": 0.1})],
        [token(" 4", {" 4": 0.9, " 1": 0.1})],
        [token(' "'), token("4", {"4": 0.9, "Bad": 0.1})],
        [token('\n    "'), token("good", {"good": 0.9, "BAD": 0.1})],
    ],
)
def test_the_level_is_found_with_any_tokenization(value: list[dict[str, Any]]) -> None:
    assert levels(answer(*value)) == pytest.approx({1: 0.1, 4: 0.9})


@pytest.mark.parametrize(
    "tokens",
    [
        [token('{"quality'), token('_level": "Bad', {'_level": "Fair': 0.2, '_level": "Bad': 0.8})],
        [token('{\n  "quality_level'), token('": \n  "'), token("Bad", {"Bad": 0.8, "Fair": 0.2})],
    ],
)
def test_blanks_lines_and_the_fields_name_in_one_token_do_not_matter(tokens: list[dict[str, Any]]) -> None:
    assert levels({"content": tokens}) == pytest.approx({1: 0.8, 3: 0.2})


def test_the_last_of_two_answers_counts_as_in_the_parser() -> None:
    first, second = answer(token(' "'), token("Good")), answer(token(' "'), token("Bad"))
    assert levels({"content": [*first["content"], *second["content"]]}) == {1: 1.0}


def test_objects_are_accepted_like_mappings() -> None:
    def as_object(value: Any) -> Any:
        if isinstance(value, dict):
            return SimpleNamespace(**{name: as_object(item) for name, item in value.items()})
        return [as_object(item) for item in value] if isinstance(value, list) else value

    said = answer(token(' "'), token("Good", {"Good": 0.6, "Fair": 0.4}))
    assert level_probabilities_from_tokens(as_object(said)) == level_probabilities_from_tokens(said)


GOOD = token("Good", {"Good": 0.8})


@pytest.mark.parametrize(
    ("said", "why"),
    [
        *(
            ({**GOOD, "top_logprobs": top}, "gives no alternatives to the level's token")
            for top in ([], None, [{"token": "Good", "logprob": -0.2}])
        ),
        (token("Good", {"Good": 0.01, "Bad": 0.96, "Poor": 0.03}), "is not what its log-probabilities say"),
        (
            {**GOOD, "top_logprobs": [{"token": "Good", "logprob": 0.6}, {"token": "Fair", "logprob": 0.4}]},
            "sum to 3.31",
        ),
    ],
)
def test_tokens_without_a_distribution_are_not_used(
    said: dict[str, Any], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Tokens without alternatives, far less probable than one, or without log-probabilities."""
    assert level_probabilities_from_tokens(answer(token(' "'), said)) is None
    assert why in caplog.text


def test_a_sampled_token_outside_the_alternatives_counts() -> None:
    said = answer(token(' "'), {**token("Good", {"Fair": 0.6, "Poor": 0.3}), "logprob": math.log(0.1)})
    assert levels(said) == pytest.approx({2: 0.3, 3: 0.6, 4: 0.1})


@given(
    shares=st.dictionaries(
        st.sampled_from([text for texts in SPELLINGS.values() for text in texts] + ["Nice", "The", "{", "7"]),
        st.floats(1e-6, 1.0),
        min_size=1,
    )
)
def test_a_distribution_sums_to_one_for_any_alternatives(shares: dict[str, float]) -> None:
    total = math.fsum(shares.values())
    first = max(shares, key=lambda text: shares[text])
    said = answer(token(' "'), token(first, {text: share / total for text, share in shares.items()}))
    found = read(said)
    assert 0 <= found.mass <= 1
    assert (found.probabilities is None) == (found.mass < 0.5)
    if found.probabilities:
        assert math.fsum(found.probabilities.values()) == pytest.approx(1)
        assert all(0 <= p <= 1 for p in found.probabilities.values())


@pytest.mark.parametrize(
    ("value", "mass"),
    [(token("Good", {"Nice": 0.6, "Good": 0.4}), 0.4), (token("", {"": 1.0}), 0.0), (token("Nice"), 0.0)],
)
def test_less_than_half_the_probability_gives_a_warning_and_no_distribution(
    value: dict[str, Any], mass: float, caplog: pytest.LogCaptureFixture
) -> None:
    found = read(answer(token(' "'), value))
    assert found.probabilities is None
    assert found.mass == pytest.approx(mass)
    assert f"only {mass:.2f} of the level token's probability" in caplog.text


@pytest.mark.parametrize("logprob", [math.nan, None, "-0.1"])
def test_an_alternative_without_a_log_probability_is_skipped(logprob: Any) -> None:
    good = token("Good", {"Good": 0.6, "Fair": 0.2, "Poor": 0.2})
    good["top_logprobs"][1]["logprob"] = logprob
    assert levels(answer(token(' "'), good)) == pytest.approx({2: 0.25, 4: 0.75})


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
        {"content": [*map(token, BEFORE)]},
        {"content": [token('{"quality_level"'), token(" is "), token("Good")]},
    ],
)
def test_tokens_without_a_level_give_no_reading(nothing: Any) -> None:
    assert level_probabilities_from_tokens(nothing) is None


ANSWER = ['{"', "assess", 'ment":', ' {"', "quality", "_level", '":', ' "', "Good", '", "why": "', "sharp", '"}}']
AT = ANSWER.index("Good")


def lm_token(text: str) -> lm15.TokenLogprob:
    others = [lm15.TopLogprob(token=name, logprob=math.log(p)) for name, p in ((text, 0.7), ("Fair", 0.2))]
    return lm15.TokenLogprob(token=text, logprob=-0.25, top=(*others, *(filler(n) for n in range(18))))


def filler(number: int) -> lm15.TopLogprob:
    return lm15.TopLogprob(token=f"other {number}", logprob=-9.0, bytes=(1, 2, 3))


def as_dspy_gives_it(tokens: tuple[lm15.TokenLogprob, ...]) -> dict[str, object]:
    return {
        "content": [
            {
                "token": each.token,
                "logprob": each.logprob,
                "top_logprobs": [{"token": other.token, "logprob": other.logprob} for other in each.top],
            }
            for each in tokens
        ]
    }


def test_the_level_token_keeps_its_alternatives_and_the_rest_its_text() -> None:
    tokens = tuple(map(lm_token, ANSWER))
    before, level, after = level_token_only(tokens)
    assert level == tokens[AT]
    assert (before.token, after.token) == ("".join(ANSWER[:AT]), "".join(ANSWER[AT + 1 :]))
    assert before.logprob == pytest.approx(-0.25 * AT)
    assert before.top == after.top == ()


@given(st.lists(st.sampled_from(["a", '"', " ", "quality", "{", "Ġ", "Good"]), max_size=20), st.integers(0, 3))
def test_joined_tokens_give_the_same_reading(noise: list[str], split: int) -> None:
    value = ["Good"[:split], "Good"[split:]] if split else ["Good"]
    texts = [*noise, *ANSWER[:AT], *value, *ANSWER[AT + 1 :]]
    tokens = tuple(lm_token(text) for text in texts if text)
    read, kept = (
        level_probabilities_from_tokens(as_dspy_gives_it(each)) for each in (tokens, level_token_only(tokens))
    )
    assert kept == read is not None


def test_an_answer_of_300_tokens_takes_little_room() -> None:
    tokens = tuple(map(lm_token, [*ANSWER[:-2], *["word "] * 300, *ANSWER[-2:]]))
    assert len(pickle.dumps(tokens)) > 100_000
    assert len(pickle.dumps(level_token_only(tokens))) < 5_000


def test_an_answer_without_a_level_is_unchanged() -> None:
    assert level_token_only([lm_token("yes")]) == (lm_token("yes"),)
    assert level_token_only([]) == ()
