"""Load a pair of image and reference: check it, and align it on request."""

from dataclasses import replace

from agenticiqa.programs.images import ImageSource
from agenticiqa.programs.images.borders import assessed_part
from agenticiqa.programs.images.loading import MAX_PIXELS
from agenticiqa.programs.images.pairs import Pair, load_checked
from agenticiqa.programs.images.reference_check import ReferenceCheck
from agenticiqa.programs.stages import progress
from agenticiqa.signatures.types import SummarizerOutput


def load_assessed(
    image: ImageSource,
    reference: ImageSource | None,
    *,
    resize_reference: bool = False,
    align: bool = False,
    max_side: int | None = None,
    max_pixels: int = MAX_PIXELS,
) -> Pair:
    """Load with ``images.pairs.load_checked``; without a reference, exclude borders of one color from the assessment.

    Findings are logged, as a warning if they affect the score.
    """
    pair = load_checked(
        image, reference, resize_reference=resize_reference, align=align, max_side=max_side, max_pixels=max_pixels
    )
    check = pair.check
    if reference is None and (part := assessed_part(pair.image.pixels)):
        return Pair(replace(pair.image, assessed_box=part.box, notes=(*pair.image.notes, part.sentence)))
    if check is None or pair.reference is None:
        return pair
    if check.sentence:
        progress.checked_reference(check)
    return pair


def with_check(result: SummarizerOutput, check: ReferenceCheck | None) -> SummarizerOutput:
    """Append the caveats about the reference to the reasoning of a result."""
    if check is None or not check.sentence:
        return result
    return result.model_copy(update={"quality_reasoning": f"{result.quality_reasoning} {check.sentence}"})
