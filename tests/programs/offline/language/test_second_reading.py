"""Questions and options that the rules do not know, or mistake, are read by the network."""

import pytest

from agenticiqa.programs.offline.findings import Finding
from agenticiqa.programs.offline.language.answers import IMAGE, REFERENCE, answer_from_evidence
from agenticiqa.programs.offline.language.claims import parse_clause
from agenticiqa.programs.offline.language.free_options import in_listed_order
from agenticiqa.programs.offline.language.measured_image import MeasuredImage
from agenticiqa.programs.offline.language.plain_question import (
    OF_SCALE,
    RESTATED,
    PlainQuestion,
    in_plain_words,
    scale_ends,
    side_named,
)
from agenticiqa.programs.offline.language.question_reader import (
    INTENTS,
    LONGEST_TEXT,
    MEANINGS,
    NETWORK,
    NOUNS,
    SHA256,
    Read,
    Reading,
    fault_named,
    listing,
    question_alone,
    read_text,
)
from agenticiqa.programs.offline.language.reader import read_question
from agenticiqa.programs.offline.language.second_reading import denied, says_more
from agenticiqa.programs.offline.language.verdicts import Verdict
from agenticiqa.programs.questions.options import parse_options
from agenticiqa.programs.tools.numerics.weights import read_checked
from agenticiqa.signatures.types import UNABLE, ExecutorOutput
from agenticiqa.signatures.vocabulary import DETECTABLE, DetectableDistortion


def measured(category: DetectableDistortion | None, kind: str = "") -> MeasuredImage:
    damage, none = Finding(3.5, kind, ""), Finding(0.0, "", "")
    return MeasuredImage({name: damage if name == category else none for name in DETECTABLE}, 2.0 if category else 4.8)


def answer(question: str, image: MeasuredImage, reference: MeasuredImage | None = None) -> str:
    look = {IMAGE: image, REFERENCE: reference}.get
    return answer_from_evidence(question, parse_options(question), look, ExecutorOutput()).final_answer


@pytest.mark.parametrize(
    ("question", "category", "kind", "there", "absent"),
    [
        ("Would an honest critic grumble about grain here?", "Noise", "Gaussian noise", "Yes", "No"),
        (
            "Could I hand this file over to the client as wholly spared from grain?",
            "Noise",
            "Gaussian noise",
            "No",
            "Yes",
        ),
        ("Can I rule out banding?", "Compression", "banding", "No", "Yes"),
        ("its not blurry at all is it", "Blurs", "defocus", "Yes", "No"),
        ("Grain-free, yes or no?", "Noise", "Gaussian noise", "B", "A"),
    ],
)
def test_unknown_wordings_of_yes_and_no(
    question: str, category: DetectableDistortion, kind: str, there: str, absent: str
) -> None:
    assert answer(question, measured(category, kind)).startswith(there)
    assert answer(question, measured(None)).startswith(absent)


@pytest.mark.parametrize(
    "question",
    [
        "Does the lighting create a dramatic mood?",
        "Was the grain added on purpose?",
        "Is the woman's face blurred?",
        "Tell me a joke about Blimfark.",
        "Is the picture pixelated?",
        "Does the blur make the text unreadable?",
        "Is it noisier than the last one I sent?",
    ],
)
def test_what_no_measurement_tells_stays_undetermined(question: str) -> None:
    assert answer(question, measured("Noise", "Gaussian noise")) == UNABLE


@pytest.mark.parametrize(
    ("question", "category", "kind", "letter"),
    [
        (
            "What spoiled it? A. I've missed focus B. It's full of grain C. The colors drained away",
            "Blurs",
            "defocus",
            "A",
        ),
        ("What spoiled it? A. I've missed focus B. It's full of grain C. The colors drained away", "Noise", "", "B"),
        ("Grain check: (A) clean as a whistle (B) you could sand wood with it", "Noise", "Gaussian noise", "B"),
        ("Grain check: (A) clean as a whistle (B) you could sand wood with it", None, "", "A"),
    ],
)
def test_options_in_words_of_their_own(
    question: str, category: DetectableDistortion | None, kind: str, letter: str
) -> None:
    assert answer(question, measured(category, kind)) == letter


@pytest.mark.parametrize(
    "question",
    [
        "Which mishap did this frame escape? A. I've missed focus B. It's full of grain",
        "What sets this copy apart from the original? A. I've missed focus B. It's full of grain",
        "Which roast does the picture advertise? A. Dark as the night B. Bright and fruity",
    ],
)
def test_options_are_not_chosen_when_the_question_asks_for_something_else(question: str) -> None:
    assert answer(question, measured("Noise", "Gaussian noise")) == UNABLE


