"""Apply styles, the intentional effects of photographers, to the pixels of a good photo without loss.

A style is not damage: a black and white or foggy picture has the same quality. Each function of ``STYLES`` takes an
image (H, W, 3), uint8 RGB, and a generator that draws strength and colors. It returns an image of the same shape. The
same generator gives the same pixels. Styles have their usual strength; stronger ones (grain that hides detail, fog that
hides the subject) would be damage.

Saliency finds the outline of the subject; if nothing is salient, the middle of the image is used.
"""

import colorsys
import math
from collections.abc import Callable

import numpy as np
import scipy
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from agenticiqa.programs.tools.numerics.pixels import LUMA_WEIGHTS, RGB
from agenticiqa.programs.tools.saliency import saliency, subject_box

Values = NDArray[np.float64]
Generator = np.random.Generator
Style = Callable[[RGB, Generator], RGB]

SOFT_OUTLINE = 2.0  # pixels: standard deviation of a mask's border
WORDS = ("SUMMER", "Hello", "Good morning", "SALE -30%", "@photo.studio", "Visit us today", "2024", "Quiet places")


def black_and_white(image: RGB, rng: Generator) -> RGB:
    """Return a gray mix of the channels, as black and white film with a colored filter gives, with more contrast."""
    mix = rng.dirichlet([4, 6, 2])
    return _bytes(_contrast(np.repeat((image @ mix)[..., None], 3, axis=2), rng.uniform(0, 0.35)))


def sepia(image: RGB, rng: Generator) -> RGB:
    """Return a gray image toned brown."""
    gray = _luma(image)[..., None] / 255
    strength = rng.uniform(0.6, 1.2)
    return _bytes(255 * gray ** (1 + strength * np.array([-0.18, 0.02, 0.3])))


def duotone(image: RGB, rng: Generator) -> RGB:
    """Return a gray image in two colors: a dark one for shadows, a bright one for highlights."""
    dark = np.array(colorsys.hsv_to_rgb(rng.random(), rng.uniform(0.5, 0.9), rng.uniform(0.1, 0.3)))
    bright = np.array(colorsys.hsv_to_rgb(rng.random(), rng.uniform(0.1, 0.5), rng.uniform(0.9, 1)))
    gray = _luma(image)[..., None] / 255
    return _bytes(255 * (dark + (bright - dark) * _contrast(255 * gray, 0.3) / 255))


def color_grade(image: RGB, rng: Generator) -> RGB:
    """Shift shadows toward teal and highlights toward orange, as in films."""
    gray = _luma(image)[..., None] / 255
    strength = rng.uniform(10, 22)
    return _bytes(image + strength * ((1 - gray) * np.array([-1, 0.25, 0.7]) + gray * np.array([0.9, 0.25, -1])))


def matte(image: RGB, rng: Generator) -> RGB:
    """Lift blacks, lower whites and mute colors a little, as in faded prints."""
    low, high = rng.uniform(25, 50), rng.uniform(225, 245)
    muted = _saturated(image, rng.uniform(0.7, 0.9))
    return _bytes(low + (high - low) * _contrast(muted, 0.3) / 255)


def high_key(image: RGB, rng: Generator) -> RGB:
    """Return a bright image with few shadows and no new white pixels."""
    gamma = rng.uniform(0.5, 0.7)
    return _bytes(_saturated(255 * (0.1 + 0.9 * (image / 255) ** gamma), 0.9))


def low_key(image: RGB, rng: Generator) -> RGB:
    """Return a dark image that is lit near its middle: highlights stay, the rest darkens."""
    lit = _distance(image, rng.uniform(0.35, 0.65), rng.uniform(0.35, 0.65))
    light = 0.2 + 0.8 * np.exp(-((lit / rng.uniform(0.5, 0.75)) ** 2))
    return _bytes(255 * (image / 255) ** rng.uniform(1.3, 1.7) * light[..., None])


def vignette(image: RGB, rng: Generator) -> RGB:
    """Darken the corners."""
    fall = np.clip(_distance(image, 0.5, 0.5) / math.sqrt(0.5), 0, 1) ** rng.uniform(2, 4)
    return _bytes(image * (1 - rng.uniform(0.4, 0.75) * fall[..., None]))


