"""A loaded image: the bytes that are sent to a model, the measured pixels, and results computed from them."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image
from pybase64 import b64encode

from agenticiqa.programs.images.arrays import lossless, rgb
from agenticiqa.programs.images.memo import Memo
from agenticiqa.programs.images.metadata import without_metadata

if TYPE_CHECKING:
    import dspy

    from agenticiqa.configs.options import SentKeys
    from agenticiqa.signatures.types import Box

FORMS = {"image/png": "PNG", "image/webp": "WebP"}
LARGEST_WEBP = 16_383  # pixels of a side


class _Content:
    """What an image holds beside its dataclass fields and ``__dict__``, where encoders of objects do not find it."""

    __slots__ = (
        "assessed_box",
        "file",
        "has_doubtful_colors",
        "jpeg_tables",
        "keeps_metadata",
        "memo",
        "mime",
        "notes",
        "pixels",
        "shown",
    )
    pixels: np.ndarray
    notes: tuple[str, ...]
    file: bytes | None
    mime: str
    keeps_metadata: bool
    shown: np.ndarray | None
    has_doubtful_colors: bool
    jpeg_tables: Mapping[int, Sequence[int]] | None
    assessed_box: "Box | None"
    memo: Memo


@dataclass(frozen=True, eq=False, repr=False, init=False)
class LoadedImage(_Content):
    """One image, decoded once.

    Equality and hash are by identity, so that results can be kept per loaded image. Only the name, the size and the
    hash are fields, so that JSON, traces and web servers show these, not the file and its pixels.

    Attributes:
        source: The name of the given image: the path, or ``<bytes>`` and the like (see ``images.sources``).
        width: Columns of ``pixels``.
        height: Rows of ``pixels``.
        sha256: The hex digest of the bytes as they were given, or of ``data`` for a PIL image or an array.
        pixels: The measured pixels: uint8 RGB, shape (height, width, 3), read-only.
        notes: A sentence for each change that was made.
        file: The bytes of the file, if every viewer shows them alike; else ``None``. A model receives them, without
            their metadata (see ``images.metadata``).
        mime: The media type of the data sent to a model.
        keeps_metadata: Whether a model receives ``file`` as it is.
        shown: The pixels that a model receives without loss if ``file`` is ``None``; by default ``pixels``.
        has_doubtful_colors: Whether colors could not be converted to sRGB.
        jpeg_tables: The quantization tables in the header of a JPEG; ``None`` for another file.
        assessed_box: The part to assess (see ``images.borders``), in pixels of the whole image, as the boxes of regions
            are.
        memo: Results computed from the image; it starts empty, also in a changed copy and after unpickling.
    """

    source: str
    width: int
    height: int
    sha256: str

    def __init__(
        self,
        source: str,
        pixels: np.ndarray,
        notes: tuple[str, ...] = (),
        sha256: str = "",
        file: bytes | None = None,
        mime: str = "image/png",
        keeps_metadata: bool = False,
        shown: np.ndarray | None = None,
        has_doubtful_colors: bool = False,
        jpeg_tables: Mapping[int, Sequence[int]] | None = None,
        assessed_box: "Box | None" = None,
    ) -> None:
        values = {
            "source": source,
            "width": int(pixels.shape[1]),
            "height": int(pixels.shape[0]),
            "sha256": sha256,
            "pixels": pixels,
            "notes": notes,
            "file": file,
            "mime": mime,
            "keeps_metadata": keeps_metadata,
            "shown": shown,
            "has_doubtful_colors": has_doubtful_colors,
            "jpeg_tables": jpeg_tables,
            "assessed_box": assessed_box,
            "memo": Memo(),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)  # the class is frozen
        if not sha256:
            given = self.data if file is None else file
            object.__setattr__(self, "sha256", hashlib.sha256(given).hexdigest())

    def changed(self, **values: Any) -> "LoadedImage":
        """Return a copy with other values of these arguments, as ``dataclasses.replace`` does.

        Args:
            values: Arguments of the class.

        Returns:
            The copy, with an empty ``memo``.
        """
        return LoadedImage(**self.__getstate__() | values)

    def __repr__(self) -> str:
        return f"<LoadedImage {self.source!r}: {self.width}x{self.height}, {self.mime}, {len(self.data)} bytes>"

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("source", "sha256", *_Content.__slots__) if name != "memo"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]
        self.pixels.setflags(write=False)  # numpy does not keep this

    @property
    def size(self) -> tuple[int, int]:
        """Width and height, in this order, as in Pillow."""
        return self.width, self.height

    @property
    def assessed(self) -> "LoadedImage":
        """The part in ``assessed_box`` as a separate image, the same object each time; by default this image."""
        if self.assessed_box is None:
            return self
        left, top, right, bottom = self.assessed_box
        pixels = self.pixels[top:bottom, left:right]
        return self.memo.once("assessed", lambda: self.changed(pixels=pixels, shown=self._shown, assessed_box=None))

    @property
    def data(self) -> bytes:
        """The bytes that a model receives: the file without its metadata, or a PNG or WebP made of the pixels."""
        return self.memo.once("data", self._to_data)

    def _to_data(self) -> bytes:
        if self.file is None:
            return lossless(self._shown, self.mime.rpartition("/")[2].upper())
        return self.file if self.keeps_metadata else without_metadata(self.file)

    @property
    def sent_sha256(self) -> str:
        """The hex digest of ``data``."""
        data = self.data
        return self.sha256 if data is self.file else self.memo.once("sent", lambda: hashlib.sha256(data).hexdigest())

    @property
    def sent(self) -> str:
        """A description of the data that a model receives."""
        if self.file is None:
            return f"measured pixels ({FORMS[self.mime]})"
        return "file" if self.data is self.file else "file without metadata"

    @property
    def sent_size(self) -> tuple[int, int]:
        """Width and height of the image sent to a model: ``size``, or that of a smaller copy (``sent_within``)."""
        return int(self._shown.shape[1]), int(self._shown.shape[0])

    @property
    def _shown(self) -> np.ndarray:
        return self.pixels if self.shown is None else self.shown

    def same_pixels(self, other: "LoadedImage") -> bool:
        """Compare the measured pixels with those of another image, whatever their files are.

        Args:
            other: The other image.

        Returns:
            Whether they are equal.
        """
        return self.pixels is other.pixels or np.array_equal(self.pixels, other.pixels)

    def to_dspy(self) -> "dspy.Image":
        """Convert ``data`` to a ``dspy.Image`` that holds a data URI.

        Given bytes or a PIL image instead, DSPy would compress them again, as JPEG at quality 75.

        Returns:
            The ``dspy.Image``.
        """
        import dspy  # a late import, so that the metrics load without DSPy

        return dspy.Image(f"data:{self.mime};base64,{self.base64.decode('ascii')}")

    def sent_as(self, formats: Collection[str]) -> "LoadedImage":
        """Return this image for a server that decodes only some formats.

        The pixels of a file are sent as PNG, or as lossless WebP if that is accepted and smaller. A smaller copy, and
        an image that was given as pixels, are sent as PNG.

        Args:
            formats: The media types that the server decodes, among them PNG.

        Returns:
            This image if its file is accepted, else one that is sent as its pixels.
        """
        if self.file is not None:
            return self if self.mime in formats else self._encoded("image/png")
        is_of_file = self.shown is None and self.sha256 != self.sent_sha256
        if not is_of_file or "image/webp" not in formats or max(self.size) > LARGEST_WEBP:
            return self
        as_webp = self._encoded("image/webp")
        return as_webp if len(as_webp.data) < len(self.data) else self

    def _encoded(self, mime: str) -> "LoadedImage":
        """Return this image as its pixels in that format, the same object each time."""
        return self.memo.once(("sent as", mime), lambda: self.changed(file=None, mime=mime))

    def to_send(self, settings: "SentKeys") -> "LoadedImage":
        """Return this image so that a model receives what the settings say.

        Args:
            settings: Whether metadata is kept, and the size of the copy.

        Returns:
            The image with the same ``pixels``; this one if nothing changes.
        """
        keeps = settings.keep_metadata
        image = self if keeps == self.keeps_metadata else self.changed(keeps_metadata=keeps)
        return image.sent_within(settings.max_side)

    def sent_within(self, max_side: int | None) -> "LoadedImage":
        """Return this image so that a model receives a copy of at most this size (Lanczos).

        Args:
            max_side: The longest side of the copy in pixels; ``None`` for no limit.

        Returns:
            The image with the same ``pixels``, and a note if it is scaled.
        """
        longest = max(self.size)
        if max_side is None or longest <= max_side:
            return self
        width, height = (max(1, round(side * max_side / longest)) for side in self.size)
        smaller = np.asarray(Image.fromarray(self.pixels).resize((width, height), Image.Resampling.LANCZOS))
        note = f"Models receive a copy of {width}x{height} pixels (max_side); resizing changes the quality."
        return self.changed(file=None, shown=smaller, mime="image/png", notes=(*self.notes, note))

    def with_pixels(self, picture: Image.Image, note: str) -> "LoadedImage":
        """Return this image with other pixels, which a model receives; ``sha256`` stays that of the file.

        Args:
            picture: The pixels.
            note: A sentence about the change.

        Returns:
            The changed image.
        """
        return self.changed(file=None, shown=None, mime="image/png", pixels=rgb(picture), notes=(*self.notes, note))

    @property
    def base64(self) -> bytes:
        """``data`` as base64."""
        return self.memo.once("base64", lambda: b64encode(self.data))
