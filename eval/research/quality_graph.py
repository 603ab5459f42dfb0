"""The quality model as one ONNX file: a frozen backbone, statistics of the pixels, and the head.

Ours, not torch's exporter, because the same network has to give the same bytes (and SHA-256) whichever torch is
installed, in an opset that onnxruntime 1.17 reads, with weights in half precision.

The features are the square roots of the means and standard deviations of all expanded, depthwise filtered activations,
17,920 numbers for an image of any size, and the 203 statistics of the pixels.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from agenticiqa.eval.research.efficientnet_lite0 import Block, Conv, Network
from agenticiqa.eval.research.image_statistics import STATISTICS, Statistics
from agenticiqa.eval.research.panels import ALIKE, UNLIKE
from agenticiqa.eval.research.quality_head import CLIP, DAMAGE, SHARE, WIDTH, Array, Networks, Projections
from agenticiqa.programs.images.files import write_atomically

CENTER, SCALE = 127.0, 128.0  # how Lite networks normalize pixels in 0..255
OPSET, IR_VERSION = 18, 9  # readable by onnxruntime 1.17
END = 1 << 30  # of a slice


class Graph:
    """An ONNX graph under construction: its nodes and weights."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.weights: list[Any] = []

    def add(self, operator: str, inputs: Sequence[str], name: str | None = None, **attributes: Any) -> str:
        """Append a node with one output; returns the output's name."""
        output = name or f"{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def constant(self, values: NDArray[Any] | float | Sequence[int]) -> str:
        """A constant: single precision for floats, 64 bits for integers; returns its name."""
        array = np.asarray(values)
        array = array.astype(np.int64 if array.dtype.kind == "i" else np.float32)
        self.weights.append(numpy_helper.from_array(array, f"constant_{len(self.weights)}"))
        return self.weights[-1].name

    def half(self, values: Array) -> str:
        """A weight stored in half precision, with a cast to single; returns the name of the cast."""
        self.weights.append(numpy_helper.from_array(values.astype(np.float16), f"half_{len(self.weights)}"))
        return self.add("Cast", [self.weights[-1].name], to=TensorProto.FLOAT)

    def conv(self, x: str, layer: Conv) -> str:
        """A convolution and, if the layer has one, its ReLU6."""
        before, after = layer.padding
        x = self.add(
            "Conv",
            [x, self.half(layer.weight), self.constant(layer.bias)],
            group=layer.groups,
            strides=[layer.stride] * 2,
            pads=[before, before, after, after],
        )
        return self.add("Clip", [x, self.constant(0.0), self.constant(6.0)]) if layer.clipped else x

    def block(self, x: str, layers: Block) -> tuple[str, str]:
        """An inverted residual; returns its output and its depthwise filtered activations."""
        inner = self.conv(self.conv(x, layers.expand) if layers.expand else x, layers.depthwise)
        y = self.conv(inner, layers.project)
        return (self.add("Add", [x, y]) if layers.residual else y), inner

    def statistics(self, x: str) -> list[str]:
        """Mean and standard deviation over space, each (1, C, 1, 1)."""
        axes = self.constant([2, 3])
        mean = self.add("ReduceMean", [x, axes], keepdims=1)
        away = self.add("Sub", [x, mean])
        variance = self.add("ReduceMean", [self.add("Mul", [away, away]), axes], keepdims=1)
        return [mean, self.add("Sqrt", [self.add("Add", [variance, self.constant(1e-5)])])]

    def standardized(self, features: str, mean: Array, spread: Array) -> str:
        """Features (1, F) in deviations from the mean, clipped."""
        x = self.add("Div", [self.add("Sub", [features, self.constant(mean)]), self.constant(spread)])
        return self.add("Clip", [x, self.constant(-CLIP), self.constant(CLIP)])

    def columns(self, x: str, start: int, stop: int) -> str:
        """Those columns of an array (1, N)."""
        return self.add("Slice", [x, *(self.constant([number]) for number in (start, stop, 1))])

    def with_panels(self, projected: str, count: int) -> str:
        """Projections (1, K) as ``panels.with_panels`` makes them."""
        opinion, own = self.columns(projected, 0, 1), self.columns(projected, 1, 1 + count)
        alike = self.add("Sub", [self.columns(projected, 1 + count, 1 + 2 * count), self.constant(UNLIKE)])
        scaled = self.add("Div", [alike, self.constant(ALIKE - UNLIKE)])
        share = self.add("Clip", [scaled, self.constant(0.0), self.constant(1.0)])
        axes = self.constant([1])
        total = self.add("Max", [self.add("ReduceSum", [share, axes], keepdims=1), self.constant(1.0)])
        change = self.add("Mul", [share, self.add("Sub", [own, opinion])])
        change = self.add("Div", [self.add("ReduceSum", [change, axes], keepdims=1), total])
        return self.add("Concat", [self.add("Add", [opinion, change]), self.columns(projected, 1, END)], axis=1)

    def silu(self, x: str) -> str:
        """``x / (1 + exp(-x))``."""
        return self.add("Mul", [x, self.add("Sigmoid", [x])])

    def networks(self, given: str, head: Networks) -> str:
        """The head's score, (1, 1), of the projections and statistics (1, T), as in ``Networks``."""
        x = self.standardized(given, head.mean, head.spread)
        hidden = self.silu(
            self.add("Add", [self.add("MatMul", [x, self.constant(head.inward)]), self.constant(head.inner)])
        )
        count, width, _ = head.middle.shape
        hidden = self.add("Reshape", [hidden, self.constant([count, 1, width])])
        last = self.add("MatMul", [hidden, self.constant(head.middle)])
        last = self.silu(self.add("Add", [last, self.constant(head.center[:, None])]))
        parts = self.add("MatMul", [last, self.constant(head.outward[:, :, None])])
        bent = self.add("Reshape", [self.add("ReduceSum", [parts], keepdims=0), self.constant([1, 1])])
        straight = self.add("MatMul", [x, self.constant(head.straight[:, None])])
        opinion = self.columns(given, 0, 1)
        change = self.add("Add", [self.add("Add", [bent, straight]), self.constant(head.bias)])
        away = self.add("Div", [self.add("Add", [change, self.constant(DAMAGE)]), self.constant(-WIDTH)])
        seen = self.add("Mul", [self.add("Sigmoid", [away]), self.constant(1 - SHARE)])
        counted = self.add("Mul", [change, self.add("Add", [seen, self.constant(SHARE)])])
        return self.add("Add", [opinion, counted])


