"""Severities of an image without a reference: how far its measurements are from those of good photos.

Severity 0.5, the upper end of "none", is where the range of good photos ends: in each category at least about 80 % of
the best-rated fifth of two sets of authentic photos are below it, and nearly all undistorted test photos. Below 0.5 a
curve rises slowly, so that good and better images still differ. Above, it follows the five levels of synthetic
distortions, and for blur, noise and blocking also the opinion scores of a set of synthetic distortions.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.offline.findings import Curve, Finding, Measurements, Predictions, combine, severity_at, worst
from agenticiqa.signatures.vocabulary import DetectableDistortion

# 90th percentile of the combined severity of pristine photos outside the training set, for the categories in which it
# is above 0.5. Unusual tones can be intended, so "none" ends here. That of color is of the first 43 photos; by all 89
# it is 1.24, with which 1.6 % fewer of them raise a false alarm, but casts and faded colors are found less often.
USUAL: dict[DetectableDistortion, float] = {"Color distortions": 0.89}

BLUR_BY_EXTENT: Curve = ((0.22, 0), (0.42, 0.4), (0.52, 0.8), (0.62, 1.8), (0.75, 3.1), (0.87, 4))
BLUR_BY_EDGES: Curve = ((0.12, 4), (0.17, 3.2), (0.22, 2.3), (0.30, 1.5), (0.38, 0.8), (0.48, 0.4), (0.75, 0))
SOFTNESS = 0.7  # share of the blur's severity that lack of sharpness gets: blur is the cause, so it ranks higher
OVERSHARPENING: Curve = ((0.78, 0), (0.86, 1.2), (0.93, 2.4), (1.0, 3.5))
HALO_SHARE: Curve = (
    (0.15, 0),
    (0.45, 1),
)  # factor on the above: steep edges without halos are drawn, not sharpened
NOISE: Curve = ((2.4, 0), (4, 0.7), (7, 1.5), (12, 2.3), (20, 3.1), (40, 3.7), (80, 4))
IMPULSES: Curve = ((0.003, 0), (0.007, 0.8), (0.015, 1.7), (0.03, 2.6), (0.055, 3.4), (0.08, 4))
BLOCKING: Curve = ((1, 0), (1.4, 0.25), (1.9, 0.6), (2.4, 1.2), (3.0, 2.0), (3.8, 2.8), (5, 3.5), (7, 4))
USUAL_STEPS = 1.8
DARK_MEAN: Curve = ((10, 4), (20, 3), (34, 2), (48, 1), (62, 0.35), (80, 0))
DARK_HIGHLIGHTS: Curve = ((45, 4), (70, 3), (95, 2), (125, 1), (160, 0.4), (255, 0))
BRIGHT_MEAN: Curve = ((60, 0), (165, 0.4), (185, 0.85), (205, 1.45), (225, 2.0), (248, 3.2))
BRIGHT_CLIPPED: Curve = ((0, 0), (0.05, 0.4), (0.1, 0.9), (0.2, 1.6), (0.35, 2.5), (0.55, 3.3), (0.8, 4))
LOW_CONTRAST: Curve = ((0.12, 4), (0.26, 3.2), (0.40, 2.3), (0.54, 1.1), (0.62, 0.35), (0.72, 0))
HIGH_CONTRAST: Curve = ((84, 0), (95, 1), (110, 2.2), (125, 3.2))
DESATURATION: Curve = ((0, 1.6), (0.06, 1.2), (0.12, 0.9), (0.2, 0.6), (0.3, 0.4), (0.5, 0.2), (1.5, 0))
COLORLESS: Curve = ((0, 1.6), (0.06, 1.2), (0.12, 0))  # at least this, whatever the networks predict for a gray image
OVERSATURATION: Curve = ((95, 0), (120, 0.9), (145, 2.0), (180, 4))
COLOR_CAST: Curve = ((27, 0), (33, 0.6), (40, 1.5), (52, 2.7), (70, 4))


def findings_from(image: Measurements, predictions: Predictions | None = None) -> dict[DetectableDistortion, Finding]:
    """The findings for an image, from its measurements by name (``tools.statistics``) and the networks' predictions.

    With predictions, ``image`` must also have "lost_detail" and "color_noise" of the features.
    """
    predictions = predictions or {}
    blurs, noise = _blurs(image, predictions), _noise(image, predictions)
    compression = _compression(image, predictions)
    brightness = _brightness(image, predictions)
    others = worst(noise, compression, brightness).severity
    found: dict[DetectableDistortion, Finding] = {
        "Blurs": blurs,
        "Color distortions": _color(image, predictions),
        "Compression": compression,
        "Noise": noise,
        "Brightness change": brightness,
        "Sharpness": _sharpness(image, predictions, others, blurs.severity),
        "Contrast": _contrast(image, predictions, brightness),
    }
    if not predictions:
        return found
    return {
        name: replace(finding, severity=float(beyond_usual(name, finding.severity))) for name, finding in found.items()
    }


def beyond_usual(category: DetectableDistortion, severity: float | NDArray[np.float64]) -> NDArray[np.float64]:
    """Severities in 0..4, rescaled monotonically so that the category's ``USUAL`` severity becomes 0.5."""
    return np.interp(np.asarray(severity), (0, USUAL.get(category, 0.5), 4), (0, 0.5, 4))


