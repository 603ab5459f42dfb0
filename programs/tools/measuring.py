"""Measure images with a metric: given as path, bytes, PIL image, array, tensor, or a batch of them."""

import inspect
import os
import re
from collections.abc import Sequence
from typing import IO, Any, Protocol, TypeAlias, cast, overload

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from agenticiqa.programs.errors import ImageError, ToolError, UserError
from agenticiqa.programs.images import ImageSource, LoadedImage
from agenticiqa.programs.images.loading import load_pixels
from agenticiqa.programs.tools.catalog import TOOLS
from agenticiqa.programs.tools.numerics.pixels import RGB
from agenticiqa.programs.tools.tool import PYIQA, Tool, find_tool, get_tool, raw_value, unknown_tool

Measured: TypeAlias = float | NDArray[np.float64]
OneImage: TypeAlias = str | os.PathLike[str] | bytes | bytearray | IO[bytes] | Image.Image | LoadedImage
"""What is always one image, never a batch."""
Images: TypeAlias = list[Any] | tuple[Any, ...]
CHANNELS = (1, 3, 4)  # channels of gray, RGB, RGBA
REFERENCE = {
    "FR": "The pristine image: one for all images, or one for each.",
    "NR": "Must not be given; a reference raises ToolError.",
}
MISUSE = {"FR": "There is no reference", "NR": "A reference is given"}


class MetricFunction(Protocol):
    """A metric as a function of an image, or of a batch, and for a full-reference metric of its reference."""

    @overload
    def __call__(self, image: OneImage, reference: Any = None) -> float: ...
    @overload
    def __call__(self, image: Images, reference: Any = None) -> NDArray[np.float64]: ...
    @overload
    def __call__(self, image: Any, reference: Any = None) -> Measured: ...


def list_metrics() -> list[dict[str, Any]]:
    """List the embedded metrics.

    Returns:
        One entry per metric: ``name``, ``kind`` ("FR" needs a reference, "NR" does not), ``better`` ("higher" or
        "lower"), ``range`` (where values usually lie), ``unit``, ``smallest`` (the least side in pixels),
        ``description`` and ``source``.
    """
    return [
        {
            "name": tool.name,
            "kind": tool.kind,
            "better": "higher" if tool.higher_is_better else "lower",
            "range": list(tool.raw_range),
            "unit": tool.unit,
            "smallest": tool.smallest,
            "description": tool.description,
            "source": tool.source,
        }
        for tool in TOOLS.values()
    ]


@overload
def measure(metric: str, image: OneImage, reference: Any = None) -> float: ...
@overload
def measure(metric: str, image: Images, reference: Any = None) -> NDArray[np.float64]: ...
@overload
def measure(metric: str, image: Any, reference: Any = None) -> Measured: ...
def measure(metric: str, image: Any, reference: Any = None) -> Measured:
    """Return the value of a metric on its own scale.

    Images are measured upright, over white, as 8-bit RGB.

    Args:
        metric: The metric's name in any case ("ssim", "MS-SSIM"), or ``pyiqa:NAME`` for one of that package.
        image: A path, bytes, a file object, a PIL image, an array or a torch tensor of shape (H, W), (H, W, C) or (C,
            H, W) with 1, 3 or 4 channels, in uint8 0..255, uint16 0..65535 or float 0..1; or a batch: a list of images,
            or an array or tensor of shape (N, H, W, C) or (N, C, H, W). Where both ends of a shape could be channels,
            an array has them last and a tensor first.
        reference: The pristine image for a full-reference metric, one for all images or one for each.

    Returns:
        A float for one image, an array of shape (N,) for a batch.

    Raises:
        ToolError: The metric is unknown or does not apply, a reference is missing, or the metric uses none.
        ImageError: An image is invalid.
    """
    tool = metric_named(metric)
    images, batch = _images_in(image)
    if tool.kind == "NR" and reference is not None:
        raise ToolError(f"{tool.name} takes no reference; leave it out, or give both images as a list")
    if tool.kind == "NR":
        references: Sequence[Any] = [None] * len(images)
    elif reference is None:
        raise ToolError(f"{tool.name} needs a reference; give one")
    else:
        references, several = _images_in(reference)
        if not several:
            references = [pixels_of(references[0])] * len(images)
        elif not batch or len(references) != len(images):
            raise ToolError(f"expected one reference, or one for each of {len(images)} images, got {len(references)}")
    if not batch:
        return _value(tool, images[0], references[0])
    values = np.empty(len(images))
    for number, pair in enumerate(zip(images, references, strict=True)):
        try:
            values[number] = _value(tool, *pair)
        except UserError as error:
            raise type(error)(f"image {number} of the batch: {error}") from error
    return values


