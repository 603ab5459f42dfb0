"""Severities of an image by itself: how far its measures are from those of good photos.

Each curve's first point is where good photos end: the outermost of the photos of the highest opinion scores in two
sets of authentic photos, and of undistorted test photos. The others follow the five steps of synthetic ladders, so
that a ladder's last step is "extreme", and for blur, noise and blocking also people's opinion of them.
"""

from collections.abc import Mapping

from agenticiqa.programs.offline.findings import Curve, Finding, grade, worst
from agenticiqa.signatures.vocabulary import DetectableDistortion

BLUR_BY_EXTENT: Curve = ((0.42, 0), (0.52, 0.7), (0.62, 1.8), (0.75, 3.1), (0.87, 4))
BLUR_BY_EDGES: Curve = ((0.12, 4), (0.17, 3.2), (0.22, 2.3), (0.30, 1.5), (0.38, 0.7), (0.48, 0))
SOFTNESS = 0.7  # of the blur that the edges show: blur is the cause, so it leads
OVERSHARPENING: Curve = ((0.78, 0), (0.86, 1.2), (0.93, 2.4), (1.0, 3.5))
HALO_SHARE: Curve = ((0.15, 0), (0.45, 1))  # of the above: hard edges without halos are drawn, not sharpened
NOISE: Curve = ((2.4, 0), (4, 0.7), (7, 1.5), (12, 2.3), (20, 3.1), (40, 4))
IMPULSES: Curve = ((0.003, 0), (0.006, 1), (0.015, 2), (0.04, 3), (0.1, 4))
BLOCKING: Curve = ((1.8, 0), (2.4, 0.8), (3.2, 1.8), (4.4, 2.7), (6, 3.4), (9, 4))
DARK_MEAN: Curve = ((10, 4), (22, 3), (38, 2), (55, 0.9), (75, 0))
DARK_HIGHLIGHTS: Curve = ((45, 4), (80, 3), (115, 2), (150, 0.9), (180, 0))
BRIGHT_MEAN: Curve = ((165, 0), (190, 1.2), (210, 2.2), (230, 3.2), (250, 4))
BRIGHT_CLIPPED: Curve = ((0.06, 0), (0.12, 0.8), (0.25, 1.8), (0.45, 3), (0.7, 4))
LOW_CONTRAST: Curve = ((0.12, 4), (0.26, 3.2), (0.40, 2.3), (0.55, 1.1), (0.66, 0))
HIGH_CONTRAST: Curve = ((84, 0), (95, 1), (110, 2.2), (125, 3.2))
DESATURATION: Curve = ((0.0, 3.5), (0.06, 2.4), (0.12, 1.3), (0.2, 0.6), (0.3, 0.4), (0.5, 0.2), (1.5, 0))
OVERSATURATION: Curve = ((85, 0), (105, 1), (130, 2.2), (170, 4))
COLOR_CAST: Curve = ((13, 0), (19, 1), (28, 2.2), (45, 4))


def find(now: Mapping[str, float]) -> dict[DetectableDistortion, Finding]:
    """The findings from the measures of ``agenticiqa.programs.tools.measures``, by name."""
    return {
        "Blurs": _blurs(now),
        "Color distortions": _color(now),
        "Compression": _compression(now),
        "Noise": _noise(now),
        "Brightness change": _brightness(now),
        "Sharpness": _sharpness(now),
        "Contrast": _contrast(now),
    }


def _blurs(now: Mapping[str, float]) -> Finding:
    extent, sharpness = now["blur_extent"], now["edge_sharpness"]
    if sharpness == 0:
        return Finding(0.0, "defocus or motion blur", "There is no edge in the image by which blur could be judged.")
    return Finding(
        max(grade(extent, BLUR_BY_EXTENT), grade(sharpness, BLUR_BY_EDGES)),
        "defocus or motion blur",
        f"Edges are about {1 / sharpness:.1f} pixels wide (usually 1.3 to 2.1), and blurring the image again would "
        f"leave {extent:.0%} of its gradients (usually 20% to 42%).",
    )


