"""Color profiles are converted to sRGB, for image, reference, thumbnails, crops and the data sent to a model."""

import io

import numpy as np
import pytest
import skimage.data
from PIL import Image, ImageCms

from agenticiqa import AgenticIQA
from agenticiqa.programs.images import load
from agenticiqa.programs.page.thumbnails import thumbnail
from support import icc
from support.images import as_gray

COFFEE = np.ascontiguousarray(skimage.data.coffee()[:200, 120:320])
SPACES = {"Adobe RGB": icc.ADOBE_RGB, "Display P3": icc.DISPLAY_P3, "ProPhoto": icc.PRO_PHOTO, "BGR": icc.BGR}
LOSSLESS = {"PNG": {}, "TIFF": {}, "WEBP": {"lossless": True}}
SRGB = ImageCms.createProfile("sRGB")


def encoded(image: Image.Image, kind: str, profile: bytes, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, icc_profile=profile, **options)
    return buffer.getvalue()


def off(pixels: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(pixels.astype(float) - expected).max())


def mean_off(pixels: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(pixels.astype(float) - expected).mean())


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("kind", LOSSLESS)
def test_rgb_is_measured_in_srgb(space: str, kind: str) -> None:
    data = encoded(Image.fromarray(COFFEE), kind, icc.rgb_profile(*SPACES[space]), **LOSSLESS[kind])
    found = load(data)
    assert off(found.pixels, icc.in_srgb(COFFEE, *SPACES[space])) <= 2
    assert mean_off(found.pixels, COFFEE) > 1, "the profile changes something"
    assert found.notes == ("The colors were converted from the profile Made for a test to sRGB for measuring.",)
    sent = Image.open(io.BytesIO(found.data))
    assert np.array_equal(np.asarray(sent), found.pixels), "a model is sent what is measured"
    assert "icc_profile" not in sent.info


@pytest.mark.parametrize("space", ["Adobe RGB", "ProPhoto"])
def test_a_copy_in_another_color_space_has_the_pixels_of_the_original(space: str) -> None:
    copy = encoded(Image.fromarray(icc.from_srgb(COFFEE, *SPACES[space])), "PNG", icc.rgb_profile(*SPACES[space]))
    program = AgenticIQA.from_config()
    assert program(copy, reference=COFFEE).quality_score > 4.8
    assert program(COFFEE, reference=copy).quality_score > 4.8
    shown = np.asarray(Image.open(io.BytesIO(thumbnail(copy, 200))).convert("RGB"))
    assert mean_off(shown, COFFEE) < 1.3 * mean_off(
        np.asarray(Image.open(io.BytesIO(thumbnail(encoded(Image.fromarray(COFFEE), "PNG", b""), 200)))), COFFEE
    )


def test_transparency_is_kept_and_composited_in_srgb() -> None:
    alpha = np.tile(np.linspace(0, 255, 200).astype(np.uint8), (200, 1))
    data = encoded(Image.fromarray(np.dstack([COFFEE, alpha])), "PNG", icc.rgb_profile(*icc.ADOBE_RGB))
    share = alpha[..., None] / 255
    expected = icc.in_srgb(COFFEE, *icc.ADOBE_RGB) * share + 255 * (1 - share)
    assert off(load(data).pixels, expected) <= 2


@pytest.mark.parametrize("mode", ["L", "LA", "I;16"])
def test_gray_is_converted_by_its_profile(mode: str) -> None:
    gray = COFFEE[..., 1]
    image = Image.fromarray(gray.astype(np.uint16) * 257) if mode == "I;16" else Image.fromarray(gray).convert(mode)
    linear = gray / 255  # gamma 1
    expected = 255 * np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    assert off(load(encoded(image, "PNG", icc.gray_profile(1.0))).pixels, as_gray(expected)) <= 2


@pytest.mark.parametrize("kind", ["TIFF", "JPEG"])
def test_cmyk_is_converted_by_its_profile(kind: str) -> None:
    inks = Image.fromarray(np.dstack([COFFEE, COFFEE[..., 0] // 3]), "CMYK")
    data = encoded(inks, kind, icc.cmyk_profile(), **({"quality": 100} if kind == "JPEG" else {}))
    by_lcms = ImageCms.profileToProfile(
        Image.open(io.BytesIO(data)),
        ImageCms.ImageCmsProfile(io.BytesIO(icc.cmyk_profile())),
        SRGB,
        ImageCms.Intent.RELATIVE_COLORIMETRIC,
        "RGB",
        flags=ImageCms.Flags.BLACKPOINTCOMPENSATION,
    )
    found = load(data)
    assert off(found.pixels, np.asarray(by_lcms)) <= 2
    assert mean_off(found.pixels, np.asarray(inks.convert("RGB"))) > 20, "the profile changes much"
    assert found.notes == ("The colors were converted from the profile Made for a test to sRGB for measuring.",)
    if kind == "TIFF":
        assert np.array_equal(load(found.data).pixels, found.pixels)


@pytest.mark.parametrize("mode", ["RGB", "L", "P", "RGBA"])
def test_srgb_is_not_converted(mode: str) -> None:
    image = Image.fromarray(COFFEE).convert(mode)
    found = load(encoded(image, "PNG", ImageCms.ImageCmsProfile(SRGB).tobytes()))
    assert np.array_equal(found.pixels, np.asarray(image.convert("RGB")))
    assert found.notes == ()


@pytest.mark.parametrize(
    ("mode", "profile", "why"),
    [
        ("RGB", b"no profile at all", "The color profile was not used"),
        ("RGB", icc.rgb_profile(*icc.ADOBE_RGB)[:-30], "The color profile was not used"),
        ("RGB", icc.gray_profile(1.8), "it is for GRAY, but the pixels are RGB"),
        ("RGB", icc.cmyk_profile(), "it is for CMYK, but the pixels are RGB"),
        ("L", icc.rgb_profile(*icc.ADOBE_RGB), "it is for RGB, but the pixels are gray"),
        ("CMYK", icc.rgb_profile(*icc.ADOBE_RGB), "it is for RGB, but the pixels are CMYK"),
    ],
)
def test_an_unusable_profile_is_reported_in_a_note(mode: str, profile: bytes, why: str) -> None:
    image = Image.fromarray(COFFEE).convert(mode)
    found = load(encoded(image, "TIFF", profile))
    assert np.array_equal(found.pixels, np.asarray(image.convert("RGB")))
    assert why in " ".join(found.notes)