def _blurs(image: Measurements, predictions: Predictions) -> Finding:
    extent, sharpness = image["blur_extent"], image["edge_sharpness"]
    if sharpness == 0:
        return Finding(0.0, "defocus or motion blur", "There is no edge in the image by which blur could be judged.")
    return combine(
        "Blurs",
        predictions,
        Finding(
            max(severity_at(extent, BLUR_BY_EXTENT), severity_at(sharpness, BLUR_BY_EDGES)),
            "defocus or motion blur",
            f"Edges are about {1 / sharpness:.1f} pixels wide (usually 1.3 to 2.1), and blurring the image again would "
            f"leave {extent:.0%} of its gradients (usually 20% to 42%).",
        ),
    )


def _sharpness(image: Measurements, predictions: Predictions, others: float, blur: float) -> Finding:
    sharpness, halos = image["edge_sharpness"], image["overshoot"]
    measured = f"The steepest step of an edge is {sharpness:.0%} of its height (usually 48% to 78%)"
    # Noise, block borders and clipped highlights make steep edges, too, which are not due to sharpening.
    excess = severity_at(sharpness, OVERSHARPENING) * severity_at(halos, HALO_SHARE) * (1 - others / 4)
    soft = SOFTNESS * min(severity_at(sharpness, BLUR_BY_EDGES), blur) if sharpness else 0.0
    return worst(
        Finding(soft, "lack of sharpness", f"{measured}."),
        combine(
            "Sharpness",
            predictions,
            Finding(excess, "oversharpening", f"{measured}, with halos of {halos:.0%} of it beside."),
        ),
    )


def _noise(image: Measurements, predictions: Predictions) -> Finding:
    sigma, isolated = image["noise_sigma"], image["isolated_pixels"]
    measured = [
        Finding(
            severity_at(sigma, NOISE),
            "Gaussian noise",
            f"The smoothest parts fluctuate by {sigma:.1f} of 255 gray levels (standard deviation, usually below 2.4).",
        ),
        Finding(
            severity_at(isolated, IMPULSES),
            "impulse noise",
            f"{isolated:.2%} of the pixels stand out alone from all their neighbors (usually below 0.3%).",
        ),
    ]
    if predictions:
        explanation = (
            f"Colors of the smoothest parts fluctuate by {image['color_noise']:.1f} of 255 levels (usually below 2)."
        )
        of_value = severity_at(image["color_noise"], NOISE)
        measured.append(Finding(0.0, "color noise", explanation, measured=of_value))
    return combine("Noise", predictions, *measured)


