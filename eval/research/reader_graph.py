"""The question reader as one ONNX file: weights of eight bits, each output channel with a scale of its own.

The weights become single precision when the file is loaded, so that the same question is read alike on every processor;
arithmetic in eight bits depends on what the processor has. Words are looked up in eight bits.
"""

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from agenticiqa.eval.research.quality_graph import IR_VERSION, OPSET, Graph
from agenticiqa.eval.research.sentence_encoder import CHANNELS, HEADS, LAYERS, NORM_EPSILON
from agenticiqa.programs.images.files import write_atomically
from agenticiqa.programs.offline.language.question_reader import OUTPUT, READINGS

Weights = Mapping[str, NDArray[np.float32]]
MOST = 127  # of a weight in eight bits


class ReaderGraph(Graph):
    """A graph with the layers that the reader has; ``weights`` by the names of ``sentence_encoder``."""

    def __init__(self, trained: Weights) -> None:
        super().__init__()
        self.trained = trained

    def eight_bits(self, name: str, values: NDArray[np.float32], axis: int) -> tuple[str, str]:
        """The names of a weight in eight bits and of its scales, one for each place along the other axis."""
        scale = np.maximum(np.abs(values).max(axis=axis, keepdims=True), 1e-12) / MOST
        self.weights.append(numpy_helper.from_array(np.rint(values / scale).astype(np.int8), name))
        return name, self.constant(scale)

    def single(self, name: str) -> str:
        """A weight in eight bits as single precision."""
        return self.add("Cast", [name], to=TensorProto.FLOAT)

    def linear(self, x: str, name: str) -> str:
        """A layer x W^T + b."""
        weight, scale = self.eight_bits(f"{name}.weight", self.trained[f"{name}.weight"].T, axis=0)
        product = self.add("MatMul", [x, self.add("Mul", [self.single(weight), scale])])
        return self.add("Add", [product, self.constant(self.trained[f"{name}.bias"])])

    def normalized(self, x: str, name: str) -> str:
        """Layer normalization over the channels."""
        scale, shift = (self.constant(self.trained[f"{name}.{part}"]) for part in ("weight", "bias"))
        return self.add("LayerNormalization", [x, scale, shift], axis=-1, epsilon=NORM_EPSILON)

    def gelu(self, x: str) -> str:
        """The exact GELU, by the error function."""
        error = self.add("Erf", [self.add("Mul", [x, self.constant(math.sqrt(0.5))])])
        return self.add("Mul", [self.add("Mul", [x, self.constant(0.5)]), self.add("Add", [error, self.constant(1.0)])])

    def embedded(self, tokens: str) -> str:
        """The words' and the positions' values of token numbers (1, N)."""
        name, scale = self.eight_bits("word", self.trained["word"], axis=1)
        looked_up = self.add("Gather", [name, tokens])
        words = self.add("Mul", [self.single(looked_up), self.add("Gather", [scale, tokens])])
        length = self.add("Shape", [tokens], start=1)
        places = self.add("Slice", [self.constant(self.trained["position"]), self.constant([0]), length])
        return self.normalized(self.add("Add", [words, places]), "norm")

    def layer(self, x: str, number: int) -> str:
        """Self-attention and a perceptron."""
        heads = self.constant([1, -1, HEADS, CHANNELS // HEADS])
        query, key, value = (
            self.add("Transpose", [self.add("Reshape", [self.linear(x, f"{number}.{part}"), heads])], perm=order)
            for part, order in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3]))
        )
        products = self.add("Mul", [self.add("MatMul", [query, key]), self.constant((CHANNELS // HEADS) ** -0.5)])
        seen = self.add("MatMul", [self.add("Softmax", [products], axis=-1), value])
        together = self.add("Transpose", [seen], perm=[0, 2, 1, 3])
        mixed = self.linear(self.add("Reshape", [together, self.constant([1, -1, CHANNELS])]), f"{number}.mixed")
        x = self.normalized(self.add("Add", [x, mixed]), f"{number}.attended")
        inner = self.linear(self.gelu(self.linear(x, f"{number}.up")), f"{number}.down")
        return self.normalized(self.add("Add", [x, inner]), f"{number}.out")


def reader_graph(trained: Weights) -> onnx.ModelProto:
    """The model: int64 token numbers (1, N) to what is read, (1, R), the readings one after the other."""
    graph = ReaderGraph(trained)
    x = graph.embedded("tokens")
    for number in range(LAYERS):
        x = graph.layer(x, number)
    mean = graph.add("ReduceMean", [x, graph.constant([1])], keepdims=0)
    first = graph.add("Gather", [x, graph.constant(np.array(0))], axis=1)
    both = graph.add("Concat", [mean, first], axis=1)
    read = [graph.linear(both, name) for name in READINGS]
    graph.add("Concat", read, OUTPUT, axis=1)
    made = helper.make_graph(
        graph.nodes,
        "question_reader",
        [helper.make_tensor_value_info("tokens", TensorProto.INT64, [1, "N"])],
        [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, [1, sum(READINGS.values())])],
        graph.weights,
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)


def save_reader(trained: Weights, file: Path) -> None:
    """Check the model and write it."""
    model = reader_graph(trained)
    onnx.checker.check_model(model)
    write_atomically(file, model.SerializeToString(deterministic=True))
