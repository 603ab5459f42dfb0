"""The score that the quality model is to give a distorted image, from its level and from FR-FUSION.

FR-FUSION falls with the level of every kind, but it has a floor (about 1.7), and says little of tones: gray photos and
color casts lose less by it than by the eye. The levels of ``distort`` are made for the eye, but as equal over the kinds
as one table can make them. So the share of quality that is kept is taken from both.
"""

import numpy as np
from numpy.typing import NDArray

from agenticiqa.eval.research.ladders import PART, SEVERAL
from agenticiqa.programs.errors import UserError
from agenticiqa.programs.tools.distort import KINDS

Floats = NDArray[np.float64]

PRISTINE_SCORE = 4.3  # of a pristine photo: people hardly rate any image higher on average
KEPT_AT_LEVEL = (1.0, 0.84, 0.66, 0.46, 0.27, 0.10)  # share of a score above 1 that is kept at the levels 0..5
COMPARED_SHARE = 0.4  # how much FR-FUSION counts beside the level
LOWEST_COMPARED = 1.7  # FR-FUSION of an image of which nothing is left
AREA_EXPONENT = 0.4  # a loss in a share of the image counts as this power of the share: one looks at the worst part
MIXTURE_LEVEL = 0.8  # the levels of a mixture's kinds are its own or below: this share of it on average


def kept_by_compared(compared: Floats) -> Floats:
    """The share of quality kept by an FR-FUSION score."""
    return np.clip((compared - LOWEST_COMPARED) / (5 - LOWEST_COMPARED), 0, 1)


def kept_curves(kinds: NDArray[np.str_], levels: Floats, compared: Floats) -> dict[str, Floats]:
    """By kind, the share of quality kept at the levels 0..5, from images (N,) of which some have FR-FUSION scores.

    Raises UserError without scikit-learn.
    """
    try:
        from sklearn.isotonic import IsotonicRegression
    except ImportError as missing:
        raise UserError('training needs scikit-learn: pip install "agenticiqa[train]"') from missing
    curves = {}
    for kind in KINDS:
        rows = (kinds == kind) & np.isfinite(compared)
        falling = np.zeros(6)
        if rows.any():
            model = IsotonicRegression(increasing=False, out_of_bounds="clip")
            falling = model.fit(levels[rows], kept_by_compared(compared[rows])).predict(np.arange(6.0))
        share = COMPARED_SHARE if rows.any() else 0.0
        curves[kind] = np.array([1.0, *((1 - share) * np.array(KEPT_AT_LEVEL) + share * falling)[1:]])
    return curves


def kept_quality(kind: str, level: float, share: float, compared: float, curves: dict[str, Floats]) -> float:
    """The share of quality, 0 to 1, that a rung of a ladder keeps; see ``Rungs`` for the arguments."""
    if level == 0:
        return 1.0
    kinds = kind.removeprefix(PART).split(SEVERAL)
    if len(kinds) == 1:
        kept = float(np.interp(level, range(6), curves[kinds[0]]))
        if not kind.startswith(PART):
            return kept
        kept = 1 - (1 - kept) * share**AREA_EXPONENT
    else:
        kept = float(np.prod([np.interp(MIXTURE_LEVEL * level, range(6), curves[each]) for each in kinds]))
    if np.isfinite(compared):
        kept = 0.5 * kept + 0.5 * float(kept_by_compared(np.array(compared)))
    return kept
