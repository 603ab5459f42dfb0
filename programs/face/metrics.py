"""Every metric as a function of images in common formats: ``from agenticiqa.metrics import ssim, niqe, measure``.

::

    ssim("photo.jpg", "original.png")  # a float; paths, bytes, PIL images, arrays, torch tensors
    ssim(batch, references)            # an array of shape (N,), for (N, H, W, C) or (N, C, H, W)
    measure("MS-SSIM", image, reference)
    list_metrics()                     # name, kind, direction, range, source

It loads neither DSPy nor torch. ``agenticiqa.programs.tools`` has the same metrics as functions of uint8 pixels.
"""

from agenticiqa.programs.tools.catalog import METRICS
from agenticiqa.programs.tools.measuring import MetricFunction, function_of, list_metrics, measure

__all__ = ["list_metrics", "measure"]


def __getattr__(name: str) -> MetricFunction:
    """Return a metric by the name of its function (PEP 562)."""
    if name not in METRICS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return function_of(name)


def __dir__() -> list[str]:
    return sorted({*__all__, *METRICS})
