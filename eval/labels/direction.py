"""Detect labels where lower is better: damaged images must score lower."""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, groupby

from agenticiqa.eval.datasets import LabeledImage
from agenticiqa.eval.metrics import srcc
from agenticiqa.programs.errors import ImageError
from agenticiqa.programs.images.loading import load_pair
from agenticiqa.programs.tools.metrics.ssim import ssim

MOST_IN_GROUP = 50  # images of one scene and distortion that are compared by strength
MOST_WRONG = 2 / 3  # share of such pairs in labels with the right direction
FEWEST_PAIRS = 3  # pairs of images in which the better one is known
COMPARED = 30  # images compared with their references, if there are too few such pairs
FEWEST_COMPARED = 20
CLEARLY_NEGATIVE = -0.4  # an SRCC that 20 unrelated values have in 4 of 100 cases

Pair = tuple[LabeledImage, LabeledImage]  # the better one first


def evidence_of_reversed_scores(labels: Sequence[LabeledImage]) -> str | None:
    """Return the evidence that lower is better, in words; ``None`` without such evidence.

    Two images are compared if one is a rated reference, or if ``level`` has numbers for different strengths of one
    distortion of one scene. If each scene has one strength, strengths of one distortion are compared across scenes.
    Without such pairs, SSIM to the references decides, for at most 30 images.
    """
    pairs = [*_by_references(labels), *_by_strength(labels, lambda label: f"{label.content}/{label.distortion}")]
    pairs = pairs if len(pairs) >= FEWEST_PAIRS else list(_by_strength(labels, lambda label: label.distortion or ""))
    if len(pairs) >= FEWEST_PAIRS:
        wrong = [(better, worse) for better, worse in pairs if better.mos < worse.mos]
        if len(wrong) <= MOST_WRONG * len(pairs):
            return None
        better, worse = wrong[0]
        return (
            f"in {len(wrong)} of {len(pairs)} pairs the more damaged image has the higher score, such as {worse.name} "
            f"({worse.mos:g}) and {better.name} ({better.mos:g})"
        )
    similarity = dict(_similarity(labels))
    if len(similarity) < FEWEST_COMPARED:
        return None
    correlation = srcc(list(similarity.values()), [label.mos for label in similarity])
    if correlation is not None and correlation <= CLEARLY_NEGATIVE:
        return f"SRCC between the scores and SSIM (image to reference) is {correlation:.2f} (n = {len(similarity)})"
    return None


def _by_references(labels: Sequence[LabeledImage]) -> Iterator[Pair]:
    references = {label.reference for label in labels if label.reference}
    for images in _groups(labels, lambda label: label.content):
        pristine = [label for label in images if label.image in references]
        yield from ((good, bad) for good in pristine for bad in images if bad.image not in references)


def _by_strength(labels: Sequence[LabeledImage], key: Callable[[LabeledImage], str]) -> Iterator[Pair]:
    for images in _groups(labels, key):
        graded = [(strength, label) for label in images if (strength := _strength(label)) is not None]
        for (first, a), (second, b) in combinations(graded[:MOST_IN_GROUP], 2):
            if first != second:
                yield (a, b) if first < second else (b, a)


def _groups(labels: Sequence[LabeledImage], key: Callable[[LabeledImage], str]) -> Iterator[list[LabeledImage]]:
    for _, group in groupby(sorted(labels, key=key), key=key):
        yield list(group)


def _strength(label: LabeledImage) -> float | None:
    try:
        return float(label.level) if label.level else None
    except ValueError:
        return None


def _similarity(labels: Sequence[LabeledImage]) -> Iterator[tuple[LabeledImage, float]]:
    with_reference = [label for label in labels if label.reference and label.reference != label.image]
    for label in with_reference[:: max(1, -(-len(with_reference) // COMPARED))]:
        try:
            image, reference = load_pair(label.image, label.reference)
        except ImageError:
            continue  # the assessment of the image reports the reason
        if reference is not None:
            yield label, ssim(image.pixels, reference.pixels)
