"""The offline stages: detected distortions and their analysis."""

import pytest

from agenticiqa.eval.research.distort import distort
from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.offline.stages import MeasuredAnalyst, MeasuredDetector
from agenticiqa.signatures.types import GLOBAL
from support.distortion_levels import scene
from support.images import loaded


@pytest.fixture(scope="module")
def image() -> LoadedImage:
    """Return an image with noise everywhere."""
    return loaded(distort(scene(), "white_noise", 5))


def test_visible_distortions_are_detected_worst_first(image: LoadedImage) -> None:
    found = MeasuredDetector()(image=image, query="", regions=[GLOBAL], boxes={}, reference=None)
    assert list(found.distortion_set) == [GLOBAL]
    assert found.distortion_set[GLOBAL][0] == "Noise"
    clean = MeasuredDetector()(image=image, query="", regions=[GLOBAL], boxes={}, reference=image)
    assert clean.distortion_set == {GLOBAL: []}


def test_only_the_requested_distortions_are_analyzed(image: LoadedImage) -> None:
    asked = {GLOBAL: ["Blurs", "Noise"]}
    found = MeasuredAnalyst()(image=image, query="", distortion_set=asked, boxes={}, reference=None).distortion_analysis
    assert [row.type for row in found[GLOBAL]] == ["Noise", "Blurs"], "the worst first"
    assert found[GLOBAL][0].severity in ("severe", "extreme")
    assert found[GLOBAL][0].explanation.endswith(".")
    none = MeasuredAnalyst()(
        image=image, query="", distortion_set={GLOBAL: []}, boxes={}, reference=None
    ).distortion_analysis
    assert none == {GLOBAL: []}
