"""Severities of an image beside its reference: how much its measures changed.

A change of tone scales other measures along with it: a darker image has less contrast, colour and noise. Each finding
is about the change that the others do not account for. The curves follow the five steps of synthetic ladders, so that
a ladder's last step is "extreme"; their first points leave room for changes that nobody sees.
"""

import math

from agenticiqa.programs.offline.findings import AllSeen, Curve, Finding, Measures, grade, settle, worst
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

SOFTNESS = 0.6  # of the blur that the edges show: blur is the cause, so it leads
NOISE_PER_STEEPNESS = 5.0  # sharpening that steepens edges by 10 % raises the noise that was there by 50 %
GREYEST = 5.0  # of colourfulness: below, a share of it that is lost means nothing
FAINT_COLOR = 15.0  # what Hasler and Süsstrunk call slightly colourful: a gain is seen beside at least that


def find(now: Measures, before: Measures, seen: AllSeen | None = None) -> dict[DetectableDistortion, Finding]:
    """The findings from the measures of an image and of its reference, by name, and what networks see in the change.

    Where something is seen, both have "lost_detail" and "color_noise" of the traits as well.
    """
    seen = seen or {}
    blurs, noise = _blurs(now, before, seen), _noise(now, before, seen)
    compression = _compression(now, before, seen)
    brightness = _brightness(now, before, seen)
    others = worst(noise, compression, brightness).severity
    return {
        "Blurs": blurs,
        "Color distortions": _color(now, before, seen, brightness),
        "Compression": compression,
        "Noise": noise,
        "Brightness change": brightness,
        "Sharpness": _sharpness(now, before, seen, others, blurs.severity),
        "Contrast": _contrast(now, before, seen),
    }


def ratio(now: float, before: float, floor: float) -> float:
    """``now / before``, where values below ``floor`` count as the floor: it is too little to speak of a change."""
    return max(now, floor) / max(before, floor)


def _blurs(now: Measures, before: Measures, seen: AllSeen) -> Finding:
    more = now["blur_extent"] - before["blur_extent"]
    edges = _edge_ratio(now, before)
    return settle(
        "Blurs",
        seen,
        Finding(
            (grade(more, BLUR_BY_EXTENT) + grade(edges, BLUR_BY_EDGES)) / 2,
            "defocus or motion blur",
            f"Edges are {1 / edges:.2f} times as wide as in the reference, and blurring the image again would leave "
            f"{now['blur_extent']:.0%} of its gradients (reference: {before['blur_extent']:.0%}).",
        ),
    )


def _sharpness(now: Measures, before: Measures, seen: AllSeen, others: float, blur: float) -> Finding:
    edges = _edge_ratio(now, before)
    measured = f"Edges are {edges:.2f} times as steep as in the reference."
    # Noise, block borders and clipped highlights make steep steps too: what they account for is not sharpening.
    excess = grade(edges, OVERSHARPENING) * (1 - others / 4)
    return worst(
        Finding(SOFTNESS * min(grade(edges, BLUR_BY_EDGES), blur), "lack of sharpness", measured),
        settle("Sharpness", seen, Finding(excess, "oversharpening", measured)),
    )


def _noise(now: Measures, before: Measures, seen: AllSeen) -> Finding:
    gain = max(1.0, _brightness_ratio(now, before), _contrast_ratio(now, before))
    gain *= 1 + NOISE_PER_STEEPNESS * max(_edge_ratio(now, before) - 1, 0)
    sigma, expected = now["noise_sigma"], gain * before["noise_sigma"]
    isolated = now["isolated_pixels"] - before["isolated_pixels"]
    measured = [
        Finding(
            grade(math.sqrt(max(sigma**2 - expected**2, 0)), NOISE),
            "Gaussian noise",
            f"The smoothest parts fluctuate by {sigma:.1f} of 255 grey levels (standard deviation; reference: "
            f"{before['noise_sigma']:.1f}).",
        ),
        Finding(
            grade(isolated, IMPULSES),
            "impulse noise",
            f"{now['isolated_pixels']:.2%} of the pixels stand out alone from all their neighbours (reference: "
            f"{before['isolated_pixels']:.2%}).",
        ),
    ]
    if seen:
        told = (
            f"Colours of the smoothest parts fluctuate by {now['color_noise']:.1f} of 255 levels (reference: "
            f"{before['color_noise']:.1f})."
        )
        measured.append(Finding(0.0, "color noise", told))
    return settle("Noise", seen, *measured)


