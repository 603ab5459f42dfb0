"""Map measurements to severities by their distance from good photos, or from a reference.

Without a reference, severity 0.5, the upper end of "none", is where the range of good photos ends: in each category at
least about 80 % of the best-rated fifth of two sets of authentic photos are below it, and nearly all undistorted test
photos. Below 0.5 a curve rises slowly, so that good and better images still differ. Above, it follows the five levels
of synthetic distortions, and for blur, noise and blocking also the MOS of a set of synthetic distortions.

With a reference, a change of tone also scales other measurements: a darker image has less contrast, color and noise.
Each finding is about the change that the others do not explain. The curves (``BESIDE_...``) follow the five levels of
synthetic distortions, of which the last is "extreme"; their first points allow for invisible changes.
"""

import math
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
    COLOR_CAST,
    COLOR_NOISE,
    COMPRESSION,
    CONTRAST,
    DEFOCUS_OR_MOTION,
    DESATURATION,
    GAUSSIAN_NOISE,
    HIGH_CONTRAST,
    IMPULSE_NOISE,
    JPEG_BLOCKING,
    LACK_OF_SHARPNESS,
    LOW_CONTRAST,
    NOISE,
    OVEREXPOSURE,
    OVERSATURATION,
    OVERSHARPENING,
    SHARPNESS,
    UNDEREXPOSURE,
    Curve,
)
from agenticiqa.signatures.vocabulary import DetectableDistortion

USUAL: dict[DetectableDistortion, float] = {row.name: row.usual for row in CATEGORIES}

BLUR_BY_EXTENT: Curve = ((0.22, 0), (0.42, 0.4), (0.52, 0.8), (0.62, 1.8), (0.75, 3.1), (0.87, 4))
BLUR_BY_EDGES: Curve = ((0.12, 4), (0.17, 3.2), (0.22, 2.3), (0.30, 1.5), (0.38, 0.8), (0.48, 0.4), (0.75, 0))
STEEP_EDGES: Curve = ((0.78, 0), (0.86, 1.2), (0.93, 2.4), (1.0, 3.5))
HALO_SHARE: Curve = ((0.15, 0), (0.45, 1))  # factor on STEEP_EDGES; steep edges without halos are mostly drawn
USUAL_STEPS = 1.8
DARK_MEAN: Curve = ((10, 4), (20, 3), (34, 2), (48, 1), (62, 0.35), (80, 0))
DARK_HIGHLIGHTS: Curve = ((45, 4), (70, 3), (95, 2), (125, 1), (160, 0.4), (255, 0))
BRIGHT_MEAN: Curve = ((60, 0), (165, 0.4), (185, 0.85), (205, 1.45), (225, 2.0), (248, 3.2))
BRIGHT_CLIPPED: Curve = ((0, 0), (0.05, 0.4), (0.1, 0.9), (0.2, 1.6), (0.35, 2.5), (0.55, 3.3), (0.8, 4))
LOW_RANGE: Curve = ((0.12, 4), (0.26, 3.2), (0.40, 2.3), (0.54, 1.1), (0.62, 0.35), (0.72, 0))
FEW_COLORS: Curve = ((0, 1.6), (0.06, 1.2), (0.12, 0.9), (0.2, 0.6), (0.3, 0.4), (0.5, 0.2), (1.5, 0))
COLORLESS: Curve = ((0, 1.6), (0.06, 1.2), (0.12, 0))  # minimum severity, whatever the networks predict

