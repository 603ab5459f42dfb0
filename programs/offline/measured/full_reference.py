"""Severities of an image with a reference: how much its measurements differ from those of the reference.

A change of tone also scales other measurements: a darker image has less contrast, color and noise. Each finding is
about the change that the others do not explain. The curves follow the five levels of synthetic distortions, of which
the last is "extreme"; their first points allow for changes that nobody sees.
"""

import math

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
    COLOR,
    COMPRESSION,
    CONTRAST,
    NOISE,
    SHARPNESS,
    Curve,
)
from agenticiqa.signatures.vocabulary import DetectableDistortion

BLUR_BY_EXTENT: Curve = ((0.015, 0), (0.07, 0.8), (0.16, 1.6), (0.30, 2.5), (0.44, 3.3), (0.58, 4))
BLUR_BY_EDGES: Curve = ((0.17, 4), (0.25, 3.3), (0.33, 2.5), (0.46, 1.6), (0.67, 0.8), (0.92, 0))
OVERSHARPENING: Curve = ((1.03, 0), (1.12, 0.8), (1.22, 1.6), (1.35, 2.5), (1.5, 3.3), (1.8, 4))
ADDED_NOISE: Curve = ((0.5, 0), (2.5, 0.7), (5.5, 1.5), (9.5, 2.3), (16, 3.1), (35, 3.7), (70, 4))
BLOCKING: Curve = ((1.08, 0), (1.4, 0.8), (1.8, 1.5), (2.4, 2.3), (3.2, 3.0), (4.5, 3.6), (6, 4))
LIGHT: Curve = ((0.01, 0), (0.12, 0.8), (0.25, 1.6), (0.4, 2.5), (0.55, 3.3), (0.72, 4))
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
    given = Measured(image, reference, predictions or {})
    blurs, noise = _blurs(given, reference), _noise(given, reference)
    compression, brightness = _compression(given, reference), _brightness(given, reference)
    others = worst(noise, compression, brightness).severity
    special = {
        BLURS: blurs,
        COLOR: _color(given, reference, brightness),
        COMPRESSION: compression,
        NOISE: noise,
        BRIGHTNESS: brightness,
        SHARPNESS: _sharpness(given, reference, others, blurs.severity),
        CONTRAST: _contrast(given, reference),
    }
    return given.each_category(special)


def ratio(value: float, base: float, floor: float) -> float:
    """``value / base``, both raised to at least ``floor``, below which a change means nothing."""
    return max(value, floor) / max(base, floor)


def _blurs(given: Measured, reference: Measurements) -> Finding:
    more = given.image["blur_extent"] - reference["blur_extent"]
    edges = _edge_ratio(given.image, reference)
    severity = (severity_at(more, BLUR_BY_EXTENT) + severity_at(edges, BLUR_BY_EDGES)) / 2
    return given.combined(BLURS, given.finding("defocus or motion blur", severity, edge_width=1 / edges))


def _sharpness(given: Measured, reference: Measurements, others: float, blur: float) -> Finding:
    edges = _edge_ratio(given.image, reference)
    soft = SOFTNESS * min(severity_at(edges, BLUR_BY_EDGES), blur)
    # Noise, block borders and clipped highlights make steep edges, too, which are not due to sharpening.
    excess = severity_at(edges, OVERSHARPENING) * (1 - others / 4)
    sharpened = given.combined(SHARPNESS, given.finding("oversharpening", excess, edge_ratio=edges))
    return worst(given.finding("lack of sharpness", soft, edge_ratio=edges), sharpened)


def _noise(given: Measured, reference: Measurements) -> Finding:
    gain = max(1.0, _brightness_ratio(given.image, reference), _contrast_ratio(given.image, reference))
    gain *= 1 + NOISE_PER_STEEPNESS * max(_edge_ratio(given.image, reference) - 1, 0)

    def added(name: str, gain: float) -> float:
        more = given.image[name] ** 2 - (gain * reference[name]) ** 2
        return severity_at(math.sqrt(max(more, 0)), ADDED_NOISE)

    measured = [
        given.finding("Gaussian noise", added("noise_sigma", gain)),
        given.finding("impulse noise", given.by_value("impulse noise")),
    ]
    if given.predictions:
        measured.append(given.finding("color noise", 0.0, by_value=added("color_noise", 1.0)))
    return given.combined(NOISE, *measured)


def _compression(given: Measured, reference: Measurements) -> Finding:
    blocking = severity_at(ratio(given.image["blockiness"], reference["blockiness"], 1.0), BLOCKING)
    measured = [given.finding("JPEG blocking", blocking)]
    if given.predictions:
        measured += [given.finding(name, 0.0) for name in ("coding artifacts", "banding")]
    return given.combined(COMPRESSION, *measured)


def _brightness(given: Measured, reference: Measurements) -> Finding:
    shift = given.image["mean_luma"] - reference["mean_luma"]
    room = reference["mean_luma"] if shift < 0 else 255 - reference["mean_luma"]
    severity = severity_at(abs(shift) / max(room, 1.0), LIGHT)
    return given.combined(BRIGHTNESS, given.finding("underexposure" if shift < 0 else "overexposure", severity))


def _contrast(given: Measured, reference: Measurements) -> Finding:
    change, light = _contrast_ratio(given.image, reference), _brightness_ratio(given.image, reference)
    return given.combined(
        CONTRAST,
        given.finding("low contrast", severity_at(1 - change / min(1.0, light), CONTRAST_LOSS)),
        given.finding("high contrast", severity_at(change / max(1.0, light) - 1, CONTRAST_GAIN)),
    )


def _color(given: Measured, reference: Measurements, brightness: Finding) -> Finding:
    tone = (_contrast_ratio(given.image, reference), _brightness_ratio(given.image, reference))
    color, least = given.image["colorfulness"], reference["colorfulness"] * min(1.0, *tone)
    most = reference["colorfulness"] * max(1.0, *tone)
    # More contrast or saturation also amplifies a tint that the reference has.
    shift = _added_tint(given.image, reference, max(1.0, *tone, ratio(color, reference["colorfulness"], NEARLY_GRAY)))
    # Clipped highlights change hue, so overexposure explains part of a color cast.
    remaining = 1 - brightness.severity / 4 if brightness.subtype == "overexposure" else 1.0
    return given.combined(
        COLOR,
        given.finding("desaturation", severity_at((least - color) / max(least, NEARLY_GRAY), COLOR_LOSS)),
        given.finding("oversaturation", severity_at((color - most) / (most + FAINT_COLOR), COLOR_GAIN)),
        given.finding("color cast", severity_at(shift, TINT) * remaining, shift=shift),
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
