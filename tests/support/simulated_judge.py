"""Simulate a rater that improves with its instruction, and a reflection model that proposes sentences for it.

It uses neither images nor models, so a whole search takes a fraction of a second. Each photo has a MOS, tool scores,
and traits (blur, noise, ...) that mislead the rater until its instruction mentions them. Every wording has its own
error for each photo, so two equally good instructions never agree, and a few photos cannot show which is better.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agenticiqa.eval.optimize.items import Assessed
from agenticiqa.programs.fusion.formula import default_fusion

Floats = NDArray[np.float64]

TRAITS = ("blur", "noise", "exposure", "color")
HELPFUL = {f"Weigh {trait} as observers do.": place for place, trait in enumerate(TRAITS)}
HARMFUL = {"Prefer bright scenes.": 0, "Forgive whatever looks artistic.": 1, "Punish plain backgrounds.": 2}
COPY_TOOLS = ("Stay close to the tools' mean.", "Trust the tool scores above your eyes.")
FUSION = default_fusion()
SEED = "Rate the quality of the image."


@dataclass(frozen=True)
class Photos:
    """N photos: the tools and the rater estimate ``truth`` (N,); ``mos`` (N,) is its label with noise.

    All on 1 to 5. ``traits`` is (N, 4), ``distractors`` (N, 3), ``own`` (N,) the error that no instruction corrects.
    """

    truth: Floats
    mos: Floats
    tool: Floats
    traits: Floats
    distractors: Floats
    own: Floats


def photos(count: int, seed: int) -> Photos:
    """Return photos like those of CLIVE, on which the tools have an SRCC of about .72."""
    rng = np.random.default_rng([seed, 7])
    truth = np.clip(rng.normal(3.1, 0.85, count), 1, 5)
    normal = rng.normal(size=(count, 12))
    return Photos(
        truth=truth,
        mos=np.clip(truth + 0.2 * normal[:, 0], 1, 5),
        tool=np.clip(3.1 + 0.72 * (truth - 3.1) + 0.55 * normal[:, 1], 1, 5),
        traits=normal[:, 2:6],
        distractors=normal[:, 8:11],
        own=normal[:, 11],
    )


def rated(instruction: str, given: Photos, places: Sequence[int]) -> list[float]:
    """Return the expected level, 1 to 5, of each photo by the simulated rater with an instruction."""
    at = np.asarray(places, dtype=int)
    blind = np.array([sentence not in instruction for sentence in HELPFUL], dtype=float)
    misled = np.array([sentence in instruction for sentence in HARMFUL], dtype=float)
    wording = zlib.crc32(instruction.encode())
    noise = np.array([np.random.default_rng([wording, int(place)]).normal() for place in at])
    bias = np.array([0.7, 0.55, 0.5, 0.42])
    seen = given.truth[at] + given.traits[at] @ (blind * bias) + given.distractors[at] @ (0.5 * misled)
    seen = seen + 0.22 * given.own[at] + 0.25 * noise
    if any(sentence in instruction for sentence in COPY_TOOLS):
        seen = 0.25 * seen + 0.75 * given.tool[at]
    return [float(value) for value in np.clip(3.2 + 0.8 * (seen - 3.1), 1, 5)]


def assessed_by(instruction: str, given: Photos, places: Sequence[int]) -> list[Assessed]:
    """Return a result like the program's, with probabilities of the two levels around the expectation."""
    found = []
    for place, expected in zip(places, rated(instruction, given, places), strict=True):
        low = min(int(expected), 4)
        shares = {str(level): 0.0 for level in range(1, 6)}
        shares[str(low)], shares[str(low + 1)] = low + 1 - expected, expected - low
        tool = float(given.tool[place])
        score = FUSION.fuse_scores([tool], {int(level): share for level, share in shares.items()})
        found.append(
            Assessed(
                expectation=expected, probabilities=shares, fused=score, tool=tool, tools=("T",), model="simulated"
            )
        )
    return found
