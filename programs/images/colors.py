"""Convert the colors of a file to sRGB: by its ICC profile, by code points (cICP of PNG, nclx of AVIF, HEIC) or gAMA.

An ICC profile is applied with relative colorimetric intent and black point compensation; one of sRGB changes nothing.
Code points are those of ITU-T H.273. HDR, PQ and HLG of ITU-R BT.2100, becomes SDR: light of 203 cd/m2, the reference
white of ITU-R BT.2408, is white, and brighter light is clipped. The precedence is that of PNG, third edition, 13.14.
"""

import io
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from agenticiqa.configs.user_files import MOST_PLAIN_BYTES
from agenticiqa.programs.images.jpeg2000 import read_boxes

if TYPE_CHECKING:
    from PIL.ImageCms import ImageCmsTransform

Values = NDArray[np.float32]

REFERENCE_WHITE = 203.0  # luminance in cd/m2
HLG_PEAK, HLG_GAMMA = 1000.0, 1.2  # peak of the nominal display in cd/m2 and exponent of its OOTF (BT.2100, table 5)
UNSPECIFIED = 2
SRGB_LIKE = {1, UNSPECIFIED, 6, 13, 14, 15}  # transfer characteristics that viewers show as they do sRGB
HDR = {16: "PQ", 18: "HLG"}
WHITE = (0.3127, 0.3290)  # chromaticity of D65
PRIMARIES = {  # chromaticities (x, y) of red, green and blue
    1: ((0.640, 0.330), (0.300, 0.600), (0.150, 0.060)),
    9: ((0.708, 0.292), (0.170, 0.797), (0.131, 0.046)),
    12: ((0.680, 0.320), (0.265, 0.690), (0.150, 0.060)),
}
NAMES = {1: "BT.709", 9: "BT.2020", 12: "Display P3"}
USUAL_GAMMA, GAMMA_SLACK = 1 / 2.2, 0.05  # the gamma of sRGB; a gAMA within 5 % of it counts as sRGB, as in libpng
SRGB_CHROMATICITIES = (0.3127, 0.329, 0.64, 0.33, 0.3, 0.6, 0.15, 0.06)
SAME_POINT = 0.005  # tolerance of x and y
BAND = 1_000_000  # pixels that are converted at a time
SPACES = {"RGB": "RGB", "GRAY": "L", "CMYK": "CMYK"}  # Pillow mode of each ICC color space
SHOWN = {"L": "gray"}  # names of modes in messages
SAME = 1  # levels of 255; the largest change by an ICC profile that counts as sRGB
STEPS = np.linspace(0, 255, 9).round().astype(np.uint8)  # sample values of each channel, for this comparison
LONGEST = 60  # characters of an ICC profile's name in a note


