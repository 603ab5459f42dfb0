"""Load a pair of image and reference: check it, and align it on request."""

from agenticiqa.configs.options import ImageSettings
from agenticiqa.programs.images import ImageSource
from agenticiqa.programs.images.borders import assessed_part
from agenticiqa.programs.images.pairs import DEFAULT_SETTINGS, Pair, load_checked
from agenticiqa.programs.images.reference_check import ReferenceCheck
from agenticiqa.programs.stages import progress
from agenticiqa.signatures.types import SummarizerOutput


def load_assessed(
    image: ImageSource,
    reference: ImageSource | None,
    settings: ImageSettings = DEFAULT_SETTINGS,
    *,
    resize_reference: bool = False,
) -> Pair:
    """Load with ``images.pairs.load_checked``; without a reference, exclude borders of one color from the assessment.

    Findings are logged, as a warning if they affect the score.
    """
    pair = load_checked(image, reference, settings, resize_reference=resize_reference)
    check = pair.check
    if reference is None and (part := assessed_part(pair.image.pixels)):
        return Pair(pair.image.changed(assessed_box=part.box, notes=(*pair.image.notes, part.sentence)))
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
