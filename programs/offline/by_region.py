"""Locate regions without a model, and measure the crop of each region like an image of its own."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from agenticiqa.programs.images.boxes import area, shared_area
from agenticiqa.programs.images.loaded import LoadedImage
from agenticiqa.programs.images.regions import crop, in_pixels, place_in_frame
from agenticiqa.programs.offline.answers.measured_image import PRESENT, MeasuredImage
from agenticiqa.programs.offline.answers.table import IMAGE, NINTHS, REFERENCE, REFERENCE_BESIDE_IMAGE
from agenticiqa.programs.offline.measured.distortions import findings_of, findings_of_whole
from agenticiqa.programs.offline.measured.findings import GRAY, TONED, Finding, severity_of_whole
from agenticiqa.programs.offline.measured.opinion import estimate_opinion
from agenticiqa.programs.tools.adapter import Adapter
from agenticiqa.programs.tools.numerics.opinion import Opinion
from agenticiqa.programs.tools.saliency import background_box, saliency, subject_box
from agenticiqa.programs.tools.statistics.by_name import all_statistics
from agenticiqa.programs.tools.statistics.tonal import Tone, colorfulness, neutral_tint, tone_of
from agenticiqa.signatures.categories import COLOR
from agenticiqa.signatures.lexicon import LOWER, UPPER, Meaning
from agenticiqa.signatures.types import GLOBAL, Box, Boxes, ExecutorOutput
from agenticiqa.signatures.vocabulary import DetectableDistortion

Findings = Mapping[DetectableDistortion, Finding]

# Below these a color distortion can be excluded without a reference; chosen on the dev photos of eval/research.
NEUTRAL_TINT = 10.0  # CIELAB units between what should be neutral and gray
USUAL_COLORFULNESS = 45.0  # Hasler and Süsstrunk's
FADED = 0.25  # severity of desaturation
LEAST_SHARE = 0.25  # of a part that local damage must cover to count for it

_WHICH = r"(?:the )?(?:(?:whole|entire|main|primary|central|principal) )*"
SUBJECT = re.compile(rf"{_WHICH}(?:subject|object|motif|figure|foreground)", re.I)
BACKGROUND = re.compile(rf"{_WHICH}(?:background|backdrop)", re.I)


def locate(image: LoadedImage, regions: Sequence[str]) -> Boxes:
    """Return the box of each region in pixels, ``None`` for a region that was not found.

    The subject is what is most salient to the embedded network, the background the largest free rectangle beside it.
    The network does not recognize things by name, so people, faces, skies, vehicles and the like have no box.
    """
    boxes: Boxes = dict.fromkeys(regions)
    for region in regions:
        if SUBJECT.fullmatch(region):
            boxes[region] = subject_box(saliency(image), image.size)
        elif BACKGROUND.fullmatch(region):
            boxes[region] = background_box(saliency(image), image.size)
    return boxes


def findings_by_region(
    image: LoadedImage, reference: LoadedImage | None, regions: Iterable[str], boxes: Boxes
) -> dict[str, Findings]:
    """The findings for each region's crop; for a region without a box, those for the whole image and parts of it."""
    found: dict[str, Findings] = {}
    for region in regions:
        box = boxes.get(region)
        if box is None:
            found[region] = findings_of(image, reference)
        else:
            found[region] = findings_of_whole(crop(image, box), crop(reference, box) if reference else None)
    return found


def findings_for_evidence(
    image: LoadedImage, reference: LoadedImage | None, evidence: ExecutorOutput
) -> dict[str, Findings]:
    """The findings for each region of the evidence, or for the whole image as ``Global`` if no region has a box."""
    boxes = evidence.boxes or {}
    return findings_by_region(image, reference, boxes if any(boxes.values()) else [GLOBAL], boxes)


