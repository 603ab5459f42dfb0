"""Run an ONNX network that ships with the package: one core, the same bits each time.

onnxruntime always computes all layers of a file. A file may begin with a smaller network that is complete by itself:
protobuf merges the graph that follows into it, so that the first bytes are one network and all bytes another.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.images.memo import Memo
from agenticiqa.programs.tools.numerics.weights import check_outputs, outputs_of, read_checked

KEPT_PIXELS = 512 * 512  # pixels of an input; the working memory for more of them is returned after each run


def run_network(
    file: Path, sha256: str, output: str, inputs: NDArray[np.float32] | NDArray[np.int64], size: int | None = None
) -> NDArray[np.float32]:
    """Return one named output of a network with one input, pixels (1, C, H, W) or tokens (1, N).

    ``size`` is the length of the smaller network at the beginning of the file, if that is meant.

    Raises ToolError when the file is missing or its sha256 is not the given one.
    """
    return run_for(file, sha256, (output,), inputs, size)[0]


def run_for(
    file: Path,
    sha256: str,
    outputs: tuple[str, ...],
    inputs: NDArray[np.float32] | NDArray[np.int64],
    size: int | None = None,
) -> list[NDArray[np.float32]]:
    """Return several outputs, as ``run_network`` does."""
    options = silent_onnxruntime().RunOptions()
    if inputs.shape[-2] * inputs.shape[-1] > KEPT_PIXELS:  # a fifth of the time of smaller inputs
        options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    session = _session(file, sha256, size)
    results: list[NDArray[np.float32]] = session.run(outputs, {session.get_inputs()[0].name: inputs}, options)
    return results


def value_names(file: Path, sha256: str, output: str, known: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the values of an output, in order, which a network has in its metadata (JSON).

    ``known`` are those of the program's table. Raises as ``run_network`` does, and as ``check_outputs``.
    """
    metadata = _session(file, sha256, None).get_modelmeta().custom_metadata_map
    names = json.loads(metadata.get(outputs_of(output), "[]"))
    check_outputs(file.name, names, known)
    return tuple(names)


def silent_onnxruntime() -> Any:
    """Return the module ``onnxruntime``, which then sends no telemetry, unless the user has asked for it."""
    # From 1.32 on it keeps a device id and events in the user's cache folder, and looks up the host to send them to.
    # It reads the variable once, while it is imported.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime  # slow to import

    return onnxruntime


_sessions = Memo()  # functools.cache would let threads that begin together each load the network


def _session(file: Path, sha256: str, size: int | None) -> Any:
    return _sessions.once((file, sha256, size), lambda: _loaded(file, sha256, size))


def _loaded(file: Path, sha256: str, size: int | None) -> Any:
    onnxruntime = silent_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_mem_pattern = False  # the plans for the shapes of all images are kept
    options.log_severity_level = 3  # errors only: it warns of initializers that it drops
    network = read_checked(file, sha256)[:size]
    return onnxruntime.InferenceSession(network, options, providers=["CPUExecutionProvider"])
