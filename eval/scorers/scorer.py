"""A scorer: whatever gives an image one number, so that it is measured as the program is."""

import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.errors import AgenticIQAError, ImageError, ToolError
from agenticiqa.programs.images import load_pair

logger = logging.getLogger(__name__)

NO_QUERY = ""  # a scorer is asked nothing


@dataclass(frozen=True)
class Scorer:
    """A measure of quality.

    ``measure`` takes the pixels (uint8, H x W x 3, RGB) and, as ``compares`` says, those of the reference after them:
    never, always, or where an image has one. It gives one finite number, of which higher is better unless
    ``lower_is_better``. ``made_of`` is what else determines its numbers, as JSON types, for the run's description.
    ``computes``: it may run in other processes, several at a time.
    """

    name: str
    measure: Callable[..., Any]
    compares: Literal["never", "always", "if given"] = "never"
    lower_is_better: bool = False
    made_of: Mapping[str, Any] = field(default_factory=dict)
    computes: bool = False

    def __call__(self, job: Job) -> dict[str, Any] | AgenticIQAError:
        """The row of an image, or why there is none; nothing is raised."""
        try:
            return self._row(job)
        except ToolError as error:  # the metric does not apply to this image: no reason to end the run
            return ImageError(f"{job.name}: {error}")
        except AgenticIQAError as error:
            return error
        except Exception as error:  # of code that is not ours; it costs this image only
            logger.info("%s: %s failed", job.name, self.name, exc_info=True)
            return ImageError(f"{job.name}: {self.name} failed: {type(error).__name__}: {error}")

    def _row(self, job: Job) -> dict[str, Any]:
        started = time.perf_counter()
        image, reference = load_pair(job.image, None if self.compares == "never" else job.reference)
        if self.compares == "always" and reference is None:
            raise ImageError(f"{job.name}: {self.name} compares with a reference, and this image has none")
        compared = () if reference is None else (reference.pixels,)
        raw = float(self.measure(image.pixels, *compared))
        if not math.isfinite(raw):
            raise ImageError(f"{job.name}: {self.name} gave {raw}, which is no measurement")
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
