"""A program that judges at once: each image by its mean, all else as of one small image that was judged in full."""

import hashlib
import time
from functools import cache

import numpy as np

from agenticiqa.configs import Config
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.images import ImageSource, UndecodedImage, load
from agenticiqa.programs.images.sources import read_source
from agenticiqa.programs.questions.options import OptionsArgument
from agenticiqa.programs.result import Assessment


class InstantIQA(AgenticIQA):
    """The offline program, whose ``forward`` decodes the image and computes nothing else; ``seconds`` it sleeps."""

    seconds = 0.0

    def forward(
        self,
        image: ImageSource,
        query: str | None = None,
        reference: ImageSource | None = None,
        resize_reference: bool = False,
        *,
        align: bool | None = None,
        options: OptionsArgument | None = None,
    ) -> Assessment:
        loaded, result = load(image), _judged().copy()
        time.sleep(self.seconds)
        score = 1 + 4 * float(np.mean(loaded.pixels)) / 255
        result.image, result.query = loaded, query
        result.summarizer_result = result.summarizer_result.model_copy(
            update={"final_answer": score, "quality_score": score}
        )
        return result


class UndecodedIQA(InstantIQA):
    """As ``InstantIQA``, by the hash of the bytes, which need not be an image."""

    def forward(self, image: ImageSource, query: str | None = None, *args: object, **kwargs: object) -> Assessment:
        given = read_source(image)
        assert isinstance(given, UndecodedImage)
        assert isinstance(given.content, bytes)
        result, digest = _judged().copy(), hashlib.sha256(given.content).hexdigest()
        time.sleep(self.seconds)
        result.image = result.image.__class__(**{**vars(result.image), "source": given.source, "sha256": digest})
        score = 1 + 4 * int(digest[:8], 16) / 0xFFFFFFFF
        result.summarizer_result = result.summarizer_result.model_copy(
            update={"final_answer": score, "quality_score": score}
        )
        return result


def instant(config: Config) -> AgenticIQA:
    """What ``ShardRun.make`` is in tests."""
    return InstantIQA.from_config(config)


def undecoded(config: Config) -> AgenticIQA:
    """What it is in measurements of what is around the judging."""
    return UndecodedIQA.from_config(config)


@cache
def _judged() -> Assessment:
    pixels = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    return AgenticIQA.offline()(image=pixels)
