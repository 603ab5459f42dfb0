"""Whether an image has one hue at most: gray, or gray toned with one color, as sepia prints and yellowed scans are."""

from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from agenticiqa.programs.tools.numerics.pixels import RGB, Plane
from agenticiqa.programs.tools.statistics.tonal import Tone, tone_of

if TYPE_CHECKING:
    from agenticiqa.programs.images import LoadedImage

Monochrome: TypeAlias = Literal["gray", "toned"]

DEGREE = 5  # of the polynomial that predicts chroma from luma
GRAY_REST, GRAY_CHROMA = 1.5, 8.0  # 8-bit levels: chroma beside the toning, and of the toning, that counts as none
TONED_REST, TONED_SHARE = 6.0, 0.15  # the same for toned images, and its largest share of the chroma


def monochrome(image: RGB) -> Monochrome | None:
    """ "gray", "toned", or ``None`` for an image with colors; uint8 RGB of shape (H, W, 3), any size.

    The chroma of a toned image follows from its luma, so what a polynomial of luma does not predict is near zero. Only
    warm tones (yellow to orange) count as meant: an image that is all blue or green may well have a color cast. On 300
    authentic photos 5 were called monochrome, gray and sepia ones of 300 photos all were.
    """
    return _monochrome(Tone(image))


def monochrome_of(image: "LoadedImage") -> Monochrome | None:
    """``monochrome`` of a loaded image's pixels, computed once per image."""
    return image.memo.once("monochrome", lambda: _monochrome(tone_of(image)))


def _monochrome(tone: Tone) -> Monochrome | None:
    chroma, luma = _chroma(tone), tone.luma.ravel()
    # An image of few blocks would be fitted by the polynomial whatever its colors are.
    toning = _predicted(chroma, luma) if len(luma) > 2 * (DEGREE + 1) else chroma.mean(axis=0)
    rest = _rms(chroma - toning)
    strength = _rms(chroma)
    if rest < GRAY_REST and strength < GRAY_CHROMA:
        return "gray"
    red, yellow = chroma.mean(axis=0)
    warm = yellow > 0 and -0.25 * yellow <= red <= yellow
    return "toned" if warm and rest < TONED_REST and rest < TONED_SHARE * strength else None


def _predicted(chroma: Plane, luma: Plane) -> Plane:
    """What the best polynomial of luma says of the chroma, (N, 2).

    By the normal equations: least squares over all blocks would start the threads of the linear algebra library, which
    then wait busily for more, on every core.
    """
    middle, half = (luma.max() + luma.min()) / 2, max(np.ptp(luma) / 2, 1e-9)
    powers = np.polynomial.legendre.legvander((luma - middle) / half, DEGREE)
    products = np.einsum("ni,nj->ij", powers, powers)
    weights = np.linalg.lstsq(products, np.einsum("ni,nc->ic", powers, chroma), rcond=None)[0]
    found: Plane = np.einsum("ni,ic->nc", powers, weights)
    return found


def _chroma(tone: Tone) -> Plane:
    """Red minus green, and yellow minus blue, of each block, (N, 2)."""
    red, green, blue = tone.rgb.reshape(-1, 3).T
    return np.stack([red - green, (red + green) / 2 - blue], axis=1)


def _rms(vectors: Plane) -> float:
    return float(np.sqrt((vectors**2).sum(axis=1).mean()))
