import hashlib
from pathlib import Path

import numpy as np
import pytest

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.tools.numerics.weights import read_weights


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "some.npz"
    np.savez(path, slope=np.float32([1, 2]), offset=0.5)
    return path


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_arrays_come_in_double_precision(file: Path) -> None:
    weights = read_weights(file, sha256(file))
    assert weights["slope"].tolist() == [1.0, 2.0]
    assert weights["slope"].dtype == np.float64
    assert weights["offset"] == 0.5


def test_one_changed_byte_is_told_by_name(file: Path) -> None:
    digest = sha256(file)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(ToolError, match=r"some\.npz is damaged"):
        read_weights(file, digest)


def test_a_missing_file_is_told_by_name(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"absent\.npz cannot be read"):
        read_weights(tmp_path / "absent.npz", "0" * 64)
