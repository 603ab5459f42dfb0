"""Read a weight file that ships beside its metric."""

import hashlib
import io
import re
import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.images.memo import Memo


def read_checked(file: Path, sha256: str) -> bytes:
    """Return the bytes of a weight file after checking that its hex digest is ``sha256``.

    Raises ToolError, naming the file, when it is missing or its bytes differ: a metric with damaged weights would still
    give plausible numbers.
    """
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ToolError(f"weight file {file} cannot be read ({error.strerror}): reinstall the package") from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ToolError(f"weight file {file} is damaged (its sha256 is not the expected one): reinstall the package")
    return content


def read_weights(file: Path, sha256: str) -> dict[str, NDArray[np.float64]]:
    """Return the arrays of an ``.npz`` file in double precision, read once. Raises as ``read_checked`` does."""
    return _read.once((file, sha256), lambda: _arrays(read_checked(file, sha256)))


_read = Memo()


def _arrays(content: bytes) -> dict[str, NDArray[np.float64]]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name.removesuffix(".npy"): _array(archive.read(name)) for name in archive.namelist()}


def _array(content: bytes) -> NDArray[np.float64]:
    """Return an array of the ``.npy`` format, version 1.0 (NumPy's documentation, ``numpy.lib.format``).

    NumPy reads the header as Python source, for which ``ast`` may raise SystemError ("AST constructor recursion depth
    mismatch") while another thread parses some, such as one of DSPy's.
    """
    header = _HEADER.match(content)
    if header is None:
        raise ValueError("expected an array of real numbers in the .npy format, version 1.0")
    shape = [int(side) for side in header["shape"].replace(b" ", b"").split(b",") if side]
    values = np.frombuffer(content, header["type"].decode(), offset=header.end())
    return values.reshape(shape, order="F" if header["by_column"] == b"True" else "C").astype(np.float64)


_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '(?P<type>[<|][fiu]\d)', 'fortran_order': (?P<by_column>True|False), "
    rb"'shape': \((?P<shape>[\d, ]*)\), \} *\n",
    re.DOTALL,
)
