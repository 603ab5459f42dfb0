"""Severities of an image without a reference: how far its measurements are from those of good photos.

Severity 0.5, the upper end of "none", is where the range of good photos ends: in each category at least about 80 % of
the best-rated fifth of two sets of authentic photos are below it, and nearly all undistorted test photos. Below 0.5 a
curve rises slowly, so that good and better images still differ. Above, it follows the five levels of synthetic
distortions, and for blur, noise and blocking also the opinion scores of a set of synthetic distortions.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.offline.measured.findings import (
    Finding,
    Measured,
    Measurements,
    Predictions,
    severity_at,
    worst,
)
from agenticiqa.signatures.categories import (
    BLURS,
    BRIGHTNESS,
    CATEGORIES,
    COLOR,
    COMPRESSION,
    CONTRAST,
    NOISE,
    SHARPNESS,
    Curve,
)
from agenticiqa.signatures.vocabulary import DetectableDistortion

USUAL: dict[DetectableDistortion, float] = {row.name: row.usual for row in CATEGORIES}

BLUR_BY_EXTENT: Curve = ((0.22, 0), (0.42, 0.4), (0.52, 0.8), (0.62, 1.8), (0.75, 3.1), (0.87, 4))
BLUR_BY_EDGES: Curve = ((0.12, 4), (0.17, 3.2), (0.22, 2.3), (0.30, 1.5), (0.38, 0.8), (0.48, 0.4), (0.75, 0))
SOFTNESS = 0.7  # share of the blur's severity that lack of sharpness gets: blur is the cause, so it ranks higher
OVERSHARPENING: Curve = ((0.78, 0), (0.86, 1.2), (0.93, 2.4), (1.0, 3.5))
HALO_SHARE: Curve = ((0.15, 0), (0.45, 1))  # factor on the above: steep edges without halos are drawn, not sharpened
USUAL_STEPS = 1.8
DARK_MEAN: Curve = ((10, 4), (20, 3), (34, 2), (48, 1), (62, 0.35), (80, 0))
DARK_HIGHLIGHTS: Curve = ((45, 4), (70, 3), (95, 2), (125, 1), (160, 0.4), (255, 0))
BRIGHT_MEAN: Curve = ((60, 0), (165, 0.4), (185, 0.85), (205, 1.45), (225, 2.0), (248, 3.2))
BRIGHT_CLIPPED: Curve = ((0, 0), (0.05, 0.4), (0.1, 0.9), (0.2, 1.6), (0.35, 2.5), (0.55, 3.3), (0.8, 4))
LOW_CONTRAST: Curve = ((0.12, 4), (0.26, 3.2), (0.40, 2.3), (0.54, 1.1), (0.62, 0.35), (0.72, 0))
DESATURATION: Curve = ((0, 1.6), (0.06, 1.2), (0.12, 0.9), (0.2, 0.6), (0.3, 0.4), (0.5, 0.2), (1.5, 0))
COLORLESS: Curve = ((0, 1.6), (0.06, 1.2), (0.12, 0))  # at least this, whatever the networks predict for a gray image


def findings_from(image: Measurements, predictions: Predictions | None = None) -> dict[DetectableDistortion, Finding]:
    """The findings for an image, from its measurements by name (``tools.statistics``) and the networks' predictions.

    With predictions, ``image`` must also have "lost_detail" and "color_noise" of the features.
    """
    given = Measured(image, None, predictions or {})
    blurs, noise, compression, brightness = _blurs(given), _noise(given), _compression(given), _brightness(given)
    others = worst(noise, compression, brightness).severity
    special = {
        BLURS: blurs,
        COLOR: _color(given),
        COMPRESSION: compression,
        NOISE: noise,
        BRIGHTNESS: brightness,
        SHARPNESS: _sharpness(given, others, blurs.severity),
        CONTRAST: _contrast(given, brightness),
    }
    found = given.each_category(special)
    if not predictions:
        return found
    return {
        name: replace(finding, severity=float(beyond_usual(name, finding.severity))) for name, finding in found.items()
    }


def beyond_usual(category: DetectableDistortion, severity: float | NDArray[np.float64]) -> NDArray[np.float64]:
    """Severities in 0..4, rescaled monotonically so that the category's ``USUAL`` severity becomes 0.5."""
    return np.interp(np.asarray(severity), (0, USUAL[category], 4), (0, 0.5, 4))


