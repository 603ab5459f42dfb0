"""Colors by code points, gAMA and cHRM, transparent colors at the depth of the file, and orientation by EXIF alone."""

import struct
from dataclasses import replace

import numpy as np
import pytest
import skimage.data
from PIL import Image

from agenticiqa import AgenticIQA
from agenticiqa.programs.images import load
from agenticiqa.programs.tools.metrics.learned_iqa import SPREAD, outside_training, predicted_mos
from agenticiqa.programs.tools.outside_training import widened
from support import icc
from support.images import as_gray, coffee
from support.odd_colors import (
    cicp,
    encoded,
    gama,
    hlg,
    in_bt2020,
    linear,
    of_bits,
    png,
    pq,
    with_nclx,
)

COFFEE = coffee()
GRAY = np.repeat(COFFEE[..., 1:2], 3, axis=2)


def chrm(*points: float) -> tuple[bytes, bytes]:
    return b"cHRM", struct.pack(">8I", *(round(each * 100_000) for each in points))


@pytest.mark.parametrize(
    ("transfer", "signal", "level"),
    [
        (16, 0.58068888, 255),  # BT.2408: reference white, 203 cd/m2, has 58 % of PQ
        (16, 1.0, 255),
        (16, 0.0, 0),
        (16, 0.50808, 186),  # 100 cd/m2 (SMPTE ST 2084): .4926 of white, by the function of sRGB 186.3
        (18, 0.75, 255),  # BT.2408: reference white has 75 % of HLG
        (18, 0.38, 100),  # BT.2408: an 18 % gray card, 26 cd/m2, has 38 % of HLG
        (8, 0.5, 188),
        (4, 0.5, 128),
    ],
)
def test_gray_levels_of_the_standards_are_converted_exactly(transfer: int, signal: float, level: int) -> None:
    sample = np.full((4, 4), round(signal * 65535), np.uint16)
    assert np.abs(load(png(sample, cicp(9, transfer), color=0)).pixels.astype(int) - level).max() <= 1


@pytest.mark.parametrize("way", [pq, hlg])
def test_hdr_scores_like_its_sdr_original(way) -> None:
    copy = png(of_bits(way(in_bt2020(COFFEE)), 16), cicp(9, {pq: 16, hlg: 18}[way]))
    result = AgenticIQA.from_config()(copy, reference=COFFEE)
    assert result.quality_score > 4.8
    assert any(note.startswith("HDR (cICP: ") for note in result.executor_evidence.notes)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["AVIF", "HEIF"])
def test_nclx_of_avif_and_heic_is_applied(kind: str) -> None:
    if kind == "HEIF":
        pytest.importorskip("pillow_heif", reason="the extra heic is not installed").register_heif_opener()
    best = {"quality": 100, "subsampling": "4:4:4"} if kind == "AVIF" else {"quality": 100, "chroma": 444}
    plain = encoded(of_bits(pq(linear(GRAY)), 8), kind, **best)
    found = load(with_nclx(plain, 9, 16))
    assert found.notes[-1].startswith("HDR (nclx: PQ, BT.2020) was converted to SDR")
    assert np.abs(found.pixels.astype(int) - GRAY).mean() < 2.5, "8 bits of PQ, compressed"
    assert np.abs(load(plain).pixels.astype(int) - GRAY).mean() > 25
    profiled = encoded(COFFEE, kind, icc_profile=icc.rgb_profile(*icc.ADOBE_RGB), **best)
    profiled = with_nclx(profiled, 12, 13) if b"nclx" in profiled else profiled
    assert "converted from the profile Made for a test" in " ".join(load(profiled).notes)


def test_display_p3_is_converted_by_its_code_points() -> None:
    """The matrix is that of CSS Color 4, section 19."""
    to_srgb = np.array([[1.2249, -0.2249, 0], [-0.0421, 1.0421, 0], [-0.0196, -0.0787, 1.0983]])
    light = np.clip(linear(COFFEE) @ to_srgb.T, 0, 1)
    expected = 255 * np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
    for data in (png(COFFEE, cicp(12, 13)), png(COFFEE, cicp(12, 13), gama(1.0))):
        assert np.abs(load(data).pixels - expected).max() <= 1


