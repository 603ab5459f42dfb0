"""Measure what planning and replanning add to a rating, with a simulated model, on images that fool a tool.

``python benchmarks/agent_steps.py`` prints two tables: for 60 images in which a style (dots, posters, halftones,
painting, borders) looks like damage to the learned tool, and for 60 damaged images. The simulated model sees the truth:
its analysis is right, and it rates the quality with an error. So the tables show what the steps do with a good model,
and nothing about a real one.
"""

import argparse
import hashlib
import io
import json
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter, ImageOps

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from agenticiqa import AgenticIQA  # noqa: E402
from agenticiqa.configs import Config  # noqa: E402
from support.distortion_levels import AT_LEVEL  # noqa: E402
from support.fake_server import by_stage, fake_server, field_of, images_of  # noqa: E402
from support.loopback import Body, Reply  # noqa: E402
from support.scripted_answers import SCRIPT, pairs, rated_at  # noqa: E402

Pixels = NDArray[np.uint8]
ERROR, STYLED = 0.5, 4.2  # levels: the error of the simulated model; the quality of a picture in a style
SEVERITIES = ("none", "slight", "moderate", "severe", "severe", "extreme")  # of the levels 0 to 5
DAMAGE = {"blur": "Blurs", "noise": "Noise", "jpeg": "Compression"}
CALLED = ("calls", "MAE", "doubts", "in the 80 % interval", "its width")
PROGRAMS: dict[str, dict[str, Any]] = {
    "one call: tools in the prompt": {"mode": "fast"},
    "no replan": {"max_replan_iterations": 0},
    "planner asked for every image": {"planner": {"rules": "check"}},
    "whole program": {},
}


@dataclass(frozen=True)
class Sample:
    """An image with its true quality in levels, and its distortion with the severity, if it has one."""

    pixels: Pixels
    quality: float
    distortion: str = ""
    severity: str = "none"


def styled(scenes: list[Pixels]) -> Iterator[Sample]:
    """Yield 20 pictures of each scene in a style that is no damage."""
    styles: list[tuple[Callable[[Pixels, int], Pixels], tuple[int, ...]]] = [
        (dots, (6, 8, 12, 16)),
        (poster, (1, 2, 3, 4)),
        (halftone, (3, 4, 6, 8)),
        (painting, (5, 7, 9, 11)),
        (border, (20, 40, 60, 80)),
    ]
    for scene in scenes:
        for style, strengths in styles:
            for strength in strengths:
                yield Sample(style(scene, strength), STYLED)


def damaged(scenes: list[Pixels]) -> Iterator[Sample]:
    """Yield 20 damaged copies of each scene: three kinds at levels, about as many of each."""
    for scene in scenes:
        for number in range(20):
            kind, level = list(DAMAGE)[number % 3], number // 3 % 5 + 1
            quality = 5 - 0.8 * level
            yield Sample(AT_LEVEL[kind](level, scene), quality, DAMAGE[kind], SEVERITIES[level])


def dots(image: Pixels, step: int) -> Pixels:
    """Return the image with black dots in a grid."""
    dotted = image.copy()
    dotted[::step, ::step] = 0
    return dotted


def poster(image: Pixels, bits: int) -> Pixels:
    """Return the image with few colors."""
    return np.asarray(ImageOps.posterize(Image.fromarray(image), bits))


def halftone(image: Pixels, pitch: int) -> Pixels:
    """Return the image as a black and white screen."""
    gray = np.asarray(Image.fromarray(image).convert("L"), dtype=float)
    y, x = np.mgrid[: gray.shape[0], : gray.shape[1]]
    screen = 127 + 100 * np.sin(np.pi * (x + y) / pitch) * np.sin(np.pi * (x - y) / pitch)
    return np.repeat(np.where(gray > screen, 255, 0).astype(np.uint8)[..., None], 3, axis=2)