def _blurs(given: Measured) -> Finding:
    extent, sharpness = given.image["blur_extent"], given.image["edge_sharpness"]
    if sharpness == 0:
        return Finding(0.0, "defocus or motion blur", "There is no edge in the image by which blur could be judged.")
    severity = max(severity_at(extent, BLUR_BY_EXTENT), severity_at(sharpness, BLUR_BY_EDGES))
    return given.combined(BLURS, given.finding("defocus or motion blur", severity, edge_width=1 / sharpness))


def _sharpness(given: Measured, others: float, blur: float) -> Finding:
    sharpness, halos = given.image["edge_sharpness"], given.image["overshoot"]
    # Noise, block borders and clipped highlights make steep edges, too, which are not due to sharpening.
    excess = severity_at(sharpness, OVERSHARPENING) * severity_at(halos, HALO_SHARE) * (1 - others / 4)
    soft = SOFTNESS * min(severity_at(sharpness, BLUR_BY_EDGES), blur) if sharpness else 0.0
    sharpened = given.combined(SHARPNESS, given.finding("oversharpening", excess))
    return worst(given.finding("lack of sharpness", soft), sharpened)


def _noise(given: Measured) -> Finding:
    measured = [given.finding(name, given.by_value(name)) for name in ("Gaussian noise", "impulse noise")]
    if given.predictions:
        measured.append(given.finding("color noise", 0.0, by_value=given.by_value("color noise")))
    return given.combined(NOISE, *measured)


def _compression(given: Measured) -> Finding:
    blocking = given.by_value("JPEG blocking")
    by_value = blocking if round(given.image["blockiness"], 1) > USUAL_STEPS else 0.0
    measured = [given.finding("JPEG blocking", blocking, by_value=by_value)]
    if given.predictions:
        measured += [given.finding(name, 0.0) for name in ("coding artifacts", "banding")]
    return given.combined(COMPRESSION, *measured)


def _brightness(given: Measured) -> Finding:
    mean = given.image["mean_luma"]
    dark = max(severity_at(mean, DARK_MEAN), severity_at(given.image["highlight_level"], DARK_HIGHLIGHTS))
    bright = max(severity_at(mean, BRIGHT_MEAN), severity_at(given.image["clipped_bright"], BRIGHT_CLIPPED))
    return given.combined(BRIGHTNESS, given.finding("underexposure", dark), given.finding("overexposure", bright))


def _contrast(given: Measured, brightness: Finding) -> Finding:
    # Overexposure brightens dark tones and clips bright ones, so it explains part of a low contrast.
    remaining = 1 - brightness.severity / 4 if brightness.subtype == "overexposure" else 1.0
    return given.combined(
        CONTRAST,
        given.finding("low contrast", severity_at(given.image["tonal_range"], LOW_CONTRAST) * remaining),
        given.finding("high contrast", given.by_value("high contrast")),
    )


def _color(given: Measured) -> Finding:
    # Low contrast and darkness reduce color and brightness variation alike; desaturation reduces their ratio.
    per_contrast = given.image["colorfulness"] / max(given.image["rms_contrast"], 1.0)
    faded = given.finding("desaturation", severity_at(per_contrast, DESATURATION), per_contrast=per_contrast)
    others = [given.finding(name, given.by_value(name)) for name in ("oversaturation", "color cast")]
    found = given.combined(COLOR, faded, *others)
    colorless = replace(faded, severity=severity_at(per_contrast, COLORLESS), explanations=found.explanations)
    return worst(found, colorless)