@dataclass(frozen=True)
class ByCode:
    """A conversion to sRGB by a transfer function and primaries of H.273, or (``gamma``) by a power function."""

    transfer: int
    primaries: int = 1
    gamma: float = 0.0

    def __call__(self, samples: NDArray[Any]) -> NDArray[np.uint8]:
        """Return 8-bit sRGB of samples (H, W, 3), uint8 or uint16."""
        top = np.iinfo(samples.dtype).max
        light = self._light(np.linspace(0, 1, top + 1)).astype(np.float32)
        to_xyz = _to_xyz(self.primaries)
        to_srgb = (np.linalg.inv(_to_xyz(1)) @ to_xyz).T.astype(np.float32)
        result = np.empty(samples.shape, np.uint8)
        rows = max(1, BAND // samples.shape[1])
        for start in range(0, len(samples), rows):
            linear = light[samples[start : start + rows]]
            if HDR.get(self.transfer) == "HLG":  # the OOTF, from scene light to display light
                luminance = np.maximum(linear @ to_xyz[1].astype(np.float32), 1e-6)
                linear *= luminance[..., None] ** (HLG_GAMMA - 1) * np.float32(HLG_PEAK / REFERENCE_WHITE)
            if self.primaries != 1:
                linear = linear @ to_srgb
            result[start : start + rows] = np.rint(255 * _srgb_signal(np.clip(linear, 0, 1)))
        return result

    def _light(self, signal: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the linear light of a signal of 0..1, where 1 is white; for HLG the light of the scene."""
        if self.gamma:
            return signal ** (1 / self.gamma)
        if self.transfer == 16:  # SMPTE ST 2084, BT.2100 table 4
            root = signal ** (32 / 2523)
            light = np.maximum(root - 0.8359375, 0) / (18.8515625 - 18.6875 * root)
            return light ** (16384 / 2610) * (10_000 / REFERENCE_WHITE)
        if self.transfer == 18:  # BT.2100 table 5
            a = 0.17883277
            b, c = 1 - 4 * a, 0.5 - a * np.log(4 * a)
            return np.where(signal <= 0.5, signal**2 / 3, (np.exp((signal - c) / a) + b) / 12)
        if self.transfer in POWERS:
            return signal ** POWERS[self.transfer]
        return np.where(signal <= 0.04045, signal / 12.92, ((signal + 0.055) / 1.055) ** 2.4)


POWERS = {4: 2.2, 5: 2.8, 8: 1.0}
KNOWN = {*SRGB_LIKE, *POWERS, *HDR}


@dataclass(frozen=True)
class Conversion:
    """A conversion of pixels of ``mode`` (RGB, L or CMYK) to sRGB, and its note; both empty for sRGB itself.

    It uses the ``transform`` of an ICC profile, or ``by_code``. Both are also ``None`` for colors without a conversion.
    Then ``is_doubtful`` is true, and the note has the reason. The note quotes the ICC profile, which is untrusted text.
    """

    mode: str
    transform: "ImageCmsTransform | None" = None
    note: str = ""
    by_code: Callable[[np.ndarray], np.ndarray] | None = None
    is_doubtful: bool = False

    @property
    def changes(self) -> bool:
        """Return whether any color is changed."""
        return self.transform is not None or self.by_code is not None

    def apply(self, image: Image.Image) -> Image.Image:
        """Return the picture, of ``mode``, as sRGB; unchanged without a transform."""
        if self.by_code:
            return Image.fromarray(self.by_code(np.asarray(image.convert("RGB"))))
        if self.transform is None:
            return image
        from PIL import ImageCms

        converted = ImageCms.applyTransform(image, self.transform)
        assert converted is not None  # None is returned only with inPlace=True
        converted.info.pop("icc_profile", None)
        return converted


def conversion_of(image: Image.Image) -> Conversion:
    """Return the conversion of an opened image to sRGB, by the color information of the file with precedence."""
    by_icc_profile, codes, where = _by_icc_profile(image), None, "nclx"
    if image.format == "PNG":
        codes, where = _cicp(image), "cICP"
    elif image.format in {"AVIF", "HEIF"}:
        codes = _nclx(image)
    goes_first = codes is not None and (where == "cICP" or codes[1] in HDR)
    if image.info.get("icc_profile") and not goes_first:
        return by_icc_profile
    if codes:
        return _by_code(by_icc_profile.mode, *codes, where)
    if image.format == "PNG" and not {"icc_profile", "srgb"} & {*image.info}:
        return _by_gamma(image, by_icc_profile.mode)
    return Conversion(by_icc_profile.mode)


def _by_code(mode: str, primaries: int, transfer: int, where: str) -> Conversion:
    if primaries in {1, UNSPECIFIED, 5, 6} and transfer in SRGB_LIKE:  # the colors of NTSC and PAL are nearly the same
        return Conversion(mode)
    if transfer not in KNOWN or primaries not in {*PRIMARIES, UNSPECIFIED}:
        codes = f"primaries {primaries}, transfer characteristics {transfer}"
        note = f"The colors ({where}: {codes}) could not be converted and were read as sRGB."
        return Conversion(mode, note=note, is_doubtful=True)
    primaries = 1 if primaries == UNSPECIFIED else primaries
    name = NAMES[primaries]
    note = f"The colors ({where}: {name}, transfer {transfer}) were converted to sRGB for measuring."
    if transfer in HDR:
        note = f"HDR ({where}: {HDR[transfer]}, {name}) was converted to SDR; light above 203 cd/m2 is white."
    return Conversion(mode, note=note, by_code=ByCode(transfer, primaries))


def _by_gamma(image: Image.Image, mode: str) -> Conversion:
    notes, convert = [], None
    gamma, points = image.info.get("gamma", 0.0), image.info.get("chromaticity")
    if gamma > 0 and abs(gamma / USUAL_GAMMA - 1) > GAMMA_SLACK:
        convert = ByCode(0, gamma=gamma)
        notes.append(f"The gamma of the file (gAMA {gamma:.5g}) was converted to the sRGB curve for measuring.")
    is_gray = image.mode in {"1", "L", "LA", "I;16"}
    is_other = bool(points and not is_gray and np.abs(np.subtract(points, SRGB_CHROMATICITIES)).max() > SAME_POINT)
    if is_other:
        notes.append("The primaries (cHRM) differ from sRGB and were not converted; the colors were read as sRGB.")
    return Conversion(mode, note=" ".join(notes), by_code=convert, is_doubtful=is_other)


def bytes_of(image: Image.Image) -> bytes:
    """Return all bytes of an opened file; empty if it was decoded already."""
    file = getattr(image, "fp", None)
    if file is None:
        return b""
    before = file.tell()
    file.seek(0)
    content: bytes = file.read(MOST_PLAIN_BYTES)
    file.seek(before)
    return content


def _cicp(image: Image.Image) -> tuple[int, int] | None:
    """Return primaries and transfer of the chunk cICP, which Pillow does not read (PNG, third edition, 11.3.2.6)."""
    content, at, name = bytes_of(image), 8, b""
    while at + 12 <= len(content) and name not in {b"IDAT", b"IEND"}:
        size, name = struct.unpack_from(">I4s", content, at)
        if name == b"cICP":
            return (content[at + 8], content[at + 9]) if size == 4 else None
        at += size + 12
    return None


def _nclx(image: Image.Image) -> tuple[int, int] | None:
    """Return primaries and transfer of the primary item's box colr of type nclx (ISO/IEC 14496-12, 12.1.5)."""
    if image.format == "HEIF":
        codes = image.info.get("nclx_profile")
        return (int(codes["color_primaries"]), int(codes["transfer_characteristics"])) if codes else None
    meta = dict(read_boxes(dict(read_boxes(bytes_of(image))).get(b"meta", b"")[4:]))
    properties = dict(read_boxes(meta.get(b"iprp", b"")))
    listed = list(read_boxes(properties.get(b"ipco", b"")))[::-1]
    for index in _properties_of_primary(meta.get(b"pitm", b""), properties.get(b"ipma", b"")):
        kind, content = listed[index - 1] if 0 < index <= len(listed) else (b"", b"")
        if kind == b"colr" and content[:4] == b"nclx":
            primaries, transfer = struct.unpack_from(">HH", content, 4)
            return primaries, transfer
    return None


def _properties_of_primary(pitm: bytes, ipma: bytes) -> list[int]:
    """Return the numbers, from 1, of the properties of the primary item (ISO/IEC 14496-12, 8.11.4 and 8.11.14)."""
    if not pitm or not ipma:
        return []
    primary = int.from_bytes(pitm[4 : 8 if pitm[0] else 6], "big")
    id_size, index_size = 4 if ipma[0] else 2, 2 if ipma[3] & 1 else 1
    at = 8
    while at + id_size < len(ipma):
        item, count = int.from_bytes(ipma[at : at + id_size], "big"), ipma[at + id_size]
        start, at = at + id_size + 1, at + id_size + 1 + count * index_size
        if item == primary:
            essential = 1 << (8 * index_size - 1)
            return [int.from_bytes(ipma[n : n + index_size], "big") & ~essential for n in range(start, at, index_size)]
    return []


def _to_xyz(primaries: int) -> NDArray[np.float64]:
    """Return the matrix from linear light of these primaries, with D65 as white, to CIE XYZ (SMPTE RP 177)."""
    columns = np.array([(x / y, 1, (1 - x - y) / y) for x, y in PRIMARIES[primaries]]).T
    x, y = WHITE
    matrix: NDArray[np.float64] = columns * np.linalg.solve(columns, (x / y, 1, (1 - x - y) / y))
    return matrix


def _srgb_signal(light: Values) -> Values:
    """Return the signal of sRGB for linear light of 0..1 (IEC 61966-2-1)."""
    return np.where(
        light <= 0.0031308,
        light * np.float32(12.92),
        np.float32(1.055) * light ** np.float32(1 / 2.4) - np.float32(0.055),
    )


def _by_icc_profile(image: Image.Image) -> Conversion:
    """Return the conversion by the ICC profile of an opened image, if it has one, for the mode in the file."""
    is_gray = image.mode[:1] in {"1", "L", "I"} and image.mode != "LAB"
    mode = "CMYK" if image.mode == "CMYK" else "L" if is_gray else "RGB"
    icc_profile = image.info.get("icc_profile")
    if not icc_profile or image.mode in {"LAB", "F"}:
        return Conversion(mode)
    return _conversion(bytes(icc_profile), mode)


@lru_cache(maxsize=16)
def _conversion(icc_profile: bytes, mode: str) -> Conversion:
    from PIL import ImageCms

    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(icc_profile))
        space = source.profile.xcolor_space.strip()
        name = ImageCms.getProfileDescription(source).strip()[:LONGEST]
        if mode == "L" and space == "RGB" and _conversion(icc_profile, "RGB") == Conversion("RGB"):
            return Conversion(mode)  # a gray copy of a photo often keeps its sRGB
        if SPACES.get(space) != mode:
            raise ValueError(
                f"it is for {space or 'an unknown color space'}, but the pixels are {SHOWN.get(mode, mode)}"
            )
        intent, flags = ImageCms.Intent.RELATIVE_COLORIMETRIC, ImageCms.Flags.BLACKPOINTCOMPENSATION
        transform = ImageCms.buildTransform(source, ImageCms.createProfile("sRGB"), mode, "RGB", intent, flags)
        note = f"The colors were converted from the profile {name} to sRGB for measuring."
        change = Conversion(mode, transform, note)
        return Conversion(mode) if _changes_nothing(change) else change
    except (ImageCms.PyCMSError, OSError, ValueError, TypeError, AttributeError) as error:
        why = str(error) or type(error).__name__
        used = "converted without a profile" if mode == "CMYK" else "read as sRGB"
        note = f"The color profile was not used ({why[: LONGEST * 2]}); the colors were {used}."
        return Conversion(mode, None, note, is_doubtful=True)


def _changes_nothing(conversion: Conversion) -> bool:
    if conversion.mode == "CMYK":
        return False
    channels = len(conversion.mode)
    colors = np.array(list(product(STEPS, repeat=channels)), np.uint8).reshape(1, -1, channels)
    picture = Image.fromarray(colors if channels > 1 else colors[..., 0])
    converted = np.asarray(conversion.apply(picture), np.int16)
    return bool(np.abs(converted - np.asarray(picture.convert("RGB"), np.int16)).max() <= SAME)
