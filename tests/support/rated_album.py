"""Make a folder of synthetic photos of known quality, and a model that rates them with an error."""

import hashlib
import math
import random
from pathlib import Path
from typing import Any

import yaml
from PIL import Image

from support.chat_request import images_of
from support.distortion_levels import ALL_LEVELS, AT_LEVEL, scene
from support.fake_server import by_stage
from support.loopback import Body
from support.scripted_answers import SCRIPT

KINDS = ("blur", "noise", "jpeg")
NOTHING_FOUND = {"distortion_set": [{"region": "Global", "distortions": []}]}
SIDES = (192, 224)  # the smallest size for NIQE


def make_album(folder: Path, images: int) -> dict[str, float]:
    """Write ``images`` photos, scenes at levels 0 to 5 of three distortions; return the quality, 1..5, by name."""
    folder.mkdir(parents=True)
    qualities = {}
    for number in range(images):
        level, seed = number % len(ALL_LEVELS), number // len(ALL_LEVELS)
        pixels = AT_LEVEL[KINDS[seed % len(KINDS)]](level, scene(*SIDES, seed=seed))
        name = f"photo{number:03}.png"
        Image.fromarray(pixels).save(folder / name)
        qualities[name] = 5 - 0.8 * level
    return qualities


class Rater:
    """A script for the loopback server with level log-probabilities around the quality of the image plus an error.

    It finds no distortion, so that only overall quality is measured, for speed.

    ``error`` is the standard deviation of its error in levels, ``kind`` a constant error added to all levels.
    """

    def __init__(self, folder: Path, qualities: dict[str, float], error: float = 0.4, kind: float = 0.5) -> None:
        self.levels = {
            hashlib.sha256((folder / name).read_bytes()).hexdigest(): quality
            + kind
            + random.Random(name).gauss(0, error)
            for name, quality in qualities.items()
        }
        self.answers = by_stage({**SCRIPT, "detection": NOTHING_FOUND, "assessment": self.assess})

    def __call__(self, request: Body) -> Any:
        """Return the answer to a request."""
        return self.answers(request)

    def assess(self, request: Body) -> dict[str, Any]:
        """Return a rating of the image that the request shows."""
        ((_, data),) = images_of(request)
        seen = min(max(self.levels[hashlib.sha256(data).hexdigest()], 1.0), 5.0)
        logs = {str(level): round(-2 * (level - seen) ** 2, 4) for level in range(1, 6)}
        names = ("Bad", "Poor", "Fair", "Good", "Excellent")
        nearest = names[math.floor(seen + 0.5) - 1]
        return {"quality_level": nearest, "quality_probs": logs, "quality_reasoning": f"It looks {nearest.lower()}."}


def rating_configuration(folder: Path, url: str, **fusion: Any) -> Path:
    """Write a configuration that requests distortions and score from the server, with ``fusion`` if given."""
    known = {"logprobs": False}  # or a server that reports none is asked for one rating more
    stage = {"backend": "vllm.test", "api_base": url, "price": {"input": 1.0, "output": 2.0}, **known}
    path = folder / "rating.yaml"
    path.write_text(yaml.safe_dump({"executor": stage, "summarizer": stage, **fusion}))
    return path
