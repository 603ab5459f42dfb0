"""Networks: a missing file, threads, and models of several outputs."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import pytest

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.images.files import sha256_of
from agenticiqa.programs.images.memo import Memo
from agenticiqa.programs.tools.metrics.learned_iqa import MODEL, SHA256
from agenticiqa.programs.tools.numerics import networks


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


def test_only_the_layers_that_lead_to_an_output_are_computed(tmp_path):
    """The other output fails: it reads a row that the input lacks."""
    given, good, bad = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in "xyz")
    row = onnx.helper.make_tensor("row", onnx.TensorProto.INT64, [1], [9])
    nodes = [onnx.helper.make_node("Neg", ["x"], ["y"]), onnx.helper.make_node("Gather", ["y", "row"], ["z"])]
    graph = onnx.helper.make_graph(nodes, "two outputs", [given], [good, bad], [row])
    opset = onnx.helper.make_opsetid("", 18)
    file = tmp_path / "two.onnx"
    file.write_bytes(onnx.helper.make_model(graph, opset_imports=[opset], ir_version=10).SerializeToString())
    pixels = np.ones((1, 3, 2, 2), np.float32)
    assert (networks.run_network(file, sha256_of(file), "y", pixels) == -1).all()
    with pytest.raises(Exception, match="out of data bounds"):
        networks.run_network(file, sha256_of(file), "z", pixels)


def test_outputs_have_the_same_bits_alone_and_together():
    image = np.random.default_rng(0).integers(0, 256, (1, 3, 65, 97)).astype(np.float32)
    names = ("reading", "late", "features")
    together = networks.run_for(MODEL, SHA256, names, image)
    for name, found in zip(names, together, strict=True):
        assert np.array_equal(networks.run_network(MODEL, SHA256, name, image), found), name
