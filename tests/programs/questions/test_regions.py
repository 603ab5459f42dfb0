"""A plan keeps a region only if the question names it."""

import pytest

from agenticiqa.programs.questions.regions import names_region


@pytest.mark.parametrize(
    ("query", "region"),
    [
        ("Is the cat sharp?", "cat"),
        ("Are the cats sharp?", "the cat"),
        ("How noisy is the left half?", "left half"),
        ("Which is blurrier? A. the red car B. the sky", "sky"),
        ("Is the license plate legible?", "licence plate"),
        ("How blurry are the people's faces?", "face"),
        ("这张照片里的猫清晰吗？", "猫"),
        ("Ist das Gesicht scharf?", "Gesicht"),
        ("In this photo of a cup, is the cup sharp?", "cup"),
        ("Rate this photo of a cup and the sharpness of its handle.", "handle"),
        ("How sharp is the cat in this picture of a garden?", "cat"),
    ],
)
def test_a_region_in_the_words_of_the_question_is_named(query: str, region: str) -> None:
    assert names_region(query, region)


@pytest.mark.parametrize(
    ("query", "region"),
    [
        ("Rate the perceptual quality of this image.", "vehicle"),
        ("Rate the perceptual quality of this image.", "image"),
        ("Rate the perceptual quality of this image.", "the whole photo"),
        ("Rate the perceptual quality of this image.", "perceptual quality"),
        ("Is it noisy?", "noise"),
        ("Is the cat sharp?", "number plate"),
        ("Is the cat sharp?", ""),
        ("Is the cat sharp?", "catalogue"),
        ("Rate the quality of this photo of a cup on a table.", "cup"),
        ("How noisy is this picture of my dog?", "dog"),
    ],
)
def test_other_regions_and_words_for_the_whole_image_are_not_named(query: str, region: str) -> None:
    assert not names_region(query, region)
