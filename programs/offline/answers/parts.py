"""Measure an image, its reference and its parts for the rules of ``answers``."""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from agenticiqa.programs.images.boxes import area, shared_area
from agenticiqa.programs.images.loaded import LoadedImage
from agenticiqa.programs.images.regions import crop, in_pixels, place_in_frame
from agenticiqa.programs.offline.answers.measured_image import (
    IMAGE,
    PRESENT,
    REFERENCE,
    REFERENCE_BESIDE_IMAGE,
    Look,
    MeasuredImage,
)
from agenticiqa.programs.offline.answers.places import NINTHS
from agenticiqa.programs.offline.measured.distortions import findings_of, findings_of_whole
from agenticiqa.programs.offline.measured.findings import GRAY, TONED, Finding, severity_of_whole
from agenticiqa.programs.offline.measured.mos_estimate import estimate_mos
from agenticiqa.programs.tools.metrics.colorfulness import colorfulness
from agenticiqa.programs.tools.metrics.learned_iqa import outside_training
from agenticiqa.programs.tools.outside_training import in_words
from agenticiqa.programs.tools.statistics.tonal import neutral_tint
from agenticiqa.signatures.categories import COLOR, COLOR_CAST
from agenticiqa.signatures.lexicon import LOWER, UPPER, Meaning
from agenticiqa.signatures.types import Box, Boxes
from agenticiqa.signatures.vocabulary import DetectableDistortion

# Below these a color distortion can be excluded without a reference; chosen on the dev photos of eval/research.
NEUTRAL_TINT = 10.0  # CIELAB units between neutral colors of the image and gray
USUAL_COLORFULNESS = 45.0  # colorfulness by Hasler and Süsstrunk
FADED = 0.25  # severity of desaturation
LEAST_SHARE = 0.25  # minimum share of a part that local damage must cover to count for it


def measured_parts(image: LoadedImage, reference: LoadedImage | None, boxes: Boxes) -> Look:
    """Return a cached function that measures an image, its reference or a part, by name.

    ``IMAGE`` is the whole image (compared with the reference, if there is one), ``REFERENCE`` the reference alone,
    ``REFERENCE_BESIDE_IMAGE`` the reference compared with the image. Any other name is a part: one with a box, or a
    place in the frame ("left half"). The function returns ``None`` if there is no such part or reference.
    """

    @cache
    def look(name: str) -> MeasuredImage | None:
        if name == IMAGE:
            measured = measured_image(findings_of(image, reference), image.assessed, reference)
            reasons = [kind for kind in outside_training(image.assessed) if kind != "gray"] if reference is None else []
            return replace(measured, remark=in_words(reasons, image.assessed.size)) if reasons else measured
        if name in (REFERENCE, REFERENCE_BESIDE_IMAGE):
            beside = image if name == REFERENCE_BESIDE_IMAGE else None
            return measured_image(findings_of_whole(reference, beside), reference, beside) if reference else None
        box = boxes.get(name) or place_in_frame(name, image.size)
        if name in NINTHS:
            column, row = NINTHS[name]
            box = in_pixels((column, row, column + 1, row + 1), image.size, 3)
        if box is None:
            return None
        part, was = crop(image, box).assessed, crop(reference, box) if reference else None
        measured, whole = measured_image(findings_of_whole(part, was), part, was), look(IMAGE)
        return with_local_damage(measured, whole.findings, box) if whole else measured

    return look


def with_local_damage(part: MeasuredImage, whole: Mapping[DetectableDistortion, Finding], box: Box) -> MeasuredImage:
    """Return the measurements of a part, raised by local damage of the image inside ``box``.

    The measurements of a crop are robust statistics, so damage in less than half of it hardly affects them.
    """
    findings = dict(part.findings)
    for name, finding in whole.items():
        if finding.local is None:
            continue
        share = shared_area(finding.local.box, box) / area(box)
        severity = severity_of_whole(finding.local.severity, share) if share >= LEAST_SHARE else 0.0
        if severity > findings[name].severity:
            findings[name] = replace(finding, severity=severity)
    return replace(part, findings=findings)


def measured_image(
    findings: Mapping[DetectableDistortion, Finding], image: LoadedImage, reference: LoadedImage | None
) -> MeasuredImage:
    """Return the findings of an image in the terms of a question, with its estimated level and tint."""
    red, yellow = neutral_tint(image)
    if reference is not None:
        before = neutral_tint(reference)
        red, yellow = red - before[0], yellow - before[1]
    level = estimate_mos(image, reference, findings).score
    measured = MeasuredImage(findings, level, reference is not None, (red, yellow))
    return measured if reference else replace(measured, unsure=hidden_colors(measured, image))


def hidden_colors(measured: MeasuredImage, image: LoadedImage) -> frozenset[str]:
    """Return the kinds of color distortion that a weak finding cannot exclude, because the scene may have them."""
    if measured.findings[COLOR].subtype in (GRAY, TONED):
        return frozenset()
    faded = measured.severity(Meaning(COLOR, "fault", LOWER[COLOR])) or 0.0
    open_kinds = {
        COLOR_CAST: math.hypot(*measured.tint or (0.0, 0.0)) > NEUTRAL_TINT,
        UPPER[COLOR]: colorfulness(image) > USUAL_COLORFULNESS,
        LOWER[COLOR]: FADED < faded < PRESENT,
    }
    return frozenset(kind for kind, is_open in open_kinds.items() if is_open)
