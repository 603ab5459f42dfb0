"""Measurements in words."""

import pytest

from agenticiqa.programs.offline.answers.measured_image import MeasuredImage
from agenticiqa.programs.offline.measured.findings import Finding
from agenticiqa.signatures.lexicon import distortions_in
from agenticiqa.signatures.vocabulary import DETECTABLE, DetectableDistortion, everyday_name


@pytest.mark.parametrize("category", DETECTABLE)
def test_a_category_has_the_same_name_in_answers_and_tables(category: DetectableDistortion) -> None:
    unseen = MeasuredImage({category: Finding(0.1, "", "")}, 4.0).describe(category)
    seen = MeasuredImage({category: Finding(3.0, "", "")}, 2.0).describe(category)
    assert (unseen, seen) == (f"no visible {everyday_name(category)}", f"severe {everyday_name(category)}")
    assert {found for _, found in distortions_in(seen)} == {category}, "who reads it finds the category in it"
