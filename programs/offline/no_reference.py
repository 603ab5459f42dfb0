"""Severities of an image by itself: how far its measures are from those of good photos.

A curve's severity 0.5, where "none" ends, lies where good photos end: in each category about four in five or more of
the best-rated fifth of two sets of authentic photos stay below it, and nearly all undistorted test photos. Below 0.5 a
curve rises gently, so that better stays distinguishable from good. Above, it follows the five steps of synthetic
ladders, and for blur, noise and blocking also people's opinion of them in a set of synthetic distortions.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.offline.findings import AllSeen, Curve, Finding, Measures, grade, settle, worst
from agenticiqa.signatures.vocabulary import DetectableDistortion

# Nine in ten of the pristine photos that the networks did not know stay below these severities where they are above
# 0.5: tones can be meant, and then "none" ends here.
USUAL: dict[DetectableDistortion, float] = {"Color distortions": 0.89, "Compression": 0.68, "Contrast": 0.75}

BLUR_BY_EXTENT: Curve = ((0.22, 0), (0.42, 0.4), (0.52, 0.8), (0.62, 1.8), (0.75, 3.1), (0.87, 4))
BLUR_BY_EDGES: Curve = ((0.12, 4), (0.17, 3.2), (0.22, 2.3), (0.30, 1.5), (0.38, 0.8), (0.48, 0.4), (0.75, 0))
SOFTNESS = 0.7  # of the blur that the edges show: blur is the cause, so it leads
OVERSHARPENING: Curve = ((0.78, 0), (0.86, 1.2), (0.93, 2.4), (1.0, 3.5))
HALO_SHARE: Curve = ((0.15, 0), (0.45, 1))  # of the above: hard edges without halos are drawn, not sharpened
NOISE: Curve = ((2.4, 0), (4, 0.7), (7, 1.5), (12, 2.3), (20, 3.1), (40, 3.7), (80, 4))
IMPULSES: Curve = ((0.003, 0), (0.007, 0.8), (0.015, 1.7), (0.03, 2.6), (0.055, 3.4), (0.08, 4))
BLOCKING: Curve = ((1, 0), (1.4, 0.25), (1.9, 0.6), (2.4, 1.2), (3.0, 2.0), (3.8, 2.8), (5, 3.5), (7, 4))
DARK_MEAN: Curve = ((10, 4), (20, 3), (34, 2), (48, 1), (62, 0.35), (80, 0))
DARK_HIGHLIGHTS: Curve = ((45, 4), (70, 3), (95, 2), (125, 1), (160, 0.4), (255, 0))
BRIGHT_MEAN: Curve = ((60, 0), (165, 0.4), (185, 0.85), (205, 1.45), (225, 2.0), (248, 3.2))
BRIGHT_CLIPPED: Curve = ((0, 0), (0.05, 0.4), (0.1, 0.9), (0.2, 1.6), (0.35, 2.5), (0.55, 3.3), (0.8, 4))
LOW_CONTRAST: Curve = ((0.12, 4), (0.26, 3.2), (0.40, 2.3), (0.54, 1.1), (0.62, 0.35), (0.72, 0))
HIGH_CONTRAST: Curve = ((84, 0), (95, 1), (110, 2.2), (125, 3.2))
DESATURATION: Curve = ((0, 1.6), (0.06, 1.2), (0.12, 0.9), (0.2, 0.6), (0.3, 0.4), (0.5, 0.2), (1.5, 0))
COLORLESS: Curve = ((0, 1.6), (0.06, 1.2), (0.12, 0))  # whatever the networks say of a picture that is grey
OVERSATURATION: Curve = ((95, 0), (120, 0.9), (145, 2.0), (180, 4))
COLOR_CAST: Curve = ((27, 0), (33, 0.6), (40, 1.5), (52, 2.7), (70, 4))


def find(now: Measures, seen: AllSeen | None = None) -> dict[DetectableDistortion, Finding]:
    """The findings from the measures of ``tools.statistics.by_name``, by name, and what networks see.

    Where something is seen, ``now`` has "lost_detail" and "color_noise" of the traits as well.
    """
    seen = seen or {}
    blurs, noise = _blurs(now, seen), _noise(now, seen)
    compression = _compression(now, seen)
    brightness = _brightness(now, seen)
    others = worst(noise, compression, brightness).severity
    found: dict[DetectableDistortion, Finding] = {
        "Blurs": blurs,
        "Color distortions": _color(now, seen),
        "Compression": compression,
        "Noise": noise,
        "Brightness change": brightness,
        "Sharpness": _sharpness(now, seen, others, blurs.severity),
        "Contrast": _contrast(now, seen, brightness),
    }
    if not seen:
        return found
    return {
        name: replace(finding, severity=float(beyond_usual(name, finding.severity))) for name, finding in found.items()
    }


def beyond_usual(category: DetectableDistortion, severity: float | NDArray[np.float64]) -> NDArray[np.float64]:
    """Severities 0 to 4 put so that 0.5, where "none" ends, lies where pristine photos end; order is kept."""
    return np.interp(np.asarray(severity), (0, USUAL.get(category, 0.5), 4), (0, 0.5, 4))


def _blurs(now: Measures, seen: AllSeen) -> Finding:
    extent, sharpness = now["blur_extent"], now["edge_sharpness"]
    if sharpness == 0:
        return Finding(0.0, "defocus or motion blur", "There is no edge in the image by which blur could be judged.")
    return settle(
        "Blurs",
        seen,
        Finding(
            max(grade(extent, BLUR_BY_EXTENT), grade(sharpness, BLUR_BY_EDGES)),
            "defocus or motion blur",
            f"Edges are about {1 / sharpness:.1f} pixels wide (usually 1.3 to 2.1), and blurring the image again would "
            f"leave {extent:.0%} of its gradients (usually 20% to 42%).",
        ),
    )


def _sharpness(now: Measures, seen: AllSeen, others: float, blur: float) -> Finding:
    sharpness, halos = now["edge_sharpness"], now["overshoot"]
    measured = f"The steepest step of an edge is {sharpness:.0%} of its height (usually 48% to 78%)"
    # Noise, block borders and clipped highlights make steep steps too: what they account for is not sharpening.
    excess = grade(sharpness, OVERSHARPENING) * grade(halos, HALO_SHARE) * (1 - others / 4)
    soft = SOFTNESS * min(grade(sharpness, BLUR_BY_EDGES), blur) if sharpness else 0.0
    return worst(
        Finding(soft, "lack of sharpness", f"{measured}."),
        settle(
            "Sharpness",
            seen,
            Finding(excess, "oversharpening", f"{measured}, with halos of {halos:.0%} of it beside."),
        ),
    )


def _noise(now: Measures, seen: AllSeen) -> Finding:
    sigma, isolated = now["noise_sigma"], now["isolated_pixels"]
    measured = [
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
    ]
    if seen:
        told = f"Colours of the smoothest parts fluctuate by {now['color_noise']:.1f} of 255 levels (usually below 2)."
        measured.append(Finding(0.0, "color noise", told))
    return settle("Noise", seen, *measured)


def _compression(now: Measures, seen: AllSeen) -> Finding:
    blockiness = now["blockiness"]
    grid = f"teps along an 8 x 8 grid are {blockiness:.1f} times as strong as elsewhere (usually 1.0 to 1.8)"
    measured = [Finding(grade(blockiness, BLOCKING), "JPEG blocking", f"S{grid}.")]
    if seen:
        lost = f"{now['lost_detail']:.0%} of the finest detail is rounded away"
        measured.append(Finding(0.0, "coding artifacts", f"{lost}, in the pattern that coding leaves; s{grid}."))
        measured.append(Finding(0.0, "banding", f"Few values are left in smooth parts, and {lost}."))
    return settle("Compression", seen, *measured)


def _brightness(now: Measures, seen: AllSeen) -> Finding:
    mean, highlights, clipped = now["mean_luma"], now["highlight_level"], now["clipped_bright"]
    return settle(
        "Brightness change",
        seen,
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
            f"white (usually below 5%).",
        ),
    )


def _contrast(now: Measures, seen: AllSeen, brightness: Finding) -> Finding:
    span, rms = now["tonal_range"], now["rms_contrast"]
    # Overexposure lifts the dark tones and clips the bright ones: what it accounts for is not a flat tone curve.
    left = 1 - brightness.severity / 4 if brightness.subtype == "overexposure" else 1.0
    return settle(
        "Contrast",
        seen,
        Finding(
            grade(span, LOW_CONTRAST) * left,
            "low contrast",
            f"The tones from the darkest to the brightest parts span {span:.0%} of what their brightness allows "
            f"(usually over 62%).",
        ),
        Finding(
            grade(rms, HIGH_CONTRAST),
            "high contrast",
            f"Brightness varies by {rms:.0f} of 255 grey levels (standard deviation, usually below 84).",
        ),
    )


def _color(now: Measures, seen: AllSeen) -> Finding:
    color, cast = now["colorfulness"], now["color_cast"]
    # Low contrast and darkness shrink colours and tones alike; a loss of colour alone shrinks their ratio.
    per_contrast = color / max(now["rms_contrast"], 1.0)
    faded = Finding(
        grade(per_contrast, DESATURATION),
        "desaturation",
        f"Colours vary {per_contrast:.2f} times as much as brightness (usually over 0.25; a grey picture may be "
        f"meant to be one).",
    )
    return worst(
        settle(
            "Color distortions",
            seen,
            faded,
            Finding(
                grade(color, OVERSATURATION),
                "oversaturation",
                f"The colourfulness is {color:.0f} on Hasler and Süsstrunk's scale (usually below 95).",
            ),
            Finding(
                grade(cast, COLOR_CAST),
                "color cast",
                f"What should be neutral is {cast:.0f} CIELAB units away from grey (usually below 20).",
            ),
        ),
        replace(faded, severity=grade(per_contrast, COLORLESS)),
    )