BESIDE_BLUR_BY_EXTENT: Curve = ((0.015, 0), (0.07, 0.8), (0.16, 1.6), (0.30, 2.5), (0.44, 3.3), (0.58, 4))
BESIDE_BLUR_BY_EDGES: Curve = ((0.17, 4), (0.25, 3.3), (0.33, 2.5), (0.46, 1.6), (0.67, 0.8), (0.92, 0))
BESIDE_STEEP_EDGES: Curve = ((1.03, 0), (1.12, 0.8), (1.22, 1.6), (1.35, 2.5), (1.5, 3.3), (1.8, 4))
BESIDE_NOISE: Curve = ((0.5, 0), (2.5, 0.7), (5.5, 1.5), (9.5, 2.3), (16, 3.1), (35, 3.7), (70, 4))
BESIDE_BLOCKING: Curve = ((1.08, 0), (1.4, 0.8), (1.8, 1.5), (2.4, 2.3), (3.2, 3.0), (4.5, 3.6), (6, 4))
BESIDE_LIGHT: Curve = ((0.01, 0), (0.12, 0.8), (0.25, 1.6), (0.4, 2.5), (0.55, 3.3), (0.72, 4))
BESIDE_CONTRAST_LOSS: Curve = ((0.02, 0), (0.2, 0.8), (0.4, 1.6), (0.55, 2.5), (0.7, 3.3), (0.85, 4))
BESIDE_CONTRAST_GAIN: Curve = ((0.03, 0), (0.15, 0.8), (0.3, 1.6), (0.5, 2.5), (0.8, 3.3), (1.2, 4))
BESIDE_COLOR_LOSS: Curve = ((0.03, 0), (0.2, 0.8), (0.4, 1.6), (0.6, 2.5), (0.8, 3.3), (1.0, 4))
BESIDE_COLOR_GAIN: Curve = ((0.05, 0), (0.2, 0.8), (0.45, 1.6), (0.8, 2.5), (1.3, 3.3), (2.0, 4))
BESIDE_TINT: Curve = ((1, 0), (4, 0.8), (8, 1.6), (15, 2.5), (24, 3.3), (35, 4))

# Lack of sharpness has these shares of the severity of blur, its cause, without and with a reference.
SOFTNESS, BESIDE_SOFTNESS = 0.7, 0.6
NOISE_PER_STEEPNESS = 5.0  # sharpening that makes edges 10 % steeper amplifies existing noise by 50 %
NEARLY_GRAY = 5.0  # colorfulness below which a relative loss has no meaning
FAINT_COLOR = 15.0  # colorfulness: slightly colorful by Hasler and Süsstrunk; the minimum divisor of gains
# Measurements are raised to these values before they are compared, because changes below them have no meaning.
FLOORS = {"edge_sharpness": 0.1, "mean_luma": 1.0, "rms_contrast": 1.0, "blockiness": 1.0, "colorfulness": NEARLY_GRAY}


def findings_from(
    image: Measurements, reference: Measurements | None = None, predictions: Predictions | None = None
) -> dict[DetectableDistortion, Finding]:
    """Return the findings for an image, from named measurements (``tools.features.by_name``) and predictions.

    With predictions, the measurements must also have "lost_detail" and "color_noise" of the features.
    """
    values = Measured(image, reference, predictions or {})
    blurs, noise, compression, brightness = _blurs(values), _noise(values), _compression(values), _brightness(values)
    others = worst(noise, compression, brightness).severity
    special = {
        BLURS: blurs,
        COLOR: _color(values, brightness),
        COMPRESSION: compression,
        NOISE: noise,
        BRIGHTNESS: brightness,
        SHARPNESS: _sharpness(values, others, blurs.severity),
        CONTRAST: _contrast(values, brightness),
    }
    findings = values.each_category(special)
    if reference is not None or not predictions:
        return findings
    return {
        name: replace(finding, severity=float(beyond_usual(name, finding.severity)))
        for name, finding in findings.items()
    }


def beyond_usual(category: DetectableDistortion, severity: float | NDArray[np.float64]) -> NDArray[np.float64]:
    """Rescale severities in 0..4 monotonically so that the category's ``USUAL`` severity becomes 0.5."""
    return np.interp(np.asarray(severity), (0, USUAL[category], 4), (0, 0.5, 4))


