"""Reading a weight file that ships beside its metric."""

import hashlib
import io
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.errors import ToolError


@cache
def read_weights(file: Path, sha256: str) -> dict[str, NDArray[np.float64]]:
    """The arrays of an ``.npz`` file in double precision, read once.

    ``sha256`` is the hex digest that the whole file must have. Raises ToolError, naming the file, when it is missing
    or its bytes are others: a metric with damaged weights would still give plausible numbers.
    """
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ToolError(f"weight file {file} cannot be read ({error.strerror}): reinstall the package") from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ToolError(f"weight file {file} is damaged (its sha256 is not the expected one): reinstall the package")
    with np.load(io.BytesIO(content)) as arrays:
        return {name: np.asarray(values, dtype=np.float64) for name, values in arrays.items()}
