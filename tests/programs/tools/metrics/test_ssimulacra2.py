import numpy as np
import pytest
from scipy.ndimage import correlate1d

from agenticiqa.programs.tools.metrics.ssimulacra2 import WEIGHTS, WINDOW, ssimulacra2
from support.distortion_levels import AT_LEVEL, desaturate, noise, scene

PHOTO = scene()
MIX = np.array([[0.3, 0.622, 0.078], [0.23, 0.692, 0.078], [0.24342268924547819, 0.20476744424496821, 0]])
MIX[2, 2] = 1 - MIX[2].sum()
BIAS = 0.0037930732552754493


def blurred(plane: np.ndarray) -> np.ndarray:
    down = correlate1d(plane, WINDOW, axis=0, mode="constant")
    return correlate1d(down, WINDOW, axis=1, mode="constant")


def planes(linear: np.ndarray) -> dict[str, np.ndarray]:
    long, middle, short = np.moveaxis(np.cbrt(linear @ MIX.T + BIAS) - np.cbrt(BIAS), 2, 0)
    y = (long + middle) / 2
    return {"X": 14 * (long - middle) / 2 + 0.42, "Y": y + 0.01, "B": short - y + 0.55}


def written_out(image: np.ndarray, reference: np.ndarray) -> float:
    """The definition in double precision, map after map."""

    def light(rgb: np.ndarray) -> np.ndarray:
        values = rgb / 255
        return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)

    def half(linear: np.ndarray) -> np.ndarray:
        height, width = linear.shape[:2]
        even = np.pad(linear, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
        return (even[::2, ::2] + even[1::2, ::2] + even[::2, 1::2] + even[1::2, 1::2]) / 4

    first, second = light(reference), light(image)
    total = 0.0
    for scale in range(6):
        one, two = planes(first), planes(second)
        for (name, kind), weights in WEIGHTS.items():
            x, y = one[name], two[name]
            mu1, mu2 = blurred(x), blurred(y)
            covariance = 2 * (blurred(x * y) - mu1 * mu2) + 0.0009
            variances = blurred(x * x) - mu1**2 + blurred(y * y) - mu2**2 + 0.0009
            edges = (1 + abs(y - mu2)) / (1 + abs(x - mu1)) - 1
            error = (1 - (1 - (mu1 - mu2) ** 2) * covariance / variances, edges, -edges)[kind].clip(0)
            total += weights[scale][0] * error.mean() + weights[scale][1] * (error**4).mean() ** 0.25
        first, second = half(first), half(second)
    total *= 0.9562382616834844
    total = 2.326765642916932 * total - 0.020884521182843837 * total**2 + 6.248496625763138e-05 * total**3
    return 100 - 10 * total**0.6276336467831387


@pytest.mark.parametrize("shape", [(192, 256), (193, 259)])
@pytest.mark.parametrize("distortion", ["blur", "noise", "jpeg", "desaturate"])
def test_ssimulacra2_agrees_with_its_definition_written_out(distortion: str, shape: tuple[int, int]) -> None:
    reference = scene(*shape)
    image = AT_LEVEL[distortion](3, reference)
    assert ssimulacra2(image, reference) == pytest.approx(written_out(image, reference), abs=5e-3)


def test_the_window_is_a_gaussian_of_sigma_one_and_a_half() -> None:
    distance = np.arange(-4, 5)
    assert sum(WINDOW) == pytest.approx(1, abs=1e-8)
    assert (distance**2 * np.array(WINDOW)).sum() == pytest.approx(1.5**2, abs=1e-6)


def test_ssimulacra2_sees_color() -> None:
    assert ssimulacra2(desaturate(5, PHOTO), PHOTO) < ssimulacra2(desaturate(2, PHOTO), PHOTO) < 99


@pytest.mark.parametrize("side", [8, 15, 16, 40, 130])
def test_images_with_room_for_fewer_scales_are_ranked_as_well(side: int) -> None:
    image = scene(side, side + 3)
    assert ssimulacra2(noise(1, image), image) > ssimulacra2(noise(5, image), image)
