"""Pairs of images with the values of the metrics' official implementations."""

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from skimage.metrics import structural_similarity


class GoldenPair(NamedTuple):
    name: str
    image: NDArray[np.uint8]
    reference: NDArray[np.uint8]
    values: dict[str, float]


def golden_pairs(shared_data: Path) -> list[GoldenPair]:
    """Return the five pairs of ``shared_data``/golden, uint8 RGB of 384 x 512, each with its value by metric name."""
    folder = shared_data / "golden"
    with (folder / "official_values.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    pairs = []
    for name in [column for column in rows[0] if column != "Method"]:
        values = {row["Method"]: float(row[name]) for row in rows}
        image, reference = (np.asarray(Image.open(folder / side / name).convert("RGB")) for side in ("dist", "ref"))
        pairs.append(GoldenPair(name, image, reference, values))
    assert len(pairs) == 5, f"{folder} has {len(pairs)} of 5 pairs"
    return pairs


def skimage_ssim(image: NDArray[np.floating], reference: NDArray[np.floating]) -> float:
    """Return SSIM of two planes in 0..255 by scikit-image, with the settings of the paper."""
    return float(
        structural_similarity(
            image, reference, gaussian_weights=True, sigma=1.5, use_sample_covariance=False, data_range=255
        )
    )
