"""``agenticiqa.metrics``: the same values for every image format, batches, and refused arguments."""

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from agenticiqa import metrics
from agenticiqa.programs import tools
from agenticiqa.programs.errors import ImageError, ToolError
from agenticiqa.programs.tools.catalog import METRICS
from support.distortion_levels import scene

PHOTO = scene()
WORSE = np.clip(PHOTO.astype(int) + np.random.default_rng(0).integers(-30, 31, PHOTO.shape), 0, 255).astype(np.uint8)
VALUE = tools.ssim(WORSE, PHOTO)


class Tensor:
    """What is used of a torch tensor, channels first."""

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.dtype = array, f"torch.{array.dtype}"

    def detach(self) -> "Tensor":
        return self

    cpu = float = detach

    def numpy(self) -> np.ndarray:
        return self.array


def png(pixels: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize(
    "given",
    [
        Image.fromarray,
        png,
        lambda pixels: io.BytesIO(png(pixels)),
        lambda pixels: pixels.astype(np.uint16) * 257,
        lambda pixels: pixels / 255,
        lambda pixels: (pixels / 255).astype(np.float32),
        lambda pixels: pixels.transpose(2, 0, 1),
        lambda pixels: np.dstack([pixels, np.full(pixels.shape[:2], 255, np.uint8)]),
        lambda pixels: Tensor(pixels.transpose(2, 0, 1)),
        lambda pixels: Tensor((pixels.transpose(2, 0, 1) / 255).astype(np.float32)),
    ],
    ids=["PIL", "bytes", "file", "uint16", "float64", "float32", "C H W", "RGBA", "tensor", "float tensor"],
)
def test_an_image_has_the_same_value_in_every_format(given) -> None:
    assert metrics.ssim(given(WORSE), given(PHOTO)) == pytest.approx(VALUE, abs=1e-12)


def test_paths_and_gray_images_of_every_shape_are_accepted(tmp_path: Path) -> None:
    gray = np.asarray(Image.fromarray(PHOTO).convert("L"))
    expected = tools.niqe(np.dstack([gray] * 3))
    Image.fromarray(gray).save(tmp_path / "gray.png")
    shapes = [tmp_path / "gray.png", str(tmp_path / "gray.png"), gray, gray[..., None], gray[None], gray / 255]
    assert [metrics.niqe(each) for each in (*shapes, gray.astype(np.uint16) * 257)] == [expected] * 7


def test_a_batch_returns_an_array() -> None:
    images, references = np.stack([WORSE, PHOTO]), np.stack([PHOTO, PHOTO])
    for shown, pristine in (
        (images, references),
        (images.transpose(0, 3, 1, 2), references / 255),
        (Tensor(images.transpose(0, 3, 1, 2)), Tensor(references.transpose(0, 3, 1, 2))),
        ([WORSE, png(PHOTO)], references),
        (images, PHOTO),
    ):
        found = metrics.measure("Ssim", shown, pristine)
        assert isinstance(found, np.ndarray)
        assert found == pytest.approx([VALUE, 1.0], abs=1e-12)
    assert metrics.niqe(images[:1]).shape == (1,)
    assert metrics.psnr(images[:0], PHOTO).shape == (0,)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: metrics.niqe(PHOTO, WORSE), ToolError, "NIQE takes no reference"),
        (lambda: metrics.measure("sim", PHOTO), ToolError, "did you mean SSIM"),
        (lambda: metrics.measure(["ssim", "psnr"], PHOTO, WORSE), ToolError, "got list; call measure for each metric"),
        (lambda: metrics.ssim(PHOTO), ToolError, "SSIM needs a reference"),
        (lambda: metrics.ssim(np.stack([PHOTO] * 2), np.stack([PHOTO] * 3)), ToolError, "got 3"),
        (lambda: metrics.ssim(PHOTO, np.stack([PHOTO] * 2)), ToolError, "got 2"),
        (lambda: metrics.niqe(PHOTO.astype(float)), ImageError, "divide by 255"),
        (lambda: metrics.niqe(PHOTO.astype(int)), ImageError, "uint8"),
        (lambda: metrics.niqe(np.zeros((9, 40, 50), np.uint8)), ImageError, "(N, H, W, C)"),
        (lambda: metrics.niqe(np.zeros((1, 1, 40, 50, 3), np.uint8)), ImageError, "(1, 1, 40, 50, 3)"),
        (lambda: metrics.niqe([np.stack([PHOTO] * 2)]), ImageError, "a batch in it"),
        (lambda: metrics.niqe([PHOTO, PHOTO * 0]), ToolError, "image 1 of the batch"),
        (lambda: metrics.niqe("none.png"), ImageError, "no such file"),
        (lambda: metrics.ssim(PHOTO, PHOTO[1:]), ToolError, "same size"),
    ],
)
def test_wrong_arguments_are_reported_in_one_line(call, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=r"^[^\n]*$") as caught:
        call()
    assert said in str(caught.value)


def test_every_metric_is_listed_and_can_be_imported() -> None:
    listed = metrics.list_metrics()
    assert [row["name"] for row in listed] == list(tools.TOOLS)
    assert all(callable(getattr(metrics, name)) for name in dir(metrics))
    assert metrics.gmsd.__name__ == "gmsd"
    assert "Xue" in (metrics.gmsd.__doc__ or "")
    for name in METRICS:
        shown = getattr(metrics, name).__doc__ or ""
        assert "array of shape (N,)" in shown, name
        assert "of another kind" not in shown, "it takes images of any kind"
    with pytest.raises(ImportError):
        exec("from agenticiqa.metrics import no_such_metric")


def test_neither_dspy_nor_torch_nor_pydantic_is_loaded() -> None:
    code = "import sys; from agenticiqa.metrics import ssim; print({'dspy', 'torch', 'pydantic'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"
