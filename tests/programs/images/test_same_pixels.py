"""The pixels that a viewer shows are measured, gated, compared with others, and sent to every provider."""

import ast
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from agenticiqa.configs.policy import GatePolicy
from agenticiqa.eval.labels.near_duplicates import perceptual_hash
from agenticiqa.programs.backends.providers import PROVIDERS
from agenticiqa.programs.batch.gate import checked
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.images import load
from agenticiqa.programs.images.loading import size_of
from agenticiqa.programs.page.thumbnails import thumbnail
from support.odd_colors import encoded, odd_files

ROOT = Path(__file__).resolve().parents[3]
POLICY = GatePolicy(min_effective_side=100, min_jpeg_quality=50)


def photo() -> np.ndarray:
    """320 x 240 pixels of a photo, that were once a JPEG of low quality, in sRGB."""
    with Image.open(ROOT / "examples/coffee.webp") as image:
        small = image.convert("RGB").crop((0, 0, 480, 360)).resize((320, 240), Image.Resampling.LANCZOS)
    return np.asarray(Image.open(io.BytesIO(encoded(small, "JPEG", quality=10))).convert("RGB"))


FILES = {name: rest for name, *rest in odd_files(photo())}
AS_FILE = {"8-bit PNG", "8-bit gray PNG", "lossless WebP", "opaque RGBA PNG"} | {
    "PNG of the usual gAMA",
    "PNG of cICP sRGB",
}
WITHOUT_METADATA = {"PNG turned 1", "JPEG turned 1"}


@pytest.fixture(params=FILES, ids=str)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_the_pixels_that_a_viewer_shows_are_measured(name: str) -> None:
    data, shown, most = FILES[name]
    assert np.abs(load(data).pixels - shown.astype(float)).max() <= most
    assert size_of(data) == load(data).size


@pytest.mark.slow
@pytest.mark.parametrize("formats", sorted({provider.formats for provider in PROVIDERS.values()}, key=len), ids=len)
def test_every_provider_receives_the_measured_pixels(name: str, formats: frozenset[str]) -> None:
    """Decode like the simplest server: with Pillow's ``convert("RGB")``, which ignores the rest of the file."""
    data, *_ = FILES[name]
    image = load(data)
    sent = image.sent_as(formats)
    assert sent.mime in formats
    decoded = Image.open(io.BytesIO(sent.data))
    assert Image.MIME[str(decoded.format)] == sent.mime
    assert np.array_equal(np.asarray(decoded.convert("RGB")), image.pixels)
    assert sent.sent_size == image.size
    pixels = f"measured pixels ({'WebP' if 'webp' in sent.mime else 'PNG'})"
    form = "file" if name in AS_FILE else "file without metadata" if name in WITHOUT_METADATA else pixels
    form = form if image.mime in formats else pixels
    assert (sent.data == data) == (form == "file")
    assert sent.sent == form


def test_the_gate_and_the_page_use_the_measured_pixels(name: str, tmp_path: Path) -> None:
    path = tmp_path / "image"
    data, *_ = FILES[name]
    path.write_bytes(data)
    plain = tmp_path / "plain.png"
    Image.fromarray(load(data).pixels).save(plain)
    found, expected = checked(POLICY, Job(path)), checked(POLICY, Job(plain))
    if data[:2] != b"\xff\xd8":  # a JPEG has its quality in its header
        assert found.measured == expected.measured
        assert found.reasons == expected.reasons
    assert (found.measured["width"], found.measured["height"]) == (320, 240)
    assert thumbnail(path) == thumbnail(plain)


def test_near_duplicates_are_found_by_the_measured_pixels(name: str, tmp_path: Path) -> None:
    path, plain = tmp_path / "image", tmp_path / "plain.png"
    path.write_bytes(FILES[name][0])
    Image.fromarray(photo()).save(plain)
    of_file, of_picture = perceptual_hash(path), perceptual_hash(plain)
    assert of_file is not None
    assert of_picture is not None
    most = 30 if "alpha" in name and "only" not in name else 8  # what fades to white is another picture
    assert (of_file ^ of_picture).bit_count() <= most


# Where a file or another image is opened or converted, and why that is no second way to read a user's file.
MAY_OPEN = {
    "programs/images/decoding.py": "it is the loader",
    "programs/images/colors.py": "it is part of the loader",
    "programs/images/arrays.py": "it is part of the loader",
    "programs/images/png_chunks.py": "it is part of the loader",
    "programs/images/own.py": "it encodes pictures of this program",
    "programs/pictures/canvas.py": "it draws on pixels that were loaded",
}
OPENS = {"open", "convert", "exif_transpose", "imread", "frombytes", "frombuffer"}


def _opens(node: ast.AST) -> bool:
    """Return whether it calls ``Image.open(...)`` or ``x.convert(...)``, but not ``Image.fromarray(...).convert``."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in OPENS):
        return False
    of = ast.unparse(node.func.value)
    if node.func.attr == "convert":
        return not of.startswith("Image.fromarray(")
    return of in {"Image", "ImageOps", "PIL.Image", "cv2", "imageio", "skimage.io", "plt"}


def test_no_other_module_opens_or_converts_a_users_file() -> None:
    files = [path for folder in ("programs", "signatures", "configs", "eval") for path in (ROOT / folder).rglob("*.py")]
    found = {
        path.relative_to(ROOT).as_posix()
        for path in files
        if any(f".{name}(" in (text := path.read_text(encoding="utf-8")) for name in OPENS)
        and any(map(_opens, ast.walk(ast.parse(text))))
    }
    assert {file for file in found if not file.startswith("eval/research/")} == {*MAY_OPEN}, "use images.loading"