def metric_named(name: str) -> Tool:
    """Return an embedded metric, or one of pyiqa. Raises ToolError for an unknown one, or where pyiqa is missing."""
    if not isinstance(name, str):
        raise ToolError(f"expected the name of one metric, got {type(name).__name__}; call measure for each metric")
    if name.lower().startswith(PYIQA):
        from agenticiqa.programs.tools.pyiqa import pyiqa_metric  # a late import: it loads pydantic

        return pyiqa_metric(name[len(PYIQA) :].lower())
    if find_tool(name, TOOLS) is None:
        raise ToolError(f"{unknown_tool(name, TOOLS)}; name metrics one by one, those of pyiqa as pyiqa:{name.lower()}")
    return get_tool(name, TOOLS)


def function_of(name: str) -> MetricFunction:
    """Return ``measure`` for one metric, named and documented after it: ``ssim(image, reference)``, ``niqe(image)``."""
    tool = get_tool(name, TOOLS)

    def metric(image: Any, reference: Any = None) -> Measured:
        return measure(tool.name, image, reference)

    metric.__name__ = metric.__qualname__ = name
    metric.__doc__ = _documented(tool)
    return cast(MetricFunction, metric)


def _documented(tool: Tool) -> str:
    """Return the docstring of a tool's function of pixels, with the arguments and the batches of ``measure``."""
    text = inspect.getdoc(tool.measure) or ""
    for own, replacement in {
        r"    image: [\s\S]*?\n\n": "    image: One image or a batch, in any form that ``measure`` takes.\n"
        f"    reference: {REFERENCE[tool.kind]}\n\n",
        r"\n\nRaises:": "\n    A float for one image, an array of shape (N,) for a batch.\n\nRaises:",
        r"(The|An) array is of another kind": MISUSE[tool.kind],
        r"\Z": "\n    ImageError: An image is invalid.",
    }.items():
        text = re.sub(own, replacement, text, count=1)
    return text


def pixels_of(source: ImageSource) -> RGB:
    """Return the measured pixels of one image, (H, W, 3) uint8, as in ``images.load``, without data for a model."""
    if isinstance(source, LoadedImage):
        return source.pixels
    if isinstance(source, np.ndarray) and source.dtype == np.uint8 and source.ndim == 3 and source.shape[2] == 3:
        return source
    return load_pixels(source)


def _value(tool: Tool, image: Any, reference: Any) -> float:
    return raw_value(tool, pixels_of(image), None if reference is None else pixels_of(reference))


def _images_in(source: Any) -> tuple[Sequence[Any], bool]:
    """Return the images of a source, and whether it is a batch."""
    if isinstance(source, list | tuple):
        parts = [_images_in(item) for item in source]
        if any(several for _, several in parts):
            raise ImageError("expected single images in a list, found a batch in it")
        return [images[0] for images, _ in parts], True
    tensor = hasattr(source, "detach") and hasattr(source, "cpu")
    if tensor:  # a tensor of torch, on any device; torch itself is not imported
        source = source.detach().cpu()
        source = (source.float() if "float" in str(source.dtype) else source).numpy()  # NumPy has no bfloat16
    if not isinstance(source, np.ndarray) or source.ndim < 3:
        return [source], False
    if source.ndim > 4:
        raise ImageError(f"expected images of shape (H, W, C) or a batch of them, got {source.shape}")
    images = _channels_last(source, axes=(-3, -1) if tensor else (-1, -3))
    return (list(images), True) if source.ndim == 4 else ([images], False)


def _channels_last(array: NDArray[Any], axes: tuple[int, int]) -> NDArray[Any]:
    """Return the array with its channels last, or without them where there is one; they are the first that can be."""
    for axis in axes:
        if array.shape[axis] in CHANNELS:
            moved = np.moveaxis(array, axis, -1)
            return moved[..., 0] if moved.shape[-1] == 1 else np.ascontiguousarray(moved)
    shapes = "(H, W, C) or (C, H, W), for a batch (N, H, W, C) or (N, C, H, W), with 1, 3 or 4 channels"
    raise ImageError(f"expected the shape {shapes}, got {array.shape}")