def fog(image: RGB, rng: Generator) -> RGB:
    """Add a veil of pale gray, thicker toward the top; the near ground stays clear."""
    height, width = image.shape[:2]
    thick = np.linspace(rng.uniform(0.5, 0.75), rng.uniform(0.05, 0.2), height)[:, None]
    clouds = Image.fromarray(rng.standard_normal((6, 8)).astype(np.float32)).resize(
        (width, height), Image.Resampling.BICUBIC
    )
    veil = np.clip(thick + 0.06 * np.asarray(clouds), 0, 0.85)[..., None]
    return _bytes(image * (1 - veil) + veil * np.array([205, 210, 215]) * rng.uniform(0.95, 1.1))


def film_grain(image: RGB, rng: Generator) -> RGB:
    """Add gray grain about 1.5 pixels wide, strongest in the middle tones."""
    grain = scipy.ndimage.gaussian_filter(rng.standard_normal(image.shape[:2]), rng.uniform(0.5, 0.9))
    gray = _luma(image) / 255
    strength = rng.uniform(5, 9) * (0.4 + 2.4 * gray * (1 - gray))
    return _bytes(_contrast(image, 0.2) + (strength * grain / grain.std())[..., None])


def hdr_look(image: RGB, rng: Generator) -> RGB:
    """Raise local contrast, open shadows, hold highlights and strengthen colors."""
    gray = _luma(image)
    around = scipy.ndimage.gaussian_filter(gray, min(image.shape[:2]) / 20)
    even = gray + rng.uniform(0.5, 1.0) * (gray - around) + rng.uniform(0.2, 0.4) * (128 - around)
    return _bytes(_saturated(image * (np.clip(even, 2, 255) / np.maximum(gray, 2))[..., None], rng.uniform(1.1, 1.4)))


def shallow_focus(image: RGB, rng: Generator) -> RGB:
    """Blur the background like a lens; the subject stays sharp."""
    mask = _subject(image)
    return _bytes(mask * image + (1 - mask) * _out_of_focus(image, mask, rng.uniform(0.008, 0.02)))


def bokeh(image: RGB, rng: Generator) -> RGB:
    """Blur the background strongly and add bright disks of light to it."""
    mask = _subject(image)
    height, width = image.shape[:2]
    far = _out_of_focus(image, mask, rng.uniform(0.02, 0.035))
    down, across = np.mgrid[:height, :width]
    for _ in range(rng.integers(8, 20)):
        radius = min(height, width) * rng.uniform(0.02, 0.05)
        away = np.hypot(down - rng.uniform(0, height), across - rng.uniform(0, width))
        light = np.array(colorsys.hsv_to_rgb(rng.uniform(0.05, 0.17), rng.uniform(0, 0.5), 1))
        disk = rng.uniform(0.25, 0.6) * np.clip(radius - away + 0.5, 0, 1)[..., None]
        far += disk * (255 * light - far)
    return _bytes(mask * image + (1 - mask) * far)


def cut_out(image: RGB, rng: Generator) -> RGB:
    """Return the subject alone on white."""
    mask = _subject(image)
    return _bytes(mask * image + (1 - mask) * rng.uniform(250, 255.4))


def letterbox(image: RGB, rng: Generator) -> RGB:
    """Add black bars at the top and bottom, as for a wide film."""
    bar = round(rng.uniform(0.08, 0.15) * len(image))
    boxed = image.copy()
    boxed[:bar], boxed[len(image) - bar :] = 0, 0
    return boxed


def border(image: RGB, rng: Generator) -> RGB:
    """Add a frame of one color around the image."""
    color = rng.choice([(255, 255, 255), (0, 0, 0), tuple(rng.integers(0, 256, 3))])
    side = round(rng.uniform(0.03, 0.1) * min(image.shape[:2]))
    framed = np.full_like(image, np.array(color))
    framed[side : len(image) - side, side : image.shape[1] - side] = _scaled(
        image, len(image) - 2 * side, image.shape[1] - 2 * side
    )
    return framed


def text_overlay(image: RGB, rng: Generator) -> RGB:
    """Add a few white or dark words, with a shadow or on a bar."""
    height, width = image.shape[:2]
    picture = Image.fromarray(image)
    draw = ImageDraw.Draw(picture, "RGBA")
    paper, ink = ((20, 20, 20), (255, 255, 255)) if rng.random() < 0.7 else ((245, 245, 245), (25, 25, 25))
    font = ImageFont.load_default(size=max(round(rng.uniform(0.06, 0.12) * height), 8))
    place = (round(rng.uniform(0.04, 0.2) * width), round(rng.uniform(0.05, 0.8) * height))
    text = str(rng.choice(WORDS))
    if rng.random() < 0.5:
        left, top, right, bottom = draw.textbbox(place, text, font)
        draw.rectangle((left - 8, top - 6, right + 8, bottom + 6), fill=(*paper, 170))
    draw.text((place[0] + 2, place[1] + 2), text, font=font, fill=(*paper, 180))
    draw.text(place, text, font=font, fill=(*ink, 255))
    return np.asarray(picture)


