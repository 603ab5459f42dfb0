"""Regions without a model: which can be found, and what is measured of each by itself."""

import re
from collections.abc import Iterable, Mapping, Sequence

from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.images.regions import crop
from agenticiqa.programs.offline.levels import judge
from agenticiqa.programs.offline.perception import Finding, perceive
from agenticiqa.programs.tools.numerics.opinion import Opinion
from agenticiqa.programs.tools.saliency import background_box, saliency, subject_box
from agenticiqa.programs.tools.statistics.by_name import all_statistics
from agenticiqa.signatures.types import GLOBAL, Boxes, ExecutorOutput
from agenticiqa.signatures.vocabulary import DetectableDistortion

Findings = Mapping[DetectableDistortion, Finding]

_WHICH = r"(?:the )?(?:(?:whole|entire|main|primary|central|principal) )*"
SUBJECT = re.compile(rf"{_WHICH}(?:subject|object|motif|figure|foreground)", re.I)
BACKGROUND = re.compile(rf"{_WHICH}(?:background|backdrop)", re.I)
PERSON = re.compile(rf"{_WHICH}(?:person|man|woman|boy|girl|child|kid|baby)", re.I)


def find_regions(image: LoadedImage, regions: Sequence[str]) -> tuple[Boxes, list[str]]:
    """The box of each region, ``None`` for what cannot be found, and remarks about what was taken for granted.

    The subject is what stands out to the embedded saliency network, the background the largest free rectangle beside
    it. A person who is the only one named is taken for the subject, which is remarked. The network knows no things by
    name, so faces, skies, vehicles and the like have no box.
    """
    people = [region for region in regions if PERSON.fullmatch(region)]
    subjects = {region for region in regions if SUBJECT.fullmatch(region)} | set(people if len(people) == 1 else [])
    backgrounds = {region for region in regions if BACKGROUND.fullmatch(region)}
    if not subjects and not backgrounds:
        return dict.fromkeys(regions), []
    seen = saliency(image)
    subject = subject_box(seen, image.size) if subjects else None
    background = background_box(seen, image.size) if backgrounds else None
    boxes = {
        region: subject if region in subjects else background if region in backgrounds else None for region in regions
    }
    taken = "was taken for what stands out most in the image, which nothing checked."
    return boxes, [f"{region} {taken}" for region in people if boxes[region]]


def perceive_regions(
    image: LoadedImage, reference: LoadedImage | None, regions: Iterable[str], boxes: Boxes
) -> dict[str, Findings]:
    """The findings of each region's crop, of the whole image for one without a box."""
    return {
        region: perceive(crop(image, boxes.get(region)), crop(reference, boxes.get(region)) if reference else None)
        for region in regions
    }


def perceive_apart(image: LoadedImage, reference: LoadedImage | None, evidence: ExecutorOutput) -> dict[str, Findings]:
    """The findings of each region of the evidence, or of the whole image as ``Global`` when none has a box."""
    boxes = evidence.boxes or {}
    return perceive_regions(image, reference, boxes if any(boxes.values()) else [GLOBAL], boxes)


def judge_apart(
    image: LoadedImage, reference: LoadedImage | None, evidence: ExecutorOutput, by_region: Mapping[str, Findings]
) -> dict[str, Opinion]:
    """What people would think of each region that has findings."""
    boxes = evidence.boxes or {}
    return {
        region: judge(
            crop(image, boxes.get(region)), crop(reference, boxes.get(region)) if reference else None, findings
        )
        for region, findings in by_region.items()
    }


def measure_regions(image: LoadedImage, regions: Iterable[str], boxes: Boxes) -> dict[str, dict[str, float]]:
    """The measures of each region's crop, of the whole image for one without a box."""
    return {region: dict(all_statistics(crop(image, boxes.get(region)))) for region in regions}


def as_asked(by_region: Mapping[str, Findings], evidence: ExecutorOutput) -> dict[str, Findings]:
    """For each region the findings that a question means by it.

    "Is the car sharp but the background noisy?" names sharpness for the one and noise for the other: what is named for
    other regions only is taken from the first of those.
    """
    detected = evidence.distortion_set is not None  # then nothing was named
    analysis = {} if detected else evidence.distortion_analysis or {}
    named = {region: [row.type for row in analysis.get(region, [])] for region in by_region}

    def meant(name: DetectableDistortion, here: str) -> str:
        return next((region for region in (here, *by_region) if name in named[region]), here)

    return {
        region: {name: by_region[meant(name, region)][name] for name in findings}
        for region, findings in by_region.items()
    }
