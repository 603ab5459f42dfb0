"""Find the distortions of an image from measurements alone.

With a reference a category is judged by what differs between the two images, without one by how far the image is from
what photos usually measure. Severities combine curves over single measurements (``full_reference``, ``no_reference``)
with the outputs of trained networks (``detector``); the explanations state the measured values. Whether the color of a
gray or toned picture was lost or never meant cannot be seen without a reference, so that is no distortion.
"""

from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.offline import full_reference, no_reference
from agenticiqa.programs.offline.detector import predict, predict_change
from agenticiqa.programs.offline.features import features, has_features
from agenticiqa.programs.offline.findings import GRAY, TONED, Finding, Prediction
from agenticiqa.programs.tools.statistics.by_name import all_statistics
from agenticiqa.programs.tools.statistics.monochrome import Monochrome, monochrome
from agenticiqa.signatures.vocabulary import DetectableDistortion

WITHOUT_COLOR: dict[Monochrome, Finding] = {
    "gray": Finding(0.0, GRAY, "The picture is gray, without any color, and may be meant to be so."),
    "toned": Finding(0.0, TONED, "The picture is toned in one warm hue, as sepia is, and may be meant to be so."),
}


def findings_of(image: LoadedImage, reference: LoadedImage | None = None) -> dict[DetectableDistortion, Finding]:
    """A finding for each of the seven categories, in the order of ``DETECTABLE``.

    Without a reference a monochrome image has no "Color distortions"; their subtype is then ``GRAY`` or ``TONED``. A
    reference must be of the same size. An image compared with itself has severity 0 in every category. Images with a
    side below 64 pixels have no features, so that only the curves count. Raises ToolError for damaged weights.
    """
    if reference is None:
        found = no_reference.findings_from(_measurements(image), predictions_for(image))
        kind = monochrome_of(image)
        return found if kind is None else found | {"Color distortions": WITHOUT_COLOR[kind]}
    predictions = predictions_for(image, reference)
    return full_reference.findings_from(_measurements(image), _measurements(reference), predictions)


def monochrome_of(image: LoadedImage) -> Monochrome | None:
    """Whether a loaded image is gray or toned; computed once per image."""
    return image.memo.once("monochrome", lambda: monochrome(image.pixels))


def predictions_for(
    image: LoadedImage, reference: LoadedImage | None = None
) -> dict[DetectableDistortion, Prediction] | None:
    """The networks' predictions; ``None`` for an image that is too small to have features."""
    if not has_features(image):
        return None
    found = features(image)
    if reference is None:
        return predict(found.texture, found.tone)
    return predict_change(found.all - features(reference).all)


def _measurements(image: LoadedImage) -> dict[str, float]:
    values = dict(all_statistics(image))
    if has_features(image):
        values |= {"lost_detail": features(image).lost_detail, "color_noise": features(image).color_noise}
    return values
