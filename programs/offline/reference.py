"""Load a pair of image and reference: check it, align it on request, and report if the two may be swapped."""

from dataclasses import replace

from agenticiqa.programs.images import ImageSource, LoadedImage
from agenticiqa.programs.images.borders import assessed_part
from agenticiqa.programs.images.loading import MAX_PIXELS
from agenticiqa.programs.images.pairs import Pair, load_checked
from agenticiqa.programs.images.reference_check import ReferenceCheck
from agenticiqa.programs.offline.measured.detector import predict
from agenticiqa.programs.offline.measured.features import features, has_features
from agenticiqa.programs.offline.measured.mos_estimate import learned_model_applies
from agenticiqa.programs.stages import progress
from agenticiqa.programs.tools.metrics.learned_iqa import predicted_mos
from agenticiqa.signatures.types import SummarizerOutput

# Chosen on 600 pairs: LIVE r2, and 12 good photos of CLIVE with each kind of ``distort`` at levels 2 and 4. None
# was suspected in the right order; when swapped, 79 % of LIVE r2 and 64 % of the others were.
WORSE, CLEARLY_WORSE = 0.15, 0.3  # levels by which the predicted MOS of the reference is below the image's
LESS_CHANGE = 0.5  # severities


def load_assessed(
    image: ImageSource,
    reference: ImageSource | None,
    *,
    resize_reference: bool = False,
    align: bool = False,
    max_side: int | None = None,
    max_pixels: int = MAX_PIXELS,
) -> Pair:
    """Load with ``images.pairs.load_checked``, and also report a reference that looks worse than the image.

    Without a reference, borders of one color and repeats of an image are excluded from the assessment.

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
    if check.relation not in ("identical", "another picture") and (worse := looks_worse(pair.image, pair.reference)):
        check = check.model_copy(update={"swapped": True, "sentence": f"{check.sentence} {worse}".strip()})
        pair = Pair(replace(pair.image, notes=(*pair.image.notes, worse)), pair.reference, check)
    if check.sentence:
        progress.checked_reference(check)
    return pair


def looks_worse(image: LoadedImage, reference: LoadedImage) -> str:
    """Return a sentence if the reference looks worse than the image, so the two may be swapped; else an empty text.

    Both have the same size. The detector compares the change from the image to the reference with the reverse change:
    which one looks more like damage? The learned model predicts the MOS of each. If an image is too small for these,
    return an empty text.
    """
    if not (has_features(image) and learned_model_applies(image, None)):
        return ""
    change = features(image).all - features(reference).all
    damage, repair = (max(found.severity for found in predict(compared=step).values()) for step in (change, -change))
    if repair < damage - LESS_CHANGE:
        return ""
    first, second = predicted_mos(image).score, predicted_mos(reference).score
    if first - second < (WORSE if repair >= damage else CLEARLY_WORSE):
        return ""
    return (
        f"The reference looks worse than the image ({second:.1f} against {first:.1f} of 5, each assessed alone): "
        "check that the two are not swapped."
    )


def with_check(result: SummarizerOutput, check: ReferenceCheck | None) -> SummarizerOutput:
    """Append the caveats about the reference to the reasoning of a result."""
    if check is None or not check.sentence or check.sentence in result.quality_reasoning:
        return result
    return result.model_copy(update={"quality_reasoning": f"{result.quality_reasoning} {check.sentence}"})
