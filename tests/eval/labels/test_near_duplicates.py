"""The perceptual hash recognizes copies of one scene, and the warning names scenes that are counted twice."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageEnhance

from agenticiqa.eval.datasets import LabeledImage
from agenticiqa.eval.labels.near_duplicates import (
    MOST_BITS,
    near_duplicates,
    near_duplicates_doubt,
    perceptual_hash,
)
from agenticiqa.eval.labels.own_data import read_labels
from support.distortion_levels import scene


def labeled(path: Path, content: str, split: str | None = None, reference: Path | None = None) -> LabeledImage:
    return LabeledImage(path.name, path, reference, 3, None, None, None, split, None, content)


@pytest.fixture
def photos(tmp_path: Path) -> dict[str, Path]:
    """A photo, a small dim JPEG of it, two other photos, and a file that is not an image."""
    paths = {name: tmp_path / name for name in ("photo.png", "copy.jpg", "other.png", "third.png", "broken.png")}
    for name, seed in (("photo.png", 1), ("other.png", 2), ("third.png", 3)):
        Image.fromarray(scene(200, 300, seed=seed)).save(paths[name])
    with Image.open(paths["photo.png"]) as photo:
        ImageEnhance.Brightness(photo.resize((150, 100))).enhance(0.7).save(paths["copy.jpg"], quality=50)
    paths["broken.png"].write_bytes(b"no image")
    return paths


def test_the_hash_holds_through_compression_size_and_brightness(photos: dict[str, Path]) -> None:
    hashes = {name: perceptual_hash(path) for name, path in photos.items()}
    assert hashes.pop("broken.png") is None
    first, copy, other, third = (found for found in hashes.values() if found is not None)
    assert (first ^ copy).bit_count() <= MOST_BITS
    assert min((first ^ other).bit_count(), (first ^ third).bit_count(), (other ^ third).bit_count()) > MOST_BITS
    assert first.bit_count() == 32  # half of the frequencies are above their median


def test_one_scene_in_two_contents_or_splits_is_reported(photos: dict[str, Path]) -> None:
    alone = [labeled(path, path.name) for path in photos.values()]
    pairs = near_duplicates(alone)
    assert pairs == [(photos["photo.png"], photos["copy.jpg"])]
    assert f"different scenes or splits, such as {photos['photo.png']}" in (near_duplicates_doubt(pairs, alone) or "")
    together = [replace(label, content="one") for label in alone]
    assert near_duplicates(together) == []
    assert near_duplicates_doubt([], []) is None
    divided = [replace(label, split=split) for label, split in zip(together, ("train", "test") * 3, strict=False)]
    assert near_duplicates(divided) == pairs


def test_too_many_images_are_not_compared_and_this_is_reported(
    photos: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agenticiqa.eval.labels.near_duplicates.MOST_IMAGES", 4)
    pairs = near_duplicates([labeled(path, path.name) for path in photos.values()])
    assert pairs is None
    assert "was skipped" in (near_duplicates_doubt(pairs, []) or "")


def test_references_stand_for_their_copies(photos: dict[str, Path]) -> None:
    photo, copy, other, *_ = photos.values()
    looked_at: list[Path] = []

    def watch(paths: object, total: int) -> list[Path]:
        looked_at.extend(paths)  # type: ignore[call-overload]
        return looked_at

    labels = [
        labeled(other, "a", reference=photo),
        labeled(other, "b", reference=copy),
        labeled(copy, "a", None, photo),
    ]
    assert near_duplicates(labels, watch) == [(photo, copy)]
    assert looked_at == [photo, copy]


def test_many_images_are_compared_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agenticiqa.eval.labels.near_duplicates.BLOCK", 2)
    pixels = [scene(40, 40, seed=seed) for seed in (1, 2, 3, 1, 2)]
    for number, image in enumerate(pixels):
        Image.fromarray(np.asarray(image)).save(tmp_path / f"{number}.png")
    labels = [labeled(tmp_path / f"{number}.png", str(number)) for number in range(5)]
    assert [(a.stem, b.stem) for a, b in near_duplicates(labels) or ()] == [("0", "3"), ("1", "4")]


def test_images_are_compared_as_a_viewer_shows_them(tmp_path: Path) -> None:
    """Orientation, alpha and 16 bits are applied, and pictures of one color are not copies of each other."""
    photo, other = (Image.fromarray(scene(200, 300, seed=seed)) for seed in (1, 2))
    turned = Image.Exif()
    turned[0x0112] = 6  # the viewer turns it clockwise
    photo.save(tmp_path / "photo.png")
    photo.transpose(Image.Transpose.ROTATE_90).save(tmp_path / "turned.jpg", exif=turned)
    for name, shown in (("alpha", photo), ("alpha_other", other)):
        drawing = Image.new("RGBA", shown.size)
        drawing.putalpha(Image.eval(shown.convert("L"), lambda level: 255 - level))
        drawing.save(tmp_path / f"{name}.png")
    for name, shown in (("scan", photo), ("scan_other", other)):
        deep = np.asarray(shown.convert("L")).astype(np.uint16) * 257
        Image.fromarray(deep).save(tmp_path / f"{name}.png")
    for color in ("black", "white", "blue", "red"):
        Image.new("RGB", (64, 48), color).save(tmp_path / f"{color}.png")
    pairs = near_duplicates([labeled(path, path.name) for path in sorted(tmp_path.iterdir())])
    same = {"photo", "turned", "alpha", "scan"}
    assert {frozenset((a.stem, b.stem)) for a, b in pairs or ()} == {
        *(frozenset((a, b)) for a in same for b in same if a != b),
        frozenset(("alpha_other", "scan_other")),
    }


@pytest.mark.slow
def test_biq2021_has_one_scene_in_training_and_test(shared_data: Path) -> None:
    pairs = near_duplicates(read_labels(shared_data / "biq2021" / "labels.csv"))
    assert pairs is not None
    assert ("ss01_1759.jpg", "ss01_1761.jpg") in [(a.name, b.name) for a, b in pairs]
    assert len(pairs) == 16
