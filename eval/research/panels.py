"""Panels, the people who judged one set: what each of them sees otherwise than the others.

One linear reading of the opinions of all panels follows each of them less than its own reading does. So there is one of
each large set as well, which counts for images that look like the photos of that set. They are learned together, as a
common part and a panel's own (T. Evgeniou and M. Pontil, "Regularized multi-task learning", KDD 2004).
"""

import numpy as np
import scipy
from numpy.typing import NDArray

Array = NDArray[np.float32]
Floats = NDArray[np.float64]

FEWEST = 300  # images of a set whose panel counts by itself
# Penalties relative to the mean squared feature, for an image of weight one.
RIDGE_PANEL, RIDGE_ALIKE = 1.0, 0.1
# Alikeness is a linear reading, 1 for photos of the set and 0 for others: where it begins to count, and counts in full.
UNLIKE, ALIKE = 0.2, 0.5
NO_PANEL = -1


def members(panel: NDArray[np.intp], count: int) -> Array:
    """Which of ``count`` panels judged each of N images: 1 or 0, (N, count). ``panel`` is as in ``opinions``."""
    return (panel[:, None] == np.arange(count)).astype(np.float32)


def opinions(
    coordinates: Array, opinion: Floats, weight: Floats, panel: NDArray[np.intp], count: int
) -> tuple[Array, Array]:
    """Coefficients (B, P) from coordinates (N, B) to the opinion of each of P panels, and intercepts (P,).

    ``panel`` (N,) numbers the panel that judged an image, ``NO_PANEL`` for a small set's, which only adds to what all
    have in common. From that a panel departs as far as the penalty allows; one without images does not.
    """
    judged = members(panel, count)
    center = np.average(opinion, weights=weight)
    system = (coordinates @ coordinates.T).astype(np.float64) * (1 + judged @ judged.T)
    system[np.diag_indices_from(system)] += RIDGE_PANEL / weight
    dual = scipy.linalg.solve(system, opinion - center, assume_a="pos", overwrite_a=True)
    found = coordinates.T @ (dual[:, None] * (1 + judged)).astype(np.float32)
    return found, np.full(count, center, np.float32)


def with_panels(projected: Array, count: int) -> Array:
    """Projections (N, K), the first of which, the opinion of all, becomes that of the panels whose photos are alike.

    Behind it stand the opinions of the panels, and how alike their photos are.
    """
    opinion, own, alike = projected[:, :1], projected[:, 1 : 1 + count], projected[:, 1 + count : 1 + 2 * count]
    share = np.clip((alike - UNLIKE) / (ALIKE - UNLIKE), 0, 1)
    total = np.maximum(share.sum(axis=1, keepdims=True), 1)
    change = (share * (own - opinion)).sum(axis=1, keepdims=True) / total
    return np.concatenate([opinion + change, projected[:, 1:]], axis=1)
