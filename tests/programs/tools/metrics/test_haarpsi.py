import numpy as np
import pytest
from scipy.signal import convolve2d

from agenticiqa.programs.tools.metrics.haarpsi import haarpsi
from agenticiqa.programs.tools.numerics.pixels import YIQ_WEIGHTS
from support.distortion_levels import AT_LEVEL, desaturate, scene

PHOTO = scene()


def same(plane: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """MATLAB's conv2(plane, kernel, 'same'), whose middle of an even kernel is the later of the two."""
    half = kernel.shape[0] // 2
    return convolve2d(plane, kernel)[half:, half:][: plane.shape[0], : plane.shape[1]]


def haarpsi_written_out(image: np.ndarray, reference: np.ndarray) -> float:
    def planes(rgb: np.ndarray) -> list[np.ndarray]:
        return [
            same(plane, np.full((2, 2), 0.25))[::2, ::2] for plane in np.moveaxis(rgb @ np.array(YIQ_WEIGHTS).T, -1, 0)
        ]

    def local(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        return (2 * abs(first * second) + 30) / (first**2 + second**2 + 30)

    (y1, *chroma1), (y2, *chroma2) = planes(image), planes(reference)
    similarities, weights = [], []
    for turn in (0, 1):
        pairs = []
        for scale in (1, 2, 3):
            kernel = np.full((2**scale, 2**scale), 2.0**-scale)
            kernel[: 2**scale // 2] *= -1
            kernel = kernel.T if turn else kernel
            pairs.append((same(y1, kernel), same(y2, kernel)))
        similarities.append((local(*pairs[0]) + local(*pairs[1])) / 2)
        weights.append(np.maximum(*np.abs(pairs[2])))
    mean = np.full((2, 2), 0.25)
    similarities.append(sum(local(same(a, mean), same(b, mean)) for a, b in zip(chroma1, chroma2, strict=True)) / 2)
    weights.append((weights[0] + weights[1]) / 2)
    logistic = 1 / (1 + np.exp(-4.2 * np.array(similarities)))
    pooled = (logistic * weights).sum() / np.sum(weights)
    return (np.log(pooled / (1 - pooled)) / 4.2) ** 2


@pytest.mark.parametrize("shape", [(8, 8), (40, 60), (41, 59)])
@pytest.mark.parametrize("distortion", AT_LEVEL)
def test_haarpsi_agrees_with_its_definition_written_out(distortion: str, shape: tuple[int, int]) -> None:
    reference = scene(*shape)
    image = AT_LEVEL[distortion](3, reference)
    assert haarpsi(image, reference) == pytest.approx(haarpsi_written_out(image, reference), abs=1e-6)


def test_haarpsi_sees_color() -> None:
    quality = [haarpsi(desaturate(level, PHOTO), PHOTO) for level in range(6)]
    assert all(np.diff(quality) < 0)


def test_haarpsi_stays_between_0_and_1_for_unrelated_images() -> None:
    assert 0 < haarpsi(scene(seed=1), PHOTO) < 0.5
    assert 0 < haarpsi(255 - PHOTO, PHOTO) < 1
