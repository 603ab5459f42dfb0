"""Networks: a missing file, threads, and models reduced to some outputs."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.utils import Extractor

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.images.memo import Memo
from agenticiqa.programs.tools.metrics.learned_iqa import MODEL, SHA256
from agenticiqa.programs.tools.numerics import networks
from agenticiqa.programs.tools.numerics.networks import layers_to
from agenticiqa.programs.tools.saliency import FUSED, NETWORK


def test_a_missing_model_file_is_named(tmp_path):
    with pytest.raises(ToolError, match="cannot be read"):
        networks.run_network(tmp_path / "gone.onnx", "", "reading", np.zeros((1, 3, 32, 32), np.float32))


def test_threads_that_begin_together_load_a_network_once(monkeypatch):
    reads, together = [], threading.Barrier(8)
    read = networks.read_checked
    monkeypatch.setattr(networks, "_sessions", Memo())
    monkeypatch.setattr(networks, "read_checked", lambda *given: reads.append(given) or read(*given))

    def run(_):
        together.wait()
        return float(run_network(MODEL, SHA256, "reading", np.zeros((1, 3, 32, 32), np.float32))[0][0])

    run_network = networks.run_network
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(run, range(8)))) == 1
    assert len(reads) == 1


@pytest.mark.parametrize(("file", "output"), [(MODEL, "late"), (MODEL, "reading"), (NETWORK, FUSED)])
def test_a_reduced_model_has_the_nodes_and_weights_that_onnx_extracts(file, output):
    whole = onnx.load(file)
    found = onnx.load_from_string(layers_to(file.read_bytes(), output))
    onnx.checker.check_model(found)
    expected = Extractor(whole).extract_model([whole.graph.input[0].name], [output])
    assert list(found.graph.node) == list(expected.graph.node)
    assert {each.name for each in found.graph.initializer} == {each.name for each in expected.graph.initializer}
    assert [each.name for each in found.graph.output] == [output]
    assert [*found.graph.input, *found.opset_import] == [*whole.graph.input, *whole.opset_import]


def test_a_reduced_model_computes_the_same_bits():
    image = np.random.default_rng(0).integers(0, 256, (1, 3, 65, 97)).astype(np.float32)
    whole, part = (run(model, image) for model in (MODEL.read_bytes(), layers_to(MODEL.read_bytes(), "late")))
    assert np.array_equal(whole, part)


def run(model, image):
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return session.run(["late"], {"image": image})[0]
