"""A program with instant results: the score is from the mean of the image, the rest from one assessed image."""

import time
from functools import cache

import numpy as np
import pytest

from agenticiqa.configs import Config
from agenticiqa.programs.assess import AgenticIQA
from agenticiqa.programs.images import ImageSource, load
from agenticiqa.programs.questions.options import OptionsArgument
from agenticiqa.programs.result import Assessment, add_derived_fields


class InstantIQA(AgenticIQA):
    """The offline program with a ``forward`` that only decodes the image and sleeps for ``seconds``."""

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
        loaded, result = load(image), assessed_once().copy()
        time.sleep(self.seconds)
        score = 1 + 4 * float(np.mean(loaded.pixels)) / 255
        result.image, result.query, result.reference = loaded, query, None if reference is None else load(reference)
        result.summarizer_result = result.summarizer_result.model_copy(
            update={"final_answer": score, "quality_score": score}
        )
        result.final_answer = result.quality_score = score
        add_derived_fields(result)
        return result


def instant(config: Config) -> AgenticIQA:
    """Replace ``ShardRun.make`` in tests."""
    return InstantIQA.from_config(config)


def make_instant(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every program in this process have instant results."""
    assessed_once()  # before its program is replaced
    monkeypatch.setattr(AgenticIQA, "forward", InstantIQA.forward)
    monkeypatch.setattr(AgenticIQA, "seconds", 0.0, raising=False)


@cache
def assessed_once() -> Assessment:
    """Return the result of a small image, assessed once."""
    pixels = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    return AgenticIQA.offline()(image=pixels)