def _compression(now: Measures, before: Measures, seen: AllSeen) -> Finding:
    grid = (
        f"teps along an 8 x 8 grid are {now['blockiness']:.1f} times as strong as elsewhere (reference: "
        f"{before['blockiness']:.1f})"
    )
    measured = [
        Finding(grade(ratio(now["blockiness"], before["blockiness"], 1.0), BLOCKING), "JPEG blocking", f"S{grid}.")
    ]
    if seen:
        lost = f"{now['lost_detail']:.0%} of the finest detail is rounded away (reference: {before['lost_detail']:.0%})"
        measured.append(Finding(0.0, "coding artifacts", f"{lost}; s{grid}."))
        measured.append(Finding(0.0, "banding", f"Few values are left in smooth parts, and {lost}."))
    return settle("Compression", seen, *measured)


def _brightness(now: Measures, before: Measures, seen: AllSeen) -> Finding:
    shift = now["mean_luma"] - before["mean_luma"]
    room = before["mean_luma"] if shift < 0 else 255 - before["mean_luma"]
    return settle(
        "Brightness change",
        seen,
        Finding(
            grade(abs(shift) / max(room, 1.0), BRIGHTNESS),
            "underexposure" if shift < 0 else "overexposure",
            f"The mean brightness is {now['mean_luma']:.0f} of 255 (reference: {before['mean_luma']:.0f}).",
        ),
    )


def _contrast(now: Measures, before: Measures, seen: AllSeen) -> Finding:
    change, light = _contrast_ratio(now, before), _brightness_ratio(now, before)
    measured = (
        f"Brightness varies by {now['rms_contrast']:.0f} of 255 grey levels (standard deviation; reference: "
        f"{before['rms_contrast']:.0f})"
    )
    return settle(
        "Contrast",
        seen,
        Finding(grade(1 - change / min(1.0, light), CONTRAST_LOSS), "low contrast", f"{measured}."),
        Finding(grade(change / max(1.0, light) - 1, CONTRAST_GAIN), "high contrast", f"{measured}."),
    )


def _color(now: Measures, before: Measures, seen: AllSeen, brightness: Finding) -> Finding:
    tone = (_contrast_ratio(now, before), _brightness_ratio(now, before))
    color, least = now["colorfulness"], before["colorfulness"] * min(1.0, *tone)
    most = before["colorfulness"] * max(1.0, *tone)
    # A stronger tone or saturation strengthens the tint that was there as well.
    tint = _added_tint(now, before, max(1.0, *tone, ratio(color, before["colorfulness"], GREYEST)))
    # Clipped highlights change hue: what overexposure accounts for is not a cast.
    left = 1 - brightness.severity / 4 if brightness.subtype == "overexposure" else 1.0
    measured = (
        f"The colourfulness is {color:.0f} on Hasler and Süsstrunk's scale (reference: {before['colorfulness']:.0f})."
    )
    return settle(
        "Color distortions",
        seen,
        Finding(grade((least - color) / max(least, GREYEST), COLOR_LOSS), "desaturation", measured),
        Finding(grade((color - most) / (most + FAINT_COLOR), COLOR_GAIN), "oversaturation", measured),
        Finding(
            grade(tint, TINT) * left,
            "color cast",
            f"All colours together are shifted by {tint:.0f} CIELAB units against the reference.",
        ),
    )


def _edge_ratio(now: Measures, before: Measures) -> float:
    return ratio(now["edge_sharpness"], before["edge_sharpness"], 0.1)


def _brightness_ratio(now: Measures, before: Measures) -> float:
    return ratio(now["mean_luma"], before["mean_luma"], 1.0)


def _contrast_ratio(now: Measures, before: Measures) -> float:
    return ratio(now["rms_contrast"], before["rms_contrast"], 1.0)


def _added_tint(now: Measures, before: Measures, gain: float) -> float:
    """The shift of the mean colour in CIELAB's a*b* plane that no change of its strength up to ``gain`` makes."""
    old = complex(before["red_tint"], before["yellow_tint"])
    new = complex(now["red_tint"], now["yellow_tint"])
    along = (new * old.conjugate()).real / abs(old) ** 2 if old else 0.0
    return abs(new - min(max(along, 0.0), gain) * old)
