"""What the quality model is trained on: each image's features, computed once and kept."""

import io
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from agenticiqa.eval.datasets import Labelled
from agenticiqa.eval.train.efficientnet_lite0 import Network
from agenticiqa.eval.train.quality_graph import build_features
from agenticiqa.eval.train.ridge import Array
from agenticiqa.programs.images import load
from agenticiqa.programs.tools.metrics.learned_iqa import as_input


def look_at(items: Sequence[Labelled], network: Network, kept: Path, watch: Callable[[int, int], None]) -> Array:
    """The features (N, 17920) of labelled images, from the folder ``kept`` where they are there already.

    A file per image, named by the image's sha256, written whole or not at all: an interrupted run goes on where it
    stopped. ``watch`` is told how many of how many are done.
    """
    import onnxruntime

    kept.mkdir(parents=True, exist_ok=True)
    model = build_features(network).SerializeToString()
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    rows = []
    for number, item in enumerate(items, 1):
        image = load(item.image)
        file = kept / f"{image.sha256}.npy"
        if not file.is_file():
            buffer = io.BytesIO()
            np.save(buffer, session.run(["inside"], {"image": as_input(image.pixels)})[0].ravel())
            part = file.with_suffix(".part")
            part.write_bytes(buffer.getvalue())
            part.replace(file)
        rows.append(np.load(file))
        watch(number, len(items))
    return np.stack(rows)
