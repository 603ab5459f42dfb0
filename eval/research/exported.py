"""Write a torch network as one ONNX file with its weight matrices in fewer bits."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
import torch
from torch import Tensor, nn
from torch.func import functional_call

from agenticiqa.programs.images.files import sha256_of, write_atomically
from agenticiqa.programs.tools.numerics.weights import outputs_of

OPSET = 18
MOST = 127  # the largest weight in eight bits


class EightBits(nn.Module):
    """A matrix (A, B) in eight bits, with one scale for each row or column along ``axis``."""

    values: Tensor
    scale: Tensor

    def __init__(self, values: Tensor, axis: int) -> None:
        super().__init__()
        scale = values.abs().amax(1 - axis, keepdim=True).clamp(min=1e-12) / MOST
        self.register_buffer("values", torch.round(values / scale).to(torch.int8))
        self.register_buffer("scale", scale)

    def forward(self) -> Tensor:
        """Return the matrix in single precision."""
        return self.values.float() * self.scale


class HalfPrecision(nn.Module):
    """An array in half precision."""

    values: Tensor

    def __init__(self, values: Tensor) -> None:
        super().__init__()
        self.register_buffer("values", values.half())

    def forward(self) -> Tensor:
        """Return the array in single precision."""
        return self.values.float()


class Compact(nn.Module):
    """A network with compactly stored weights, which are converted to single precision for each use."""

    def __init__(self, network: nn.Module, stored: Mapping[str, nn.Module]) -> None:
        super().__init__()
        self.network = network
        self.names = list(stored)
        self.stored = nn.ModuleList(stored.values())

    def forward(self, inputs: Tensor) -> Any:
        """Return the output of the network."""
        weights = {name: value() for name, value in zip(self.names, self.stored, strict=True)}
        return functional_call(self.network, weights, (inputs,))


def save_onnx(
    network: nn.Module,
    example: Tensor,
    names: Sequence[str],
    dynamic: Mapping[int, Any],
    file: Path,
    values: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Write a network of one input. ``names`` are of input and outputs; ``dynamic`` are axes of any length.

    ``values`` has the names of the values of outputs, which ``numerics.networks.value_names`` reads.
    """
    program = torch.onnx.export(
        network.eval(),
        (example,),
        input_names=[names[0]],
        output_names=list(names[1:]),
        dynamic_shapes=[dict(dynamic)],
        opset_version=OPSET,
        dynamo=True,
        verbose=False,
    )
    assert program is not None  # None only if torch itself writes a file
    model = program.model_proto
    for part in (*model.graph.node, *model.graph.value_info, *model.graph.initializer):
        del part.metadata_props[:]  # the exporter writes the local path of each line of code
    listed = {outputs_of(output): json.dumps(of_output) for output, of_output in (values or {}).items()}
    onnx.helper.set_model_props(model, listed)
    onnx.checker.check_model(model)
    write_atomically(file, model.SerializeToString(deterministic=True))


def in_two_parts(model: onnx.ModelProto, output: str) -> tuple[bytes, bytes]:
    """Return a model in two parts: the first is a smaller model of one output, and both joined are the whole model.

    Protobuf merges the graph of the second part into that of the first. See ``programs.tools.numerics.networks``.
    """
    needed = {output}
    for node in reversed(model.graph.node):
        if needed.intersection(node.output):
            needed.update(node.input, node.output)
    smaller, rest = onnx.ModelProto(), onnx.ModelProto()
    smaller.CopyFrom(model)
    smaller.ClearField("graph")
    smaller.graph.name = model.graph.name
    smaller.graph.input.extend(model.graph.input)
    for node in model.graph.node:
        (smaller if node.output[0] in needed else rest).graph.node.append(node)
    for weight in model.graph.initializer:
        (smaller if weight.name in needed else rest).graph.initializer.append(weight)
    for value in model.graph.output:
        (smaller if value.name == output else rest).graph.output.append(value)
    onnx.checker.check_model(smaller)
    return smaller.SerializeToString(deterministic=True), rest.SerializeToString(deterministic=True)


def write_quality_model(model: onnx.ModelProto, file: Path) -> None:
    """Write a quality model that begins with its backbone, and print the constants of ``learned_iqa`` for it."""
    backbone, rest = in_two_parts(model, "late")
    write_atomically(file, backbone + rest)
    print(f'SHA256 = "{sha256_of(file)}"')
    print(f"BACKBONE = {len(backbone):_}")
