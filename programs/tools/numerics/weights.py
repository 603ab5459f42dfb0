"""Reading a weight file that ships beside its metric."""

import hashlib
import io
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.errors import ToolError


def read_checked(file: Path, sha256: str) -> bytes:
    """The bytes of a weight file, whose hex digest must be ``sha256``.

    Raises ToolError, naming the file, when it is missing or its bytes are others: a metric with damaged weights would
    still give plausible numbers.
    """
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ToolError(f"weight file {file} cannot be read ({error.strerror}): reinstall the package") from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ToolError(f"weight file {file} is damaged (its sha256 is not the expected one): reinstall the package")
    return content


@cache
def read_weights(file: Path, sha256: str) -> dict[str, NDArray[np.float64]]:
    """The arrays of an ``.npz`` file in double precision, read once. Raises as ``read_checked`` does."""
    with np.load(io.BytesIO(read_checked(file, sha256))) as arrays:
        return {name: np.asarray(values, dtype=np.float64) for name, values in arrays.items()}
