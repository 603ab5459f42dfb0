"""Define ``Scorer``: a metric or function that is evaluated like the program."""

import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.errors import AgenticIQAError, ImageError, ToolError
from agenticiqa.programs.images import load_pair

logger = logging.getLogger(__name__)

NO_QUERY = ""  # a scorer gets no question


@dataclass(frozen=True)
class Scorer:
    """A quality measure that gives each image one number.

    ``measure`` takes the pixels (uint8, H x W x 3, RGB), then the reference's pixels as ``compares`` says: never,
    always, or if an image has one. It returns one finite number; higher is better unless ``lower_is_better``.
    ``made_of`` holds everything else that determines its numbers, as JSON types, for the run's description. If
    ``computes``, several calls may run in other processes. An image with a shorter side above ``shorter_side`` pixels
    is downscaled to it before measurement, as papers do with SPAQ (512).
    """

    name: str
    measure: Callable[..., Any]
    compares: Literal["never", "always", "if given"] = "never"
    lower_is_better: bool = False
    made_of: Mapping[str, Any] = field(default_factory=dict)
    computes: bool = False
    shorter_side: int | None = None

    @property
    def backend(self) -> str:
        """Return the name, with the measured size if images are downscaled, for reports, like a program's backend."""
        return f"{self.name}, shorter side {self.shorter_side}" if self.shorter_side else self.name

    def __call__(self, job: Job) -> dict[str, Any] | AgenticIQAError:
        """Return the row of an image, or the error that prevented it; nothing is raised."""
        try:
            return self._row(job)
        except ToolError as error:  # a metric that does not apply to this image; the run continues
            return ImageError(str(error), job.name)
        except AgenticIQAError as error:
            return error
        except Exception as error:  # an error in external code; only this image fails
            logger.info("%s: %s failed", job.name, self.name, exc_info=True)
            failed = ImageError(f"{self.name} failed: {type(error).__name__}: {error}", job.name)
            failed.__cause__ = error  # the row names it
            return failed

    def _row(self, job: Job) -> dict[str, Any]:
        started = time.perf_counter()
        image, reference = load_pair(job.image, None if self.compares == "never" else job.reference)
        if self.compares == "always" and reference is None:
            raise ImageError(f"{self.name} needs a reference, but this image has none", job.name)
        pixels = [_scaled(picture.pixels, self.shorter_side) for picture in (image, reference) if picture is not None]
        raw = _number(self.measure(*pixels))
        return {
            "image": image.source,
            "image_sha256": image.sha256,
            "reference": reference.source if reference else None,
            "reference_sha256": reference.sha256 if reference else None,
            "query": NO_QUERY,
            "scorer": self.name,
            "raw_score": raw,
            "quality_score": -raw if self.lower_is_better else raw,
            "timings_ms": {"scorer": round((time.perf_counter() - started) * 1000, 1)},
        }


def _number(value: Any) -> float:
    """Return a value as a number, also an array or tensor of one element. Raises ValueError for anything else."""
    if not isinstance(value, str | bytes | bool) and value is not None:
        number = float(value.item() if hasattr(value, "item") else value)
        if math.isfinite(number):
            return number
    raise ValueError(f"expected a finite number, got {value!r}")


def _scaled(pixels: NDArray[np.uint8], side: int | None) -> NDArray[np.uint8]:
    height, width = pixels.shape[:2]
    if side is None or min(height, width) <= side:
        return pixels
    size = (round(width * side / min(height, width)), round(height * side / min(height, width)))
    return np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.BICUBIC))