def build_features(network: Network) -> onnx.ModelProto:
    """The features for training: ``image`` as in ``build`` to ``inside`` (1, 17920 + statistics, 1, 1)."""
    graph = Graph()
    inside, _ = _backbone(graph, network)
    statistics = Statistics(graph).all_of("image")
    graph.add("Concat", [inside, statistics], "inside", axis=1)
    return _model(graph, {"inside": ["n", "f", 1, 1]})


def build(network: Network, projections: Projections, networks: Networks) -> onnx.ModelProto:
    """The model: ``image`` (1, 3, H, W), RGB in 0..255, to ``reading`` (1, 2) and ``late`` (1, 320, H/32, W/32).

    ``reading`` is the score and the novelty, the mean square of the standardized features (1 for an image like those
    that people judged for the training). ``late`` is the output of the last stage.
    """
    graph = Graph()
    inside, late = _backbone(graph, network)
    statistics = Statistics(graph).all_of("image")
    features = graph.add("Flatten", [graph.add("Concat", [inside, statistics], axis=1)])
    standard = graph.standardized(features, projections.mean, projections.spread)
    projected = graph.add("MatMul", [standard, graph.half(projections.weight)])
    projected = graph.add("Add", [projected, graph.constant(projections.bias)])
    projected = graph.with_panels(projected, projections.panels)
    own = graph.columns(standard, -STATISTICS, END)
    score = graph.networks(graph.add("Concat", [projected, own], axis=1), networks)
    squares = graph.add("Mul", [standard, standard])
    novelty = graph.add("ReduceMean", [squares, graph.constant([1])], keepdims=1)
    graph.add("Concat", [score, novelty], "reading", axis=1)
    graph.add("Identity", [late], "late")
    return _model(graph, {"reading": ["n", 2], "late": ["n", "c", "h32", "w32"]})


def write(model: onnx.ModelProto, file: Path) -> None:
    """Write the model atomically; the same model gives the same bytes."""
    write_atomically(file, model.SerializeToString(deterministic=True))


def _backbone(graph: Graph, network: Network) -> tuple[str, str]:
    """The square roots (to reduce skew) of all activation statistics, (1, F, 1, 1), and the last stage's output."""
    x = graph.add("Mul", [graph.add("Sub", ["image", graph.constant(CENTER)]), graph.constant(1 / SCALE)])
    x = graph.conv(x, network.stem)
    by_block: list[list[str]] = []
    for stage in network.stages:
        for block in stage:
            x, inner = graph.block(x, block)
            by_block.append(graph.statistics(inner))
    # One after the other: onnxruntime goes back from the end, and would compute all blocks before the first statistics,
    # with the activations of all in memory.
    inside = graph.add("Concat", by_block[0], axis=1)
    for found in by_block[1:]:
        inside = graph.add("Concat", [inside, *found], axis=1)
    return graph.add("Sqrt", [inside]), x


def _model(graph: Graph, outputs: Mapping[str, Sequence[str | int]]) -> onnx.ModelProto:
    graph_proto = helper.make_graph(
        graph.nodes,
        "quality",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, "h", "w"])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()],
        graph.weights,
    )
    model = helper.make_model(graph_proto, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    onnx.checker.check_model(model)
    return model
