"""Every form of source gives the same image for the same picture, and unreadable sources are refused."""

import base64
import io
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import dspy
import numpy as np
import pytest
from PIL import Image

from agenticiqa.programs.errors import ImageError, ImageNotFound
from agenticiqa.programs.images import UndecodedImage, load, name_of, picklable
from agenticiqa.programs.images.sources import LOW_FLOATS, MASKED, SAVED_BY_DSPY
from support.images import raw_png

PHOTO = np.random.default_rng(0).integers(0, 256, (6, 9, 3), dtype=np.uint8)


def encoded(pixels: np.ndarray | Image.Image, kind: str = "PNG", **options: object) -> bytes:
    buffer = io.BytesIO()
    (Image.fromarray(pixels) if isinstance(pixels, np.ndarray) else pixels).save(buffer, kind, **options)
    return buffer.getvalue()


def data_uri(data: bytes, mime: str = "image/png") -> str:
    return f"data:{mime};base64,{base64.b64encode(data).decode()}"


def refusal(source: object) -> str:
    """Return the one-line message that refuses a source."""
    with pytest.raises(ImageError) as caught:
        load(source)  # type: ignore[arg-type]
    message = str(caught.value)
    assert message.isprintable()
    assert len(message) < 400
    assert "expected" in message
    assert ";" in message, "what was expected and found; what to do"
    return message


class Stream(io.RawIOBase):
    """A stream that can be read once, a few bytes at a time, like a pipe."""

    def __init__(self, data: bytes) -> None:
        self._rest = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._rest.readinto(memoryview(buffer)[:7])


# --- what is read as the bytes of a file -----------------------------------------------------------------------------


class Upload:
    """An upload of a web framework: ``read`` has to be awaited, and ``file`` is the file."""

    filename, name = "cup.jpg", "the field of the form"

    def __init__(self, file: io.BytesIO | None = None) -> None:
        self.file = file

    async def seek(self, place: int) -> None:
        """Do what the file does."""

    async def read(self, size: int = -1) -> bytes:
        """Do what the file does."""
        return b""


BYTES: dict[str, tuple[Callable[[bytes, Path], Any], str | None]] = {
    "path": (lambda data, path: path, None),
    "path as str": (lambda data, path: str(path), None),
    "file URI": (lambda data, path: path.as_uri(), None),
    "file URI of localhost": (lambda data, path: f"FILE://localhost{quote(str(path))}", None),
    "file URI of one slash": (lambda data, path: f"file:{quote(str(path))}", None),
    "open file": (lambda data, path: path.open("rb"), None),
    "bytes": (lambda data, path: data, "<bytes>"),
    "bytearray": (lambda data, path: bytearray(data), "<bytes>"),
    "memoryview": (lambda data, path: memoryview(data), "<bytes>"),
    "BytesIO": (lambda data, path: io.BytesIO(data), "<file object>"),
    "upload": (lambda data, path: Upload(io.BytesIO(data)), "cup.jpg"),
    "stream": (lambda data, path: Stream(data), "<file object>"),
    "data URI": (lambda data, path: data_uri(data), "<data URI>"),
    "data URI of another type": (lambda data, path: "\n" + data_uri(data, "text/plain;charset=x"), "<data URI>"),
    "data URI in lines": (lambda data, path: data_uri(data)[:90] + "\r\n " + data_uri(data)[90:] + "\n", "<data URI>"),
    "data URI, percent-encoded": (lambda data, path: f"data:image/png,{quote(data)}", "<data URI>"),
    "dspy.Image": (lambda data, path: dspy.Image(data_uri(data)), "<dspy.Image>"),
    "dspy.Image of a file": (lambda data, path: dspy.Image.from_path(str(path)), "<dspy.Image>"),
    "named bytes": (lambda data, path: UndecodedImage("upload 7", data), "upload 7"),
}


def test_a_file_that_can_only_be_read_by_awaiting_is_refused() -> None:
    assert refusal(Upload()) == (
        "cup.jpg: expected a file object, but its read() has to be awaited; give the bytes: await file.read()"
    )


@pytest.mark.parametrize("given", BYTES)
@pytest.mark.parametrize(("kind", "mime"), [("PNG", "image/png"), ("JPEG", "image/jpeg"), ("WEBP", "image/webp")])
def test_the_bytes_of_a_file_are_unchanged_in_every_form_of_source(
    tmp_path: Path, given: str, kind: str, mime: str
) -> None:
    data, path = encoded(PHOTO, kind), tmp_path / "a photo %41 ü.png"
    path.write_bytes(data)
    make, name = BYTES[given]
    source = make(data, path)
    assert name_of(source) == (name or str(path))
    loaded, expected = load(source), load(path)
    assert loaded.source == (name or str(path))
    assert loaded.data == data
    assert (loaded.mime, loaded.sha256) == (mime, expected.sha256)
    assert np.array_equal(loaded.pixels, expected.pixels)
    assert loaded.to_dspy().url == data_uri(data, mime)


