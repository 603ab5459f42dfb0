"""What is kept of an answer's log-probabilities: the level's token, and the same reading."""

import math
import pickle

import pytest
from dspy import lm15
from hypothesis import given
from hypothesis import strategies as st

from agenticiqa.programs.backends.level_token import level_token_only
from agenticiqa.programs.stages.level_logprobs import level_probabilities_from_tokens

ANSWER = ['{"', "assess", 'ment":', ' {"', "quality", "_level", '":', ' "', "Good", '", "why": "', "sharp", '"}}']
AT = ANSWER.index("Good")


def token(text: str) -> lm15.TokenLogprob:
    others = [lm15.TopLogprob(token=name, logprob=math.log(p)) for name, p in ((text, 0.7), ("Fair", 0.2))]
    return lm15.TokenLogprob(token=text, logprob=-0.25, top=(*others, *(fill(n) for n in range(18))))


def fill(number: int) -> lm15.TopLogprob:
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
    tokens = tuple(map(token, ANSWER))
    before, level, after = level_token_only(tokens)
    assert level == tokens[AT]
    assert (before.token, after.token) == ("".join(ANSWER[:AT]), "".join(ANSWER[AT + 1 :]))
    assert before.logprob == pytest.approx(-0.25 * AT)
    assert before.top == after.top == ()


@given(st.lists(st.sampled_from(["a", '"', " ", "quality", "{", "Ġ", "Good"]), max_size=20), st.integers(0, 3))
def test_the_reading_stays_the_same(noise: list[str], split: int) -> None:
    value = ["Good"[:split], "Good"[split:]] if split else ["Good"]
    texts = [*noise, *ANSWER[:AT], *value, *ANSWER[AT + 1 :]]
    tokens = tuple(token(text) for text in texts if text)
    read, kept = (
        level_probabilities_from_tokens(as_dspy_gives_it(each)) for each in (tokens, level_token_only(tokens))
    )
    assert kept == read is not None


def test_an_answer_of_300_tokens_takes_little_room() -> None:
    tokens = tuple(map(token, [*ANSWER[:-2], *["word "] * 300, *ANSWER[-2:]]))
    assert len(pickle.dumps(tokens)) > 100_000
    assert len(pickle.dumps(level_token_only(tokens))) < 5_000


def test_an_answer_without_a_level_stays_as_it_is() -> None:
    assert level_token_only([token("yes")]) == (token("yes"),)
    assert level_token_only([]) == ()
