"""Severities of an image with a reference: how much its measurements differ from those of the reference.

A change of tone also scales other measurements: a darker image has less contrast, color and noise. Each finding is
about the change that the others do not explain. The curves follow the five levels of synthetic distortions, of which
the last is "extreme"; their first points allow for changes that nobody sees.
"""

import math

from agenticiqa.programs.offline.findings import Curve, Finding, Measurements, Predictions, combine, severity_at, worst
from agenticiqa.signatures.vocabulary import DetectableDistortion

BLUR_BY_EXTENT: Curve = ((0.015, 0), (0.07, 0.8), (0.16, 1.6), (0.30, 2.5), (0.44, 3.3), (0.58, 4))
BLUR_BY_EDGES: Curve = ((0.17, 4), (0.25, 3.3), (0.33, 2.5), (0.46, 1.6), (0.67, 0.8), (0.92, 0))
OVERSHARPENING: Curve = ((1.03, 0), (1.12, 0.8), (1.22, 1.6), (1.35, 2.5), (1.5, 3.3), (1.8, 4))
NOISE: Curve = ((0.5, 0), (2.5, 0.7), (5.5, 1.5), (9.5, 2.3), (16, 3.1), (35, 3.7), (70, 4))
IMPULSES: Curve = ((0.001, 0), (0.004, 0.8), (0.012, 1.6), (0.03, 2.5), (0.055, 3.4), (0.08, 4))
BLOCKING: Curve = ((1.08, 0), (1.4, 0.8), (1.8, 1.5), (2.4, 2.3), (3.2, 3.0), (4.5, 3.6), (6, 4))
BRIGHTNESS: Curve = ((0.01, 0), (0.12, 0.8), (0.25, 1.6), (0.4, 2.5), (0.55, 3.3), (0.72, 4))
CONTRAST_LOSS: Curve = ((0.02, 0), (0.2, 0.8), (0.4, 1.6), (0.55, 2.5), (0.7, 3.3), (0.85, 4))
CONTRAST_GAIN: Curve = ((0.03, 0), (0.15, 0.8), (0.3, 1.6), (0.5, 2.5), (0.8, 3.3), (1.2, 4))
COLOR_LOSS: Curve = ((0.03, 0), (0.2, 0.8), (0.4, 1.6), (0.6, 2.5), (0.8, 3.3), (1.0, 4))
COLOR_GAIN: Curve = ((0.05, 0), (0.2, 0.8), (0.45, 1.6), (0.8, 2.5), (1.3, 3.3), (2.0, 4))
TINT: Curve = ((1, 0), (4, 0.8), (8, 1.6), (15, 2.5), (24, 3.3), (35, 4))

SOFTNESS = 0.6  # share of the blur's severity that lack of sharpness gets: blur is the cause, so it ranks higher
NOISE_PER_STEEPNESS = 5.0  # sharpening that makes edges 10 % steeper amplifies existing noise by 50 %
NEARLY_GRAY = 5.0  # colorfulness; below this a relative loss means nothing
FAINT_COLOR = 15.0  # colorfulness that Hasler and Süsstrunk call slightly colorful; gains are relative to at least this


def findings_from(
    image: Measurements, reference: Measurements, predictions: Predictions | None = None
) -> dict[DetectableDistortion, Finding]:
    """The findings for an image, from the measurements of both images by name and the networks' predictions.

    With predictions, both must also have "lost_detail" and "color_noise" of the features.
    """
    predictions = predictions or {}
    blurs, noise = _blurs(image, reference, predictions), _noise(image, reference, predictions)
    compression = _compression(image, reference, predictions)
    brightness = _brightness(image, reference, predictions)
    others = worst(noise, compression, brightness).severity
    return {
        "Blurs": blurs,
        "Color distortions": _color(image, reference, predictions, brightness),
        "Compression": compression,
        "Noise": noise,
        "Brightness change": brightness,
        "Sharpness": _sharpness(image, reference, predictions, others, blurs.severity),
        "Contrast": _contrast(image, reference, predictions),
    }


def ratio(value: float, base: float, floor: float) -> float:
    """``value / base``, both raised to at least ``floor``, below which a change means nothing."""
    return max(value, floor) / max(base, floor)


def _blurs(image: Measurements, reference: Measurements, predictions: Predictions) -> Finding:
    more = image["blur_extent"] - reference["blur_extent"]
    edges = _edge_ratio(image, reference)
    return combine(
        "Blurs",
        predictions,
        Finding(
            (severity_at(more, BLUR_BY_EXTENT) + severity_at(edges, BLUR_BY_EDGES)) / 2,
            "defocus or motion blur",
            f"Edges are {1 / edges:.2f} times as wide as in the reference, and blurring the image again would leave "
            f"{image['blur_extent']:.0%} of its gradients (reference: {reference['blur_extent']:.0%}).",
        ),
    )


def _sharpness(
    image: Measurements, reference: Measurements, predictions: Predictions, others: float, blur: float
) -> Finding:
    edges = _edge_ratio(image, reference)
    measured = f"Edges are {edges:.2f} times as steep as in the reference."
    # Noise, block borders and clipped highlights make steep edges, too, which are not due to sharpening.
    excess = severity_at(edges, OVERSHARPENING) * (1 - others / 4)
    return worst(
        Finding(SOFTNESS * min(severity_at(edges, BLUR_BY_EDGES), blur), "lack of sharpness", measured),
        combine("Sharpness", predictions, Finding(excess, "oversharpening", measured)),
    )


