"""DSPy's history of calls, kept only when asked for, and without the bytes of images.

DSPy keeps each request whole, 2 MB for an image of 1.5 MB, in the model's history, the modules' and a global one.
"""

import base64
import binascii
import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import dspy

from agenticiqa.programs.backends.held_images import held_image_at

NEWEST = 256  # entries that are looked through: more than there are calls at the same time

_kept: ContextVar[bool] = ContextVar("agenticiqa_history_kept", default=False)


@contextmanager
def keeping_history(wanted: bool) -> Iterator[None]:
    """Keep DSPy's history of the questions asked inside, or keep none."""
    token = _kept.set(wanted)
    try:
        yield
    finally:
        _kept.reset(token)


def history_settings() -> dict[str, Any]:
    """DSPy's settings for a question."""
    # With a limit of 0 DSPy still fills its global history, where no entry can be found to take images out of.
    return {"disable_history": not (_kept.get() and dspy.settings.max_history_size)}


@contextmanager
def images_left_out(lm: dspy.BaseLM) -> Iterator[None]:
    """After the question asked inside, each image in the model's history is its hash and size.

    DSPy's other histories share these entries.
    """
    try:
        yield
    finally:
        for entry in lm.history[-NEWEST:] if _kept.get() else ():
            _without_images(entry.get("messages") or ())


def _without_images(messages: Iterable[dict[str, Any]]) -> None:
    for message in messages:
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            image = part.get("image_url") if isinstance(part, dict) else None
            if isinstance(image, dict) and isinstance(image.get("url"), str):
                image["url"] = description(image["url"])


def description(url: str) -> str:
    """Media type, hash and size of the image at a data URI or at the address of a held image; other text as it is."""
    held = held_image_at(url)
    if held is not None:
        return _described(held.mime, held.sent_sha256, len(base64.b64decode(held.base64)))
    head, found, data = url.partition(";base64,")
    if not (found and head.startswith("data:")):
        return url
    try:
        content = base64.b64decode(data)
    except binascii.Error:
        content = data.encode()
    return _described(head.removeprefix("data:"), hashlib.sha256(content).hexdigest(), len(content))


def _described(mime: str, sha256: str, size: int) -> str:
    return f"{mime}, sha256 {sha256}, {size} bytes"
