"""Answers are marked by what they say: strictly, but fairly to other words for the same."""

import pytest

from agenticiqa.eval.research.marking import OTHER, UNDETERMINED, mark, read

READ = [
    ("Yes, severe Gaussian noise", "yes_no", "yes"),
    ("no.", "yes_no", "no"),
    ("A", "yes_no", OTHER),
    ("Noise is visible", "yes_no", OTHER),
    ("Unable to determine", "yes_no", UNDETERMINED),
    ("This cannot be determined from the image.", "yes_no", UNDETERMINED),
    ("B", "letter", "B"),
    ("(C) Noise", "letter", "C"),
    ("Answer: D", "letter", "D"),
    ("A lot of noise", "letter", OTHER),
    ("Blur", "letter", OTHER),
    ("No visible noise", "severity", "none"),
    ("Slight, barely visible", "severity", "slight"),
    ("Strong motion blur", "severity", "severe"),
    ("Very severe blur", "severity", "extreme"),
    ("2.4 of 5", "severity", OTHER),
    ("Noise (extreme, Gaussian noise): 23 gray levels, usually below 2", "severity", "extreme"),
    ("Noise (severe, Gaussian noise): 20 gray levels; Blurs (slight)", "category", "Noise"),
    ("The picture is underexposed and noisy", "category", "Brightness change"),
    ("JPEG blocking", "category", "Compression"),
    ("Faded colours", "category", "Color distortions"),
    ("No visible distortion was measured", "category", OTHER),
    ("The left half, not the right one", "place", "left"),
    ("in the upper left corner", "place", "top left"),
    ("left upper corner", "place", "top left"),
    ("the middle", "place", "center"),
    ("all over the image", "place", "everywhere"),
    ("Noise (moderate)", "place", OTHER),
    ("The reference is sharper than the image", "image", "reference"),
    ("the distorted image", "image", "image"),
    ("PSNR 31.42 dB", "number", "31.42"),
    ("62 of 100", "number", "62"),
    ("good", "number", OTHER),
]


@pytest.mark.parametrize(("answer", "form", "found"), READ)
def test_what_an_answer_says_is_read_from_it(answer: str, form: str, found: str) -> None:
    assert read(answer, form) == found


@pytest.mark.parametrize(
    ("answer", "form", "accepted", "expected"),
    [
        ("Severe noise", "severity", ("moderate", "severe"), "right"),
        ("Slight noise", "severity", ("moderate", "severe"), "wrong"),
        ("Unable to determine", "severity", ("moderate",), "undetermined"),
        ("Unable to determine", "undetermined", (UNDETERMINED,), "right"),
        ("Yes, it is blurred", "undetermined", (UNDETERMINED,), "wrong"),
        ("31.4 dB", "number", ("31.3", "31.5", "dB"), "right"),
        ("31.4", "number", ("31.3", "31.5", "dB"), "wrong"),
        ("2.04 of 5", "number", ("31.3", "31.5", "dB"), "wrong"),
        ("70", "number", ("50.0", "100.0"), "right"),
        ("3.9", "number", ("50.0", "100.0"), "wrong"),
        ("A", "yes_no", ("yes",), "wrong"),
    ],
)
def test_an_answer_is_right_wrong_or_undetermined(
    answer: str, form: str, accepted: tuple[str, ...], expected: str
) -> None:
    assert mark(answer, form, accepted) == expected
