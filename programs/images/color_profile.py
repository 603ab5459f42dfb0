"""Convert pixels to sRGB by the ICC profile that came with them: relative colorimetric, with black point compensation.

What a file says of its colors without a profile is in ``coded_color``. Nothing is loaded for an image without a
profile, and one whose profile means sRGB is left as it is.
"""

import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

if TYPE_CHECKING:
    from PIL.ImageCms import ImageCmsTransform

SPACES = {"RGB": "RGB", "GRAY": "L", "CMYK": "CMYK"}  # of profiles, as the mode of the pixels that they are for
SAME = 1  # of 255: a profile that changes no color by more means sRGB
STEPS = np.linspace(0, 255, 9).round().astype(np.uint8)  # of each channel: the colors that this is tried on
LONGEST = 60  # characters of a profile's name in a note


@dataclass(frozen=True)
class Conversion:
    """How pixels of ``mode`` (RGB, L or CMYK) become sRGB, and the note about it; both empty for sRGB itself.

    It has the ``transform`` of a profile, or is done by ``by_code``. Both are ``None``, too, where colors cannot be
    converted, as the note and ``is_doubtful`` then say. The note has words of the profile, which may hold anything.
    """

    mode: str
    transform: "ImageCmsTransform | None" = None
    note: str = ""
    by_code: Callable[[np.ndarray], np.ndarray] | None = None
    is_doubtful: bool = False

    @property
    def changes(self) -> bool:
        """Whether any color is changed."""
        return self.transform is not None or self.by_code is not None

    def apply(self, image: Image.Image) -> Image.Image:
        """The picture, of ``mode``, as sRGB; as it is without a transform."""
        if self.by_code:
            return Image.fromarray(self.by_code(np.asarray(image.convert("RGB"))))
        if self.transform is None:
            return image
        from PIL import ImageCms

        converted = ImageCms.applyTransform(image, self.transform)
        assert converted is not None  # as it is not done in place
        converted.info.pop("icc_profile", None)
        return converted


def of_profile(image: Image.Image) -> Conversion:
    """What the profile of an opened image asks for, if it has one, by the mode that is in the file."""
    is_gray = image.mode[:1] in {"1", "L", "I"} and image.mode != "LAB"
    mode = "CMYK" if image.mode == "CMYK" else "L" if is_gray else "RGB"
    profile = image.info.get("icc_profile")
    if not profile or image.mode in {"LAB", "F"}:
        return Conversion(mode)
    return _conversion(bytes(profile), mode)


@lru_cache(maxsize=16)
def _conversion(profile: bytes, mode: str) -> Conversion:
    from PIL import ImageCms

    try:
        given = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        space = given.profile.xcolor_space.strip()
        name = ImageCms.getProfileDescription(given).strip()[:LONGEST]
        if mode == "L" and space == "RGB" and _conversion(profile, "RGB") == Conversion("RGB"):
            return Conversion(mode)  # a gray copy of a photo often keeps its sRGB
        if SPACES.get(space) != mode:
            raise ValueError(f"it is for {space or 'an unknown color space'}, and the pixels are {_named(mode)}")
        transform = ImageCms.buildTransform(
            given,
            ImageCms.createProfile("sRGB"),
            mode,
            "RGB",
            ImageCms.Intent.RELATIVE_COLORIMETRIC,
            ImageCms.Flags.BLACKPOINTCOMPENSATION,
        )
        found = Conversion(mode, transform, f"The color profile ({name}) was converted to sRGB for measuring.")
        return Conversion(mode) if _changes_nothing(found) else found
    except (ImageCms.PyCMSError, OSError, ValueError, TypeError, AttributeError) as error:
        why = str(error) or type(error).__name__
        used = "an estimate without a profile" if mode == "CMYK" else "sRGB"
        note = f"The color profile was not used ({why[: LONGEST * 2]}): the colors are read as {used}."
        return Conversion(mode, None, note, is_doubtful=True)


def _changes_nothing(conversion: Conversion) -> bool:
    if conversion.mode == "CMYK":
        return False
    channels = len(conversion.mode)
    colors = np.array(list(product(STEPS, repeat=channels)), np.uint8).reshape(1, -1, channels)
    picture = Image.fromarray(colors if channels > 1 else colors[..., 0])
    converted = np.asarray(conversion.apply(picture), np.int16)
    return bool(np.abs(converted - np.asarray(picture.convert("RGB"), np.int16)).max() <= SAME)


def _named(mode: str) -> str:
    return {"L": "gray"}.get(mode, mode)
