"""Draw pictures that are not photos from a seed, for ``outside_photos`` to fit and test its thresholds on.

Each function of ``KINDS`` takes a random generator and draws one picture; the same seed gives the same pixels with the
same releases of Pillow, numpy and matplotlib.
"""

import io
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
from matplotlib import get_data_path
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.random import Generator
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter, ImageFont
from scipy.ndimage import gaussian_filter

from agenticiqa.programs.tools.numerics.pixels import RGB

Size = tuple[int, int]  # width, height
Color = tuple[int, int, int]

FONTS = ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf", "DejaVuSerif.ttf", "DejaVuSansMono.ttf")
SIZES: tuple[Size, ...] = ((320, 240), (512, 384), (640, 480), (480, 640), (800, 600), (1024, 768))
LETTERS = "etaoinshrdlucmfwypvbgkjqxz"
MARGIN = 0.08  # margin as a share of the page's side


def plot(random: Generator) -> RGB:
    """Draw a chart with matplotlib: lines, bars, points, a pie, an image or contours."""
    width, height = _size(random)
    figure = Figure(
        figsize=(width / 100, height / 100), dpi=100, facecolor=random.choice(["white", "white", "#eeeeee"])
    )
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    kind, count = random.integers(6), int(random.integers(3, 30))
    values = random.normal(size=(4, count)).cumsum(axis=1)
    if kind == 0:
        axes.plot(values.T)
        axes.grid(bool(random.integers(2)))
    elif kind == 1:
        axes.bar(np.arange(count), np.abs(values[0]))
    elif kind == 2:
        x, y = random.normal(size=(2, 20 * count))
        axes.scatter(x, y, s=random.integers(4, 60), alpha=0.6)
    elif kind == 3:
        axes.pie(np.abs(values[0, :8]) + 0.1, labels=[_word(random) for _ in values[0, :8]])
    elif kind == 4:
        axes.imshow(gaussian_filter(random.normal(size=(30, 40)), random.uniform(0.3, 4)))
    else:
        axes.contourf(gaussian_filter(random.normal(size=(40, 60)), 5))
    axes.set_title(_words(random, 4))
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def diagram(random: Generator) -> RGB:
    """Draw boxes with text, joined by lines."""
    image, draw, size = _sheet(random, _pale(random))
    boxes = []
    for _ in range(random.integers(4, 14)):
        left, top = (int(random.uniform(0.02, 0.8) * side) for side in size)
        box = (left, top, left + int(random.uniform(60, 180)), top + int(random.uniform(25, 80)))
        boxes.append(box)
        draw.line([_center(boxes[random.integers(len(boxes))]), _center(box)], fill=_dark(random), width=2)
    for box in boxes:
        draw.rounded_rectangle(box, 6, fill=_pale(random), outline=_dark(random), width=2)
        draw.text((box[0] + 6, box[1] + 6), _words(random, 2), fill=_dark(random), font=_font(random, 13))
    return np.array(image)


def cartoon(random: Generator) -> RGB:
    """Draw filled shapes with outlines."""
    image, draw, (width, height) = _sheet(random, _color(random))
    draw.rectangle((0, height * 0.6, width, height), fill=_color(random))
    for _ in range(random.integers(8, 40)):
        x, y, radius = random.uniform(0, width), random.uniform(0, height), random.uniform(8, 0.25 * height)
        outline, thickness = ((0, 0, 0), int(random.integers(1, 5))) if random.random() < 0.7 else (None, 0)
        if random.random() < 0.5:
            box = (x - radius, y - radius * random.uniform(0.4, 1), x + radius, y + radius * random.uniform(0.4, 1))
            draw.ellipse(box, fill=_color(random), outline=outline, width=thickness)
        else:
            angles = np.sort(random.uniform(0, 2 * math.pi, random.integers(3, 8)))
            points = [(x + radius * math.cos(angle), y + radius * math.sin(angle)) for angle in angles]
            draw.polygon(points, fill=_color(random), outline=outline, width=max(thickness, 1))
    return np.array(_smoothed(image, random))


def line_drawing(random: Generator) -> RGB:
    """Draw curves of a pen or pencil on paper."""
    image, draw, (width, height) = _sheet(random, _pale(random))
    ink = _dark(random)
    for _ in range(random.integers(15, 90)):
        start = random.uniform((0, 0), (width, height))
        turns = np.cumsum(np.cumsum(random.normal(0, random.uniform(0.02, 0.15), 60)))
        steps = random.uniform(2, 6) * np.stack([np.cos(turns), np.sin(turns)], axis=1)
        points = [(float(x), float(y)) for x, y in start + steps.cumsum(axis=0)]
        draw.line(points, fill=ink, width=int(random.integers(1, 4)), joint="curve")
    return np.array(_smoothed(image, random))


