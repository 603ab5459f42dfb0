"""Local damage: found, located, named and scored, and not found in undamaged images."""

from pathlib import Path

import numpy as np
import pytest
import skimage.data
from PIL import Image

from agenticiqa.eval.research.distort import distort
from agenticiqa.eval.research.planted import named_box, plant
from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.offline.answers.measured_image import VISIBLE
from agenticiqa.programs.offline.measured import patches
from agenticiqa.programs.offline.measured.distortions import damaged_parts, findings_of, findings_of_whole
from agenticiqa.programs.offline.measured.findings import severity_of_whole
from agenticiqa.programs.offline.measured.local_damage import local_change, straight_edge
from agenticiqa.programs.offline.measured.mos_estimate import estimate_mos, expected_level
from agenticiqa.programs.offline.measured.patches import patch_severities
from agenticiqa.programs.tools.features.patch_features import patch_grid
from agenticiqa.signatures.vocabulary import DETECTABLE
from support.distortion_levels import scene
from support.images import coffee, loaded

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[4] / "examples"


@pytest.fixture(scope="module")
def photo():
    return coffee()


@pytest.fixture(scope="module")
def noisy_center(photo):
    return loaded(plant(photo, "white_noise", 4, named_box("ninth 4", (320, 240)), 1).pixels)


def test_noise_in_the_middle_is_found_located_and_scored(photo, noisy_center):
    found = findings_of(noisy_center)["Noise"]
    assert found.local is not None
    assert found.local.place in ("center", "central half")
    left, top, right, bottom = found.local.box
    assert left >= 64
    assert top >= 48
    assert right <= 256
    assert bottom <= 192
    assert found.severity >= 1
    assert found.explanation.startswith(f"In the {found.local.place}, box [")
    assert expected_level(findings_of(noisy_center)) < expected_level(findings_of(loaded(photo))) - 0.5
    scores = [estimate_mos(image, None, findings_of(image)).score for image in (noisy_center, loaded(photo))]
    assert scores[0] < 3.5
    assert scores[0] < scores[1] - 0.5


@pytest.mark.parametrize(
    ("kind", "level", "where", "name", "place"),
    [
        ("gaussian_blur", 4, "half left", "Blurs", "left half"),
        ("jpeg", 5, "half right", "Compression", "right half"),
        ("impulse_noise", 4, "quarter 1", "Noise", "top right quarter"),
        ("chroma_noise", 4, "half bottom", "Noise", "bottom half"),
    ],
)
def test_the_place_of_damage_is_named(photo, kind, level, where, name, place):
    image = loaded(plant(photo, kind, level, named_box(where, (320, 240)), 2).pixels)
    found = findings_of(image)[name].local
    assert found is not None
    assert found.place == place


def test_an_undamaged_photo_has_no_local_damage(photo):
    assert not damaged_parts(loaded(photo), None)
    assert not damaged_parts(loaded(np.full((200, 300, 3), 120, np.uint8)), None)
    out_of_focus = np.ascontiguousarray(skimage.data.chelsea()[:288, 80:400])
    assert "Blurs" not in damaged_parts(loaded(out_of_focus), None)
    small = loaded(scene(63, 200))
    assert patch_severities(small) is None
    assert damaged_parts(small, None) == {}
    assert local_change(photo, photo) is None
    assert local_change(plant(photo, "white_noise", 2, (0, 0, 320, 240), 5).pixels, photo) is None


@pytest.mark.parametrize("kind", ["white_noise", "gaussian_blur", "jpeg"])
def test_distortion_of_the_whole_image_is_not_local(photo, kind):
    image = loaded(plant(photo, kind, 4, (0, 0, 320, 240), 3).pixels)
    whole, found = findings_of_whole(image), findings_of(image)
    assert all(finding.local is None or finding.local.share < 0.75 for finding in found.values())
    assert max(found, key=lambda name: found[name].severity) == max(whole, key=lambda name: whole[name].severity)


