"""Share what is computed from an image: metrics, findings and networks ask for it, and it is computed once."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Protocol, TypeVar, runtime_checkable

from agenticiqa.programs.images.memo import Memo
from agenticiqa.programs.tools.numerics.pixels import RGB, check_image

T = TypeVar("T")


@runtime_checkable
class Measurable(Protocol):
    """An image with its measured pixels and the results computed from them, such as a ``LoadedImage``."""

    @property
    def pixels(self) -> RGB:
        """The measured pixels, uint8 RGB of shape (H, W, 3)."""

    @property
    def memo(self) -> Memo:
        """The results computed from the pixels."""


@dataclass(frozen=True, eq=False)
class _OfArray:
    pixels: RGB
    memo: Memo = field(default_factory=Memo)


def shared(compute: Callable[[Measurable], T]) -> Callable[[RGB | Measurable], T]:
    """Return the function that computes its result once per picture, also under threads, and keeps it in the memo.

    It also takes an array, uint8 RGB of shape (H, W, 3) and any size from one pixel up; results are then kept for this
    call. It raises ToolError for any other array.
    """

    @wraps(compute)
    def once(image: RGB | Measurable) -> T:
        if not isinstance(image, Measurable):
            check_image(image)
            image = _OfArray(image)
        return image.memo.once(once, partial(compute, image))

    return once