def pixel_art(image: RGB, rng: Generator) -> RGB:
    """Return squares in a few colors, as in old games."""
    height, width = image.shape[:2]
    side = max(round(max(height, width) / rng.uniform(64, 128)), 2)
    small = Image.fromarray(_scaled(image, math.ceil(height / side), math.ceil(width / side)))
    few = small.quantize(int(rng.integers(12, 33)), dither=Image.Dither.NONE).convert("RGB")
    return np.asarray(few).repeat(side, axis=0).repeat(side, axis=1)[:height, :width]


STYLES: dict[str, Style] = {
    "black and white": black_and_white,
    "sepia": sepia,
    "duotone": duotone,
    "color grade": color_grade,
    "matte": matte,
    "high key": high_key,
    "low key": low_key,
    "vignette": vignette,
    "fog": fog,
    "film grain": film_grain,
    "HDR look": hdr_look,
    "shallow focus": shallow_focus,
    "bokeh": bokeh,
    "cut-out on white": cut_out,
    "letterbox": letterbox,
    "border": border,
    "text overlay": text_overlay,
    "pixel art": pixel_art,
}
"""The styles by name."""
ONE_HUE = ("black and white", "sepia", "duotone")
"""Styles without colors that could be distorted."""


def _bytes(values: Values) -> RGB:
    return np.rint(np.clip(values, 0, 255)).astype(np.uint8)


def _luma(image: RGB | Values) -> Values:
    gray: Values = image @ np.asarray(LUMA_WEIGHTS, float)
    return gray


def _contrast(values: RGB | Values, strength: float) -> Values:
    """Return values in 0..255 changed by an S-shaped curve; strength 0 changes nothing, 1 is a smooth step."""
    share = np.clip(np.asarray(values, float) / 255, 0, 1)
    return 255 * ((1 - strength) * share + strength * share * share * (3 - 2 * share))


def _saturated(image: RGB | Values, factor: float) -> Values:
    gray = _luma(image)[..., None]
    return gray + factor * (image - gray)


def _distance(image: RGB, down: float, across: float) -> Values:
    """Return the distances of all pixels from a point (H, W), in shares of the height and width."""
    height, width = image.shape[:2]
    rows, columns = (np.arange(side) / side for side in (height, width))
    return np.hypot(rows[:, None] - down, columns - across)


def _subject(image: RGB) -> Values:
    """Return the share of the subject in each pixel (H, W, 1); an ellipse in the middle if nothing is salient."""
    height, width = image.shape[:2]
    seen = saliency(image)
    if subject_box(seen, (width, height)) is None:
        mask = _distance(image, 0.5, 0.5) < 0.35
    else:
        full = Image.fromarray(seen.copy()).resize((width, height), Image.Resampling.BICUBIC)
        mask = np.asarray(full) > 0.5
    return scipy.ndimage.gaussian_filter(mask.astype(float), SOFT_OUTLINE)[..., None]


def _out_of_focus(image: RGB, mask: Values, share: float) -> Values:
    """Return the image blurred by a disk of a radius relative to the longer side, without the subject's colors."""
    radius = max(share * max(image.shape[:2]), 2)
    reach = math.ceil(radius)
    disk = np.hypot(*np.mgrid[-reach : reach + 1, -reach : reach + 1]) <= radius
    weight = np.concatenate([image * (1 - mask), 1 - mask], axis=2).astype(np.float32) + 1e-4
    blurred = np.stack([_disk_mean(plane, disk) for plane in np.moveaxis(weight, -1, 0)], axis=-1)
    return blurred[..., :3] / np.maximum(blurred[..., 3:], 1e-4)


def _disk_mean(plane: Values, disk: NDArray[np.bool_]) -> Values:
    reach = len(disk) // 2
    padded = np.pad(plane, reach, mode="edge")
    mean: Values = scipy.signal.fftconvolve(padded, (disk / disk.sum()).astype(np.float32), mode="valid")
    return mean


def _scaled(image: RGB, height: int, width: int) -> RGB:
    return np.asarray(Image.fromarray(image).resize((width, height), Image.Resampling.LANCZOS))
