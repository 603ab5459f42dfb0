"""Options that the caller gives: which are accepted, what stages and models get, and the results."""

from pathlib import Path
from string import ascii_uppercase
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from agenticiqa.configs import Config
from agenticiqa.programs import AgenticIQA, Job, assess_many
from agenticiqa.programs.batch.cost import estimate
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.questions.options import (
    lists_options,
    parse_options,
    question_part,
    read_options,
    with_options,
)
from agenticiqa.signatures.types import UNABLE, QueryType
from support.distortion_levels import scene
from support.fake_server import field_of, has_field, stage_of
from support.nodes import scripted
from support.scripted_answers import ANSWER, SCRIPT

NOISY = "examples/chelsea_noise.png"
SUFFIX = "Answer with the option's letter from the given choices directly."
BLUR = {"A": "Blur", "B": "Noise"}


@pytest.fixture(scope="module")
def offline() -> AgenticIQA:
    return AgenticIQA.offline()


@pytest.fixture(scope="module")
def photo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("images") / "photo.png"
    Image.fromarray(scene(60, 80)).save(path)
    return path


# --- accepted options ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "read"),
    [
        (None, None),
        (["Blur", "Noise"], BLUR),
        (("Blur", " Noise\n"), BLUR),
        (["A. Blur", "B. Noise"], BLUR),
        (["(a) Blur", "(b) Noise"], BLUR),
        (["A. Smith", "C. Jones"], {"A": "A. Smith", "B": "C. Jones"}),
        ({"A": "Blur", "B": "Noise"}, BLUR),
        ({"b": "Noise", "a": "Blur"}, {"B": "Noise", "A": "Blur"}),
        ({"Y": "Yes", "N": "No"}, {"Y": "Yes", "N": "No"}),
        ([f"x{n}" for n in range(26)], {letter: f"x{n}" for n, letter in enumerate(ascii_uppercase)}),
    ],
)
def test_options_are_kept_by_letter(options: Any, read: dict[str, str] | None) -> None:
    assert read_options(options) == read
    assert list(read_options(options) or {}) == list(read or {})
    assert read_options(read_options(options)) == read


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("Blur or noise", "options must be a list or a mapping of letters to texts, not str"),
        (5, "options must be a list or a mapping of letters to texts, not int"),
        ([], "the number of options is 0: give 2 to 26"),
        (["Blur"], "the number of options is 1: give 2 to 26"),
        ([f"x{n}" for n in range(27)], "the number of options is 27: give 2 to 26"),
        (["Blur", " "], "option B is empty"),
        (["Blur", 2], "option B is a int"),
        (["Blur", None], "option B is a NoneType"),
        (["Blur", "blur"], "two options have the same letter or text"),
        ({"A": "Blur", "a": "Noise"}, "two options have the same letter or text"),
        ({"A": "Blur", "1": "Noise"}, "option key '1' must be one letter from A to Z"),
        ({"A": "Blur", "": "Noise"}, "option key '' must be"),
        ({0: "Blur", 1: "Noise"}, "option key 0 must be"),
        (["x" * 2000, "y" * 2001], "the options have 4001 characters: shorten them to 4000"),
    ],
)
def test_other_options_are_an_error_in_one_line(offline: AgenticIQA, options: Any, words: str) -> None:
    with pytest.raises(UserError, match="option") as caught:
        offline("nowhere.png", "Which?", options=options)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match="option"):
        Job("nowhere.png", options=options)


any_text = st.text(min_size=1, max_size=30).filter(lambda text: bool(text.strip()))


@given(
    query=any_text, texts=st.lists(st.from_regex(r"[a-z]{3,9}( [a-z]{3,9})?", fullmatch=True), min_size=2, unique=True)
)
def test_appended_options_are_parsed(query: str, texts: list[str]) -> None:
    options = dict(zip(ascii_uppercase, texts, strict=False))
    asked = with_options(query.strip(), options)
    assert parse_options(asked) == options
    assert lists_options(asked, options)


def test_given_options_take_precedence_over_a_list_in_the_question() -> None:
    query = "Which is better?\nA) Sky\nB) Sea"
    assert (parse_options(with_options(query, BLUR)), question_part(with_options(query, BLUR))) == (BLUR, query)
    assert with_options("Which?\n(a) blur\n(b) noise.", BLUR) == "Which?\n(a) blur\n(b) noise."


