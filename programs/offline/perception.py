"""What is wrong with an image, and how badly, from measurements alone: no model looks at it.

With a reference each category is judged by what changed between the two images, without one by how far the image is
from what photos usually measure. Curves over single measures (``compared``, ``alone``) and trained networks over all of
them and more (``detector``) are asked; the measured values explain what is found.
"""

from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.offline import full_reference, no_reference
from agenticiqa.programs.offline.detector import detect, detect_change
from agenticiqa.programs.offline.features import has_traits, traits
from agenticiqa.programs.offline.findings import Finding
from agenticiqa.programs.tools.statistics.by_name import all_statistics
from agenticiqa.signatures.vocabulary import DetectableDistortion

__all__ = ["Finding", "perceive"]


def perceive(image: LoadedImage, reference: LoadedImage | None = None) -> dict[DetectableDistortion, Finding]:
    """A finding for each of the seven categories, in the vocabulary's order.

    An image compared with itself has severity 0 everywhere.
    """
    if reference is None:
        return no_reference.find(_values(image), detect(image))
    return full_reference.find(_values(image), _values(reference), detect_change(image, reference))


def _values(image: LoadedImage) -> dict[str, float]:
    values = dict(all_statistics(image))
    if has_traits(image):
        values |= {"lost_detail": traits(image).lost_detail, "color_noise": traits(image).color_noise}
    return values
