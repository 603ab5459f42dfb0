"""Small ICC profiles (version 2) of known colors, made here: RGB by matrix, gray by gamma, CMYK by a table."""

import struct
from itertools import product

import numpy as np

# Colorants of red, green and blue, adapted to D50, and the gamma, as in the profiles of these spaces.
ADOBE_RGB = ((0.60974, 0.31111, 0.01947), (0.20528, 0.62567, 0.06087), (0.14919, 0.06322, 0.74457)), 563 / 256
DISPLAY_P3 = ((0.51512, 0.24120, -0.00105), (0.29198, 0.69225, 0.04189), (0.15710, 0.06657, 0.78407)), 2.2
PRO_PHOTO = ((0.79767, 0.28804, 0.0), (0.13519, 0.71188, 0.0), (0.03134, 0.00009, 0.82521)), 1.8
BGR = tuple(reversed(DISPLAY_P3[0])), 2.2
SRGB = np.array(((0.43607, 0.22249, 0.01392), (0.38515, 0.71687, 0.09708), (0.14307, 0.06061, 0.71410))).T


def rgb_profile(colorants: tuple[tuple[float, ...], ...], gamma: float) -> bytes:
    """Return a display profile."""
    tags = {f"{color}XYZ": _xyz(values) for color, values in zip("rgb", colorants, strict=True)}
    return _profile("mntr", "RGB ", "XYZ ", tags | {f"{color}TRC": _gamma(gamma) for color in "rgb"})


def gray_profile(gamma: float) -> bytes:
    """Return a profile of gray levels."""
    return _profile("mntr", "GRAY", "XYZ ", {"kTRC": _gamma(gamma)})


def cmyk_profile() -> bytes:
    """Return a printer profile with gray black and dark cyan, far from any estimate without the profile."""
    solid = np.array(((-50, -30, -40), (-45, 70, -5), (-10, -5, 90), (-70, 0, 0)), float)  # Lab of each ink over white
    table = [np.array((95.0, 0.0, 0.0)) + np.array(inks) @ solid for inks in product((0, 1), repeat=4)]
    lab = np.clip(np.array(table), (0, -100, -100), (100, 100, 100)) * (2.55, 1, 1) + (0, 128, 128)
    ramp = bytes(range(256))
    identity = b"".join(struct.pack(">i", value << 16) for value in (1, 0, 0, 0, 1, 0, 0, 0, 1))
    tag = b"mft1\0\0\0\0\4\3\2\0" + identity + 4 * ramp + lab.round().astype(np.uint8).tobytes() + 3 * ramp
    return _profile("prtr", "CMYK", "Lab ", {"A2B0": tag})


def in_srgb(pixels: np.ndarray, colorants: tuple[tuple[float, ...], ...], gamma: float) -> np.ndarray:
    """Convert uint8 pixels of such a profile to sRGB, as floats 0..255, with colors outside of it clipped."""
    linear = (pixels / 255) ** gamma @ np.array(colorants) @ np.linalg.inv(SRGB).T
    return 255 * _encoded(np.clip(linear, 0, 1))


def from_srgb(pixels: np.ndarray, colorants: tuple[tuple[float, ...], ...], gamma: float) -> np.ndarray:
    """Convert uint8 sRGB pixels to the colors of such a profile, uint8."""
    values = pixels / 255
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    own = np.clip(linear @ SRGB.T @ np.linalg.inv(np.array(colorants)), 0, 1) ** (1 / gamma)
    return np.rint(255 * own).astype(np.uint8)


def _encoded(linear: np.ndarray) -> np.ndarray:
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)


def _fixed(value: float) -> bytes:
    return struct.pack(">i", round(value * 65536))


def _xyz(values: tuple[float, ...]) -> bytes:
    return b"XYZ \0\0\0\0" + b"".join(map(_fixed, values))


def _gamma(gamma: float) -> bytes:
    return b"curv\0\0\0\0" + struct.pack(">IH", 1, round(gamma * 256)) + b"\0\0"


def _profile(kind: str, space: str, connection: str, tags: dict[str, bytes]) -> bytes:
    name = b"Made for a test\0"
    described = b"desc\0\0\0\0" + struct.pack(">I", len(name)) + name + bytes(78)
    white = (0.9642, 1.0, 0.8249)
    tags = {"desc": described, "wtpt": _xyz(white), "cprt": b"text\0\0\0\0none\0"} | tags
    table, body, start = b"", b"", 128 + 4 + 12 * len(tags)
    for tag, data in tags.items():
        table += tag.encode() + struct.pack(">II", start + len(body), len(data))
        body += data + bytes(-len(data) % 4)
    head = struct.pack(">I4sI", start + len(body), b"", 0x02400000) + (kind + space + connection).encode()
    head = (head + bytes(12) + b"acsp").ljust(68, b"\0") + b"".join(map(_fixed, white))
    return head.ljust(128, b"\0") + struct.pack(">I", len(tags)) + table + body