def _ratio(image: Measurements, was: Measurements, name: str) -> float:
    return max(image[name], FLOORS[name]) / max(was[name], FLOORS[name])


def _blurs(values: Measured) -> Finding:
    image, was, kind = values.image, values.was, DEFOCUS_OR_MOTION
    if was is not None:
        more, edges = image["blur_extent"] - was["blur_extent"], _ratio(image, was, "edge_sharpness")
        severity = (severity_at(more, BESIDE_BLUR_BY_EXTENT) + severity_at(edges, BESIDE_BLUR_BY_EDGES)) / 2
        return values.combined(BLURS, values.finding(kind, severity, edge_width=1 / edges))
    edges = image["edge_sharpness"]
    if edges == 0:
        return Finding(0.0, kind, "The image has no edges by which blur could be measured.")
    severity = max(severity_at(image["blur_extent"], BLUR_BY_EXTENT), severity_at(edges, BLUR_BY_EDGES))
    return values.combined(BLURS, values.finding(kind, severity, edge_width=1 / edges))


def _sharpness(values: Measured, others: float, blur: float) -> Finding:
    image, was = values.image, values.was
    if was is None:
        edges = image["edge_sharpness"]
        soft = SOFTNESS * min(severity_at(edges, BLUR_BY_EDGES), blur) if edges else 0.0
        steep = severity_at(edges, STEEP_EDGES) * severity_at(image["overshoot"], HALO_SHARE)
    else:
        edges = _ratio(image, was, "edge_sharpness")
        soft = BESIDE_SOFTNESS * min(severity_at(edges, BESIDE_BLUR_BY_EDGES), blur)
        steep = severity_at(edges, BESIDE_STEEP_EDGES)
    # Noise, block borders and clipped highlights make steep edges, too, which are not due to sharpening.
    excess = steep * (1 - others / 4)
    sharpened = values.combined(SHARPNESS, values.finding(OVERSHARPENING, excess, edge_ratio=edges))
    return worst(values.finding(LACK_OF_SHARPNESS, soft, edge_ratio=edges), sharpened)


def _noise(values: Measured) -> Finding:
    image, was = values.image, values.was
    if was is None:
        by_noise = values.by_value(GAUSSIAN_NOISE)
    else:
        gain = max(1.0, _ratio(image, was, "mean_luma"), _ratio(image, was, "rms_contrast"))
        gain *= 1 + NOISE_PER_STEEPNESS * max(_ratio(image, was, "edge_sharpness") - 1, 0)
        by_noise = _added(image["noise_sigma"], gain * was["noise_sigma"])
    measured = [
        values.finding(GAUSSIAN_NOISE, by_noise),
        values.finding(IMPULSE_NOISE, values.by_value(IMPULSE_NOISE)),
    ]
    if values.predictions:
        name = "color_noise"
        by_color = values.by_value(COLOR_NOISE) if was is None else _added(image[name], was[name])
        measured.append(values.finding(COLOR_NOISE, 0.0, by_value=by_color))
    return values.combined(NOISE, *measured)


def _added(noise: float, before: float) -> float:
    """Return the severity of noise that was added to the noise before."""
    return severity_at(math.sqrt(max(noise**2 - before**2, 0)), BESIDE_NOISE)


def _compression(values: Measured) -> Finding:
    if values.was is None:
        blocking = values.by_value(JPEG_BLOCKING)
        severity = blocking if round(values.image["blockiness"], 1) > USUAL_STEPS else 0.0
    else:
        blocking = severity = severity_at(_ratio(values.image, values.was, "blockiness"), BESIDE_BLOCKING)
    return values.combined(COMPRESSION, values.finding(JPEG_BLOCKING, blocking, by_value=severity))