def _sharpness(now: Mapping[str, float]) -> Finding:
    sharpness, halos = now["edge_sharpness"], now["overshoot"]
    measured = f"The steepest step of an edge is {sharpness:.0%} of its height (usually 48% to 78%)"
    excess = grade(sharpness, OVERSHARPENING) * grade(halos, HALO_SHARE)
    # Strong noise makes steep steps as well.
    excess *= 1 - grade(now["noise_sigma"], NOISE) / 4
    return worst(
        Finding(SOFTNESS * grade(sharpness, BLUR_BY_EDGES) if sharpness else 0.0, "lack of sharpness", f"{measured}."),
        Finding(excess, "oversharpening", f"{measured}, with halos of {halos:.0%} of it beside."),
    )


def _noise(now: Mapping[str, float]) -> Finding:
    sigma, isolated = now["noise_sigma"], now["isolated_pixels"]
    return worst(
        Finding(
            grade(sigma, NOISE),
            "Gaussian noise",
            f"The smoothest parts fluctuate by {sigma:.1f} of 255 grey levels (standard deviation, usually below 2.4).",
        ),
        Finding(
            grade(isolated, IMPULSES),
            "impulse noise",
            f"{isolated:.2%} of the pixels stand out alone from all their neighbours (usually below 0.3%).",
        ),
    )


def _compression(now: Mapping[str, float]) -> Finding:
    blockiness = now["blockiness"]
    return Finding(
        grade(blockiness, BLOCKING),
        "JPEG blocking",
        f"Steps along an 8 x 8 grid are {blockiness:.1f} times as strong as elsewhere (usually 1.0 to 1.8).",
    )


def _brightness(now: Mapping[str, float]) -> Finding:
    mean, highlights, clipped = now["mean_luma"], now["highlight_level"], now["clipped_bright"]
    return worst(
        Finding(
            max(grade(mean, DARK_MEAN), grade(highlights, DARK_HIGHLIGHTS)),
            "underexposure",
            f"The mean brightness is {mean:.0f} of 255 (usually 75 to 165), and the brightest parts reach "
            f"{highlights:.0f} (usually over 180).",
        ),
        Finding(
            max(grade(mean, BRIGHT_MEAN), grade(clipped, BRIGHT_CLIPPED)),
            "overexposure",
            f"The mean brightness is {mean:.0f} of 255 (usually 75 to 165), and {clipped:.0%} of the image is pure "
            f"white (usually below 6%).",
        ),
    )


def _contrast(now: Mapping[str, float]) -> Finding:
    span, rms = now["tonal_range"], now["rms_contrast"]
    return worst(
        Finding(
            grade(span, LOW_CONTRAST),
            "low contrast",
            f"The tones from the darkest to the brightest parts span {span:.0%} of what their brightness allows "
            f"(usually over 66%).",
        ),
        Finding(
            grade(rms, HIGH_CONTRAST),
            "high contrast",
            f"Brightness varies by {rms:.0f} of 255 grey levels (standard deviation, usually below 84).",
        ),
    )


def _color(now: Mapping[str, float]) -> Finding:
    color, cast = now["colorfulness"], now["color_cast"]
    # Low contrast and darkness shrink colours and tones alike; a loss of colour alone shrinks their ratio.
    per_contrast = color / max(now["rms_contrast"], 1.0)
    return worst(
        Finding(
            grade(per_contrast, DESATURATION),
            "desaturation",
            f"Colours vary {per_contrast:.2f} times as much as brightness (usually over 0.36).",
        ),
        Finding(
            grade(color, OVERSATURATION),
            "oversaturation",
            f"The colourfulness is {color:.0f} on Hasler and Süsstrunk's scale (usually below 85).",
        ),
        Finding(
            grade(cast, COLOR_CAST),
            "color cast",
            f"What should be neutral is {cast:.0f} CIELAB units away from grey (usually below 13).",
        ),
    )
