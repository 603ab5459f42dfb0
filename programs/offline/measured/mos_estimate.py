"""Estimate the MOS of an image from the severities of its distortions, or with the learned model.

From severities, the expected level is ``UNDISTORTED_LEVEL`` minus the weighted severities. The true MOS is assumed
to be Gaussian around it. All weights are positive, so that no distortion ever improves the estimate.
"""

from collections.abc import Mapping
from dataclasses import replace

from agenticiqa.programs.images.loaded import LoadedImage
from agenticiqa.programs.offline.measured.findings import Finding
from agenticiqa.programs.tools.adapter import Adapter
from agenticiqa.programs.tools.metrics.learned_iqa import SMALLEST_SIDE, outside_training, predicted_mos
from agenticiqa.programs.tools.numerics.predicted_mos import PredictedMOS
from agenticiqa.programs.tools.outside_training import widened
from agenticiqa.signatures.categories import CATEGORIES
from agenticiqa.signatures.vocabulary import DetectableDistortion

# Fitted on 2026-11-21 by non-negative least squares to the MOS, scaled to 1..5, of 300 images of CLIVE and 1,200 of
# BIQ2021 (their split=train here). Both sets have the same total weight and separate intercepts (3.85 and 4.47;
# UNDISTORTED_LEVEL is the mean). Authentic photos hardly show the effect of noise or low contrast, so the weights are
# regularized towards 0.7 (at which one extreme distortion alone gives 1.36), as strongly as by 100 images with
# severity 1. RESIDUAL_STD is the standard deviation of the residuals.
UNDISTORTED_LEVEL = 4.16
LOSS_PER_SEVERITY: dict[DetectableDistortion, float] = {row.name: row.loss for row in CATEGORIES if row.is_detectable}
RESIDUAL_STD = 0.66
# By definition the level is 5 minus the worst severity: 4 for a slight distortion, 1 for an extreme one. The fit, on
# photos with few extreme distortions, may exceed this by at most half a level.
LEVEL_LIMIT = 5.5


def expected_level(findings: Mapping[DetectableDistortion, Finding]) -> float:
    """Return the expected level, 1 (bad) to 5 (excellent), from the severities.

    It is ``UNDISTORTED_LEVEL`` if all are 0, and at most half a level above the definition for the worst severity.
    Categories that are missing in ``findings`` count as undistorted.
    """
    loss = sum(weight * findings[name].severity for name, weight in LOSS_PER_SEVERITY.items() if name in findings)
    worst = max((finding.severity for finding in findings.values()), default=0.0)
    return max(min(UNDISTORTED_LEVEL - loss, LEVEL_LIMIT - worst), 1.0)


def learned_model_applies(image: LoadedImage, reference: LoadedImage | None) -> bool:
    """Return whether the learned model predicts the MOS: the image is large enough and has no reference."""
    return reference is None and min(image.size) >= SMALLEST_SIDE


def estimate_mos(
    image: LoadedImage,
    reference: LoadedImage | None,
    findings: Mapping[DetectableDistortion, Finding],
    adapter: Adapter | None = None,
) -> PredictedMOS:
    """Return the estimated MOS of an image: from the learned model if it applies, else from the findings.

    Without a reference its spread is wide for images outside of the model's training data. The learned model hardly
    reacts to local damage, so its estimate is limited by the local findings.
    """
    if learned_model_applies(image, reference):
        learned = predicted_mos(image, adapter)
        local = {name: finding for name, finding in findings.items() if finding.local}
        return replace(learned, score=min(learned.score, expected_level(local))) if local else learned
    measured = PredictedMOS(expected_level(findings), RESIDUAL_STD)
    return measured if reference else widened(measured, outside_training(image))
