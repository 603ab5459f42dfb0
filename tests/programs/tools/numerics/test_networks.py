"""Networks: a missing file, threads, and models of several outputs."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import pytest
from onnx.utils import Extractor

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.images.memo import Memo
from agenticiqa.programs.tools.metrics.learned_iqa import BACKBONE, MODEL, SHA256
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


def test_outputs_have_the_same_bits_alone_together_and_by_the_smaller_network():
    image = np.random.default_rng(0).integers(0, 256, (1, 3, 65, 97)).astype(np.float32)
    names = ("reading", "late", "features")
    together = networks.run_for(MODEL, SHA256, names, image)
    for name, found in zip(names, together, strict=True):
        assert np.array_equal(networks.run_network(MODEL, SHA256, name, image), found), name
    assert np.array_equal(networks.run_network(MODEL, SHA256, "late", image, BACKBONE), together[1])


def test_the_smaller_network_has_only_the_layers_that_its_output_needs():
    content = MODEL.read_bytes()
    smaller, whole = (onnx.load_from_string(each) for each in (content[:BACKBONE], content))
    onnx.checker.check_model(whole)
    expected = Extractor(whole).extract_model([whole.graph.input[0].name], ["late"])
    assert list(smaller.graph.node) == list(expected.graph.node)
    assert {each.name for each in smaller.graph.initializer} == {each.name for each in expected.graph.initializer}
