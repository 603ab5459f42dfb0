"""Statistics of an image's pixels as nodes of an ONNX graph: what a recognition network's activations show badly.

Detail: Haar wavelet bands of luma and chroma over four scales, and how the detail is spread over blocks of 32 pixels
(damage of a part). Steps between neighbors: blocking, banding, enlarged pixels. Isolated pixels. Tone: the distribution
of brightness, clipping, saturation and tints.
"""

from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from agenticiqa.eval.research.quality_graph import Graph

# Luma, red minus luma, blue minus luma, of RGB.
TO_LUMA_TINTS = np.array([[0.299, 0.587, 0.114], [0.701, -0.587, -0.114], [-0.299, -0.587, 0.886]])
SCALES = 4
BLOCK = 32  # pixels
ROUNDING = 0.6  # gray levels: smaller coefficients are rounding
BRIGHTNESS = (4, 8, 16, 32, 64, 96, 128, 160, 192, 224, 240, 248)
SATURATIONS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9)
STEPS = (0.5, 2.5, 6.5, 16.5)  # gray levels between neighbors
ISOLATION = (8, 20, 50, 100)  # gray levels from the mean of the neighbors
STEEP = 2.0**30  # a power of two, so that products with it are exact
SPACE = [2, 3]
STATISTICS = 203  # their number