def _noise(image: Measurements, reference: Measurements, predictions: Predictions) -> Finding:
    gain = max(1.0, _brightness_ratio(image, reference), _contrast_ratio(image, reference))
    gain *= 1 + NOISE_PER_STEEPNESS * max(_edge_ratio(image, reference) - 1, 0)
    sigma, expected = image["noise_sigma"], gain * reference["noise_sigma"]
    isolated = image["isolated_pixels"] - reference["isolated_pixels"]
    measured = [
        Finding(
            severity_at(math.sqrt(max(sigma**2 - expected**2, 0)), NOISE),
            "Gaussian noise",
            f"The smoothest parts fluctuate by {sigma:.1f} of 255 gray levels (standard deviation; reference: "
            f"{reference['noise_sigma']:.1f}).",
        ),
        Finding(
            severity_at(isolated, IMPULSES),
            "impulse noise",
            f"{image['isolated_pixels']:.2%} of the pixels stand out alone from all their neighbors (reference: "
            f"{reference['isolated_pixels']:.2%}).",
        ),
    ]
    if predictions:
        explanation = (
            f"Colors of the smoothest parts fluctuate by {image['color_noise']:.1f} of 255 levels (reference: "
            f"{reference['color_noise']:.1f})."
        )
        added = math.sqrt(max(image["color_noise"] ** 2 - reference["color_noise"] ** 2, 0))
        measured.append(Finding(0.0, "color noise", explanation, measured=severity_at(added, NOISE)))
    return combine("Noise", predictions, *measured)


def _compression(image: Measurements, reference: Measurements, predictions: Predictions) -> Finding:
    grid = (
        f"teps along an 8 x 8 grid are {image['blockiness']:.1f} times as strong as elsewhere (reference: "
        f"{reference['blockiness']:.1f})"
    )
    measured = [
        Finding(
            severity_at(ratio(image["blockiness"], reference["blockiness"], 1.0), BLOCKING),
            "JPEG blocking",
            f"S{grid}.",
        )
    ]
    if predictions:
        lost = (
            f"{image['lost_detail']:.0%} of the finest detail is rounded away "
            f"(reference: {reference['lost_detail']:.0%})"
        )
        measured.append(Finding(0.0, "coding artifacts", f"{lost}; s{grid}."))
        measured.append(Finding(0.0, "banding", f"Few values are left in smooth parts, and {lost}."))
    return combine("Compression", predictions, *measured)


def _brightness(image: Measurements, reference: Measurements, predictions: Predictions) -> Finding:
    shift = image["mean_luma"] - reference["mean_luma"]
    room = reference["mean_luma"] if shift < 0 else 255 - reference["mean_luma"]
    return combine(
        "Brightness change",
        predictions,
        Finding(
            severity_at(abs(shift) / max(room, 1.0), BRIGHTNESS),
            "underexposure" if shift < 0 else "overexposure",
            f"The mean brightness is {image['mean_luma']:.0f} of 255 (reference: {reference['mean_luma']:.0f}).",
        ),
    )


def _contrast(image: Measurements, reference: Measurements, predictions: Predictions) -> Finding:
    change, light = _contrast_ratio(image, reference), _brightness_ratio(image, reference)
    measured = (
        f"Brightness varies by {image['rms_contrast']:.0f} of 255 gray levels (standard deviation; reference: "
        f"{reference['rms_contrast']:.0f})"
    )
    return combine(
        "Contrast",
        predictions,
        Finding(severity_at(1 - change / min(1.0, light), CONTRAST_LOSS), "low contrast", f"{measured}."),
        Finding(severity_at(change / max(1.0, light) - 1, CONTRAST_GAIN), "high contrast", f"{measured}."),
    )


def _color(image: Measurements, reference: Measurements, predictions: Predictions, brightness: Finding) -> Finding:
    tone = (_contrast_ratio(image, reference), _brightness_ratio(image, reference))
    color, least = image["colorfulness"], reference["colorfulness"] * min(1.0, *tone)
    most = reference["colorfulness"] * max(1.0, *tone)
    # More contrast or saturation also amplifies a tint that the reference has.
    tint = _added_tint(image, reference, max(1.0, *tone, ratio(color, reference["colorfulness"], NEARLY_GRAY)))
    # Clipped highlights change hue, so overexposure explains part of a color cast.
    remaining = 1 - brightness.severity / 4 if brightness.subtype == "overexposure" else 1.0
    measured = (
        f"The colorfulness is {color:.0f} on Hasler and Süsstrunk's scale (reference: {reference['colorfulness']:.0f})."
    )
    return combine(
        "Color distortions",
        predictions,
        Finding(severity_at((least - color) / max(least, NEARLY_GRAY), COLOR_LOSS), "desaturation", measured),
        Finding(severity_at((color - most) / (most + FAINT_COLOR), COLOR_GAIN), "oversaturation", measured),
        Finding(
            severity_at(tint, TINT) * remaining,
            "color cast",
            f"All colors together are shifted by {tint:.0f} CIELAB units against the reference.",
        ),
    )


def _edge_ratio(image: Measurements, reference: Measurements) -> float:
    return ratio(image["edge_sharpness"], reference["edge_sharpness"], 0.1)


def _brightness_ratio(image: Measurements, reference: Measurements) -> float:
    return ratio(image["mean_luma"], reference["mean_luma"], 1.0)


def _contrast_ratio(image: Measurements, reference: Measurements) -> float:
    return ratio(image["rms_contrast"], reference["rms_contrast"], 1.0)


def _added_tint(image: Measurements, reference: Measurements, gain: float) -> float:
    """The shift of the mean color in CIELAB's a*b* plane that no scaling of it by 0 to ``gain`` explains."""
    old = complex(reference["red_tint"], reference["yellow_tint"])
    new = complex(image["red_tint"], image["yellow_tint"])
    along = (new * old.conjugate()).real / abs(old) ** 2 if old else 0.0
    return abs(new - min(max(along, 0.0), gain) * old)
