import ast
import hashlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from agenticiqa.programs.errors import ToolError
from agenticiqa.programs.tools.numerics import weights as weight_files
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


def test_damaged_and_missing_files_are_reported_by_name(file: Path) -> None:
    digest = sha256(file)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(ToolError, match=r"some\.npz is damaged"):
        read_weights(file, digest)
    with pytest.raises(ToolError, match=r"absent\.npz cannot be read"):
        read_weights(file.with_name("absent.npz"), "0" * 64)


SHIPPED = sorted(Path(weight_files.__file__).parents[2].rglob("*.npz"))


@pytest.mark.parametrize("shipped", SHIPPED, ids=lambda path: path.name)
def test_the_arrays_are_those_that_numpy_reads(shipped: Path) -> None:
    with np.load(shipped) as expected:
        named = {name: expected[name].tolist() for name in expected if name.endswith("_outputs")}
        outputs = {name.removesuffix("_outputs"): names for name, names in named.items()}
        weights = read_weights(shipped, sha256(shipped), outputs)
        assert set(weights) == set(expected)
        for name, values in expected.items():
            if name in named:
                assert weights[name].tolist() == named[name]
                continue
            assert np.array_equal(weights[name], values.astype(np.float64))
            assert weights[name].strides == values.astype(np.float64).strides


@pytest.mark.parametrize(
    "values",
    [
        np.zeros(()),
        np.ones((2, 0, 3)),
        np.arange(5, dtype="<u2"),
        np.int8([[1], [-2]]),
        np.asfortranarray([[1.0, 2, 3], [4, 5, 6]]),
    ],
)
def test_arrays_of_every_shape(tmp_path: Path, values: np.ndarray) -> None:
    np.savez_compressed(tmp_path / "a.npz", values=values)
    read = read_weights(tmp_path / "a.npz", sha256(tmp_path / "a.npz"))["values"]
    assert read.shape == values.shape
    assert read.tolist() == values.tolist()


@pytest.fixture
def named(tmp_path: Path) -> Path:
    path = tmp_path / "named.npz"
    np.savez(path, slope=np.float32([1, 2]), head_outputs=np.array(["Noise", "Noise: grain"]))
    return path


def test_the_names_of_outputs_may_be_in_any_order(named: Path) -> None:
    weights = read_weights(named, sha256(named), {"head": ("Noise: grain", "Noise")})
    assert weights["head_outputs"].tolist() == ["Noise", "Noise: grain"], "the order of the file"


@pytest.mark.parametrize(
    ("known", "said"),
    [
        (
            {"head": ("Noise",)},
            "named.npz: the weights know 'Noise: grain', the table does not; train it again or restore the row",
        ),
        (
            {"head": ("Noise", "Noise: grain", "Blurs")},
            "named.npz: the table knows 'Blurs', the weights do not; train it again or remove the row",
        ),
        (
            {"head": ("Noise", "Noise: dots")},
            "named.npz: the weights know 'Noise: grain', the table does not; the table knows 'Noise: dots', the "
            "weights do not; train it again or restore the row",
        ),
        (
            {"head": ("Noise", "Noise: grain", "Noise")},
            "named.npz: the table has 'Noise' twice; each output needs a name of its own",
        ),
        (
            {"other": ("Noise",)},
            "named.npz: the table knows 'Noise', the weights do not; train it again or remove the row",
        ),
    ],
)
def test_outputs_that_only_the_file_or_the_table_has_are_refused(
    named: Path, known: dict[str, tuple[str, ...]], said: str
) -> None:
    with pytest.raises(ToolError) as refused:
        read_weights(named, sha256(named), known)
    assert str(refused.value) == said


@pytest.mark.parametrize("values", [np.array(["text"]), np.array([1j])])
def test_other_arrays_are_refused(tmp_path: Path, values: np.ndarray) -> None:
    np.savez(tmp_path / "a.npz", values=values)
    with pytest.raises(ValueError, match=r"real numbers|string to float"):
        read_weights(tmp_path / "a.npz", sha256(tmp_path / "a.npz"))


def test_threads_that_begin_together_read_a_file_once_and_without_python_source(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest, reads, together = sha256(file), [], threading.Barrier(8)

    def never(*_: object, **__: object) -> None:
        raise SystemError("AST constructor recursion depth mismatch")

    def counted(read: Callable[[Path, str], bytes]) -> Callable[[Path, str], bytes]:
        return lambda *given: reads.append(given) or read(*given)

    monkeypatch.setattr(ast, "literal_eval", never)
    monkeypatch.setattr(ast, "parse", never)
    monkeypatch.setattr(weight_files, "read_checked", counted(weight_files.read_checked))

    def read(_: int) -> dict[str, np.ndarray]:
        together.wait()
        return read_weights(file, digest)

    with ThreadPoolExecutor(8) as pool:
        first, *others = pool.map(read, range(8))
    assert all(other is first for other in others)
    assert len(reads) == 1
