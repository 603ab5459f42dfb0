"""SSIMULACRA 2: compression artifacts, in a perceptual color space over six scales. Higher is better."""

from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.tools.numerics.filters import Maps, Plane32, correlate, strips, whole
from agenticiqa.programs.tools.numerics.pixels import RGB, Plane, check_pair
from agenticiqa.programs.tools.numerics.similarity import color_planes, framed, shrink
from agenticiqa.programs.tools.tool import Tool

SMALLEST_SIDE = 8
SCALES = 6
CONSTANT = np.float32(0.0009)

# JPEG XL's XYB: cube roots of three cone-like mixtures of linear light, each over its bias.
MIXTURES = (
    (0.30, 0.622, 0.078),
    (0.23, 0.692, 0.078),
    (0.24342268924547819, 0.20476744424496821, 0.55180986650955360),
)
BIAS = np.float32(0.0037930732552754493)

# A Gaussian of sigma 1.5 as the recursive filter of the authors' code makes it: a sum of three truncated cosines
# (Charalampidis 2016), which is exactly these nine weights; zeros outside of the image.
_HALF = (0.00941436781, 0.0360111147, 0.109335373, 0.212928592)
WINDOW = (*_HALF, 0.264621105, *reversed(_HALF))
MARGIN = len(WINDOW) // 2

STRUCTURE, ADDED, MISSING = range(3)

# The weights of each error by scale (finest first) in X, Y and B: for structure, for added edges and for edges
# that are missing, the weight of the mean and that of the fourth root of the mean of fourth powers.
WEIGHTS = {
    ("X", ADDED): (
        (0.0007376606707406586, 0.0007793481682867309),
        (0.0004371155730107379, 0.00066284834129271),
        (0.0016406437456599754, 11.441172603757666),
        (0.000176816438078653, 10.94906990605142),
        (0.9677937080626833, 0.9981766977854967),
        (0.0, 0.0),
    ),
    ("X", STRUCTURE): (
        (0.0, 0.0),
        (0.0, 1.1041726426657346),
        (0.0, 1.8422455520539298),
        (0.0007989109436015163, 1.8787594979546387),
        (0.0007289346991508072, 0.00014003424285435884),
        (0.0004550992113792063, 0.0013648766163243398),
    ),
    ("X", MISSING): (
        (0.0, 0.0),
        (0.0, 0.00015231632783718752),
        (0.0, 0.0),
        (0.0, 0.0),
        (0.0, 0.00031949755934435053),
        (0.0, 0.0),
    ),
    ("Y", STRUCTURE): (
        (0.0, 7.466890328078848),
        (0.0006235601634041466, 6.683678146179332),
        (225.20515300849274, 19.213238186143016),
        (176.39317598450694, 24.43300999870476),
        (0.0, 34.77906344483772),
        (0.0, 0.0),
    ),
    ("Y", ADDED): (
        (0.0, 0.0),
        (0.0, 0.00037724407979611296),
        (0.0, 0.0011401524586618361),
        (0.0, 0.28520802612117757),
        (0.0, 44.835625328877896),
        (0.0, 0.0),
    ),
    ("Y", MISSING): (
        (0.0, 17.445833984131262),
        (0.0, 1.027889937768264),
        (0.0, 0.001237755635509985),
        (0.0, 0.0004485436923833408),
        (0.0, 0.0),
        (0.0, 0.0),
    ),
    ("B", STRUCTURE): (
        (0.0, 0.0),
        (0.0, 0.00016533814161379112),
        (0.0, 0.0004179171803251336),
        (0.0020827005846636437, 8.826982764996862),
        (95.1080498811086, 0.0012286405048278493),
        (0.0, 0.0005130064588990679),
    ),
    ("B", ADDED): (
        (0.0008680556573291698, 0.0),
        (0.0005313191874358747, 0.0),
        (0.0, 0.0017290828234722833),
        (0.0, 23.19243343998926),
        (0.9863978034400682, 171.2667255897307),
        (0.0, 0.0),
    ),
    ("B", MISSING): (
        (0.0, 0.0),
        (0.0, 0.0),
        (0.0, 0.0),
        (0.0, 0.0),
        (0.9834382792465353, 0.9807858872435379),
        (0.0, 0.00010854057858411537),
    ),
}