def test_a_file_object_is_read_from_its_start_and_stays_open() -> None:
    file = io.BytesIO()
    Image.fromarray(PHOTO).save(file, "PNG")
    assert np.array_equal(load(file).pixels, PHOTO)
    assert np.array_equal(load(file).pixels, PHOTO), "a second time as well"
    named = io.BytesIO(encoded(PHOTO))
    named.name = "upload.png"
    assert load(named).source == "upload.png"


def test_a_change_to_a_bytearray_or_an_array_does_not_reach_the_loaded_image() -> None:
    data, pixels = bytearray(encoded(PHOTO)), PHOTO.copy()
    loaded, measured = load(data), load(pixels)
    data[:] = b"\0" * len(data)
    pixels[:] = 0
    assert loaded.data == encoded(PHOTO)
    assert np.array_equal(measured.pixels, PHOTO)


@pytest.mark.parametrize(
    ("uri", "found"),
    [
        ("data:image/png;base64", "comma"),
        ("data:image/png;base64,!!!!", "cannot be decoded"),
        ("data:image/png;base64,AAA", "cannot be decoded"),
        ("data:image/png;base64,", "empty file"),
        ("data:,some%20words", "text that begins with 'some words'"),
        ("file://server/share/a.png", "one on server"),
        ("file://[server/a.png", "cannot be read"),
    ],
)
def test_a_bad_uri_is_refused(uri: str, found: str) -> None:
    assert found in refusal(uri)
    assert name_of(uri) == ("<data URI>" if uri.startswith("data:") else uri)


def test_a_long_data_uri_is_not_repeated_in_the_message_and_a_path_in_a_uri_is_shown(tmp_path: Path) -> None:
    with pytest.raises(ImageNotFound, match=f"^{tmp_path}/no such.png: "):
        load((tmp_path / "no such.png").as_uri())
    assert refusal("data:image/png;base64," + "A" * 10_000).startswith("<data URI>: ")
    with pytest.raises(ImageNotFound, match=r"\(40000 characters\)"):
        load("A" * 40_000)


def test_an_address_in_a_dspy_image_is_refused_and_never_fetched() -> None:
    for address in ("https://127.0.0.1:9/a.png", "gs://bucket/a.png"):
        assert "got an address" in refusal(dspy.Image(address))


def test_a_file_object_that_returns_no_bytes_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.write_text("words")
    with text.open() as file:
        assert "returns no bytes; open it with mode 'rb'" in refusal(file)
    closed = io.BytesIO(encoded(PHOTO))
    closed.close()
    assert "closed file" in refusal(closed)
    with (tmp_path / "w.png").open("wb") as file:
        assert "cannot be read" in refusal(file)


@pytest.mark.parametrize("source", [None, 3, [1, 2], {"path": "a.png"}, object()])
def test_another_type_is_refused_by_its_name(source: object) -> None:
    assert f"got {type(source).__name__}; convert it first" in refusal(source)
    assert name_of(source) == f"<{type(source).__name__}>"


# --- arrays ----------------------------------------------------------------------------------------------------------

RGBA = np.dstack([PHOTO, np.linspace(0, 255, 54).reshape(6, 9).astype(np.uint8)])
DEEP = np.random.default_rng(1).integers(0, 65536, (6, 9), dtype=np.uint16)


@pytest.mark.parametrize("pixels", [PHOTO, PHOTO[..., 0], RGBA], ids=["RGB", "gray", "RGBA"])
@pytest.mark.parametrize(
    ("convert", "note"),
    [
        (lambda p: p, ()),
        (lambda p: np.asfortranarray(p), ()),
        (lambda p: np.repeat(p, 2, axis=1)[:, ::2], ()),
        (lambda p: p / 255, ("Floats in 0..1 were rounded to 8 bits.",)),
        (lambda p: (p / 255).astype(np.float16), ("Floats in 0..1 were rounded to 8 bits.",)),
        (lambda p: (p / 255).astype(">f4"), ("Floats in 0..1 were rounded to 8 bits.",)),
    ],
    ids=["uint8", "Fortran order", "strided", "float64", "float16", "big-endian float32"],
)
def test_an_array_is_the_picture_of_the_png_with_its_values(
    tmp_path: Path, pixels: np.ndarray, convert: Callable[[np.ndarray], np.ndarray], note: tuple[str, ...]
) -> None:
    (tmp_path / "a.png").write_bytes(encoded(pixels))
    expected = load(tmp_path / "a.png")
    loaded = load(convert(pixels))
    assert np.array_equal(loaded.pixels, expected.pixels)
    assert loaded.notes == (*note, *expected.notes)
    assert (loaded.source, loaded.mime) == ("<array>", "image/png")
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(loaded.data))), loaded.pixels)