def _compression(image: Measurements, predictions: Predictions) -> Finding:
    blockiness = image["blockiness"]
    grid = (
        f"teps along an 8 x 8 grid are {blockiness:.1f} times as strong as elsewhere (usually 1.0 to {USUAL_STEPS:.1f})"
    )
    blocking = severity_at(blockiness, BLOCKING)
    by_value = blocking if round(blockiness, 1) > USUAL_STEPS else 0.0
    measured = [Finding(blocking, "JPEG blocking", f"S{grid}.", measured=by_value)]
    if predictions:
        lost = f"{image['lost_detail']:.0%} of the finest detail is rounded away"
        measured.append(Finding(0.0, "coding artifacts", f"{lost}, in the pattern that coding leaves; s{grid}."))
        measured.append(Finding(0.0, "banding", f"Few values are left in smooth parts, and {lost}."))
    return combine("Compression", predictions, *measured)


def _brightness(image: Measurements, predictions: Predictions) -> Finding:
    mean, highlights, clipped = image["mean_luma"], image["highlight_level"], image["clipped_bright"]
    return combine(
        "Brightness change",
        predictions,
        Finding(
            max(severity_at(mean, DARK_MEAN), severity_at(highlights, DARK_HIGHLIGHTS)),
            "underexposure",
            f"The mean brightness is {mean:.0f} of 255 (usually 75 to 165), and the brightest parts reach "
            f"{highlights:.0f} (usually over 180).",
        ),
        Finding(
            max(severity_at(mean, BRIGHT_MEAN), severity_at(clipped, BRIGHT_CLIPPED)),
            "overexposure",
            f"The mean brightness is {mean:.0f} of 255 (usually 75 to 165), and {clipped:.0%} of the image is pure "
            f"white (usually below 5%).",
        ),
    )


def _contrast(image: Measurements, predictions: Predictions, brightness: Finding) -> Finding:
    span, rms = image["tonal_range"], image["rms_contrast"]
    # Overexposure brightens dark tones and clips bright ones, so it explains part of a low contrast.
    remaining = 1 - brightness.severity / 4 if brightness.subtype == "overexposure" else 1.0
    return combine(
        "Contrast",
        predictions,
        Finding(
            severity_at(span, LOW_CONTRAST) * remaining,
            "low contrast",
            f"The tones from the darkest to the brightest parts span {span:.0%} of what their brightness allows "
            f"(usually over 62%).",
        ),
        Finding(
            severity_at(rms, HIGH_CONTRAST),
            "high contrast",
            f"Brightness varies by {rms:.0f} of 255 gray levels (standard deviation, usually below 84).",
        ),
    )


def _color(image: Measurements, predictions: Predictions) -> Finding:
    color, cast = image["colorfulness"], image["color_cast"]
    # Low contrast and darkness reduce color and brightness variation alike; desaturation reduces their ratio.
    per_contrast = color / max(image["rms_contrast"], 1.0)
    faded = Finding(
        severity_at(per_contrast, DESATURATION),
        "desaturation",
        f"Colors vary {per_contrast:.2f} times as much as brightness (usually over 0.25; a gray picture may be "
        f"meant to be one).",
    )
    found = combine(
        "Color distortions",
        predictions,
        faded,
        Finding(
            severity_at(color, OVERSATURATION),
            "oversaturation",
            f"The colorfulness is {color:.0f} on Hasler and Süsstrunk's scale (usually below 95).",
        ),
        Finding(
            severity_at(cast, COLOR_CAST),
            "color cast",
            f"What should be neutral is {cast:.0f} CIELAB units away from gray (usually below 20).",
        ),
    )
    colorless = replace(faded, severity=severity_at(per_contrast, COLORLESS), explanations=found.explanations)
    return worst(found, colorless)
