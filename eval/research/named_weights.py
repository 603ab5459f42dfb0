"""Write weights as the program reads them: in single precision, with the names of their outputs."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.images.files import sha256_of, write_atomically
from agenticiqa.programs.tools.numerics.weights import outputs_of


def write_weights(file: Path, weights: Mapping[str, NDArray[np.float64]], outputs: Mapping[str, Sequence[str]]) -> None:
    """Write weights to an ``.npz`` file and print its SHA-256; ``outputs`` has the names of each head's outputs."""
    arrays = {name: values.astype(np.float32) for name, values in weights.items()}
    names = {outputs_of(head): np.array(listed) for head, listed in outputs.items()}
    archive = io.BytesIO()
    np.savez_compressed(archive, **arrays, **names)  # type: ignore[arg-type]  # no name is an option
    write_atomically(file, archive.getvalue())
    print(f"{file}: sha256 {sha256_of(file)}")
