"""What is wrong with an image, and how badly, from measurements alone: no model looks at it.

With a reference each category is judged by what changed between the two images, without one by how far the image is
from what photos usually measure. The curves are in ``compared`` and ``alone``.
"""

from agenticiqa.programs.images import LoadedImage
from agenticiqa.programs.offline import alone, compared
from agenticiqa.programs.offline.findings import Finding
from agenticiqa.programs.tools.measures import measure
from agenticiqa.signatures.vocabulary import DetectableDistortion

__all__ = ["Finding", "perceive"]


def perceive(image: LoadedImage, reference: LoadedImage | None = None) -> dict[DetectableDistortion, Finding]:
    """A finding for each of the seven categories, in the vocabulary's order.

    An image compared with itself has severity 0 everywhere.
    """
    if reference is None:
        return alone.find(measure(image))
    return compared.find(measure(image), measure(reference))
