"""The part of a model that leads to one output, against the onnx package's own extraction."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.utils import Extractor

from agenticiqa.programs.tools.metrics.learned_iqa import MODEL
from agenticiqa.programs.tools.numerics.onnx_layers import layers_to
from agenticiqa.programs.tools.saliency import FUSED, NETWORK


@pytest.mark.parametrize(("file", "output"), [(MODEL, "late"), (MODEL, "reading"), (NETWORK, FUSED)])
def test_it_has_the_nodes_and_weights_that_onnx_extracts(file, output):
    whole = onnx.load(file)
    found = onnx.load_from_string(layers_to(file.read_bytes(), output))
    onnx.checker.check_model(found)
    expected = Extractor(whole).extract_model([whole.graph.input[0].name], [output])
    assert list(found.graph.node) == list(expected.graph.node)
    assert {each.name for each in found.graph.initializer} == {each.name for each in expected.graph.initializer}
    assert [each.name for each in found.graph.output] == [output]
    assert [*found.graph.input, *found.opset_import] == [*whole.graph.input, *whole.opset_import]


def test_its_values_are_those_of_the_whole_model_to_the_bit():
    image = np.random.default_rng(0).integers(0, 256, (1, 3, 65, 97)).astype(np.float32)
    whole, part = (run(model, image) for model in (MODEL.read_bytes(), layers_to(MODEL.read_bytes(), "late")))
    assert np.array_equal(whole, part)


def run(model, image):
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return session.run(["late"], {"image": image})[0]
