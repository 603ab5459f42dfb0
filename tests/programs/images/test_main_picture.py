"""The full-resolution picture is assessed, not the thumbnail: TIFF, raw photos, HEIC."""

import io
import struct

import numpy as np
import pytest
from PIL import Image

from agenticiqa.programs.errors import ImageError
from agenticiqa.programs.images import load
from agenticiqa.programs.images.loading import size_of
from support.odd_colors import encoded, tiff_of

FULL = np.random.default_rng(1).integers(0, 256, (96, 128, 3), np.uint8)
SMALL = np.ascontiguousarray(FULL[::4, ::4])
REDUCED = {254: 1}
CFA = {262: 32803, 277: 1}  # the mosaic of a sensor, which Pillow does not decode


def page(pixels: np.ndarray, tags: dict[int, int] | None = None, *inner: dict) -> dict:
    return {"pixels": pixels, "tags": tags or {}, "inner": inner}


def big_tiff() -> bytes:
    buffer = io.BytesIO()
    pages = [Image.fromarray(each) for each in (SMALL, FULL)]
    pages[0].save(buffer, "TIFF", big_tiff=True, save_all=True, append_images=pages[1:])
    return buffer.getvalue()


def jpeg_in_tiff() -> bytes:
    pages = [Image.fromarray(each) for each in (SMALL, FULL)]
    return encoded(pages[0], "TIFF", compression="jpeg", save_all=True, append_images=pages[1:])


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(
    ("pages", "shown"),
    [
        ([page(SMALL, REDUCED), page(FULL)], FULL),
        ([page(SMALL, {255: 2}), page(FULL)], FULL),
        ([page(SMALL, REDUCED, page(FULL))], FULL),  # as DNG and NEF have it
        ([page(SMALL, REDUCED, page(SMALL, REDUCED), page(FULL, {254: 0}))], FULL),
        ([page(SMALL, {254: 0}, page(FULL, {254: 0}))], FULL),
        ([page(SMALL), page(FULL)], FULL),  # no tag: of the same shape, and at most half as large
        ([page(FULL), page(SMALL, REDUCED)], FULL),
        ([page(FULL, {}, page(SMALL, REDUCED))], FULL),  # a pyramid
        ([page(SMALL), page(FULL[:, :40])], SMALL),  # pages of a document
        ([page(FULL), page(FULL // 2)], FULL),
    ],
)  # fmt: skip
def test_the_full_resolution_picture_of_a_tiff_is_measured(pages: list[dict], shown: np.ndarray, order: str) -> None:
    data = tiff_of(pages, order)
    found = load(data)
    assert np.array_equal(found.pixels, shown)
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(found.data))), shown), "a model is sent the same"
    assert size_of(data) == found.size
    is_inner = shown is FULL and np.array_equal(np.asarray(Image.open(io.BytesIO(data))), SMALL)
    assert ("is a thumbnail; the full one (128x96) was measured" in " ".join(found.notes)) == is_inner


@pytest.mark.parametrize("data", [big_tiff(), jpeg_in_tiff()])
def test_other_layouts_of_tiff_are_read(data: bytes) -> None:
    assert load(data).size == (128, 96)


@pytest.mark.parametrize(
    ("pages", "found"),
    [
        ([page(SMALL, REDUCED, page(FULL, {**CFA, 254: 0}))], r"a thumbnail \(32x24\) of a raw photo \(128x96\)"),
        ([page(SMALL, REDUCED, page(SMALL, REDUCED), page(FULL, {**CFA, 254: 0}))], r"of a raw photo \(128x96\)"),
        ([page(SMALL, REDUCED, page(FULL, {262: 34892}))], r"of a raw photo"),
        (
            [page(SMALL, REDUCED, page(FULL, {259: 7}))],
            r"damaged or cut short",
        ),
        ([page(SMALL, REDUCED)], r"only a reduced copy \(32x24\)"),
        ([page(FULL, {**CFA, 254: 0})], "a TIFF or raw photo that Pillow cannot read"),
    ],
)
def test_raw_photos_that_pillow_cannot_decode_are_refused_with_a_converter(pages: list[dict], found: str) -> None:
    with pytest.raises(ImageError, match=rf"{found}.*convert it .* with RawTherapee, darktable-cli") as refused:
        load(tiff_of(pages))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("head", [b"FUJIFILMCCD-RAW 0201", b"IIRO\x08", b"IIU\0\x18", b"\0\0\0\x18ftypcrx "])
def test_raw_photos_are_recognized_by_their_signatures(head: bytes) -> None:
    with pytest.raises(ImageError, match=r"found a raw photo; convert it .* with RawTherapee"):
        load(head + bytes(100))


def test_a_circle_of_directories_ends() -> None:
    data = bytearray(tiff_of([page(SMALL, {254: 0}), page(FULL)]))
    last = struct.unpack_from("<I", data, 4)[0]
    count = struct.unpack_from("<H", data, last)[0]
    second = struct.unpack_from("<I", data, last + 2 + 12 * count)[0]
    end = second + 2 + 12 * struct.unpack_from("<H", data, second)[0]
    struct.pack_into("<I", data, end, last)
    assert load(bytes(data)).size == (128, 96)


@pytest.mark.parametrize(("primary", "size"), [(0, (128, 96)), (1, (128, 96))])
def test_the_full_picture_of_a_heic_with_a_thumbnail_first_is_measured(primary: int, size: tuple[int, int]) -> None:
    pillow_heif = pytest.importorskip("pillow_heif", reason="the extra heic is not installed")
    file = pillow_heif.from_pillow(Image.fromarray(FULL))
    file.add_from_pillow(Image.fromarray(SMALL).resize((64, 48)))
    buffer = io.BytesIO()
    file.save(buffer, quality=90, primary_index=primary)
    found = load(buffer.getvalue())
    assert found.size == size
    assert any("thumbnail" in note for note in found.notes) == bool(primary)


@pytest.mark.parametrize("kind", ["ICO", "ICNS", "MPO"])
def test_the_largest_picture_of_a_container_is_measured(kind: str) -> None:
    large, small = (Image.fromarray(FULL).resize((side, side)) for side in (128, 32))
    options = {"ICO": {"sizes": [(32, 32), (128, 128)]}, "MPO": {"save_all": True, "append_images": [small]}}
    assert load(encoded(large, kind, **options.get(kind, {}))).size[0] >= 128