@pytest.mark.parametrize(
    "question",
    [
        "How noisy is the penguin?",
        "What is the main distortion of the woman's face?",
        "Which defect hurts the peacock most? A. Noise B. Blur",
    ],
)
def test_a_thing_that_nothing_finds_is_not_answered_from_the_whole_image(question: str) -> None:
    assert answer(question, measured("Noise", "Gaussian noise")) == UNABLE


@pytest.mark.parametrize(
    ("question", "letter"),
    [
        ("Be a dear and tell me what's gone wrong here: A) the colours are garish, B) it's full of grain?", "B"),
        ("Diagnose the processing error.\nA: oversharpening\nB: grain\nC: loss of focus", "B"),
        ("Fill in the blank with a letter: the noise is ____. A: not visible B: slight C: severe", "C"),
        ("Which describes the noise best? A: there is none B: a little C: a lot", "C"),
    ],
)
def test_other_nouns_in_a_question_are_no_parts_of_the_image(question: str, letter: str) -> None:
    assert answer(question, measured("Noise", "Gaussian noise")) == letter


@pytest.mark.parametrize(
    ("question", "there"),
    [
        ("Is it untrue that there is no noise?", "Yes"),
        ("Is it false that this image has noise?", "No"),
        ("Would it be a mistake to think the picture has no noise?", "Yes"),
        ("Would you deny that there is noise here?", "No"),
        ('"There is no grain in the picture." Is this statement wrong?', "Yes"),
        ("The caption says that it is free of noise. Is the caption mistaken?", "Yes"),
    ],
)
def test_denials_of_denials(question: str, there: str) -> None:
    absent = {"Yes": "No", "No": "Yes"}[there]
    assert answer(question, measured("Noise", "Gaussian noise")).startswith(there)
    assert answer(question, measured(None)).startswith(absent)


NOTHING = parse_clause("")


def reading(intent: str, meaning: str = "noise", probability: float = 0.9) -> Reading:
    return Reading(Read(intent, probability, probability), Read(meaning, 0.9, 0.9), 0.0)


def test_only_a_clear_question_is_asked_again() -> None:
    question = "Has it been spared from grain?"
    assert in_plain_words(question, reading("no"), (), NOTHING) == PlainQuestion("Is there noise?", True, "")
    assert in_plain_words(question, reading("part-no"), ("the sky",), NOTHING) == PlainQuestion(
        "Is there noise in the sky?", True, "the sky"
    )
    assert in_plain_words(question, reading("part-no"), (), NOTHING) is None
    assert in_plain_words("How noisy?", reading("part-degree"), ("the sky",), NOTHING) == PlainQuestion(
        "How severe is the noise in the sky?", False, "the sky"
    )
    assert in_plain_words("What ails it?", reading("part-which", "none"), (), NOTHING) is None
    assert in_plain_words(question, reading("no", probability=RESTATED - 0.01), (), NOTHING) is None
    assert in_plain_words(question, reading("no", "none"), (), NOTHING) is None
    assert in_plain_words(question, reading("unanswerable"), (), NOTHING) is None
    assert in_plain_words("Rate it.", reading("rating-low"), (), NOTHING) is None
    rated = in_plain_words("Rate the noise, 0 is clean and 7 unbearable", reading("rating-low"), (), NOTHING)
    assert rated
    assert rated.text == "Rate the noise from 0 to 7, where 0 is the best and 7 the worst."


def test_the_ends_of_a_scale_go_by_what_the_question_says_of_them() -> None:
    for read in (reading("rating-high"), reading("rating-high", probability=OF_SCALE)):
        rated = in_plain_words("Noise severity, where 0 = none and 100 = worst possible?", read, (), NOTHING)
        assert rated
        assert rated.text == "Rate the noise from 0 to 100, where 0 is the best and 100 the worst."
    assert (
        in_plain_words("Rate the noise from 0 to 100", reading("rating-high", probability=OF_SCALE), (), NOTHING)
        is None
    )


def test_a_kind_that_is_not_clear_is_asked_about_as_its_category() -> None:
    found = Reading(Read("yes", 0.9, 0.9), Read("defocus", 0.5, 0.95), 0.0)
    plain = in_plain_words("Is it OOF?", found, (), NOTHING)
    assert plain
    assert plain.text == "Is there blur?"


@pytest.mark.parametrize(
    ("question", "place"),
    [
        ("Noisy up top, isn't it?", "top"),
        ("In the bottom right-hand corner, is it blocky?", "bottom right"),
        ("Has the left half kept its colors?", "left"),
        ("Has compression left visible artifacts, am I right?", ""),
        ("Which half, left or right?", ""),
        ("Is it dark in the middle?", "center"),
    ],
)
def test_a_place_is_named_by_its_side(question: str, place: str) -> None:
    assert side_named(question) == place