def gradient(random: Generator) -> RGB:
    """Draw a smooth gradient between two colors, linear or radial."""
    width, height = _size(random)
    y, x = np.mgrid[0:height, 0:width].astype(float)
    angle, first, last = random.uniform(0, 2 * math.pi), *(np.array(_color(random), float) for _ in range(2))
    along = (x - width / 2) * math.cos(angle) + (y - height / 2) * math.sin(angle)
    if random.random() < 0.4:
        along = np.hypot(x - random.uniform(0, width), y - random.uniform(0, height))
    share = (along - along.min()) / (along.max() - along.min())
    return _bytes(first + share[..., None] * (last - first))


def qr_code(random: Generator) -> RGB:
    """Draw the modules of a QR code, with three finder patterns."""
    count, side = int(random.choice([21, 25, 29, 37])), int(random.integers(5, 14))
    modules = random.random((count, count)) < 0.5
    finder = np.pad(np.pad(np.ones((3, 3), bool), 1, constant_values=False), 1, constant_values=True)
    for top, left in ((0, 0), (0, count - 7), (count - 7, 0)):
        modules[top : top + 7, left : left + 7] = finder
    plane = np.pad(np.kron(~modules, np.ones((side, side), bool)), 4 * side, constant_values=True)
    return _bytes(np.where(plane[..., None], (255, 255, 255), _dark(random)))