def ssimulacra2(image: RGB, reference: RGB) -> float:
    """Return SSIMULACRA 2.1: compression artifacts and other damage, in a perceptual color space.

    It includes color. On each of six scales, halved in linear light, and in each plane of XYB: 1 - structural
    similarity, edges that were added (ringing, blocks, noise) and edges that are missing (blur), pooled by the mean and
    by the 4-norm, and the 108 norms weighted as the authors fitted them. An image too small for six scales is assessed
    on those that fit, each with its own weights; the authors' code moves weights to other planes.
    Source: Sneyers, "SSIMULACRA 2", Cloudinary 2022, weights of April 2023.

    Args:
        image: uint8 RGB, shape (H, W, 3), sides of at least 8 pixels.
        reference: The pristine image, of the same kind and size.

    Returns:
        At most 100, higher is better: 100 for identical images, 90 for invisible changes, 30 for low quality, below 0
        for very low. Not symmetric.

    Raises:
        ToolError: An array is of another kind, the sizes differ, or a side is under 8 pixels.
    """
    total = sum(_weighted_norms(scale, first, second)[0] for scale, first, second in _pyramid(image, reference))
    error = 0.9562382616834844 * total
    error = ((6.248496625763138e-05 * error - 0.020884521182843837) * error + 2.326765642916932) * error
    return 100 - 10 * error**0.6276336467831387 if error > 0 else 100.0


def ssimulacra2_map(image: RGB, reference: RGB) -> Plane:
    """Each pixel's part of the weighted sum of norms, over all scales: (H, W), 0 or more; its mean is about that sum.

    Raises ToolError as ``ssimulacra2``.
    """
    check_pair(image, reference, smallest=SMALLEST_SIDE)
    (local,) = framed(_local, image, reference, 1)
    return local.astype(np.float64)


def _local(image: NDArray[Any], reference: NDArray[Any]) -> Maps:
    total: Plane32 | None = None
    for scale, first, second in reversed(list(_pyramid(image, reference))):
        _, norms = _weighted_norms(scale, first, second)
        (local,) = whole(partial(_parts, scale=scale, norms=norms), first, second, margin=MARGIN)
        height, width = local.shape
        if total is not None:
            local += total.repeat(2, axis=0).repeat(2, axis=1)[:height, :width]
        total = local
    assert total is not None
    return (total,)


def _pyramid(image: RGB, reference: RGB) -> Iterator[tuple[int, NDArray[Any], NDArray[Any]]]:
    """Yield the scales: 8-bit pixels, then linear light, (H, W, 3), halved while the sides have at least 8 pixels."""
    check_pair(image, reference, smallest=SMALLEST_SIDE)
    first: NDArray[Any] = image
    second: NDArray[Any] = reference
    for scale in range(SCALES):
        yield scale, first, second
        if scale == SCALES - 1 or min(first.shape[:2]) < SMALLEST_SIDE:
            return
        first, second = whole(_halve, first, second, margin=0, step=2)


def _halve(first: NDArray[Any], second: NDArray[Any]) -> Maps:
    return shrink(_linear(first), 2, border="edge"), shrink(_linear(second), 2, border="edge")


def _weighted_norms(scale: int, first: NDArray[Any], second: NDArray[Any]) -> tuple[float, list[float]]:
    """Return one scale's part of the weighted sum, and the 4-norm of each of its error maps."""
    sums = np.array(
        [
            [
                (float(error.sum(dtype=np.float64)), float(np.square(np.square(error)).sum(dtype=np.float64)))
                for error in errors
            ]
            for errors in strips(partial(_errors, scale=scale), first, second, margin=MARGIN)
        ]
    ).sum(axis=0) / (first.shape[0] * first.shape[1])
    norms = np.sqrt(np.sqrt(sums[:, 1]))
    total = sum(
        w1 * mean + w4 * norm for (w1, w4), mean, norm in zip(_used(scale).values(), sums[:, 0], norms, strict=True)
    )
    return float(total), norms.tolist()