def painting(image: Pixels, side: int) -> Pixels:
    """Return the image as if painted with a brush."""
    return np.asarray(Image.fromarray(image).filter(ImageFilter.ModeFilter(side)))


def border(image: Pixels, width: int) -> Pixels:
    """Return the image in a white border."""
    return np.pad(image, ((width, width), (width, width), (0, 0)), constant_values=255)


class Model:
    """A script for the loopback server that knows the truth about each image by its file."""

    def __init__(self) -> None:
        self.known: dict[str, Sample] = {}
        self.answers = by_stage(
            {
                **SCRIPT,
                "detection": self.detect,
                "analysis": self.analyse,
                "assessment": self.assess,
                "decision": {"need_replan": True, "replan_reason": "Look at this once more."},
            }
        )

    def __call__(self, request: Body) -> Any:
        """Return the answer to a request."""
        return self.answers(request)

    def show(self, sample: Sample) -> bytes:
        """Remember an image, and return its file."""
        file = io.BytesIO()
        Image.fromarray(sample.pixels).save(file, "PNG", compress_level=1)
        self.known[hashlib.sha256(file.getvalue()).hexdigest()] = sample
        return file.getvalue()

    def _of(self, request: Body) -> tuple[str, Sample]:
        ((_, data),) = images_of(request)
        digest = hashlib.sha256(data).hexdigest()
        return digest, self.known[digest]

    def detect(self, request: Body) -> Any:
        """Return the distortion that there is."""
        _, sample = self._of(request)
        found = [sample.distortion] if sample.distortion else []
        return {
            "distortion_set": [
                {"region": r, "distortions": found} for r in json.loads(field_of(request, "query_scope"))
            ]
        }

    def analyse(self, request: Body) -> Any:
        """Return the severity that it has."""
        _, sample = self._of(request)
        row = {"severity": sample.severity, "explanation": "It shows everywhere.", "uncertain": False}
        return {"distortion_analysis": [{"region": region, "type": name, **row} for region, name in pairs(request)]}

    def assess(self, request: Body) -> Reply:
        """Return the level with log-probabilities around the true quality and an error."""
        digest, sample = self._of(request)
        seen = min(max(sample.quality + random.Random(digest).gauss(0, ERROR), 1.0), 5.0)
        return rated_at(seen)


def measured(samples: list[Sample]) -> Iterator[str]:
    """Yield the rows of a table: each program with its means over the images."""
    model = Model()
    yield f"| program | {' | '.join(CALLED)} |"
    yield "| --- |" + " --- |" * len(CALLED)
    for name, settings in PROGRAMS.items():
        with fake_server(model) as server:
            config = Config.model_validate(settings).with_backend("vllm.simulated", server.url)
            if settings.get("mode") == "fast":
                config = config.model_copy(update={"planner": Config().planner})
            program = AgenticIQA.from_config(config.model_copy(update={"cache": False}))
            rows = []
            for sample in samples:
                before = len(server.requests)
                result = program(model.show(sample))
                low, high = result.score_interval["80"]
                doubts = "Contradictory" in result.quality_reasoning
                error = abs(result.quality_score - sample.quality)
                rows.append((len(server.requests) - before, error, doubts, low <= sample.quality <= high, high - low))
        calls, error, doubts, inside, width = np.mean(rows, axis=0)
        yield f"| {name} | {calls:.2f} | {error:.2f} | {doubts:.0%} | {inside:.0%} | {width:.2f} |"


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=60, help="of each table (60)")
    given = parser.parse_args()
    names = ("astronaut", "chelsea", "coffee")
    scenes = [np.asarray(Image.open(ROOT / "examples" / f"{name}.webp").convert("RGB")) for name in names]
    for title, samples in (("a style fools the tool", styled(scenes)), ("damage", damaged(scenes))):
        few = list(samples)[: given.images]
        print("\n".join([f"\n{title}, {len(few)} images\n", *measured(few)]), flush=True)


if __name__ == "__main__":
    main()
