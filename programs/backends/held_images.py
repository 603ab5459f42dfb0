"""Keep the bytes of images out of the prompt until the request is sent.

DSPy 3.4 writes an image into the text of the prompt as base64, searches that text with regular expressions, encodes and
decodes it as JSON and hashes it for its cache: about 40 ms of processor time for a call with 1.5 MB, so one core is
busy at 25 calls a second. With this module, each of these steps handles a short address made from the image's hash. The
bytes are inserted into the finished body of the request.

It uses public interfaces only: ``dspy.Image`` with an address, an engine of ``dspy.LM``, a transport of httpx.
``test_held_images.py`` fails when DSPy no longer needs this; then remove this file and its uses.
"""

import base64
import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import dspy
from dspy import lm15

from agenticiqa.programs.backends.run_context import current
from agenticiqa.programs.images.loaded import LoadedImage

HOST = "https://held.invalid/"  # ".invalid" never resolves (RFC 2606), in case an address is ever sent
_MARK = b"agenticiqa held image "  # a length that makes base64 without padding, together with a digest
_EVERY_MARK = re.compile(rb"(%s[\w+/]{44})" % base64.b64encode(_MARK[: len(_MARK) // 3 * 3]))


class MissingImage(RuntimeError):
    """Raised when a request would have a placeholder instead of an image, which is a bug here. Nothing is sent."""

    def __init__(self) -> None:
        super().__init__("an image is missing from a request, so the request was not sent; please report this")


def address(image: LoadedImage) -> str:
    """Return the address of an image in the prompt; equal bytes give equal addresses and thus equal cache keys."""
    return f"{HOST}{image.sent_sha256}.{image.mime.rpartition('/')[2]}"


def hold(images: Mapping[str, LoadedImage]) -> dict[str, dspy.Image]:
    """Hold images, by the name of their input, for the current question; return their addresses for the prompt."""
    current().turn.images = {address(image): image for image in images.values()}
    return {name: dspy.Image(address(image)) for name, image in images.items()}


def held_image_at(place: str) -> LoadedImage | None:
    """Return the image that is held at this address, if any."""
    return current().turn.images.get(place)


def held_sizes() -> list[tuple[int, int]]:
    """Return the width and height in pixels of the images that are held."""
    return [image.size for image in current().turn.images.values()]


def marked(request: lm15.Request) -> lm15.Request:
    """Return the request with a short mark in place of each held image; ``with_held_images`` inserts the bytes.

    Raises MissingImage for the address of an image that is not held, and for an address inside a text.
    """
    held = current().turn.images

    def part(content: Any) -> Any:
        if isinstance(content, lm15.TextPart) and any(place in content.text for place in held):
            raise MissingImage
        if not isinstance(content, lm15.ImagePart) or not (content.url or "").startswith(HOST):
            return content
        if content.url not in held:
            raise MissingImage
        return lm15.ImagePart(media_type=held[content.url].mime, data=_mark(content.url).decode())

    messages = [replace(message, parts=tuple(map(part, message.parts))) for message in request.messages]
    return replace(request, messages=tuple(messages))


def _mark(place: str) -> bytes:
    return base64.b64encode(_MARK + hashlib.sha256(place.encode()).digest())


def with_held_images(body: bytes) -> list[bytes]:
    """Return the pieces of a body, with the bytes of each held image in place of its mark.

    Raises MissingImage for a mark of an image that is not held.
    """
    images = {_mark(place): image.base64 for place, image in current().turn.images.items()}
    try:
        return [images[piece] if number % 2 else piece for number, piece in enumerate(_EVERY_MARK.split(body))]
    except KeyError:
        raise MissingImage from None