@pytest.mark.parametrize(
    ("chunks", "converted", "noted"),
    [
        ([gama(1.0)], True, "gAMA 1"),
        ([gama(1 / 1.8)], True, "gAMA 0.55556"),
        ([gama(0.45455)], False, ""),
        ([gama(0.45)], False, ""),
        ([gama(0.0)], False, ""),
        ([gama(1.0), (b"sRGB", b"\0")], False, ""),
        ([gama(1.0), cicp(1, 13)], False, ""),
        ([chrm(0.3127, 0.329, 0.64, 0.33, 0.3, 0.6, 0.15, 0.06)], False, ""),
        ([chrm(0.3127, 0.329, 0.64, 0.33, 0.21, 0.71, 0.15, 0.06)], False, "cHRM"),
        ([gama(1.0), chrm(0.3457, 0.3585, 0.7347, 0.2653, 0.1596, 0.8404, 0.0366, 0.0001)], True, "cHRM"),
        ([cicp(22, 13)], False, "not be converted"),
        ([cicp(9, 17)], False, "not be converted"),
    ],
)
def test_color_chunks_of_png_have_the_precedence_of_the_standard(
    chunks: list[tuple[bytes, bytes]], converted: bool, noted: str
) -> None:
    """PNG, third edition, 4.3 and 13.14: cICP, then iCCP, then sRGB, then gAMA and cHRM."""
    found = load(png(COFFEE, *chunks))
    assert np.array_equal(found.pixels, COFFEE) != converted
    assert noted in " ".join(found.notes)
    assert bool(found.notes) == bool(noted)
    assert (found.file is None) == converted


PHOTO = skimage.data.coffee()


@pytest.mark.parametrize("data", [png(PHOTO, cicp(22, 13)), encoded(PHOTO, "PNG", icc_profile=b"none at all")])
def test_colors_that_could_not_be_converted_widen_the_interval(data: bytes) -> None:
    usual, found = load(PHOTO), load(data)
    assert "color" in outside_training(found)
    assert "color" not in outside_training(usual)
    like_the_training = replace(predicted_mos(usual), spread=SPREAD)  # coffee is unlike it, and has a wider interval
    assert widened(like_the_training, outside_training(found)).spread > SPREAD
    assert predicted_mos(found).score == predicted_mos(usual).score


@pytest.mark.parametrize("depth", [1, 2, 4, 8, 16])
def test_the_transparent_gray_of_a_png_has_the_depth_of_the_file(depth: int) -> None:
    """PNG, third edition, 11.3.2.1; with fewer than 16 bits, only the lowest count."""
    samples = np.arange(2**depth if depth < 16 else 300, dtype=np.uint16)[None].repeat(3, axis=0)
    for key in (0, 1, 2**depth - 1 if depth < 16 else 258):
        tag = key | (0xAB00 if 1 < depth < 8 else 0)
        found = load(png(samples, (b"tRNS", struct.pack(">H", tag)), depth=depth, color=0))
        expected = np.where(samples == key, 255, np.rint(samples * 255.0 / (2**depth - 1)))
        assert np.array_equal(found.pixels, as_gray(expected)), key


@pytest.mark.parametrize("depth", [8, 16])
def test_the_transparent_color_of_a_png_has_the_depth_of_the_file(depth: int) -> None:
    samples = of_bits(COFFEE[:20, :20] / 255, depth)
    key = samples[3, 5].astype(int)
    near = samples.copy()
    near[4, 4] = [*key[:2], key[2] + (1 if depth == 8 else 256)]  # of 16 bits, Pillow reads the upper 8
    expected = np.where((near == key).all(axis=-1, keepdims=True), 255, near >> (depth - 8))
    tag = (b"tRNS", struct.pack(">3H", *key))
    assert np.array_equal(load(png(near, tag)).pixels, expected)
    both = load(png(near, gama(0.45455), tag, (b"cICP", bytes([1, 8, 0, 1]))))
    assert (both.pixels[3, 5] == 255).all()
    assert (both.pixels[4, 4] != 255).any()


XMP = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description tiff:Orientation=%s/></x:xmpmeta>'


@pytest.mark.parametrize("quote", [b'"6"', b"'6'"])
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("exif", [None, 1, 3, 6])
def test_only_the_exif_orientation_is_applied(kind: str, exif: int | None, quote: bytes) -> None:
    """CIPA DC-008 defines the orientation in EXIF; browsers and image viewers ignore that of XMP."""
    tags = Image.Exif()
    if exif is not None:
        tags[274] = exif
    packet = XMP % quote
    options = {"exif": tags} if exif is not None else {}
    if kind == "PNG":
        from PIL.PngImagePlugin import PngInfo

        info = PngInfo()
        info.add_itxt("XML:com.adobe.xmp", packet.decode())
        data = encoded(COFFEE, kind, pnginfo=info, **options)
    elif kind == "TIFF":
        data = encoded(COFFEE, kind, tiffinfo={700: packet} | ({274: exif} if exif else {}))
    else:
        data = encoded(COFFEE, kind, xmp=packet, **options)
    found = load(data)
    assert found.size == (COFFEE.shape[:2] if exif == 6 else COFFEE.shape[1::-1])
    assert any("The orientation 6 in the XMP data" in note for note in found.notes) == (exif != 6)
    assert any("EXIF orientation" in note for note in found.notes) == (exif in (3, 6))
