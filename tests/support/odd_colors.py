"""Files that a reader gets wrong if it ignores part of the file, with the sRGB pixels that a viewer shows.

All are made from the same picture, by the inverse of the formula that the file requires, in its precision.
"""

import io
import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from PIL import Image

from support import icc

Pixels = np.ndarray[Any, Any]

EIGHT_WAYS = {  # stored pixels from shown pixels, by EXIF orientation
    1: lambda p: p,
    2: lambda p: p[:, ::-1],
    3: lambda p: p[::-1, ::-1],
    4: lambda p: p[::-1],
    5: lambda p: p.transpose(1, 0, 2),
    6: lambda p: np.rot90(p, 1),
    7: lambda p: np.rot90(p, 2).transpose(1, 0, 2),
    8: lambda p: np.rot90(p, -1),
}
# BT.2087: linear light of BT.709 to BT.2020, to 4 digits.
TO_BT2020 = np.array([[0.6274, 0.3293, 0.0433], [0.0691, 0.9195, 0.0114], [0.0164, 0.0880, 0.8956]])


def encoded(image: Image.Image | Pixels, kind: str, **options: Any) -> bytes:
    """Return an image in a file of Pillow's format ``kind``."""
    buffer = io.BytesIO()
    (Image.fromarray(image) if isinstance(image, np.ndarray) else image).save(buffer, kind, **options)
    return buffer.getvalue()


def png(samples: Pixels, *chunks: tuple[bytes, bytes], depth: int | None = None, color: int | None = None) -> bytes:
    """Return a hand-made PNG of samples (H, W) or (H, W, C), uint8 or uint16, with chunks before its pixels."""
    depth = depth or samples.dtype.itemsize * 8
    planes = 1 if samples.ndim == 2 else samples.shape[2]
    color = {1: 0, 2: 4, 3: 2, 4: 6}[planes] if color is None else color
    height, width = samples.shape[:2]
    if depth < 8:
        bits = np.unpackbits(samples.astype(np.uint8)[..., None], axis=-1)[..., -depth:]
        rows = np.packbits(bits.reshape(height, -1), axis=1)
    else:
        rows = samples.astype(f">u{depth // 8}").reshape(height, -1).view(np.uint8)
    body = b"".join(b"\0" + row.tobytes() for row in rows)
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)
    parts = [b"\x89PNG\r\n\x1a\n"]
    for name, content in [(b"IHDR", header), *chunks, (b"IDAT", zlib.compress(body)), (b"IEND", b"")]:
        parts.append(struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content)))
    return b"".join(parts)


def gama(gamma: float) -> tuple[bytes, bytes]:
    """Return the chunk gAMA."""
    return b"gAMA", struct.pack(">I", round(gamma * 100_000))


def cicp(primaries: int, transfer: int) -> tuple[bytes, bytes]:
    """Return the chunk cICP, for RGB of full range."""
    return b"cICP", bytes([primaries, transfer, 0, 1])


def linear(pixels: Pixels) -> Pixels:
    """Return the linear light of sRGB pixels, 0..1 (IEC 61966-2-1)."""
    signal = pixels / 255
    return np.where(signal <= 0.04045, signal / 12.92, ((signal + 0.055) / 1.055) ** 2.4)


def pq(light: Pixels) -> Pixels:
    """Return the PQ signal of linear light (1 is 203 cd/m2): the inverse EOTF of SMPTE ST 2084."""
    share = np.clip(light * 203 / 10_000, 0, 1) ** 0.1593017578125
    return ((0.8359375 + 18.8515625 * share) / (1 + 18.6875 * share)) ** 78.84375


def hlg(light: Pixels) -> Pixels:
    """Return the HLG signal of display light in BT.2020 (1 is 203 cd/m2): inverse OOTF, then OETF of BT.2100."""
    display = light * 203 / 1000
    luminance = np.maximum(display @ [0.2627, 0.6780, 0.0593], 1e-9)[..., None]
    scene = np.clip(display * luminance ** ((1 - 1.2) / 1.2), 0, 1)
    return np.where(
        scene <= 1 / 12, np.sqrt(3 * scene), 0.17883277 * np.log(np.maximum(12 * scene - 0.28466892, 1e-9)) + 0.55991073
    )


def in_bt2020(pixels: Pixels) -> Pixels:
    """Return the linear light of sRGB pixels in primaries of BT.2020."""
    return np.clip(linear(pixels) @ TO_BT2020.T, 0, None)


def of_bits(signal: Pixels, bits: int) -> Pixels:
    """Return a signal of 0..1 as whole samples."""
    return np.rint(signal * (2**bits - 1)).astype(np.uint8 if bits == 8 else np.uint16)


def with_nclx(data: bytes, primaries: int, transfer: int) -> bytes:
    """Return an AVIF or HEIC with other code points."""
    at = data.index(b"nclx") + 4
    return data[:at] + struct.pack(">HH", primaries, transfer) + data[at + 4 :]


