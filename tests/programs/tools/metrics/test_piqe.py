from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.tools.metrics.piqe import SIDE, SMALLEST_SIDE, judge_blocks, piqe, piqe_map
from support.distortion_levels import AT_LEVEL, scene


@pytest.fixture(scope="module")
def photo() -> np.ndarray:
    return scene(288, 384, seed=7)


# What pypiqe 1.2, a port of MATLAB's piqe, gives for the same pixels.
@pytest.mark.parametrize(
    ("distortion", "level", "of_package"),
    [
        ("blur", 0, 37.46363340710301),
        ("blur", 3, 70.70627537482366),
        ("noise", 3, 59.624334387292876),
    ],
)
def test_values_agree_with_the_port_of_matlabs_function(
    photo: np.ndarray, distortion: str, level: int, of_package: float
) -> None:
    assert piqe(AT_LEVEL[distortion](level, photo)) == pytest.approx(of_package, abs=0.002)


@pytest.mark.parametrize(
    ("name", "value"), [("I03", 100.00), ("I04", 21.62), ("I06", 35.86), ("I08", 41.15), ("I19", 76.95)]
)
def test_values_agree_with_matlab_to_the_last_digit_given(shared_data: Path, name: str, value: float) -> None:
    image = np.asarray(Image.open(shared_data / "golden" / "dist" / f"{name}.png").convert("RGB"))
    assert piqe(image) == pytest.approx(value, abs=0.005)


@pytest.mark.parametrize("distortion", ["blur", "noise", "jpeg", "pixelate"])
def test_the_strong_distortion_is_worse_than_the_mild_one(distortion: str) -> None:
    for seed in (0, 1):
        image = scene(288, 384, seed)
        assert piqe(AT_LEVEL[distortion](5, image)) > piqe(AT_LEVEL[distortion](2, image))


@pytest.mark.parametrize(("distortion", "flags"), [("noise", "noisy"), ("pixelate", "impaired")])
def test_the_verdict_tells_in_which_half_the_distortion_is(distortion: str, flags: str) -> None:
    smooth = AT_LEVEL["blur"](1, scene(288, 384, seed=7))
    left = np.arange(384) < 192
    half_distorted = np.where(left[:, None], AT_LEVEL[distortion](4, smooth), smooth)
    before, after = (getattr(judge_blocks(image), flags) for image in (smooth, half_distorted))
    left_blocks = left[::SIDE]
    assert after[:, left_blocks].mean() > before[:, left_blocks].mean() + 0.5
    assert after[:, ~left_blocks].mean() == pytest.approx(before[:, ~left_blocks].mean(), abs=0.02)


@pytest.mark.parametrize("size", [(96, 128), (97, 130), (111, 127)])
def test_every_block_that_the_image_reaches_is_judged_and_only_active_ones_are_marked(size: tuple[int, int]) -> None:
    image = AT_LEVEL["jpeg"](4, scene(*size))
    blocks = judge_blocks(image)
    assert blocks.active.shape == blocks.variance.shape == (-(-size[0] // SIDE), -(-size[1] // SIDE))
    assert blocks.active.dtype == blocks.impaired.dtype == blocks.noisy.dtype == bool
    assert not (blocks.impaired & ~blocks.active).any()
    assert not (blocks.noisy & ~blocks.active).any()
    assert np.array_equal(piqe_map(image) > 0, blocks.impaired | blocks.noisy)


@pytest.mark.parametrize("rows", [1, 33, 1000])
def test_the_bands_in_which_an_image_is_read_do_not_show(photo: np.ndarray, monkeypatch, rows: int) -> None:
    image = AT_LEVEL["jpeg"](3, photo)
    in_default_bands = judge_blocks(image)
    monkeypatch.setattr("agenticiqa.programs.tools.statistics.mscn.CHUNK", rows * image.shape[1])
    in_other_bands = judge_blocks(image)
    assert np.array_equal(in_other_bands.impaired, in_default_bands.impaired)
    assert np.array_equal(in_other_bands.noisy, in_default_bands.noisy)
    assert in_other_bands.variance == pytest.approx(in_default_bands.variance, rel=1e-12)


@pytest.mark.parametrize("level", [0, 1, 128, 255])
def test_an_image_without_structure_has_the_worst_value_and_an_empty_map(level: int) -> None:
    flat = np.full((48, 50, 3), level, np.uint8)
    assert piqe(flat) == 100
    assert not piqe_map(flat).any()


def test_scaling_the_brightness_does_not_change_it(photo: np.ndarray) -> None:
    bright = (photo // 2) * 2
    bright[0, 0] = 254
    assert piqe(bright // 2) == pytest.approx(piqe(bright), abs=1.5)


def test_the_same_pixels_give_the_same_bits(photo: np.ndarray) -> None:
    before = photo.copy()
    assert piqe(photo) == piqe(photo.copy()) == piqe(np.asfortranarray(photo))
    assert np.array_equal(photo, before)


@pytest.mark.parametrize("metric", [piqe, piqe_map])
def test_an_image_under_one_block_is_refused_in_one_line(metric) -> None:
    assert 0 < piqe(scene(SMALLEST_SIDE, SMALLEST_SIDE)) <= 100
    with pytest.raises(ToolError, match=r"at least 16 pixels, got 40 x 15$"):
        metric(scene(15, 40))


@pytest.mark.filterwarnings("error")
def test_odd_images_give_a_value_up_to_100() -> None:
    y, x = np.mgrid[:70, :83]
    rng = np.random.default_rng(3)
    odd = [x == 0, x > 40, x % 2, (x + y) % 2 * 255, x, x % 16 < 8, (x % 16 == 9) * 255, rng.random(x.shape) < 0.01]
    for plane in odd:
        assert 0 <= piqe(np.repeat(plane.astype(np.uint8)[..., None], 3, axis=2)) <= 100 + 1e-9