def test_sixteen_bit_gray_is_the_picture_of_its_png(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(encoded(DEEP))
    expected = load(tmp_path / "a.png")
    for array in (DEEP, DEEP.astype(">u2"), DEEP.T.copy().T):
        loaded = load(array)
        assert np.array_equal(loaded.pixels, expected.pixels)
        assert loaded.notes == expected.notes
        assert np.array_equal(np.asarray(Image.open(io.BytesIO(loaded.data))), loaded.pixels)
    color = np.dstack([DEEP, DEEP[::-1], DEEP[:, ::-1]])
    of_file = load(b"P6 9 6 65535\n" + color.astype(">u2").tobytes())
    assert np.array_equal(load(color).pixels, color // 256)
    assert load(color).notes == of_file.notes


@pytest.mark.parametrize("excess", [1e-7, 1e-4, 9e-4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_rounding_errors_of_floats_are_clipped(excess: float, dtype: type) -> None:
    exact = PHOTO / 255
    rounded = np.where(exact == exact.max(), 1 + excess, np.where(exact == exact.min(), -excess, exact)).astype(dtype)
    expected = np.where(exact == exact.max(), 255, np.where(exact == exact.min(), 0, PHOTO))
    assert np.array_equal(load(rounded).pixels, expected)


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (PHOTO.astype(np.int64), "got int64; if 255 is white, convert it with array.astype('uint8')"),
        (PHOTO.astype(np.int64) * 100, "got int64; convert it first"),
        (PHOTO.astype(np.uint32), "got uint32"),
        (PHOTO > 100, "got bool; convert it with array.astype('uint8') * 255"),
        (PHOTO.astype(complex), "got complex128"),
        (PHOTO.astype(object), "got object"),
        (PHOTO.astype(float), "; divide by 255 if its range is 0..255"),
        (PHOTO / 127.5 - 1, "; scale them to 0..1"),
        (PHOTO / PHOTO.max() * 1.0025, "outside by 0.0025; scale them to 0..1"),
        (PHOTO / PHOTO.max() - 0.002, "outside by 0.00"),
        (np.full((4, 4), np.nan), "found NaN or infinity"),
        (np.full((4, 4, 3), np.inf), "found NaN or infinity"),
        (PHOTO.transpose(2, 0, 1), "got (3, 6, 9); its channels are first: give array.transpose(1, 2, 0)"),
        (PHOTO[..., :1], "got (6, 9, 1); give array[..., 0]"),
        (PHOTO[..., :2], "got (6, 9, 2); convert it"),
        (PHOTO[None], "got (1, 6, 9, 3); give the images of a stack one at a time"),
        (PHOTO[0, :, 0], "got (9,)"),
        (np.zeros((0, 5, 3), np.uint8), "found 5x0"),
        (np.zeros((0, 5)), "found 5x0"),
    ],
)
def test_an_array_of_unknown_range_or_layout_is_refused(array: np.ndarray, words: str) -> None:
    message = refusal(array)
    assert message.startswith("<array>: ")
    assert words in message


# --- to another process ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", BYTES)
def test_every_source_can_be_sent_to_another_process_with_its_name(tmp_path: Path, given: str) -> None:
    data, path = encoded(PHOTO), tmp_path / "a.png"
    path.write_bytes(data)
    make, name = BYTES[given]
    arrived = load(pickle.loads(pickle.dumps(picklable(make(data, path)))))
    assert arrived.source == (name or str(path))
    assert arrived.data == data


@pytest.mark.parametrize(
    "source", [PHOTO, Image.fromarray(PHOTO), load(encoded(PHOTO)), DEEP], ids=["array", "PIL", "loaded", "16 bits"]
)
def test_pixels_can_be_sent_to_another_process(source: Any) -> None:
    arrived = load(pickle.loads(pickle.dumps(picklable(source))))
    assert arrived.source == name_of(source)
    assert np.array_equal(arrived.pixels, load(source).pixels)


def test_a_loaded_image_arrives_whole_and_read_only_and_without_its_caches() -> None:
    loaded = load(encoded(PHOTO))
    small = len(pickle.dumps(loaded))
    assert loaded.base64
    assert loaded.sent_as(["image/gif"]) is not loaded
    assert len(pickle.dumps(loaded)) == small
    arrived = pickle.loads(pickle.dumps(loaded))
    assert (arrived.source, arrived.sha256, arrived.mime, arrived.notes) == ("<bytes>", loaded.sha256, "image/png", ())
    assert arrived.base64 == loaded.base64
    assert not arrived.pixels.flags.writeable


# --- what is shown of them -------------------------------------------------------------------------------------------


def test_no_repr_prints_the_bytes() -> None:
    loaded = load(encoded(PHOTO))
    assert repr(loaded) == f"<LoadedImage '<bytes>': 9x6, image/png, {len(loaded.data)} bytes>"
    assert repr(UndecodedImage("a.png", loaded.data)) == "UndecodedImage(source='a.png', notes=())"


def test_images_are_loaded_without_dspy() -> None:
    code = "import sys, agenticiqa.programs.images; sys.exit('dspy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("kind", ["JPEG", "WEBP", "PNG"])
def test_a_picture_that_dspy_saved_again_has_a_note(tmp_path: Path, kind: str) -> None:
    exif = Image.Exif()
    exif[274] = 6
    buffer = io.BytesIO()
    Image.effect_noise((64, 48), 60).convert("RGB").save(buffer, kind, quality=95, exif=exif)
    data = buffer.getvalue()
    (tmp_path / f"a.{kind.lower()}").write_bytes(data)
    opened = Image.open(io.BytesIO(data))
    expected = [] if kind == "PNG" else [SAVED_BY_DSPY]
    for made in (dspy.Image(data), dspy.Image(opened)):
        assert [note for note in load(made).notes if "dspy" in note] == expected
    for kept in (
        data,
        load(data).to_dspy(),
        dspy.Image(data_uri(data)),
        dspy.Image.from_path(str(tmp_path / f"a.{kind.lower()}")),
    ):
        assert not [note for note in load(kept).notes if "dspy" in note]


def test_a_cmyk_picture_that_dspy_saved_again_has_a_note() -> None:
    opened = Image.open(io.BytesIO(encoded(Image.effect_noise((64, 48), 60).convert("CMYK"), "JPEG", quality=95)))
    assert SAVED_BY_DSPY in load(dspy.Image(opened)).notes


def deep_png(values: np.ndarray) -> bytes:
    """Return a PNG with 16-bit samples, gray or RGB."""
    return raw_png(
        values.shape[1], values.shape[0], 16, 0 if values.ndim == 2 else 2, values.astype(">u2").tobytes(), None
    )


LINEAR = np.linspace(0, 1, 48 * 3).reshape(6, 8, 3)
FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "gray array": lambda values: values[..., 0],
    "color array": lambda values: values,
    "array with alpha": lambda values: np.dstack([values, np.full((6, 8), 65535, np.uint16)]),
    "gray PNG": lambda values: deep_png(values[..., 0]),
    "color PNG": deep_png,
    "gray PIL": lambda values: Image.fromarray(values[..., 0]),
}


@pytest.mark.parametrize("bits", [10, 12, 14, 16])
@pytest.mark.parametrize("form", FORMS)
def test_values_that_use_a_part_of_16_bits_have_a_note(form: str, bits: int) -> None:
    notes = load(FORMS[form](np.rint(LINEAR * (2**bits - 1)).astype(np.uint16))).notes
    expected = [f"use only {bits} of 16 bits"] if bits < 16 else []
    assert [note[11:][: len(f"use only {bits} of 16 bits")] for note in notes if "The values" in note] == expected


@pytest.mark.parametrize(("bits", "factor"), [(1, 255), (4, 17), (6, 4), (7, None), (8, None)])
def test_an_array_that_uses_a_part_of_8_bits_has_a_note(bits: int, factor: int | None) -> None:
    notes = load(np.rint(LINEAR * (2**bits - 1)).astype(np.uint8)).notes
    range_ = f"If this is their range, multiply them by {factor}."
    words = f"The values use only {bits} of 8 bits, so the image is dark. {range_}"
    assert notes == ((words,) if factor else ())


def test_dark_floats_and_masked_arrays_have_a_note() -> None:
    assert LOW_FLOATS in load(LINEAR / 16).notes
    assert LOW_FLOATS not in load(LINEAR).notes
    assert LOW_FLOATS not in load(LINEAR * 0).notes
    assert MASKED in load(np.ma.masked_greater(LINEAR, 0.5)).notes
    assert MASKED not in load(np.ma.masked_greater(LINEAR, 2)).notes
