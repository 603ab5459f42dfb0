"""Simulate tuning with 160 noisy labels: is a prompt kept that is useless or useful, and what does a search find?

The rater is that of ``simulated_judge``. The comparison is the program's own: fused scores by profiles fitted to the
first 30 labels, on the held-out labels and those that the search did not use.
"""

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from agenticiqa.eval.metrics import srcc
from agenticiqa.eval.optimize.before_after import compare, fitted
from agenticiqa.eval.optimize.items import TuningQuestion, unused
from agenticiqa.eval.optimize.objectives import value
from agenticiqa.eval.optimize.search import Proposal, Search, Searched, first_places
from agenticiqa.eval.optimize.settings import TuningSettings
from agenticiqa.programs.fusion.formula import ScoreFusion
from support.simulated_judge import COPY_TOOLS, HARMFUL, HELPFUL, SEED, assessed_by, photos

LABELS, TUNED_ON, UNSEEN, LABEL_STD = 160, 96, 400, 0.3  # LABEL_STD in levels, beside that of the simulated MOS
USEFUL = " | ".join([SEED, *list(HELPFUL)[:1], *list(HELPFUL)[2:]])
IDLE = [f"Look at part {number} of the image." for number in range(12)]
ANY = [*HELPFUL, *HARMFUL, *COPY_TOOLS, *IDLE[:6]]
UNUSABLE = 0.1  # share of reflections without an instruction


class Tuning:
    """One run with photos and noise of ``seed``."""

    def __init__(self, seed: int) -> None:
        self.seed, self.photos, rng = seed, photos(LABELS, seed), np.random.default_rng([seed, 11])
        mos = np.clip(self.photos.mos + rng.normal(0, LABEL_STD, LABELS), 1, 5)
        self.asked = [TuningQuestion(Path("a.png"), "", str(i), target=float(y)) for i, y in enumerate(mos)]
        self.first = first_places(random.Random(seed), TUNED_ON)

    def kept(self, text: str, seen: Sequence[int]) -> bool:
        """Return whether a prompt is kept: compare it with the original one on labels but those at ``seen``."""
        held_out = self.asked[TUNED_ON:]
        questions = [*held_out, *unused(self.asked[:TUNED_ON], seen, len(held_out))]
        places = [int(question.content) for question in questions]
        fitted_to, both = [self.asked[place] for place in self.first], []
        for instruction in (SEED, text):
            profile = fitted(fitted_to, assessed_by(instruction, self.photos, self.first))
            both.append((assessed_by(instruction, self.photos, places), ScoreFusion().with_profile(profile)))
        (before, own), (after, tuned) = both
        return bool(compare("scoring", questions, before, after, (own, tuned))["kept"])

    def search(self, sentences: Sequence[str], budget: int = 400) -> Searched:
        """Search with a writer that adds one of ``sentences``, each once; some of its answers are unusable."""
        rng, left = random.Random(self.seed), list(sentences)

        def propose(texts: dict[str, str], *_: object) -> Proposal:
            if not left or rng.random() < UNUSABLE:
                return Proposal(None, "s", ("it was empty",))
            return Proposal({"s": f"{texts['s']}\n{left.pop(rng.randrange(len(left)))}"}, "s")

        return Search(
            lambda texts, places: assessed_by(texts["s"], self.photos, places),
            lambda assessed, places: value("scoring", assessed, [self.asked[place] for place in places]),
            propose,
            TUNED_ON,
            TuningSettings(budget=budget, seed=self.seed),
            lambda: True,
        ).run({"s": SEED})


def true_srcc(instruction: str, seed: int) -> float:
    """Return the SRCC of the rater's expected levels with the true quality of unseen photos."""
    unseen = photos(UNSEEN, seed + 100_000)
    rated = assessed_by(instruction, unseen, range(UNSEEN))
    return srcc([one.expectation for one in rated], unseen.truth) or 0.0
