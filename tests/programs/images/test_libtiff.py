"""Messages of libtiff about damaged files are part of an error or a note, and not printed to stderr."""

import io
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from agenticiqa.configs.policy import GatePolicy
from agenticiqa.programs.batch.gate import checked
from agenticiqa.programs.batch.job import Job
from agenticiqa.programs.errors import ImageError
from agenticiqa.programs.images import libtiff, load
from agenticiqa.programs.images.loading import load_pixels

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Pillow's libtiff shows no symbols there")
NOISE = np.random.default_rng(0).integers(0, 256, (64, 48), dtype=np.uint8)


def damaged(compression: str, mode: str = "RGB") -> bytes:
    """Return a TIFF with 60 equal bytes in the middle of its first strip."""
    buffer = io.BytesIO()
    Image.fromarray(NOISE).convert(mode).save(buffer, "TIFF", compression=compression)
    data = bytearray(buffer.getvalue())
    data[100:160] = (b"\0" if mode == "RGB" else b"\xff") * 60
    return bytes(data)


@pytest.mark.parametrize(("compression", "codec"), [("tiff_lzw", "LZW"), ("tiff_adobe_deflate", "ZIP")])
def test_a_damaged_file_is_refused_with_the_message_of_libtiff(
    compression: str, codec: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ImageError, match=rf"damaged or cut short \({codec}Decode: .* at scanline 0"):
        load(damaged(compression))
    assert capfd.readouterr() == ("", "")


def test_messages_about_a_decodable_file_become_notes(capfd: pytest.CaptureFixture[str]) -> None:
    notes = load(damaged("group4", "1")).notes
    said = [note for note in notes if note.startswith("libtiff reports: Fax4Decode: ")]
    assert 1 <= len(said) == len(set(said)) <= libtiff.MOST_LINES
    assert capfd.readouterr() == ("", "")


def test_gate_and_load_pixels_print_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.tif"
    path.write_bytes(damaged("tiff_lzw"))
    with pytest.raises(ImageError, match="LZWDecode"):
        load_pixels(path)
    assert "LZWDecode" in checked(GatePolicy(), Job(path)).reasons["undecodable"]
    assert capfd.readouterr() == ("", "")


def test_each_thread_gets_the_messages_of_its_own_file(capfd: pytest.CaptureFixture[str]) -> None:
    kinds = {"tiff_lzw": "LZWDecode", "tiff_adobe_deflate": "ZIPDecode", "packbits": "", "group4": "Fax4Decode"}
    files = {kind: damaged(kind, "1" if kind == "group4" else "RGB") for kind in kinds}

    def said(kind: str) -> str:
        try:
            return " ".join(libtiff.load(Image.open(io.BytesIO(files[kind]))))
        except OSError as error:
            return str(error)

    order = [*kinds] * 25
    with ThreadPoolExecutor(4) as pool:
        for kind, text in zip(order, pool.map(said, order), strict=True):
            reported = {name for name in kinds.values() if name and name in text}
            assert reported == {kinds[kind]} - {""}, kind
    assert capfd.readouterr() == ("", "")


def test_messages_about_files_decoded_by_other_code_are_printed(capfd: pytest.CaptureFixture[str]) -> None:
    data = damaged("tiff_lzw")
    with pytest.raises(ImageError):
        load(data)
    with pytest.raises(OSError, match="decoder error"):
        Image.open(io.BytesIO(data)).load()
    assert capfd.readouterr().err.startswith("LZWDecode: Not enough data at scanline 0 (short ")