def window(random: Generator) -> RGB:
    """Draw the window of a program or a web page: bars, buttons, lists and text, sometimes with a picture."""
    dark = random.random() < 0.35
    image, draw, (width, height) = _sheet(random, _dark(random) if dark else _pale(random))
    ink, accent = (_pale(random) if dark else _dark(random)), _color(random)
    draw.rectangle((0, 0, width, 28), fill=accent)
    draw.text((10, 6), _words(random, 3), fill=_pale(random), font=_font(random, 13))
    side = int(width * random.uniform(0.15, 0.3))
    draw.rectangle((0, 28, side, height), fill=_dark(random) if dark else _pale(random))
    for top in range(40, height - 20, 24):
        draw.text((10, top), _words(random, 2), fill=ink, font=_font(random, 12))
    for top in range(44, height - 40, int(random.integers(18, 40))):
        kind, left = random.random(), side + 16
        if kind < 0.15:
            draw.rounded_rectangle((left, top, left + 90, top + 22), 4, fill=accent)
            draw.text((left + 8, top + 4), _word(random), fill=_pale(random), font=_font(random, 12))
        elif kind < 0.25:
            draw.rectangle((left, top, left + 160, top + 18), outline=ink)
        else:
            draw.text((left, top), _words(random, int(random.integers(3, 9))), fill=ink, font=_font(random, 13))
    if random.random() < 0.3:
        inner = Image.fromarray(cartoon(random)).resize((width // 4, height // 4))
        image.paste(inner, (width - width // 4 - 10, 50))
    return np.array(image)


def terminal(random: Generator) -> RGB:
    """Draw lines of monospaced text on a dark ground."""
    red, green, blue = random.integers(0, 45, 3).tolist()
    image, draw, (_, height) = _sheet(random, (red, green, blue))
    font = _font(random, 13, "DejaVuSansMono.ttf")
    for top in range(4, height, 17):
        color = _pale(random) if random.random() < 0.7 else _color(random)
        draw.text((6, top), _words(random, int(random.integers(0, 12))), fill=color, font=font)
    return np.array(image)


def page(random: Generator) -> RGB:
    """Draw a page of text, with headings, columns or a table."""
    width, height = [(600, 800), (850, 1100), (480, 640), (800, 600), (640, 260)][random.integers(5)]
    paper = tuple(int(level) for level in 255 - random.integers(0, 12) * np.array([0, 1, 2]))
    image = Image.new("RGB", (width, height), paper)
    draw, size, ink = ImageDraw.Draw(image), int(random.integers(10, 24)), tuple(random.integers(0, 60, 3).tolist())
    font, columns = _font(random, size), int(random.integers(1, 3))
    for column in range(columns):
        left = int(width * (MARGIN + column * (1 - MARGIN) / columns))
        right = int(left + width * (1 - 2 * MARGIN) / columns) - 10
        for top in range(int(height * MARGIN), int(height * (1 - MARGIN)), int(size * 1.5)):
            if random.random() < 0.1:
                continue
            text = _words(random, 24)
            while text and draw.textlength(text, font) > right - left:
                text = text[:-2]
            draw.text((left, top), text, fill=ink, font=font)
    if random.random() < 0.25:
        for line in np.linspace(height * 0.4, height * 0.7, 6):
            draw.line((width * MARGIN, line, width * (1 - MARGIN), line), fill=ink)
    return np.array(image)


def scan(random: Generator) -> RGB:
    """Return a page under uneven light, turned a little, soft, with noise, in gray or on yellowed paper."""
    image = Image.fromarray(page(random))
    image = image.rotate(random.normal(0, 2), Image.Resampling.BICUBIC, fillcolor=(220, 220, 220))
    blurred = np.asarray(image.filter(ImageFilter.GaussianBlur(random.uniform(0, 1.2))), float)
    height, width = blurred.shape[:2]
    y, x = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
    (slope_x, slope_y), dark = random.normal(0, 0.2, 2).tolist(), random.uniform(0, 0.3)
    light = np.clip(random.uniform(0.65, 1) + slope_x * x + slope_y * y - dark * (x**2 + y**2) / 2, 0.15, 1.05)
    tint = np.array([1, random.uniform(0.92, 1), random.uniform(0.75, 1)]) if random.random() < 0.5 else np.ones(3)
    return _bytes(blurred * light[..., None] * tint + random.normal(0, random.uniform(0.5, 5), (height, width, 1)))


def radiograph(random: Generator) -> RGB:
    """Draw soft tissue and bones as in an X-ray: gray, smooth, bright where dense, dark beside the body."""
    width, height = _size(random)
    y, x = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
    body = np.clip(1 - (x / random.uniform(0.7, 1.1)) ** 2 - (y / random.uniform(0.9, 1.6)) ** 2, 0, None) ** 0.5
    for side in (-1, 1):
        lung = np.clip(1 - ((x - side * 0.4) / 0.28) ** 2 - ((y + 0.05) / 0.6) ** 2, 0, None)
        body -= random.uniform(0.2, 0.7) * lung**0.5
    for rib in np.arange(-0.8, 0.8, random.uniform(0.12, 0.3)):
        body += random.uniform(0.05, 0.15) * np.exp(-(((y - rib - random.uniform(0.1, 0.4) * x**2) / 0.035) ** 2))
    body += random.uniform(0.1, 0.5) * np.exp(-((x / 0.08) ** 2))
    plane = gaussian_filter(body, random.uniform(0.5, 3)) + random.normal(0, random.uniform(0.003, 0.03), body.shape)
    levels = np.interp(plane, (0, np.percentile(plane, 99)), (0, random.uniform(180, 255)))
    return _bytes(levels[..., None].repeat(3, axis=2))


def slice_of_body(random: Generator) -> RGB:
    """Draw ellipses within an ellipse on black, as in computed tomography and magnetic resonance imaging."""
    side = int(random.integers(128, 513))
    y, x = np.mgrid[-1 : 1 : side * 1j, -1 : 1 : side * 1j]
    plane = np.zeros((side, side))
    for index in range(random.integers(6, 16)):
        center, extent, angle = random.normal(0, 0.25, 2), random.uniform(0.05, 0.35, 2), random.uniform(0, math.pi)
        if index == 0:
            center, extent = np.zeros(2), random.uniform(0.6, 0.9, 2)
        along = (x - center[0]) * math.cos(angle) + (y - center[1]) * math.sin(angle)
        across = (y - center[1]) * math.cos(angle) - (x - center[0]) * math.sin(angle)
        inside = (along / extent[0]) ** 2 + (across / extent[1]) ** 2 < 1
        darkest, brightest = (-40, 60) if index else (60, 130)
        plane[inside] += random.uniform(darkest, brightest)
    texture = gaussian_filter(random.normal(0, 60, plane.shape), 2) * (plane > 0)
    plane = gaussian_filter(plane + texture, random.uniform(0.5, 1.5)) + random.normal(0, 4, plane.shape)
    return _bytes(plane[..., None].repeat(3, axis=2))


def stars(random: Generator) -> RGB:
    """Draw points and smudges of light on black."""
    width, height = _size(random)
    plane = np.zeros((height, width, 3))
    for _ in range(random.integers(60, 900)):
        x, y = random.integers(2, width - 2), random.integers(2, height - 2)
        plane[y, x] += random.exponential(600) * random.uniform(0.6, 1, 3)
    glow = gaussian_filter(plane, (random.uniform(0.6, 1.6),) * 2 + (0,)) * 3
    for _ in range(random.integers(0, 5)):
        smudge = np.zeros_like(plane)
        smudge[random.integers(height), random.integers(width)] = random.uniform(2e4, 2e5) * random.uniform(0.3, 1, 3)
        glow += gaussian_filter(smudge, (random.uniform(4, 40),) * 2 + (0,))
    return _bytes(glow + random.uniform(0, 20) + random.normal(0, random.uniform(1, 6), plane.shape))


def cells(random: Generator) -> RGB:
    """Draw stained tissue, or cells that glow on black."""
    width, height = _size(random)
    glowing = random.random() < 0.5
    ground = np.zeros(3) if glowing else np.array([235.0, random.uniform(190, 225), 230.0])
    plane = np.broadcast_to(ground, (height, width, 3)).copy()
    dye = random.uniform(0, 255, 3) if glowing else np.array([random.uniform(70, 140), 50.0, random.uniform(110, 170)])
    for _ in range(random.integers(30, 180)):
        extent, angle = random.uniform(4, 18, 2), random.uniform(0, math.pi)
        top, left = int(random.integers(height)), int(random.integers(width))
        part = plane[top : top + 50, left : left + 50]
        y, x = np.mgrid[-25 : part.shape[0] - 25, -25 : part.shape[1] - 25].astype(float)
        along, across = x * math.cos(angle) + y * math.sin(angle), y * math.cos(angle) - x * math.sin(angle)
        inside = np.exp(-(((along / extent[0]) ** 2 + (across / extent[1]) ** 2) ** 2))[..., None]
        part += inside * (dye - part) * random.uniform(0.4, 1)
    texture = gaussian_filter(random.normal(0, 1, (height, width, 1)), (2, 2, 0)) * random.uniform(5, 50)
    return _bytes(gaussian_filter(plane + texture, (0.8, 0.8, 0)) + random.normal(0, 3, plane.shape))


KINDS: dict[str, Callable[[Generator], RGB]] = {
    draw.__name__: draw
    for draw in (
        plot, diagram, cartoon, line_drawing, gradient, qr_code, window, terminal,
        page, scan, radiograph, slice_of_body, stars, cells,
    )
}  # fmt: skip


def drawn(kind: str, seed: int) -> RGB:
    """Draw a picture of a kind; half of them are saved as JPEG of quality 60 to 95."""
    random = np.random.default_rng([list(KINDS).index(kind), seed])
    pixels = KINDS[kind](random)
    if random.random() < 0.5:
        return pixels
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=int(random.integers(60, 96)))
    return np.asarray(Image.open(file))


def _size(random: Generator) -> Size:
    return SIZES[random.integers(len(SIZES))]


def _sheet(random: Generator, ground: Color) -> tuple[Image.Image, ImageDraw.ImageDraw, Size]:
    image = Image.new("RGB", _size(random), ground)
    return image, ImageDraw.Draw(image), image.size


def _smoothed(image: Image.Image, random: Generator) -> Image.Image:
    """Smooth the edges of two images in three, as most programs do."""
    return image.filter(ImageFilter.GaussianBlur(random.uniform(0.4, 0.9))) if random.random() < 0.67 else image


def _color(random: Generator) -> Color:
    return tuple(random.integers(0, 256, 3).tolist())


def _pale(random: Generator) -> Color:
    return tuple(random.integers(215, 256, 3).tolist()) if random.random() < 0.6 else (255, 255, 255)


def _dark(random: Generator) -> Color:
    return tuple(random.integers(0, 80, 3).tolist())


def _word(random: Generator) -> str:
    shares = 1 / np.arange(1, len(LETTERS) + 1)
    return "".join(random.choice(list(LETTERS), random.integers(2, 9), p=shares / shares.sum()))


def _words(random: Generator, count: int) -> str:
    return " ".join(_word(random) for _ in range(count))


def _center(box: tuple[int, int, int, int]) -> tuple[int, int]:
    return (box[0] + box[2]) // 2, (box[1] + box[3]) // 2


def _font(random: Generator, size: int, name: str = "") -> ImageFont.FreeTypeFont:
    return _loaded_font(name or FONTS[random.integers(len(FONTS))], size)


@cache
def _loaded_font(name: str, size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(str(Path(get_data_path()) / "fonts/ttf" / name), size)


def _bytes(plane: NDArray[np.floating]) -> RGB:
    return np.clip(np.rint(plane), 0, 255).astype(np.uint8)