def test_the_ends_of_a_scale_are_its_lowest_and_highest_number() -> None:
    assert scale_ends("Use 0 for no grain at all. Use 100 for as much as you can imagine.") == (0.0, 100.0)
    assert scale_ends("From one to five, how noisy?") == (1.0, 5.0)
    assert scale_ends("How noisy is it?") is None


def test_a_denial_turns_yes_and_no_around() -> None:
    assert denied(Verdict("Yes, severe noise", "")).answer == "No, severe noise"
    assert denied(Verdict("No", "")).answer == "Yes"
    assert denied(Verdict(None, "")).answer is None


def test_the_network_reads_what_is_asked_and_about_what() -> None:
    found = read_text("Would you say that the original already had that yellowish tinge?")
    assert (found.intent.name, found.meaning.name) == ("reference-yes", "cast")
    assert 0 < found.intent.probability <= found.intent.category <= 1
    read_text.cache_clear()
    assert read_text("Would you say that the original already had that yellowish tinge?") == found


@pytest.mark.parametrize("text", ["", "?", "noise " * LONGEST_TEXT, "はい 🙂 \x00", "[MASK] [SEP]"])
def test_any_text_is_read(text: str) -> None:
    found = read_text(text)
    assert found.intent.name in INTENTS
    assert found.meaning.name in MEANINGS


def test_the_rules_know_the_words_for_every_distortion() -> None:
    for name in NOUNS:
        fault = fault_named(name)
        assert fault is not None
        assert fault.sense == "fault"
    assert fault_named("none") is None


def test_the_network_is_the_one_that_was_trained() -> None:
    assert len(read_checked(NETWORK, SHA256)) == NETWORK.stat().st_size


@pytest.mark.parametrize(
    ("question", "intent", "more"),
    [
        ("Is it blurry or noisy?", "yes", True),
        ("Which distortions are there?", "which", True),
        ("Rate the noise from 1 to 9, where 9 is the best", "rating-high", True),
        ("Is it noisy?", "yes", False),
        ("Is it blurry or noisy?", "compare-yes", False),
        ("Is it underexposed or overexposed?", "which", True),
        ("Is the exposure off, too light or too dark?", "yes", False),
    ],
)
def test_what_plain_words_would_lose_is_left_to_the_rules(question: str, intent: str, more: bool) -> None:
    assert says_more(read_question(question, {}), reading(intent)) == more


@pytest.mark.parametrize(
    ("question", "meaning", "plain"),
    [
        ("Would you call it severely noisy?", "noise", "Is there severe noise?"),
        ("Would you call it slightly noisy?", "noise", "Is there slight noise?"),
        ("Would you call it a bit noisy?", "noise", "Is there noise?"),
        ("Do you find any noise?", "noise", "Is there any noise?"),
        ("Is there a yellowish tinge to it?", "cast", "Is there yellow cast?"),
        ("Is there a loss of detail?", "blur", "Is there lack of detail?"),
        ("Is there color noise?", "noise", "Is there color noise?"),
        ("Is there motion blur?", "defocus", "Is there defocus blur?"),
    ],
)
def test_degree_hue_and_detail_are_kept_in_plain_words(question: str, meaning: str, plain: str) -> None:
    found = in_plain_words(question, reading("yes", meaning), (), read_question(question, {}).claim)
    assert found
    assert found.text == plain


def test_degrees_are_made_even_along_their_list() -> None:
    assert in_listed_order({"A": 0.0, "B": 2.6, "C": 2.0, "D": 5.0}) == pytest.approx(
        {"A": 0.24, "B": 1.68, "C": 3.12, "D": 4.56}
    )
    assert in_listed_order({"A": 4.6, "B": 1.9, "C": 0.1}) == pytest.approx({"A": 4.45, "B": 2.2, "C": -0.05})
    for kept in ({"A": 0.0, "B": 4.0, "C": 1.0}, {"A": 0.2, "B": 4.1}, {"A": 1.0, "B": 1.0, "C": 1.0}):
        assert in_listed_order(kept) == kept


@pytest.mark.parametrize("options", [{}, {"A": "Mushy", "B": "Gritty"}])
def test_a_query_of_options_alone_asks_nothing(options: dict[str, str]) -> None:
    assert question_alone("A) Mushy B) Gritty") == ""
    assert question_alone("What is it? A) Mushy B) Gritty") == "What is it?"
    assert question_alone("What is it?") == "What is it?"
    assert listing("", options) == " ".join(f"{letter}. {text}" for letter, text in options.items())


def test_a_yes_or_no_is_not_chosen_for_another_answer() -> None:
    left, right = measured("Blurs", "defocus"), measured(None)
    look = {IMAGE: left, "left half": left, "right half": right}.get
    question = "Are the left half and the right half blurry? A. Yes B. No"
    found = answer_from_evidence(question, parse_options(question), look, ExecutorOutput())
    assert found.final_answer == UNABLE
    assert "The regions differ" in found.reasoning
