"""Running an ONNX network that ships with the package: one core, the same bits each time."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.images.memo import Memo
from agenticiqa.programs.tools.numerics.weights import read_checked


def run_network(file: Path, sha256: str, output: str, given: NDArray[np.float32]) -> NDArray[np.float32]:
    """One named output of a network with one input; only the layers that lead to it are computed.

    Raises ToolError when the file is missing or its sha256 is not the given one.
    """
    import onnxruntime  # slow to import

    path_only = onnxruntime.RunOptions()
    path_only.only_execute_path_to_fetches = True
    path_only.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    session = _session(file, sha256)
    found: NDArray[np.float32] = session.run([output], {session.get_inputs()[0].name: given}, path_only)[0]
    return found


def _session(file: Path, sha256: str) -> Any:
    return _sessions.once((file, sha256), lambda: _loaded(file, sha256))


_sessions = Memo()  # not functools.cache, with which threads that begin together would each load the network


def _loaded(file: Path, sha256: str) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_mem_pattern = False  # the plans for the shapes of all images are kept
    options.log_severity_level = 3  # errors only: it warns of initializers that it drops
    return onnxruntime.InferenceSession(read_checked(file, sha256), options, providers=["CPUExecutionProvider"])
