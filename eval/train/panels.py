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
RIDGE_OPINION, RIDGE_ALIKE = 1.0, 0.1
# Alikeness is a linear reading, 1 for photos of the set and 0 for others: where it begins to count, and counts in full.
UNLIKE, ALIKE = 0.2, 0.5
NO_PANEL = -1


def opinions(
    coordinates: Array, opinion: Floats, weight: Floats, panel: NDArray[np.intp], count: int
) -> tuple[Array, Array]:
    """Coefficients (B, P) from coordinates (N, B) to the opinion of each of P panels, and intercepts (P,).

    ``panel`` (N,) numbers the panel that judged an image, ``NO_PANEL`` for a small set's, which only adds to what all
    have in common. From that a panel departs as far as the penalty allows; one without images does not.
    """
    members = _members(panel, count)
    center = np.average(opinion, weights=weight)
    products = _products(coordinates) * (1 + members @ members.T)
    dual = _solved(products, RIDGE_OPINION / weight, opinion - center)
    found = coordinates.T @ (dual[:, None] * (1 + members)).astype(np.float32)
    return found, np.full(count, center, np.float32)


def alikeness(coordinates: Array, weight: Floats, panel: NDArray[np.intp], count: int) -> tuple[Array, Array]:
    """Coefficients (B, P) from coordinates (N, B) to how alike an image is to the photos of each panel, and intercepts.

    ``panel`` is ``NO_PANEL`` also for photos that no panel judged.
    """
    members = _members(panel, count)
    center = np.average(members, axis=0, weights=weight)
    dual = _solved(_products(coordinates), RIDGE_ALIKE / weight, members - center)
    return coordinates.T @ dual.astype(np.float32), center.astype(np.float32)


def with_panels(projected: Array, count: int) -> Array:
    """Projections (N, K), the first of which, the opinion of all, becomes that of the panels whose photos are alike.

    Behind it stand the opinions of the panels, and how alike their photos are.
    """
    opinion, own, alike = projected[:, :1], projected[:, 1 : 1 + count], projected[:, 1 + count : 1 + 2 * count]
    share = np.clip((alike - UNLIKE) / (ALIKE - UNLIKE), 0, 1)
    total = np.maximum(share.sum(axis=1, keepdims=True), 1)
    change = (share * (own - opinion)).sum(axis=1, keepdims=True) / total
    return np.concatenate([opinion + change, projected[:, 1:]], axis=1)


def _members(panel: NDArray[np.intp], count: int) -> Floats:
    return (panel[:, None] == np.arange(count)).astype(np.float64)


def _products(coordinates: Array) -> Floats:
    return (coordinates @ coordinates.T).astype(np.float64)


def _solved(products: Floats, penalty: Floats, wanted: Floats) -> Floats:
    system = products + np.diag(penalty)
    return np.asarray(scipy.linalg.solve(system, wanted, assume_a="pos", overwrite_a=True))
