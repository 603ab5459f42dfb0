"""Parsed questions in many wordings: intent, distortion, subject and part; and properties of the network."""

from dataclasses import replace

import pytest

from agenticiqa.programs.offline.answers.asked import Asked, question_alone, read_question, side_named
from agenticiqa.programs.offline.answers.choices import in_listed_order
from agenticiqa.programs.offline.answers.question_reader import (
    FAULTS,
    INTENTS,
    LONGEST_TEXT,
    MEANINGS,
    NETWORK,
    SHA256,
    corrected,
    fault_named,
    listing,
    read_text,
)
from agenticiqa.programs.questions.options import parse_options
from agenticiqa.programs.questions.scale import RatingScale
from agenticiqa.programs.tools.numerics.weights import read_checked
from agenticiqa.signatures.lexicon import terms_in


def read(query: str, *regions: str) -> Asked:
    return read_question(query, parse_options(query), regions, listed=True)


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("Is it noisy?", "presence"),
        ("noisy?", "presence"),
        ("Any banding?", "presence"),
        ("True or false: the image is blurry.", "presence"),
        ("bro is this pic kinda noisy or what", "presence"),
        ("I looked at this on two monitors and cannot decide, so please tell me: does it contain noise?", "presence"),
        ("How noisy is it?", "degree"),
        ("What is the severity of the blur?", "degree"),
        ("Is the noise slight, moderate or severe?", "degree"),
        ("What's wrong with this photo?", "which"),
        ("Tell me the most serious technical defect of the photo.", "which"),
        ("Why does it look so grainy?", "which"),
        ("Describe its quality.", "which"),
        ("Which half is noisier?", "half"),
        ("Which half has less noise?", "half-clean"),
        ("Where is the blur?", "where"),
        ("Point out the noisy part.", "where"),
        ("Is it sharper than the original?", "compare-presence"),
        ("Which is noisier, the image or the reference?", "compare-image"),
        ("What is the main distortion compared with the reference?", "compare-category"),
        ("Rate the noise from 1 to 5.", "rating"),
        ("On a scale of 1 to 10, how blurry is it?", "rating"),
        ("What is the PSNR?", "metric"),
        ("Is the noise intentional?", "unanswerable"),
        ("Which camera caused the noise?", "unanswerable"),
        ("How can I remove the noise?", "unanswerable"),
        ("Describe what the people are doing.", "unanswerable"),
    ],
)
def test_the_intent_of_a_question(query: str, what: str) -> None:
    assert read(query).what == what


@pytest.mark.parametrize(
    ("query", "regions", "subject", "parts"),
    [
        ("Is the reference blurry?", (), "reference", ()),
        ("Is it noisier than the reference?", (), "both", ()),
        ("Is the left half noisy?", (), "part", ("left",)),
        ("Is the left half noisy?", ("left half",), "part", ("left half",)),
        ("Is the vehicle blurry?", ("vehicle",), "part", ("vehicle",)),
        ("Are the highlights blown?", (), "image", ()),
        ("I took this at my cousin's wedding by the lake. Is it noisy?", (), "image", ()),
    ],
)
def test_the_subject_and_parts_of_a_question(
    query: str, regions: tuple[str, ...], subject: str, parts: tuple[str, ...]
) -> None:
    asked = read(query, *regions)
    assert (asked.subject, asked.regions) == (subject, parts)


@pytest.mark.parametrize(
    ("query", "is_denial"),
    [
        ("Is it noisy?", False),
        ("Isn't it noisy?", False),
        ("Is it free of noise?", True),
        ("Is it devoid of noise?", True),
        ("Is there no trace of noise?", True),
        ("Is the picture sharp?", True),
        ("Is it far from sharp?", False),
        ("Is it by no means sharp?", False),
        ("Is it untrue that there is no noise?", False),
        ("Would you deny that there is noise here?", True),
    ],
)
def test_the_polarity_of_a_question(query: str, is_denial: bool) -> None:
    assert read(query).is_denial is is_denial