def test_straight_edges_of_blur_are_distinguished_from_outlines():
    grain = np.random.default_rng(0).integers(0, 256, (200, 300), np.uint8)
    straight, bent = grain.copy(), grain.copy()
    straight[:, 170:] = 128
    rows, columns = np.mgrid[:200, :300]
    bent[columns > 170 + 30 * np.sin(rows / 12)] = 128
    assert straight_edge(straight, (160, 0, 300, 200)) == 1
    assert straight_edge(bent, (160, 0, 300, 200)) < 0.35


def test_a_local_change_from_the_reference_is_found(photo):
    box = named_box("ninth 8", (320, 240))
    image, reference = loaded(plant(photo, "jpeg", 5, box, 4).pixels), loaded(photo)
    found = findings_of(image, reference)["Compression"]
    assert found.local is not None
    assert found.local.place == "bottom right corner"
    assert np.abs(np.subtract(found.local.box, box)).max() <= 16
    assert found.severity > findings_of_whole(image, reference)["Compression"].severity


@pytest.mark.parametrize("photo_file", ["coffee.webp", "astronaut.webp", "chelsea.webp"])
def test_blur_in_a_third_of_the_image_is_only_blur_with_a_reference(photo_file):
    """Measured over the whole image, this was severe compression with 1.0 times the steps of the reference."""
    sharp = np.asarray(Image.open(EXAMPLES / photo_file).convert("RGB"))
    blurred, third = sharp.copy(), sharp.shape[1] // 3
    blurred[:, :third] = distort(sharp, "gaussian_blur", 3)[:, :third]
    found = findings_of(loaded(blurred), loaded(sharp))
    assert max(found, key=lambda name: found[name].severity) == "Blurs"
    assert {name for name, each in found.items() if each.severity >= VISIBLE} <= {"Blurs", "Sharpness"}


def test_a_larger_part_and_worse_damage_make_the_whole_worse():
    assert severity_of_whole(4, 1) == 4
    assert severity_of_whole(0, 0.5) == 0
    assert severity_of_whole(4, 0.05) >= 2
    shares, severities = np.linspace(0.01, 1, 9), np.linspace(0, 4, 9)
    assert all(np.diff([severity_of_whole(3, share) for share in shares]) > 0)
    assert all(np.diff([severity_of_whole(severity, 0.2) for severity in severities]) > 0)


@pytest.mark.parametrize("shape", [(64, 64), (65, 700), (200, 333), (1700, 1300)])
def test_patches_of_any_size_have_finite_features_and_severities_on_the_scale(shape):
    image = loaded(scene(*shape))
    grid = patch_grid(image.pixels)
    assert np.isfinite(grid.values).all()
    assert grid.values.shape[:2] == tuple(-(-side // grid.side) for side in shape)
    found = patch_severities(image)
    assert found is not None
    assert {*found.by_category} == {*DETECTABLE}
    for severities in found.by_category.values():
        assert severities.shape == grid.values.shape[:2]
        assert severities.min() >= 0
        assert severities.max() <= 4


def test_damage_in_a_large_image_has_a_box_in_its_own_pixels(photo):
    large = np.tile(photo, (6, 6, 1))
    size = large.shape[1::-1]
    box = named_box("quarter 2", size)
    found = damaged_parts(loaded(plant(large, "white_noise", 5, box, 6).pixels), None)["Noise"]
    assert found.place == "bottom left quarter"
    assert np.abs(np.subtract(found.box, box)).max() <= 2 * patch_grid(large).side


def test_damaged_weights_are_refused_by_name(monkeypatch, tmp_path):
    damaged = tmp_path / "patches.npz"
    damaged.write_bytes(patches.WEIGHTS.read_bytes()[:-1] + b"x")
    monkeypatch.setattr(patches, "WEIGHTS", damaged)
    with pytest.raises(ToolError, match=r"patches\.npz"):
        damaged_parts(loaded(scene()), None)