# --- results and prompts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "options", "letter"),
    [
        ("What is the main distortion?", ["Noise", "Blur", "Overexposure"], "A"),
        ("Which is it?", {"A": "Blur", "B": "Noise"}, "B"),
        ("Which is it?", {"X": "Blur", "N": "Noise"}, "N"),
        ("Is it noisy? A. No B. Yes", ["Yes", "No"], "A"),
        ("Is it noisy?\nA) Yes\nB) No", None, "A"),
        (f"What is it?\n{SUFFIX}", ["Blur", "Noise"], "B"),
        (None, ["Excellent", "Good", "Poor", "Bad"], "C"),
        ("What is the man holding?", ["Umbrella", "Camera"], UNABLE),
    ],
)
def test_the_offline_answer_is_a_given_letter(
    offline: AgenticIQA, query: str | None, options: Any, letter: str
) -> None:
    result = offline(NOISY, query, options=options)
    assert (result.final_answer, result.quality_score) == (letter, None)
    assert result.query_type is QueryType.MCQ
    assert result.to_dict()["options"] == result.options == (read_options(options) or {"A": "Yes", "B": "No"})
    assert result.toDict()["options"] == result.options


def test_without_options_a_result_has_none(offline: AgenticIQA) -> None:
    result = offline(NOISY)
    assert result.to_dict()["options"] == {}
    assert isinstance(result.final_answer, float)


ASKED = "Which is it?\nA. Blur\nB. Noise"
OPEN = "What is wrong?\nAnswer the question using a single word or phrase."


@pytest.mark.parametrize(
    ("query", "options", "planned", "answered"),
    [
        (f"{ASKED}\n{SUFFIX}", BLUR, ASKED, "Which is it?"),
        (f"{ASKED}\n{SUFFIX}", None, ASKED, ASKED),
        ("Which side? (A) left (B) right", BLUR, "Which side? (A) left (B) right\n\nOptions:\nA. Blur\nB. Noise",
         "Which side? (A) left (B) right"),
        (OPEN, None, OPEN, OPEN),
    ],
)  # fmt: skip
def test_a_prompt_has_the_options_once_and_no_other_answer_format(
    photo: Path, query: str, options: Any, planned: str, answered: str
) -> None:
    """ "With the option's letter" contradicts JSON; "a single word" is a request about a free-form answer and stays."""
    config, engine = scripted({**SCRIPT, "answer": {**ANSWER, "final_answer": "**B. Noise**"}})
    result = config["configurable"]["program"](photo, query, options=options)
    asked = {stage_of(body): body for body in engine.bodies}
    assert {field_of(body, "query") for stage, body in asked.items() if stage in ("plan", "detection")} == {planned}
    assert field_of(asked["answer"], "query") == answered
    shown = field_of(asked["answer"], "options") if has_field(asked["answer"], "options") else None
    assert shown == (None if query == OPEN else "A. Blur\nB. Noise")
    assert result.query == query, "as it was asked"
    assert result.final_answer == ("**B. Noise**" if query == OPEN else "B")


# --- in runs ---------------------------------------------------------------------------------------------------------


def test_jobs_and_batches_carry_their_options(offline: AgenticIQA) -> None:
    jobs = [Job(NOISY, "Which is it?", options=options) for options in (["Blur", "Noise"], ["Noise", "Blur"])]
    assert len(set(jobs)) == 2
    assert jobs[0] == Job(NOISY, "Which is it?", options=BLUR) == jobs[0].picklable()
    assert repr(jobs[0]) == f"Job({NOISY!r}, 'Which is it?', options={BLUR!r})"
    assert [outcome.final_answer for _, outcome in sorted(assess_many(offline, jobs, workers=1), key=str)] == ["B", "A"]
    (result,) = offline.batch([{"image": NOISY, "query": "Which is it?", "options": ["Blur", "Noise"]}])
    assert result.final_answer == "B"


def test_a_question_with_options_costs_one_answer(photo: Path) -> None:
    config = Config().with_backend("vllm.test", "http://127.0.0.1:9/v1")
    stages = {row.stage for row in estimate(config, [Job(photo, options=["Good", "Bad"])]).stages}
    assert "answering" in stages
    assert "scoring" not in stages
    listed, given_apart = (
        estimate(config, [job]).total.input_tokens
        for job in (Job(photo, "Which?\nA. Blur\nB. Noise"), Job(photo, "Which?", options=BLUR))
    )
    assert abs(listed - given_apart) < 40
