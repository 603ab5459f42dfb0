"""Read arrays of ``.npz`` files: weights that ship beside their metric, and files of users."""

import hashlib
import io
import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.images.memo import Memo

MOST_UNPACKED = 2**26  # bytes of all arrays of a file
MOST_MEMBERS = 100  # arrays in a file


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


def read_weights(
    file: Path, sha256: str, outputs: Mapping[str, Sequence[str]] | None = None
) -> dict[str, NDArray[Any]]:
    """Return the arrays of an ``.npz`` file in double precision, read once.

    ``outputs`` has the names of the outputs of each head, as the program's tables have them. The file has the names in
    the order of its outputs, as texts in ``HEAD_outputs``, and these are returned, too.

    Raises as ``read_checked`` does, and ToolError, naming them, for outputs that only one side has.
    """
    return _read.once((file, sha256), lambda: _checked(file.name, read_checked(file, sha256), outputs or {}))


_read = Memo()


def _checked(file: str, content: bytes, outputs: Mapping[str, Sequence[str]]) -> dict[str, NDArray[Any]]:
    arrays = arrays_in(content)
    for head, known in outputs.items():
        stored = arrays.get(outputs_of(head))
        check_outputs(file, [] if stored is None else stored.tolist(), known)
    texts = {outputs_of(head) for head in outputs}
    return {name: values if name in texts else values.astype(np.float64) for name, values in arrays.items()}


def outputs_of(head: str) -> str:
    """Return the name of the array with the names of a head's outputs."""
    return f"{head}_outputs"


def check_outputs(file: str, stored: Sequence[str], known: Sequence[str]) -> None:
    """Check that the names of the outputs in a weight file are those of the program's table, in any order.

    Raises ToolError, in one line, for an output that only one of them has or that one has twice.
    """
    surplus, missing = (sorted({*these} - {*those}) for these, those in ((stored, known), (known, stored)))
    if surplus:
        also = f"; the table knows {_listed(missing)}, the weights do not" if missing else ""
        raise ToolError(
            f"{file}: the weights know {_listed(surplus)}, the table does not{also}; train it again or restore the row"
        )
    if missing:
        raise ToolError(
            f"{file}: the table knows {_listed(missing)}, the weights do not; train it again or remove the row"
        )
    for names, owner in ((stored, "weights have"), (known, "table has")):
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ToolError(f"{file}: the {owner} {_listed(twice)} twice; each output needs a name of its own")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def arrays_in(content: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays of real numbers and of texts in an ``.npz`` file.

    Sizes are checked first, so that no file takes more memory than ``MOST_UNPACKED``, and no code is executed. Raises
    ValueError for any other content.
    """
    if content.count(b"PK\1\2") > MOST_MEMBERS:  # the headers of members, which zipfile would all read
        raise ValueError(f"it has more than {MOST_MEMBERS} members")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            if (size := sum(member.file_size for member in members)) > MOST_UNPACKED:
                raise ValueError(f"it unpacks to {size} bytes; at most {MOST_UNPACKED} are read")
            return {member.filename.removesuffix(".npy"): _array(archive, member) for member in members}
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, OverflowError, TypeError) as error:
        raise ValueError(f"it is not an .npz file, or damaged: {error}") from error


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    """Return an array of the ``.npy`` format, version 1.0 (NumPy's documentation, ``numpy.lib.format``).

    NumPy reads the header as Python source, for which ``ast`` may raise SystemError ("AST constructor recursion depth
    mismatch") while another thread parses some, such as one of DSPy's.
    """
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError("expected members that are stored or deflated")
    content = archive.read(member)  # bytes, at most as many as declared
    header = _HEADER.match(content)
    if header is None:
        raise ValueError("expected arrays of real numbers or texts in the .npy format, version 1.0")
    shape = [int(side) for side in header["shape"].replace(b" ", b"").split(b",") if side]
    values = np.frombuffer(content, header["type"].decode(), offset=header.end())
    return values.reshape(shape, order="F" if header["by_column"] == b"True" else "C")


_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '(?P<type>[<|]([fiu]\d|U\d+))', 'fortran_order': (?P<by_column>True|False), "
    rb"'shape': \((?P<shape>[\d, ]{0,200})\), \} *\n",
    re.DOTALL,
)
