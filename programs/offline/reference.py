"""A pair of image and reference as the program judges it: checked, aligned where asked, and told."""

from agenticiqa.programs.images import ImageSource
from agenticiqa.programs.images.pairs import Pair, load_checked
from agenticiqa.programs.images.reference_check import ReferenceCheck
from agenticiqa.programs.stages import progress
from agenticiqa.signatures.types import SummarizerOutput


def load_judged(
    image: ImageSource,
    reference: ImageSource | None,
    *,
    resize_reference: bool = False,
    align: bool = False,
    max_side: int | None = None,
) -> Pair:
    """``images.pairs.load_checked``, with what was found logged as a warning where it harms the score."""
    pair = load_checked(image, reference, resize_reference=resize_reference, align=align, max_side=max_side)
    if pair.check and pair.check.sentence:
        progress.checked_reference(pair.check)
    return pair


def with_check(result: SummarizerOutput, check: ReferenceCheck | None) -> SummarizerOutput:
    """The result with what a reader has to know of the reference at the end of its reasoning."""
    if check is None or not check.sentence or check.sentence in result.quality_reasoning:
        return result
    return result.model_copy(update={"quality_reasoning": f"{result.quality_reasoning} {check.sentence}"})
