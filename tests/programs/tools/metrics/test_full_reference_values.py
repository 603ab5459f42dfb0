"""Each full-reference metric against official values, its definition or another package, and special properties."""

from pathlib import Path

import numpy as np
import pytest
from scipy.ndimage import correlate1d
from scipy.signal import convolve2d
from skimage.metrics import peak_signal_noise_ratio

from agenticiqa.eval.research.distort import distort
from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.tools.metrics.deep_sim import deep_sim
from agenticiqa.programs.tools.metrics.fr_fusion import MEMBERS, fr_fusion, fr_fusion_map, full_reference_quality
from agenticiqa.programs.tools.metrics.fsim import fsim
from agenticiqa.programs.tools.metrics.gmsd import gmsd
from agenticiqa.programs.tools.metrics.haarpsi import haarpsi
from agenticiqa.programs.tools.metrics.mdsi import mdsi
from agenticiqa.programs.tools.metrics.ms_ssim import WEIGHTS as TERM_WEIGHTS
from agenticiqa.programs.tools.metrics.ms_ssim import ms_ssim, ms_ssim_terms
from agenticiqa.programs.tools.metrics.psnr import psnr
from agenticiqa.programs.tools.metrics.ssim import ssim
from agenticiqa.programs.tools.metrics.ssimulacra2 import WEIGHTS, WINDOW, ssimulacra2
from agenticiqa.programs.tools.metrics.vif import vif
from agenticiqa.programs.tools.numerics.pixels import YIQ_WEIGHTS, gray_levels
from support.distortion_levels import AT_LEVEL, blur, darken, desaturate, low_contrast, noise, scene
from support.golden import golden_pairs, skimage_ssim

PHOTO = scene()
GRAY = gray_levels(PHOTO)[..., None].repeat(3, axis=2)
# What piq 0.8.0 gives for the golden pairs.
MDSI = {"I03.png": 0.486269, "I04.png": 0.397198, "I06.png": 0.201322, "I08.png": 0.403833, "I19.png": 0.455812}