class Statistics:
    """Adds nodes to a graph for the statistics of ``image``, (1, 3, H, W) in 0..255; each (1, n, 1, 1)."""

    def __init__(self, graph: "Graph") -> None:
        self.graph = graph
        self.found: list[str] = []

    def all_of(self, image: str) -> str:
        """All statistics in one array, (1, N, 1, 1)."""
        tints = self._tints(image)
        luma = self._channels(tints, 0, 1)
        self._detail(tints)
        self._steps(luma)
        self._isolated(luma)
        self._brightness(image, luma)
        self._color(image, tints, luma)
        return self.graph.add("Concat", self.found, axis=1)

    def _tints(self, image: str) -> str:
        # Not a convolution: onnxruntime computes 16 channels for these three, in three times the time.
        red, green, blue = (
            self._by(
                "Mul", self._channels(image, channel, channel + 1), self.graph.constant(weights[None, :, None, None])
            )
            for channel, weights in enumerate(TO_LUMA_TINTS.T)
        )
        return self._by("Add", self._by("Add", red, green), blue)

    def _detail(self, plane: str) -> None:
        """Per band: log of the mean magnitude, peakedness, share below rounding; per scale the spread over blocks."""
        quarter = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]).reshape(4, 1, 2, 2)
        haar = np.concatenate([quarter / [[[[4]]], [[[2]]], [[[2]]], [[[2]]]]] * 3)
        by_block = []
        for scale in range(SCALES):
            bands = self._conv(plane, haar, stride=2, group=3)
            plane = self._joined([self._channels(bands, 4 * c, 4 * c + 1) for c in range(3)])
            magnitudes = self._joined([self._channels(bands, 4 * c + 1, 4 * c + 4) for c in range(3)])
            magnitudes = self.graph.add("Abs", [magnitudes])
            mean = self._log(self._mean(magnitudes), 0.05)
            square = self._mean(self._by("Mul", magnitudes, magnitudes))
            rms = self._log(self.graph.add("Sqrt", [square]), 0.05)
            self.found += [mean, self._by("Sub", rms, mean), self._share("Less", magnitudes, ROUNDING)]
            side = BLOCK >> scale + 1
            luma = self._log(self._pooled(self._channels(magnitudes, 0, 3), side), 0.2)
            by_block.append(self._mean(luma, axes=[1]))
        fine, middle, coarse, _ = by_block
        for plane in (fine, middle, self._by("Sub", fine, middle), self._by("Sub", middle, coarse)):
            self._spread(plane)

    def _steps(self, luma: str) -> None:
        """Shares of steps between neighbors below ``STEPS``, their mean and skew, and those at multiples of 8."""
        for axis in (2, 3):
            after = self._slice(luma, 1, 1 << 30, axis)
            step = self.graph.add("Abs", [self._by("Sub", after, self._slice(luma, 0, -1, axis))])
            self.found += [self._share("Less", step, limit) for limit in STEPS]
            profile = self._mean(step, axes=[5 - axis])
            overall = self._log(self._mean(profile), 0.3)
            at_8 = self._log(self._mean(self._slice(profile, 7, 1 << 30, axis, 8)), 0.3)
            beside = self._log(self._mean(self._slice(profile, 3, 1 << 30, axis, 8)), 0.3)
            self.found += [overall, self._by("Sub", at_8, beside)]
            square = self._mean(self._by("Mul", step, step))
            self.found.append(self._by("Sub", self._log(square, 0.3), overall))

    def _isolated(self, luma: str) -> None:
        """Logarithms of the shares of pixels far from the mean of their neighbors, and how these are spread."""
        ring = np.full((1, 1, 3, 3), -0.125)
        ring[0, 0, 1, 1] = 1
        away = self.graph.add("Abs", [self._conv(luma, ring)])
        self.found += [self._log(self._share("Greater", away, limit), 1e-4) for limit in ISOLATION]
        self._spread(self._log(self._pooled(away, BLOCK // 2), 0.2), blocks_kept=False)

    def _brightness(self, image: str, luma: str) -> None:
        for level in BRIGHTNESS:
            self.found.append(self._share("Less", luma, level))
        colors = [self._channels(image, channel, channel + 1) for channel in range(3)]
        highest, lowest = self.graph.add("Max", colors), self.graph.add("Min", colors)
        for plane in (image, highest, lowest):
            self.found.append(self._log(self._share("Less", plane, 2.5), 1e-3))
            self.found.append(self._log(self._share("Greater", plane, 252.5), 1e-3))
        for plane in (image, luma):
            mean = self._mean(plane)
            deviation = self._deviation(plane)
            self.found += [self._by("Mul", mean, 1 / 255), self._log(deviation, 1.0)]
        self._spread(self._by("Mul", self._pooled(luma, BLOCK), 1 / 255))

    def _color(self, image: str, tints: str, luma: str) -> None:
        colors = [self._channels(image, channel, channel + 1) for channel in range(3)]
        highest, lowest = self.graph.add("Max", colors), self.graph.add("Min", colors)
        saturation = self._by("Div", self._by("Sub", highest, lowest), self._by("Add", highest, 8.0))
        self.found += [self._mean(saturation), self._deviation(saturation)]
        self.found += [self._share("Less", saturation, limit) for limit in SATURATIONS]
        tints = self._channels(tints, 1, 3)
        strength = self._mean(self.graph.add("Abs", [tints]))
        self.found += [self._log(strength, 1.0), self._log(self._deviation(tints), 1.0)]
        square = self._by("Mul", *[self._by("Mul", luma, 1 / 255)] * 2)
        bright = self._by("Mul", square, square)
        gray = self.graph.add("Exp", [self._by("Mul", saturation, -8.0)])
        everywhere = self._by("Div", self._mean(tints), 1.001)
        weighted = [
            self._by("Div", self._mean(self._by("Mul", tints, weight)), self._by("Add", self._mean(weight), 1e-3))
            for weight in (bright, gray)
        ]
        for tint in (everywhere, *weighted):
            length = self.graph.add("Sqrt", [self._mean(self._by("Mul", tint, tint), axes=[1])])
            relative = self._by("Div", length, self._by("Add", self._mean(strength, axes=[1]), 2.0))
            self.found += [self._by("Mul", tint, 1 / 50), self._log(length, 1.0), relative]

    def _spread(self, blocks: str, blocks_kept: bool = True) -> None:
        """Mean, deviation, lowest and highest of a plane of block values."""
        axes = self.graph.constant(SPACE)
        self.found += [self._mean(blocks), self._deviation(blocks)] if blocks_kept else [self._deviation(blocks)]
        self.found += [self.graph.add(f"Reduce{end}", [blocks, axes], keepdims=1) for end in ("Min", "Max")]

    def _conv(self, x: str, weight: "np.typing.ArrayLike", stride: int = 1, group: int = 1) -> str:
        kernel = self.graph.constant(np.asarray(weight, np.float32))
        return self.graph.add("Conv", [x, kernel], strides=[stride] * 2, group=group)

    def _pooled(self, x: str, side: int) -> str:
        return self.graph.add("AveragePool", [x], kernel_shape=[side] * 2, strides=[side] * 2) if side > 1 else x

    def _mean(self, x: str, axes: list[int] = SPACE) -> str:
        return self.graph.add("ReduceMean", [x, self.graph.constant(axes)], keepdims=1)

    def _deviation(self, x: str) -> str:
        away = self._by("Sub", x, self._mean(x))
        return self.graph.add("Sqrt", [self._mean(self._by("Mul", away, away))])

    def _share(self, comparison: Literal["Less", "Greater"], x: str, limit: float) -> str:
        # 1 or 0 in one pass instead of two: so steep, no number of single precision is between them.
        steep = -STEEP if comparison == "Less" else STEEP
        return self._mean(self.graph.add("HardSigmoid", [x], alpha=steep, beta=-steep * limit))

    def _log(self, x: str, offset: float) -> str:
        return self.graph.add("Log", [self._by("Add", x, offset)])

    def _by(self, operator: str, x: str, other: str | float) -> str:
        return self.graph.add(operator, [x, other if isinstance(other, str) else self.graph.constant(other)])

    def _channels(self, x: str, first: int, end: int) -> str:
        return self._slice(x, first, end, 1)

    def _slice(self, x: str, first: int, end: int, axis: int, step: int = 1) -> str:
        return self.graph.add("Slice", [x, *(self.graph.constant([number]) for number in (first, end, axis, step))])

    def _joined(self, parts: list[str]) -> str:
        return self.graph.add("Concat", parts, axis=1)
