"""Find the distortions of an image from measurements alone.

With a reference a category is judged by what differs between the two images, without one by how far the image is from
what photos usually measure. Severities combine curves over single measurements (``full_reference``, ``no_reference``)
with the outputs of trained networks (``detector``); the explanations state the measured values.
"""

from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.offline import full_reference, no_reference
from agenticiqa.programs.offline.detector import predict, predict_change
from agenticiqa.programs.offline.features import features, has_features
from agenticiqa.programs.offline.findings import Finding, Prediction
from agenticiqa.programs.tools.statistics.by_name import all_statistics
from agenticiqa.signatures.vocabulary import DetectableDistortion


def findings_of(image: LoadedImage, reference: LoadedImage | None = None) -> dict[DetectableDistortion, Finding]:
    """A finding for each of the seven categories, in the order of ``DETECTABLE``.

    The reference must be of the same size. An image compared with itself has severity 0 in every category. Images with
    a side below 64 pixels have no features, so that only the curves count. Raises ToolError for damaged weights.
    """
    if reference is None:
        return no_reference.findings_from(_measurements(image), predictions_for(image))
    predictions = predictions_for(image, reference)
    return full_reference.findings_from(_measurements(image), _measurements(reference), predictions)


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
