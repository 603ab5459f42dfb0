"""Simulate a rater that improves with its instruction, and a reflection model that proposes sentences for it.

It uses neither images nor models, so a whole search takes a fraction of a second. Each photo has a MOS, tool scores,
and traits (blur, noise, ...) that mislead the rater until its instruction mentions them. Every wording has its own
error for each photo, so two equally good instructions never agree, and a few photos cannot show which is better.
"""

import random
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agenticiqa.eval.metrics import mean_absolute_error, srcc
from agenticiqa.eval.optimize.comparison import compare, fitted, fused
from agenticiqa.eval.optimize.items import Assessed, TuningQuestion, split_by_content
from agenticiqa.eval.optimize.objectives import value
from agenticiqa.eval.optimize.search import Proposal, Search, search_key
from agenticiqa.programs.fusion.formula import default_fusion

Floats = NDArray[np.float64]

TRAITS = ("blur", "noise", "exposure", "color")
HELPFUL = {f"Weigh {trait} as observers do.": place for place, trait in enumerate(TRAITS)}
HARMFUL = {"Prefer bright scenes.": 0, "Forgive whatever looks artistic.": 1, "Punish plain backgrounds.": 2}
COPY_TOOLS = ("Stay close to the tools' mean.", "Trust the tool scores above your eyes.")
USELESS = ("Be careful and precise.", "Take your time before you answer.", "Answer as an expert would.")
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


def proposed(instruction: str, rng: random.Random) -> str:
    """Return the instruction with one to three more sentences: helpful, harmful, repeating the tools, or useless."""
    kept = instruction.split(" | ")
    for _ in range(rng.choice([1, 2, 2, 3])):
        kind = rng.choices(["helpful", "harmful", "copy", "useless"], [0.58, 0.13, 0.11, 0.18])[0]
        sentences = {"helpful": list(HELPFUL), "harmful": list(HARMFUL), "copy": COPY_TOOLS, "useless": USELESS}[kind]
        if len(kept) > 1 and rng.random() < 0.2:
            kept.pop(rng.randrange(1, len(kept)))
        sentence = rng.choice(sentences)
        kept.append(sentence if sentence not in kept else f"{sentence}!")
    return " | ".join(kept)


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


def tuned(
    seed: int,
    budget: int,
    labels: int = 160,
    unseen: int = 390,
    *,
    always_kept: bool = False,
    held_out_share: float = 0.4,
) -> dict[str, float]:
    """Run search, fit and held-out comparison with default settings, and return the outcome on unseen photos."""
    given, rng = photos(labels + unseen, seed), random.Random(seed)
    asked = [
        TuningQuestion(Path(f"{place}.png"), "Rate it.", str(place), target=float(mos))
        for place, mos in enumerate(given.mos)
    ]
    pool, held_out = split_by_content(asked[:labels], held_out=held_out_share, seed=seed)
    places, apart = ([int(question.content) for question in part] for part in (pool, held_out))

    def measure(texts: Mapping[str, str], chosen: Sequence[int]) -> list[Assessed]:
        return assessed_by(texts["s"], given, [places[each] for each in chosen])

    def valued(assessed: Sequence[Assessed], chosen: Sequence[int]) -> float:
        return value("scoring", assessed, [pool[each] for each in chosen])

    def propose(texts: Mapping[str, str], *shown: object) -> Proposal:
        return Proposal({"s": proposed(texts["s"], rng)}, "s")

    search = Search(measure, valued, propose, len(pool), budget=budget, seed=seed)
    found = search.run({"s": SEED})
    both = [{"s": SEED}, found.best]
    profiles = []
    for texts in both:
        known = search.known[search_key(texts)]
        fitted_to = [place for place in search.first if place in known]
        profiles.append(fitted([pool[each] for each in fitted_to], measure(texts, fitted_to)))
    before, after = (assessed_by(texts["s"], given, apart) for texts in both)
    figures = compare("scoring", held_out, before, after, (profiles[0], profiles[1]))
    kept = found.tuned and figures["kept"]
    final = found.best["s"] if kept or always_kept else SEED
    measured = sorted(search.known[search_key({"s": final})])
    profile = fitted([pool[each] for each in measured], measure({"s": final}, measured))
    rest = list(range(labels, labels + unseen))
    scores = [fused(one, profile) or 0.0 for one in assessed_by(final, given, rest)]
    all_mos = [float(given.mos[place]) for place in rest]
    return {
        "srcc": srcc(scores, all_mos) or 0.0,
        "mae": mean_absolute_error(scores, all_mos) or 0.0,
        "kept": float(kept),
        "copies tools": float(any(sentence in final for sentence in COPY_TOOLS)),
        "only copies tools": float(final.count("|") == 1 and any(sentence in final for sentence in COPY_TOOLS)),
        "harmful": float(any(sentence in final for sentence in HARMFUL)),
        "fell": float(kept and figures["fused"]["srcc"]["change"]["value"] < 0),
        "proposals": float(len(found.steps)),
        "spent": float(found.spent),
    }