def opinions_by_region(
    image: LoadedImage,
    reference: LoadedImage | None,
    evidence: ExecutorOutput,
    by_region: Mapping[str, Findings],
    adapter: Adapter | None = None,
) -> dict[str, Opinion]:
    """The estimated mean opinion of each region that has findings."""
    boxes = evidence.boxes or {}
    return {
        region: estimate_opinion(
            crop(image, boxes.get(region)), crop(reference, boxes.get(region)) if reference else None, findings, adapter
        )
        for region, findings in by_region.items()
    }


def statistics_by_region(image: LoadedImage, regions: Iterable[str], boxes: Boxes) -> dict[str, dict[str, float]]:
    """The named measurements of each region's crop; for a region without a box, those of the whole image."""
    return {region: dict(all_statistics(crop(image, boxes.get(region)))) for region in regions}


class PartsMeasured:
    """What is measured of an image, its reference and its parts, by name; each once.

    Calling it with ``IMAGE`` gives the whole image (against the reference, if there is one), with ``REFERENCE`` the
    reference by itself, with ``REFERENCE_BESIDE_IMAGE`` it against the image, with the name of a part that part: one
    that the evidence has a box for, or a place in the frame ("left half"). ``None`` for what is not there.
    """

    def __init__(self, image: LoadedImage, reference: LoadedImage | None, evidence: ExecutorOutput) -> None:
        self.image, self.reference, self.evidence = image, reference, evidence
        self._measured: dict[str, MeasuredImage | None] = {}

    def __call__(self, name: str) -> MeasuredImage | None:
        """What was measured under a name."""
        if name not in self._measured:
            self._measured[name] = self._measure(name)
        return self._measured[name]

    def _measure(self, name: str) -> MeasuredImage | None:
        if name == REFERENCE:
            return measured_image(self.reference, None) if self.reference else None
        if name == REFERENCE_BESIDE_IMAGE:
            return measured_image(self.reference, self.image) if self.reference else None
        if name == IMAGE:
            return measured_image(self.image, self.reference, parts=True)
        box = (self.evidence.boxes or {}).get(name) or place_in_frame(name, self.image.size)
        if name in NINTHS:
            column, row = NINTHS[name]
            box = in_pixels((column, row, column + 1, row + 1), self.image.size, 3)
        if box is None:
            return None
        part = measured_image(crop(self.image, box), crop(self.reference, box) if self.reference else None)
        whole = self(IMAGE)
        return with_local_damage(part, whole.findings, box) if whole else part


def with_local_damage(part: MeasuredImage, whole: Findings, box: Box) -> MeasuredImage:
    """What was measured of a part, with the damage that was found in a part of the image, as far as it is in ``box``.

    What is measured of a crop is robust, so that damage in less than half of it hardly counts.
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


def measured_image(image: LoadedImage, reference: LoadedImage | None, *, parts: bool = False) -> MeasuredImage:
    """The findings of an image in the terms of a question, with its estimated level and tint.

    With ``parts`` damage in a part of it counts, too.
    """
    findings = findings_of(image, reference) if parts else findings_of_whole(image.judged, reference)
    image = image.judged
    red, yellow = neutral_tint(tone_of(image))
    if reference is not None:
        before = neutral_tint(tone_of(reference))
        red, yellow = red - before[0], yellow - before[1]
    level = estimate_opinion(image, reference, findings).score
    measured = MeasuredImage(findings, level, reference is not None, (red, yellow))
    return measured if reference else replace(measured, unsure=hidden_colors(measured, tone_of(image)))


def hidden_colors(measured: MeasuredImage, tone: Tone) -> frozenset[str]:
    """The kinds of color distortion that an image may have although its finding is weak: the scene may look so, too."""
    if measured.findings[COLOR].subtype in (GRAY, TONED):
        return frozenset()
    faded = measured.severity(Meaning(COLOR, "fault", LOWER[COLOR])) or 0.0
    open_kinds = {
        "color cast": math.hypot(*measured.tint or (0.0, 0.0)) > NEUTRAL_TINT,
        UPPER[COLOR]: colorfulness(tone) > USUAL_COLORFULNESS,
        LOWER[COLOR]: FADED < faded < PRESENT,
    }
    return frozenset(kind for kind, is_open in open_kinds.items() if is_open)
