"""The quality model's training features, computed once per image and kept on disk."""

import io
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from agenticiqa.eval.datasets import LabeledImage
from agenticiqa.eval.train.efficientnet_lite0 import Network
from agenticiqa.eval.train.quality_graph import build_features
from agenticiqa.eval.train.ridge import Array
from agenticiqa.programs.images import load
from agenticiqa.programs.images.files import write_atomically
from agenticiqa.programs.tools.metrics.learned_iqa import as_input


def features_of(
    items: Sequence[LabeledImage], network: Network, kept: Path, report_progress: Callable[[int, int], None]
) -> Array:
    """The features (N, 17920) of N labeled images; those in the folder ``kept`` are not computed again.

    A file per image, named by the image's SHA-256 and written atomically, so that an interrupted run continues.
    ``report_progress`` gets the number of images done and the number of all.
    """
    import onnxruntime

    model = build_features(network).SerializeToString()
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    rows = []
    for number, item in enumerate(items, 1):
        image = load(item.image)
        file = kept / f"{image.sha256}.npy"
        if not file.is_file():
            buffer = io.BytesIO()
            np.save(buffer, session.run(["inside"], {"image": as_input(image.pixels)})[0].ravel())
            write_atomically(file, buffer.getvalue())
        rows.append(np.load(file))
        report_progress(number, len(items))
    return np.stack(rows)
