"""Define ``Scorer``: a metric or function that is evaluated like the program."""

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from sysconfig import get_paths
from traceback import extract_tb
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from agenticiqa.eval.datasets import LabeledImage
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.batch.stop_rule import FAILURES_IN_A_ROW, StopRule
from agenticiqa.programs.errors import AgenticIQAError, ImageError, NoScore, ToolError, UserError
from agenticiqa.programs.images import load_pair
from agenticiqa.programs.images.files import digest, sha256_of

logger = logging.getLogger(__name__)

NO_QUERY = ""  # a scorer gets no question
NO_REFERENCE = {"reference": None, "reference_sha256": None}


class ScorerFault(ImageError):
    """An exception in external code, with the line of its own file that raised it or called a library.

    Attributes:
        fault: The exception and its place.
        kind: What equal faults have in common: the type of the exception and its place.
    """

    def __init__(self, problem: str, image: str = "", fault: str = "", kind: tuple[str, str] = ("", "")) -> None:
        super().__init__(problem, image)
        self.fault, self.kind = fault, kind


@dataclass
class ScorerStopRule(StopRule):
    """The rule of a scorer's run: it also ends if its first images fail in the same line, as all others would."""

    kinds: list[tuple[str, str]] = field(default_factory=list)

    def should_stop(self, outcome: object) -> bool:
        """Return whether to end the run after this outcome, as ``StopRule`` does."""
        if super().should_stop(outcome) or self.accepted or not isinstance(outcome, ScorerFault):
            return self.ended_by is not None
        self.kinds.append(outcome.kind)
        if len(self.kinds) == FAILURES_IN_A_ROW and len({*self.kinds}) == 1:
            self.ended_by = UserError(
                f"stopped, because the first {FAILURES_IN_A_ROW} images failed in the same way: {outcome.fault}. "
                "Correct the scorer, and run the same command again"
            )
        return self.ended_by is not None


@dataclass(frozen=True)
class Scorer:
    """A quality measure that gives each image one number.

    ``measure`` takes the pixels (uint8, H x W x 3, RGB), then the reference's pixels as ``compares`` says: never,
    always, or if an image has one. With ``takes_path``, it also takes the keyword ``path``; without ``takes_pixels``,
    only that, and no image is decoded. It returns one finite number; higher is better unless ``lower_is_better``.
    ``made_of`` holds everything else that determines its numbers, as JSON types, for the run's description. If
    ``computes``, several calls may run in other processes. An image with a shorter side above ``shorter_side`` pixels
    is downscaled to it before measurement, as papers do with SPAQ (512).

    A scorer of scores that one already has takes them from ``of_labels``, which returns one for each labeled image;
    ``on`` joins them as ``given``, by image and reference, and nothing is measured.
    """

    name: str
    measure: Callable[..., Any]
    compares: Literal["never", "always", "if given"] = "never"
    lower_is_better: bool = False
    made_of: Mapping[str, Any] = field(default_factory=dict)
    computes: bool = False
    shorter_side: int | None = None
    takes_pixels: bool = True
    takes_path: bool = False
    of_labels: Callable[[Sequence[LabeledImage]], Sequence[float | None]] | None = None
    given: Mapping[Any, float] = field(default_factory=dict)

    @property
    def backend(self) -> str:
        """Return the name, with the measured size if images are downscaled, for reports, like a program's backend."""
        return f"{self.name}, shorter side {self.shorter_side}" if self.shorter_side else self.name

    def on(self, labels: Sequence[LabeledImage]) -> "Scorer":
        """Return the scorer of these labels: with the scores that are given for them, else itself.

        Raises UserError if none of them has a score.
        """
        if self.of_labels is None:
            return self
        scores = self.of_labels(labels)
        pairs = zip(labels, scores, strict=True)
        given = {(label.image, label.reference): score for label, score in pairs if score is not None}
        if not given:
            raise UserError(
                f"{self.name}: none of the {len(labels)} images has a score, such as {labels[0].name}; name images as "
                "the labels do"
            )
        return replace(self, given=given, made_of={"scores": digest([*scores])})

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
            return _fault_of(error, self.name, job.name)

    def _row(self, job: Job) -> dict[str, Any]:
        started = time.perf_counter()
        files, arguments = self._files(job)
        raw = _number(self.measure(*arguments, **({"path": job.image} if self.takes_path else {})))
        return {
            **files,
            "query": NO_QUERY,
            "scorer": self.name,
            "raw_score": raw,
            "quality_score": -raw if self.lower_is_better else raw,
            "timings_ms": {"scorer": round((time.perf_counter() - started) * 1000, 1)},
        }

    def _files(self, job: Job) -> tuple[dict[str, str | None], list[Any]]:
        """Return the names and hashes of an image's files, and what ``measure`` takes by position."""
        if not self.takes_pixels:
            files = {"image": job.name, "image_sha256": sha256_of(cast(Path, job.image)), **NO_REFERENCE}
            return files, [self._given(job)] if self.of_labels else []
        image, reference = load_pair(job.image, None if self.compares == "never" else job.reference)
        if self.compares == "always" and reference is None:
            raise ImageError(f"{self.name} needs a reference, but this image has none", job.name)
        files = {"image": image.source, "image_sha256": image.sha256, **NO_REFERENCE}
        if reference:
            files |= {"reference": reference.source, "reference_sha256": reference.sha256}
        return files, [_scaled(picture.pixels, self.shorter_side) for picture in (image, reference) if picture]

    def _given(self, job: Job) -> float:
        score = self.given.get((job.image, job.reference))
        if score is None:
            raise NoScore(f"{self.name} has no score for this image")
        return score


def _fault_of(error: Exception, scorer: str, image: str) -> ScorerFault:
    """Return an exception as a fault; its row has the name of the exception."""
    place, kind = _place_of(error), type(error).__name__
    fault = f"{kind}: {error}{f' ({place})' if place else ''}"
    made = ScorerFault(f"{scorer} failed: {fault}", image, fault, (kind, place))
    made.__cause__ = error
    return made


def _place_of(error: Exception) -> str:
    """Return the file and line of the deepest call in code that is no installed library; "" if only this module ran."""
    frames = [frame for frame in extract_tb(error.__traceback__) if frame.filename != __file__]
    libraries = tuple(get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    own = [frame for frame in frames if not frame.filename.startswith(("<", *libraries))]
    return "".join(f"{Path(frame.filename).name}, line {frame.lineno}" for frame in (own or frames)[-1:])


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