def _brightness(values: Measured) -> Finding:
    image, was, mean = values.image, values.was, values.image["mean_luma"]
    if was is not None:
        shift = mean - was["mean_luma"]
        room = was["mean_luma"] if shift < 0 else 255 - was["mean_luma"]
        severity = severity_at(abs(shift) / max(room, 1.0), BESIDE_LIGHT)
        return values.combined(BRIGHTNESS, values.finding(UNDEREXPOSURE if shift < 0 else OVEREXPOSURE, severity))
    dark = max(severity_at(mean, DARK_MEAN), severity_at(image["highlight_level"], DARK_HIGHLIGHTS))
    bright = max(severity_at(mean, BRIGHT_MEAN), severity_at(image["clipped_bright"], BRIGHT_CLIPPED))
    return values.combined(BRIGHTNESS, values.finding(UNDEREXPOSURE, dark), values.finding(OVEREXPOSURE, bright))


def _contrast(values: Measured, brightness: Finding) -> Finding:
    image, was = values.image, values.was
    if was is None:
        # Overexposure brightens dark tones and clips bright ones, so it explains part of a low contrast.
        low = severity_at(image["tonal_range"], LOW_RANGE) * _unexplained(brightness)
        high = values.by_value(HIGH_CONTRAST)
    else:
        change, light = _ratio(image, was, "rms_contrast"), _ratio(image, was, "mean_luma")
        low = severity_at(1 - change / min(1.0, light), BESIDE_CONTRAST_LOSS)
        high = severity_at(change / max(1.0, light) - 1, BESIDE_CONTRAST_GAIN)
    return values.combined(CONTRAST, values.finding(LOW_CONTRAST, low), values.finding(HIGH_CONTRAST, high))


def _unexplained(brightness: Finding) -> float:
    """Return the share of another finding that overexposure does not explain."""
    return 1 - brightness.severity / 4 if brightness.subtype == OVEREXPOSURE else 1.0


def _color(values: Measured, brightness: Finding) -> Finding:
    image, was = values.image, values.was
    if was is None:
        # Low contrast and darkness reduce color and brightness variation alike; desaturation reduces their ratio.
        per_contrast = image["colorfulness"] / max(image["rms_contrast"], 1.0)
        faded = values.finding(DESATURATION, severity_at(per_contrast, FEW_COLORS), per_contrast=per_contrast)
        others = [values.finding(name, values.by_value(name)) for name in (OVERSATURATION, COLOR_CAST)]
        finding = values.combined(COLOR, faded, *others)
        colorless = replace(faded, severity=severity_at(per_contrast, COLORLESS), explanations=finding.explanations)
        return worst(finding, colorless)
    tone = (_ratio(image, was, "rms_contrast"), _ratio(image, was, "mean_luma"))
    color, least = image["colorfulness"], was["colorfulness"] * min(1.0, *tone)
    most = was["colorfulness"] * max(1.0, *tone)
    # More contrast or saturation also amplifies a tint that the reference has.
    shift = _added_tint(image, was, max(1.0, *tone, _ratio(image, was, "colorfulness")))
    # Clipped highlights change hue, so overexposure explains part of a color cast.
    cast = severity_at(shift, BESIDE_TINT) * _unexplained(brightness)
    return values.combined(
        COLOR,
        values.finding(DESATURATION, severity_at((least - color) / max(least, NEARLY_GRAY), BESIDE_COLOR_LOSS)),
        values.finding(OVERSATURATION, severity_at((color - most) / (most + FAINT_COLOR), BESIDE_COLOR_GAIN)),
        values.finding(COLOR_CAST, cast, shift=shift),
    )


def _added_tint(image: Measurements, was: Measurements, gain: float) -> float:
    """Return the shift of the mean color (CIELAB a*, b*) that scaling it by 0 to ``gain`` does not explain."""
    old = complex(was["red_tint"], was["yellow_tint"])
    new = complex(image["red_tint"], image["yellow_tint"])
    along = (new * old.conjugate()).real / abs(old) ** 2 if old else 0.0
    return abs(new - min(max(along, 0.0), gain) * old)
