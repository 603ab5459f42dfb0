"""A network's file that is missing."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from agenticiqa.programs.errors import ToolError
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
