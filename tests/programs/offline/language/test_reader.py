"""The reader of questions: what is asked, of which subject, about what, and when it is not sure."""

import pytest

from agenticiqa.programs.offline.language.claims import claimed_meaning
from agenticiqa.programs.offline.language.question import Question
from agenticiqa.programs.offline.language.reader import asking_part, read_question
from agenticiqa.programs.offline.language.spelling import corrected
from agenticiqa.programs.questions.options import parse_options
from agenticiqa.programs.questions.query_type import detect_query_type


def read(query: str, *tools: str) -> Question:
    return read_question(query, parse_options(query), tools=tools)


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("Is it noisy?", "presence"),
        ("noisy?", "presence"),
        ("Any banding?", "presence"),
        ("Would you say the highlights are blown?", "presence"),
        ("Is it noisy? Answer yes or no.", "presence"),
        ("True or false: the image is blurry.", "presence"),
        ("How noisy is it?", "degree"),
        ("What is the severity of the blur?", "degree"),
        ("What's wrong with this photo?", "list"),
        ("Which distortions does it have?", "list"),
        ("Which half is noisier?", "where"),
        ("Where is the blur?", "where"),
        ("Is the noise in the left or right half?", "where"),
        ("Is it sharper than the original?", "compare"),
        ("Which is better, the image or the reference?", "compare"),
        ("Is the left half noisier than the right half?", "compare"),
        ("What is the main distortion compared with the reference?", "list"),
        ("Which has more distortion, the image or the reference?", "compare"),
        ("Rate the noise from 1 to 5.", "rating"),
        ("On a scale of 1 to 10, how blurry is it?", "rating"),
        ("How noisy is it? A. Not at all B. Slightly C. Very", "choice"),
        ("Which is the main problem? (a) blur (b) noise", "choice"),
    ],
)
def test_what_is_asked(query: str, asked: str) -> None:
    assert read(query).asked == asked


@pytest.mark.parametrize("query", ["What is the PSNR?", "psnr value?", "Tell me the PSNR of this pair."])
def test_the_value_of_a_metric_that_was_measured(query: str) -> None:
    assert read(query, "PSNR").asked == "metric"


@pytest.mark.parametrize(
    ("query", "subject"),
    [
        ("Is the reference blurry?", "reference"),
        ("How noisy is the original image?", "reference"),
        ("What is the main distortion of the reference?", "reference"),
        ("What is the main distortion compared with the reference?", "image"),
        ("Is there any noise in the reference?", "reference"),
        ("Is the image blurry?", "image"),
        ("Given the reference, how strong is the compression?", "image"),
        ("Is it noisier than the reference?", "image"),
    ],
)
def test_of_which_picture(query: str, subject: str) -> None:
    assert read(query).subject == subject


@pytest.mark.parametrize(
    ("query", "regions"),
    [
        ("Is the woman's face blurred?", ("woman's face",)),
        ("Is the left half noisy?", ("left half",)),
        ("Is the background too dark?", ("background",)),
        ("Are the highlights blown?", ()),
        ("I took this at my cousin's wedding by the lake. Is it noisy?", ()),
    ],
)
def test_of_which_parts(query: str, regions: tuple[str, ...]) -> None:
    assert read(query).regions == regions


@pytest.mark.parametrize(
    ("query", "negated"),
    [("Is it free of noise?", True), ("Is it noisy?", False), ("Isn't it noisy?", False), ("Is it not sharp?", True)],
)
def test_its_polarity(query: str, negated: bool) -> None:
    assert read(query).claim.negated is negated


@pytest.mark.parametrize(
    "query",
    [
        "Is the noise intentional?",
        "Does the blur make the mood calmer?",
        "Which camera caused the noise?",
        "How can I remove the noise?",
        "Was the blur added on purpose?",
    ],
)
def test_a_question_that_measurements_cannot_answer_is_not_sure(query: str) -> None:
    question = read(query)
    assert not question.is_sure
    assert question.doubt


@pytest.mark.parametrize(
    "query",
    [
        "bro is this pic kinda noisy or what",
        "Hey there! I am thinking of ordering a canvas of it. Could you tell me whether the photo is noisy?",
        "is teh foto noisey?",
        "Honestly, does it suffer from noise at all?",
    ],
)
def test_slang_and_long_winded_words_do_not_make_it_unsure(query: str) -> None:
    question = read(query)
    assert question.is_sure, question.doubt
    assert [meaning.subject for meaning in question.claim.meanings] == ["Noise"]


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("is it bluury", "is it blurry"),
        ("the contarst", "the contrast"),
        ("nosiy", "noisy"),
        ("compresion artifcats", "compression artifacts"),
        ("refernce", "reference"),
        ("a security camera", "a security camera"),
        ("blue grass, a train and her nose", "blue grass, a train and her nose"),
        ("share the context of the contest", "share the context of the contest"),
        ("NIQE", "NIQE"),
    ],
)
def test_misspelled_words_are_corrected_and_correct_ones_are_kept(wrong: str, right: str) -> None:
    assert corrected(wrong) == right