def odd_files(pixels: Pixels) -> Iterator[tuple[str, bytes, Pixels, float]]:
    """Yield name, file, the pixels that a viewer shows, and the largest allowed difference from them."""
    gray = np.asarray(Image.fromarray(pixels).convert("L"))
    as_rgb = np.repeat(gray[..., None], 3, axis=2)
    alpha = np.tile(np.linspace(0, 255, pixels.shape[1]).astype(np.uint8), (len(pixels), 1))
    over_white = pixels * (alpha[..., None] / 255) + 255 * (1 - alpha[..., None] / 255)
    yield "8-bit PNG", encoded(pixels, "PNG"), pixels, 0
    yield "8-bit gray PNG", encoded(gray, "PNG"), as_rgb, 0
    yield "lossless WebP", encoded(pixels, "WEBP", lossless=True), pixels, 0
    yield "opaque RGBA PNG", encoded(np.dstack([pixels, np.full_like(gray, 255)]), "PNG"), pixels, 0
    yield "16-bit gray PNG", png(gray.astype(np.uint16) * 257), as_rgb, 0
    yield "16-bit gray TIFF", encoded(gray.astype(np.uint16) * 257, "TIFF"), as_rgb, 0
    yield "16-bit PNG", png(pixels.astype(np.uint16) * 257), pixels, 0
    yield "PNG with alpha", encoded(np.dstack([pixels, alpha]), "PNG"), over_white, 1
    yield "content in alpha only", png(np.dstack([np.zeros_like(gray), 255 - gray])), as_rgb, 0
    yield "WebP with alpha", encoded(np.dstack([pixels, alpha]), "WEBP", lossless=True, exact=True), over_white, 1
    yield "TIFF", encoded(pixels, "TIFF"), pixels, 0
    exif = Image.Exif()
    for orientation, stored in EIGHT_WAYS.items():
        exif[274] = orientation
        turned = np.ascontiguousarray(stored(pixels))
        yield f"PNG turned {orientation}", encoded(turned, "PNG", exif=exif), pixels, 0
        jpeg = encoded(turned, "JPEG", exif=exif, quality=100, subsampling=0)
        yield f"JPEG turned {orientation}", jpeg, pixels, 6
    adobe = icc.from_srgb(pixels, *icc.ADOBE_RGB)
    back = icc.in_srgb(adobe, *icc.ADOBE_RGB)
    yield "Adobe RGB PNG", encoded(adobe, "PNG", icc_profile=icc.rgb_profile(*icc.ADOBE_RGB)), back, 2
    light = linear(pixels)
    yield "linear 16-bit PNG (gAMA 1)", png(of_bits(light, 16), gama(1.0)), pixels, 12
    yield "linear 16-bit gray PNG (gAMA 1)", png(of_bits(linear(gray), 16), gama(1.0)), as_rgb, 1
    yield "PNG of gAMA 1/1.8", png(of_bits(light ** (1 / 1.8), 16), gama(1 / 1.8)), pixels, 2
    yield "PNG of the usual gAMA", png(pixels, gama(0.45455)), pixels, 0
    wide = in_bt2020(pixels)
    yield "PQ 16-bit PNG", png(of_bits(pq(wide), 16), cicp(9, 16)), pixels, 5
    yield "HLG 16-bit PNG", png(of_bits(hlg(wide), 16), cicp(9, 18)), pixels, 4
    yield "PQ 8-bit PNG", png(of_bits(pq(wide), 8), cicp(9, 16)), pixels, 13
    yield "PQ 16-bit gray PNG", png(of_bits(pq(linear(gray)), 16), cicp(9, 16)), as_rgb, 1
    yield "PNG of cICP sRGB", png(pixels, cicp(1, 13), gama(1.0)), pixels, 0


def tiff_of(pictures: Sequence[dict[str, Any]], order: str = "<") -> bytes:
    """Return a TIFF of uncompressed 8-bit pictures. Each has ``pixels`` (H, W, 3), and optionally ``tags`` (one LONG
    each) and ``inner``, pictures in SubIFDs."""
    file = bytearray((b"II*\0" if order == "<" else b"MM\0*") + struct.pack(f"{order}I", 0))

    def write(picture: dict[str, Any]) -> int:
        inner = [write(each) for each in picture.get("inner", ())]
        pixels = picture["pixels"]
        strip, bits = len(file), len(file) + pixels.nbytes
        file.extend(pixels.tobytes() + struct.pack(f"{order}3H", 8, 8, 8))
        places = len(file)
        file.extend(struct.pack(f"{order}{len(inner)}I", *inner))
        height, width = pixels.shape[:2]
        values = {256: width, 257: height, 259: 1, 262: 2, 273: strip, 277: 3, 278: height, 279: pixels.nbytes}
        values |= picture.get("tags", {})
        rows = [(tag, 4, 1, value) for tag, value in values.items()] + [(258, 3, 3, bits)]
        if inner:
            rows.append((330, 4, len(inner), inner[0] if len(inner) == 1 else places))
        at = len(file)
        file.extend(struct.pack(f"{order}H", len(rows)))
        for row in sorted(rows):
            file.extend(struct.pack(f"{order}HHII", *row))
        file.extend(bytes(4))
        return at

    link = 4
    for picture in pictures:
        at = write(picture)
        struct.pack_into(f"{order}I", file, link, at)
        link = len(file) - 4
    return bytes(file)
