"""The time of every parser of questions grows at most linearly with a text of one repeated fragment."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from agenticiqa.programs.images.regions import place_in_frame
from agenticiqa.programs.offline.answers.asked import read_question
from agenticiqa.programs.offline.answers.fixed_words import UserQuestion, fixed_answer
from agenticiqa.programs.offline.answers.planner import asking_part, plan_question
from agenticiqa.programs.offline.answers.question_reader import corrected
from agenticiqa.programs.questions.instructions import readable
from agenticiqa.programs.questions.options import beside_options, parse_options, query_for_stages, question_part
from agenticiqa.programs.questions.query_type import detect_query_type
from agenticiqa.programs.questions.scale import stated_scale
from agenticiqa.programs.tools.tool_names import asks_about_tools, names_tools, spelled_tools
from agenticiqa.signatures.answers.letters import letter_of
from agenticiqa.signatures.answers.level_in_words import level_named
from agenticiqa.signatures.lexicon import fold_distortion, terms_in

LENGTH = 32_000
SOON = 0.3  # seconds of processor time that need no second run
GROWTH = 8  # maximum growth of the time for four times the text: linear is 4, quadratic 16
GIVEN = {"A": "Yes", "B": "No"}
READERS: dict[str, Callable[[str], Any]] = {
    "parse_options": parse_options,
    "question_part": question_part,
    "query_for_stages": lambda text: query_for_stages(text, GIVEN),
    "beside_options": lambda text: beside_options(text, GIVEN),
    "detect_query_type": detect_query_type,
    "stated_scale": stated_scale,
    "level_named": level_named,
    "letter_of": lambda text: letter_of(text, GIVEN),
    "plan_question": lambda text: plan_question(text, reference_given=False, known_tools=["SSIM", "NIQE"]),
    "asking_part": asking_part,
    "read_question": lambda text: read_question(text, {}, [], False),
    "fixed_answer": lambda text: fixed_answer(UserQuestion(text, size=(100, 100), alone=True), lambda name: None),
    "fixed_answer to options": lambda text: fixed_answer(UserQuestion(text, GIVEN), lambda name: None),
    "spelled_tools": lambda text: spelled_tools(text, ["SSIM"]),
    "names_tools": lambda text: names_tools(text, ["SSIM"]),
    "asks_about_tools": asks_about_tools,
    "corrected": corrected,
    "terms_in": terms_in,
    "fold_distortion": fold_distortion,
    "place_in_frame": lambda text: place_in_frame(text, (100, 100)),
}
FRAGMENTS = [
    *("A) ", "a", "a a a ", "**", "\n", " ", "\t", "  \n", "A. x ", "(a) ", "1) ", "1. x\n", "[A] ", "A - ", "?", "? "),
    *("! ", ",,", ", or ", "...", "_ ", "- ", "'s ", "ab-", "\uff1a", "yes or no ", "yes, no\n", "choose from: "),
    *("options: ", "Do not explain. ", "Answer: ", "answer with ", "the ", "left ", "the left of the ", "is it "),
    *("whether ", "blurry ", "noise, ", "rate ", "1 to 5 ", "SSIM ", "use SSIM ", "no reference ", "in the image "),
]
QUICK = ["A) ", "a a a ", "**", "\n", " ", ",,", "left "]


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    for reader in READERS.values():
        reader("Is it sharp? A. Yes B. No")


def seconds(reader: Callable[[str], Any], text: str) -> float:
    """Return the processor time, the best of three runs if the first one is slow."""
    taken = []
    for _ in range(3):
        start = time.process_time()
        reader(text)
        taken.append(time.process_time() - start)
        if taken[-1] < SOON:
            break
    return min(taken)


def explodes(reader: Callable[[str], Any], fragment: str, soon: float = SOON) -> bool:
    taken = seconds(reader, repeated(fragment, LENGTH))
    return taken >= soon and taken > GROWTH * seconds(reader, repeated(fragment, LENGTH // 4))


def repeated(fragment: str, length: int) -> str:
    return f"Is it sharp? {(fragment * length)[:length]}z"


@pytest.mark.parametrize("reader", ["parse_options", "detect_query_type", "plan_question", "asking_part"])
def test_no_repeated_fragment_takes_long(reader: str) -> None:
    assert not [fragment for fragment in QUICK if explodes(READERS[reader], fragment)]


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
def test_no_repeated_fragment_takes_long_in_any_parser(reader: str) -> None:
    assert not [fragment for fragment in FRAGMENTS if explodes(READERS[reader], fragment)]


def test_a_parser_with_quadratic_time_is_found() -> None:
    assert explodes(lambda text: [text.count("a", at) for at in range(0, len(text), 4)], "a", soon=0)


def test_a_usual_question_is_read_completely() -> None:
    question = "Is it sharp?\n\nA. Yes\nB. No"
    assert readable(question) == question
    assert readable("Is it \t  sharp?\n\n\n\nYes or no") == "Is it sharp?\n\nYes or no"
    long = "Is it sharp? " + "x " * 9000 + "Rate it from 1 to 10."
    assert readable(long).startswith("Is it sharp? x x")
    assert readable(long).endswith("x Rate it from 1 to 10.")
    assert len(readable(long)) == 2001


@pytest.mark.parametrize("ends", [", or", " or.", ",,;", "?! ", ", or, or"])
def test_the_ends_of_options_are_trimmed(ends: str) -> None:
    assert parse_options(f"Which? A) blur{ends} B) noise{ends}") == {"A": "blur", "B": "noise"}
    assert parse_options("Which? A) color B) for") == {"A": "color", "B": "for"}
