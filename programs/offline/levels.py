"""From the severities of the seven categories to probabilities of the five levels of quality.

The expected level is ``PRISTINE`` less the weighted severities; how far people's opinion lies from it is taken for
Gaussian, and each level gets the mass nearest to it (the outer levels also what lies beyond). All weights are
positive: no distortion ever makes an image better.
"""

from collections.abc import Mapping

from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.offline.findings import Finding
from agenticiqa.programs.tools.metrics.learned_iqa import SMALLEST_SIDE, opinion_of
from agenticiqa.programs.tools.numerics.opinion import Opinion
from agenticiqa.signatures.vocabulary import DetectableDistortion

# Fitted on 2026-11-21 by non-negative least squares to the mean opinions, put on 1..5, of 300 images of CLIVE and 1,200
# of BIQ2021 (their split=train here), the two sets with equal weight in all and each with a level of its own for
# undistorted images (3.85 and 4.47; PRISTINE is the mean). Authentic photos hardly say what noise or low contrast cost,
# so the weights are drawn towards 0.7, at which one extreme distortion alone leads from 4.16 to 1.36, as strongly as by
# 100 images with severity 1. SPREAD is the standard deviation of what is left.
PRISTINE = 4.16
WEIGHTS: dict[DetectableDistortion, float] = {
    "Blurs": 0.41,
    "Color distortions": 0.24,
    "Compression": 0.38,
    "Noise": 0.66,
    "Brightness change": 0.27,
    "Sharpness": 0.49,
    "Contrast": 0.17,
}
# By the levels' own definition a slight distortion is level 4 and an extreme one level 1. The fit, made on photos that
# hardly have any extreme ones, may be kinder than that by half a level at most.
UNIMPAIRED = 5.5
SPREAD = 0.66


def expected_level(findings: Mapping[DetectableDistortion, Finding]) -> float:
    """The level that the severities speak for, 1 (bad) to 5 (excellent); ``PRISTINE`` when all of them are 0.

    Never more than half a level above what the worst severity means by itself.

    ``findings`` has one per category of WEIGHTS; a category that is missing counts as undistorted.
    """
    loss = sum(weight * findings[name].severity for name, weight in WEIGHTS.items() if name in findings)
    worst = max((finding.severity for finding in findings.values()), default=0.0)
    return max(min(PRISTINE - loss, UNIMPAIRED - worst), 1.0)


def learned_applies(image: LoadedImage, reference: LoadedImage | None) -> bool:
    """Whether the learned model judges: without a reference, and where the image is large enough for it."""
    return reference is None and min(image.size) >= SMALLEST_SIDE


def judge(
    image: LoadedImage, reference: LoadedImage | None, findings: Mapping[DetectableDistortion, Finding]
) -> Opinion:
    """What people would think of an image with these findings: by the learned model, or what the findings speak for."""
    if learned_applies(image, reference):
        return opinion_of(image)
    return Opinion(expected_level(findings), SPREAD)