def test_the_part_that_asks_is_without_what_is_told_before() -> None:
    assert asking_part("My boss says it is fine. Please tell me if it is too dark.") == "it is too dark."
    assert asking_part("Compared to the reference, is it darker?") == "Compared to the reference, is it darker?"


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("Point out the noisy part.", "where"),
        ("Only a part of this picture is damaged. Where?", "where"),
        ("Is the noise in the center or at the edges?", "where"),
        ("Does the left or the right side have more noise?", "where"),
        ("Is the image as sharp as the reference?", "compare"),
        ("Is there additional noise with respect to the reference?", "compare"),
        ("Which one is sharper? A. The image B. The reference", "compare"),
        ("Rate the exposure 1 to 5, 5 being perfect.", "rating"),
        ("On a scale from one to five, how noisy is it?", "rating"),
        ("Is the noise slight, moderate or severe?", "degree"),
        ("What is the level of noise?", "degree"),
    ],
)
def test_what_is_asked_in_other_words(query: str, asked: str) -> None:
    question = read(query)
    assert question.asked == asked
    assert question.is_sure, question.doubt


@pytest.mark.parametrize(
    "query",
    [
        "Is it devoid of noise?",
        "Is noise nowhere to be seen?",
        "Is there no trace of noise?",
    ],
)
def test_rarer_denials(query: str) -> None:
    assert read(query).claim.negated


@pytest.mark.parametrize(
    "query",
    [
        "I looked at this on two monitors and cannot decide, so please tell me: does it contain noise?",
        "Given that the camera was set to ISO 6400, would you say that the picture suffers from noise?",
        "How come it looks so grainy? Is it noisy?",
    ],
)
def test_what_comes_before_the_question_is_not_read(query: str) -> None:
    question = read(query)
    assert question.is_sure, question.doubt
    assert question.asked == "presence"


def test_options_that_are_places_ask_where() -> None:
    assert (
        read("The noise is strongest: A. In the upper left corner B. In the middle C. At the bottom").asked == "where"
    )


@pytest.mark.parametrize(
    "query",
    [
        "I was wondering whether you could tell me if there is noise in it.",
        "Would it be possible for you to check the photo for noise?",
        "Kindly inform me about any noise.",
        "I have the impression that there is noise. Do you agree?",
        "Please have a look at this image and let me know about its noise.",
        "noise level",
    ],
)
def test_the_frame_of_a_request_is_not_what_it_asks(query: str) -> None:
    question = read(query)
    assert question.is_sure, question.doubt
    assert question.asked in ("presence", "degree")
    assert not question.regions
    assert [meaning.subject for meaning in question.claim.meanings] == ["Noise"]
    assert detect_query_type(query) == "explanation"


@pytest.mark.parametrize(
    "query",
    ["Is it far from sharp?", "Is it by no means sharp?", "Is it no longer sharp?"],
)
def test_idioms_that_deny(query: str) -> None:
    assert read(query).claim.negated


@pytest.mark.parametrize(
    ("query", "subject", "kind"),
    [
        ("Was the sharpening overdone?", "Sharpness", "oversharpening"),
        ("Is the contrast cranked up?", "Contrast", "high contrast"),
        ("Is the saturation exaggerated?", "Color distortions", "oversaturation"),
        ("Was it saved at a low JPEG quality?", "Compression", ""),
        ("Are there JPEG artifacts?", "Compression", ""),
        ("Are there coding artifacts?", "Compression", ""),
        ("Is it blocky?", "Compression", "blocking"),
        ("Is the picture washed out?", "Contrast", "low contrast"),
    ],
)
def test_the_fault_that_is_claimed(query: str, subject: str, kind: str) -> None:
    claimed = claimed_meaning(read(query).claim)
    assert claimed
    assert (claimed.subject, claimed.sense, claimed.kind) == (subject, "fault", kind)


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("Would you say this photograph has blockiness?", "presence"),
        ("BLOCKINESS pls", "metric"),
        ("Tell me the most serious technical defect of the photo.", "list"),
        ("On what side is the grain worse?", "where"),
    ],
)
def test_a_metric_a_defect_and_a_place(query: str, asked: str) -> None:
    assert read(query, "BLOCKINESS").asked == asked