@pytest.mark.parametrize(
    ("metric", "within"),
    [(psnr, 6e-3), (ssim, 1e-4), (ms_ssim, 5e-3), (gmsd, 1e-7), (fsim, 1e-4), (vif, 1e-4), (mdsi, 1e-5)],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_metric_gives_the_official_values(shared_data: Path, metric, within: float) -> None:
    for pair in golden_pairs(shared_data):
        official = MDSI[pair.name] if metric is mdsi else pair.values[metric.__name__]
        assert metric(pair.image, pair.reference) == pytest.approx(official, abs=within), pair.name


def test_the_official_ms_ssim_is_the_weighted_mean_of_the_same_terms(shared_data: Path) -> None:
    """An option of Wang's code; the paper, and so ``ms_ssim``, takes the product."""
    for pair in golden_pairs(shared_data):
        mean = np.average(ms_ssim_terms(pair.image, pair.reference), weights=TERM_WEIGHTS)
        assert mean == pytest.approx(pair.values["ms_ssim"], abs=1e-4), pair.name
        if product := {"I03.png": 0.6700, "I19.png": 0.8418}.get(pair.name):  # as docs/agreement.md says
            assert ms_ssim(pair.image, pair.reference) == pytest.approx(product, abs=5e-5)


@pytest.mark.parametrize("shape", [(1, 1, 3), (7, 13, 3), (300, 400, 3), (3, 30000, 3)])
@pytest.mark.parametrize("strength", [1, 8, 255])
def test_psnr_is_that_of_the_exact_sum_of_squares(shape: tuple[int, ...], strength: int) -> None:
    rng = np.random.default_rng(0)
    first = rng.integers(0, 256, shape, dtype=np.uint8)
    second = np.clip(first + rng.integers(-strength, strength + 1, shape), 0, 255).astype(np.uint8)
    for image, reference in ((first, second), (first[:, ::-1], second[:, ::-1]), (first * 0, first * 0 + 255)):
        total = int(np.square(image.astype(int) - reference).sum())
        assert psnr(image, reference) == (min(100, 10 * np.log10(255**2 * image.size / total)) if total else 100)


@pytest.mark.parametrize("distortion", AT_LEVEL)
def test_psnr_and_ssim_agree_with_scikit_image(distortion: str) -> None:
    image = AT_LEVEL[distortion](2, PHOTO)
    planes = (gray_levels(each).astype(float) for each in (image, PHOTO))
    assert psnr(image, PHOTO) == pytest.approx(peak_signal_noise_ratio(PHOTO, image), abs=1e-9)
    assert ssim(image, PHOTO) == pytest.approx(skimage_ssim(*planes), abs=1e-6)


@pytest.mark.parametrize(
    ("metric", "sign"),
    [(psnr, 1), (fsim, 1), (haarpsi, 1), (ssimulacra2, 1), (mdsi, -1)],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_metric_of_color_follows_its_loss(metric, sign: int) -> None:
    quality = [sign * metric(desaturate(level, PHOTO), PHOTO) for level in (1, 2, 5)]
    assert quality == sorted(quality, reverse=True)
    assert quality[0] > quality[2]
    assert sign * metric(GRAY, PHOTO) < sign * metric(PHOTO, PHOTO) - 1e-3


def test_a_metric_of_gray_levels_ignores_color() -> None:
    assert ssim(GRAY, PHOTO) == pytest.approx(1)
    assert ms_ssim(GRAY, PHOTO) == pytest.approx(1)
    assert gmsd(GRAY, PHOTO) == 0


def test_opposite_hues_give_a_number() -> None:
    red, cyan = PHOTO.copy(), PHOTO.copy()
    red[:20], cyan[:20] = (255, 0, 0), (0, 255, 255)
    assert 0 < mdsi(red, cyan) < 1
    red, cyan = (np.full((64, 64, 3), color, np.uint8) for color in ((255, 0, 0), (0, 255, 255)))
    assert 0 < fsim(red, cyan) < 1


def test_a_negative_and_an_unrelated_image_have_next_to_nothing_in_common() -> None:
    assert ssim(255 - PHOTO, PHOTO) < 0
    assert ms_ssim(255 - PHOTO, PHOTO) == 0
    assert vif(255 - PHOTO, PHOTO) == pytest.approx(0, abs=1e-9)
    assert vif(np.full_like(PHOTO, 128), PHOTO) == pytest.approx(0, abs=1e-9)
    assert 0 <= vif(scene(seed=1), PHOTO) < 0.1
    assert 0 < haarpsi(255 - PHOTO, PHOTO) < 1
    assert 0 < haarpsi(scene(seed=1), PHOTO) < 0.5


def test_psnr_counts_all_three_channels() -> None:
    reference = np.full((20, 30, 3), 100, np.uint8)
    one_channel = reference.copy()
    one_channel[..., 2] += 51
    assert psnr(reference + np.uint8(51), reference) == pytest.approx(20 * np.log10(5))
    assert psnr(one_channel, reference) == pytest.approx(20 * np.log10(5) + 10 * np.log10(3))
    assert psnr(np.zeros_like(reference), np.full_like(reference, 255)) == 0


def test_ms_ssim_is_the_weighted_product_of_its_terms_over_scales() -> None:
    terms = ms_ssim_terms(noise(3, PHOTO), PHOTO)
    assert ms_ssim(noise(3, PHOTO), PHOTO) == pytest.approx(np.prod(terms**TERM_WEIGHTS))
    assert sum(TERM_WEIGHTS) == pytest.approx(1, abs=1e-3)
    assert all(np.diff(terms) > 0), "noise is in the fine scales"
    assert ms_ssim(blur(2, PHOTO), PHOTO) > ssim(blur(2, PHOTO), PHOTO)
    image = scene(192, 256, seed=1)
    small, small_reference = (gray_levels(rgb).reshape(12, 16, 16, 16).mean(axis=(1, 3)) for rgb in (image, PHOTO))
    assert ms_ssim_terms(image, PHOTO)[-1] == pytest.approx(skimage_ssim(small, small_reference), abs=1e-6)


def test_fsim_reduces_large_images_so_that_fine_noise_counts_less() -> None:
    small, large = scene(192, 192), scene(384, 384)
    assert fsim(noise(3, large), large) > fsim(noise(3, small), small)


@pytest.mark.parametrize("shape", [(40, 60), (41, 59)])
def test_gmsd_agrees_with_its_definition_written_out(shape: tuple[int, int]) -> None:
    reference = scene(*shape)
    prewitt = np.outer([1, 1, 1], [1, 0, -1]) / 3
    magnitudes = []
    for image in (noise(3, reference), reference):
        # MATLAB's "same" starts half a kernel later than SciPy's for kernels of even size.
        half = convolve2d(gray_levels(image).astype(float), np.full((2, 2), 0.25))[1:, 1:][::2, ::2]
        magnitudes.append(np.hypot(*(convolve2d(half, kernel, mode="same") for kernel in (prewitt, prewitt.T))))
    first, second = magnitudes
    expected = np.std((2 * first * second + 170) / (first**2 + second**2 + 170), ddof=1)
    assert gmsd(noise(3, reference), reference) == pytest.approx(expected, abs=1e-7)


def same(plane: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """Return MATLAB's conv2(plane, kernel, 'same'); the middle of an even kernel is the later of the two."""
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


def ssimulacra2_written_out(image: np.ndarray, reference: np.ndarray) -> float:
    """Compute the definition in double precision, map by map."""

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
    assert ssimulacra2(image, reference) == pytest.approx(ssimulacra2_written_out(image, reference), abs=5e-3)
    distance = np.arange(-4, 5)
    assert sum(WINDOW) == pytest.approx(1, abs=1e-8)
    assert (distance**2 * np.array(WINDOW)).sum() == pytest.approx(1.5**2, abs=1e-6)


@pytest.mark.parametrize("side", [8, 15, 16, 40, 130])
def test_ssimulacra2_ranks_images_with_room_for_fewer_scales(side: int) -> None:
    image = scene(side, side + 3)
    assert ssimulacra2(noise(1, image), image) > ssimulacra2(noise(5, image), image)


def test_vif_counts_contrast_as_information_and_brightness_not() -> None:
    muted = low_contrast(3, PHOTO)
    assert vif(PHOTO, muted) > 1 > vif(muted, PHOTO)
    assert vif(muted + np.uint8(20), muted) == pytest.approx(1, abs=1e-3)
    assert vif(darken(3, PHOTO), PHOTO) < 1
    turned = vif(np.rot90(blur(2, PHOTO)), np.rot90(PHOTO))
    assert turned == pytest.approx(vif(blur(2, PHOTO), PHOTO), rel=0.05)


@pytest.mark.parametrize("shape", [(65, 65), (66, 70), (95, 96), (97, 130), None])
def test_vif_falls_with_noise_for_every_remainder_of_blocks_and_on_a_flat_reference(shape) -> None:
    image = scene(*shape) if shape else np.full((96, 96, 3), 128, np.uint8)
    values = [vif(noise(level, image), image) for level in range(6)]
    assert values[0] == pytest.approx(1)
    assert all(np.diff(values) < 0)
    assert shape or values[-1] < 0.05


def test_deep_feature_similarity_falls_with_distortion() -> None:
    photo = scene(256)
    found = [deep_sim(distort(photo, "gaussian_blur", level), photo) for level in range(6)]
    assert found[0] == 1
    assert found == sorted(found, reverse=True)
    assert found[5] < 0.9


@pytest.mark.parametrize("name", MEMBERS)
def test_a_curve_of_the_fusion_falls_from_5_through_3_at_its_middle_towards_1(name: str) -> None:
    member = MEMBERS[name]
    sign = -1 if member.tool.higher_is_better else 1
    scores = [member.quality(member.best + sign * far * member.middle) for far in (-0.5, 0, 0.5, 1, 2, 1000)]
    assert scores[:2] == [5, 5]
    assert scores[3] == pytest.approx(3)
    assert scores[-1] == pytest.approx(1, abs=0.01)
    assert all(np.diff(scores[1:]) < 0)


def test_the_fusion_is_the_mean_of_the_members_that_an_image_is_large_enough_for() -> None:
    raws = {"HaarPSI": 0.6, "MDSI": 0.3, "VIF": 0.5}
    expected = np.mean([MEMBERS[name].quality(raw) for name, raw in raws.items()])
    assert full_reference_quality({**raws, "PSNR": 20.0}) == pytest.approx(expected)
    small = scene(40, 50)
    for reference, names in ((PHOTO, MEMBERS), (small, ("HaarPSI", "MDSI"))):
        image = blur(3, reference)
        measured = {name: MEMBERS[name].tool.measure(image, reference) for name in names}
        assert fr_fusion(image, reference) == full_reference_quality(measured)
    assert full_reference_quality({name: member.best for name, member in MEMBERS.items()}) == 5
    assert full_reference_quality({"VIF": 1.0}) == 5
    with pytest.raises(ToolError, match="at least one of HaarPSI, MDSI, VIF"):
        full_reference_quality({"PSNR": 30.0})


def test_the_map_of_the_fusion_has_the_lost_quality_as_its_mean() -> None:
    image, reference = blur(3, scene(301, 403)), scene(301, 403)
    damage = fr_fusion_map(image, reference)
    assert damage.shape == (301, 403)
    assert damage.mean() == pytest.approx((5 - fr_fusion(image, reference)) / 4, rel=0.02)