@pytest.mark.parametrize(
    ("query", "subject", "kind"),
    [
        ("Was the sharpening overdone?", "Sharpness", "oversharpening"),
        ("Is the contrast cranked up?", "Contrast", "high contrast"),
        ("Was it saved at a low JPEG quality?", "Compression", ""),
        ("Is it blocky?", "Compression", "blocking"),
        ("Is there a yellowish tinge to it?", "Color distortions", "yellow cast"),
        ("Is there color noise?", "Noise", "color noise"),
        ("Is there a loss of detail?", "clarity", ""),
        ("How is the focus?", "Blurs", ""),
        ("Is anything wrong with it?", "any", ""),
    ],
)
def test_the_distortion_in_question(query: str, subject: str, kind: str) -> None:
    fault = read(query).fault
    assert fault
    assert (fault.subject, fault.sense, fault.kind) == (subject, "fault", kind)


@pytest.mark.parametrize(
    ("query", "scale"),
    [
        ("Rate the noise from 0 to 7, where 0 is clean and 7 unbearable", RatingScale(0, 7, "low")),
        ("Rate the noise from 0 to 100, where 100 is the best", RatingScale(0, 100, "high")),
        ("On a scale from one to five, how noisy is it?", RatingScale(1, 5, "low")),
    ],
)
def test_the_scale_of_a_rating(query: str, scale: RatingScale) -> None:
    assert read(query).scale == scale


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
        ("you cant see contours", "you cant see contours"),
        ("NIQE", "NIQE"),
    ],
)
def test_misspelled_words_are_corrected_and_correct_ones_are_kept(wrong: str, right: str) -> None:
    assert corrected(wrong) == right


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


def test_the_network_is_deterministic() -> None:
    found = read_text("Would you say that the original already had that yellowish tinge?")
    assert (found.intent.name, found.meaning.name) == ("reference-yes", "cast")
    assert 0 < found.intent.probability <= found.intent.category <= 1
    read_text.cache_clear()
    assert read_text("Would you say that the original already had that yellowish tinge?") == found


@pytest.mark.parametrize("text", ["", "?", "noise " * LONGEST_TEXT, "はい 🙂 \x00", "[MASK] [SEP]"])
def test_any_text_can_be_parsed(text: str) -> None:
    found = read_text(text)
    assert found.intent.name in INTENTS
    assert found.meaning.name in MEANINGS
    assert read(text)


NOUNS = {
    "blur": "blur",
    "defocus": "defocus blur",
    "motion_blur": "motion blur",
    "noise": "noise",
    "grain": "grain",
    "impulse_noise": "salt and pepper noise",
    "compression": "compression artifacts",
    "blocking": "blocking artifacts",
    "banding": "banding",
    "dark": "underexposure",
    "bright": "overexposure",
    "exposure": "brightness change",
    "low_contrast": "low contrast",
    "high_contrast": "excessive contrast",
    "faded": "desaturation",
    "oversaturated": "oversaturation",
    "cast": "color cast",
    "oversharpened": "oversharpening",
}


def test_the_lexicon_has_every_distortion_of_the_network() -> None:
    assert {*NOUNS} == {*FAULTS}
    for name, words in NOUNS.items():
        assert fault_named(name) == replace(terms_in(words)[0].meaning, sense="fault"), name
    assert fault_named("none") is None


def test_the_network_is_the_one_that_was_trained() -> None:
    assert len(read_checked(NETWORK, SHA256)) == NETWORK.stat().st_size


def test_levels_are_spaced_evenly_along_the_options() -> None:
    assert in_listed_order({"A": 0.0, "B": 2.6, "C": 2.0, "D": 5.0}) == pytest.approx(
        {"A": 0.24, "B": 1.68, "C": 3.12, "D": 4.56}
    )
    for kept in ({"A": 0.0, "B": 4.0, "C": 1.0}, {"A": 0.2, "B": 4.1}, {"A": 1.0, "B": 1.0, "C": 1.0}):
        assert in_listed_order(kept) == kept


@pytest.mark.parametrize("options", [{}, {"A": "Mushy", "B": "Gritty"}])
def test_a_query_of_only_options_has_no_question(options: dict[str, str]) -> None:
    assert question_alone("A) Mushy B) Gritty") == ""
    assert question_alone("What is it? A) Mushy B) Gritty") == "What is it?"
    assert listing("", options) == " ".join(f"{letter}. {text}" for letter, text in options.items())