def _parts(first: NDArray[Any], second: NDArray[Any], *, scale: int, norms: list[float]) -> Maps:
    """Return the weighted sum spread over the pixels: fourth powers are scaled to the 4-norm of their map."""
    total = np.zeros(first.shape[:2], np.float32)
    errors = _errors(first, second, scale=scale)
    for (mean, fourth), norm, error in zip(_used(scale).values(), norms, errors, strict=True):
        total += np.float32(mean) * error
        if norm > 0:
            total += np.float32(fourth * norm) * np.square(np.square(error / np.float32(norm)))
    return (total,)


def _errors(image: NDArray[Any], reference: NDArray[Any], *, scale: int) -> Maps:
    """Return the error maps of one scale that have a weight there, in the order of ``_used``."""
    used = _used(scale)
    errors: dict[tuple[str, int], Plane32] = {}
    for name, values, originals in zip("XYB", _xyb(_linear(image)), _xyb(_linear(reference)), strict=True):
        kinds = [kind for plane, kind in used if plane == name]
        if kinds:
            errors |= {(name, kind): error for kind, error in _plane_errors(values, originals, kinds)}
    return tuple(errors[key] for key in used)


def _plane_errors(image: Plane32, reference: Plane32, kinds: list[int]) -> Iterator[tuple[int, Plane32]]:
    height, width = image.shape
    planes = np.zeros((height + 2 * MARGIN, 4 if STRUCTURE in kinds else 2, width + 2 * MARGIN), np.float32)
    inner = planes[MARGIN:-MARGIN, :, MARGIN:-MARGIN]
    difference = image - reference
    inner[:, 0], inner[:, 1] = reference, difference
    if STRUCTURE in kinds:
        inner[:, 2] = np.square(image) + np.square(reference)
        inner[:, 3] = np.square(difference)
    down = correlate(planes.reshape(len(planes), -1), WINDOW, axis=0)
    means = correlate(down.reshape(-1, width + 2 * MARGIN), WINDOW, axis=1).reshape(height, -1, width)
    mean, shift = means[:, 0], means[:, 1]
    other = mean + shift
    if ADDED in kinds or MISSING in kinds:
        edges = (1 + np.abs(image - other)) / (1 + np.abs(reference - mean)) - 1
        for kind, error in ((ADDED, edges), (MISSING, -edges)):
            if kind in kinds:
                yield kind, np.maximum(error, 0)
    if STRUCTURE in kinds:
        luminance = np.square(shift)
        structure = (means[:, 3] - luminance) / (means[:, 2] - np.square(mean) - np.square(other) + CONSTANT)
        yield STRUCTURE, np.maximum(luminance + structure - luminance * structure, 0)


def _xyb(linear: Plane32) -> Plane32:
    """Return XYB, shifted and scaled to about 0..1, of linear light (H, W, 3): planes (3, H, W)."""
    planes = color_planes(linear, MIXTURES)
    planes += BIAS
    np.cbrt(planes, out=planes)
    planes -= np.cbrt(BIAS)
    long, middle, short = planes
    y = (long + middle) / 2
    x = (long - middle) * np.float32(7) + np.float32(0.42)
    planes[0], planes[1], planes[2] = x, y + np.float32(0.01), short - y + np.float32(0.55)
    return planes


def _linear(pixels: NDArray[Any]) -> Plane32:
    """Return the linear light in 0..1 of 8-bit sRGB; linear light is returned unchanged."""
    return np.take(_curve(), pixels) if pixels.dtype == np.uint8 else pixels


@cache
def _curve() -> Plane32:
    levels = np.arange(256) / 255
    return np.where(levels <= 0.04045, levels / 12.92, ((levels + 0.055) / 1.055) ** 2.4).astype(np.float32)


@cache
def _used(scale: int) -> dict[tuple[str, int], tuple[float, float]]:
    """Return the pairs of weights of a scale that are not both zero, by plane and kind of error."""
    return {key: weights[scale] for key, weights in WEIGHTS.items() if any(weights[scale])}


TOOL = Tool(
    name="SSIMULACRA2",
    kind="FR",
    higher_is_better=True,
    raw_range=(-200.0, 100.0),
    description="Structure and edges over six scales in a perceptual color space, weighted for compression.",
    source="Sneyers 2022, Cloudinary; weights of April 2023",
    cost_ms=33,
    measure=ssimulacra2,
    map=ssimulacra2_map,
    map_end=110.0,
    smallest=SMALLEST_SIDE,
)
