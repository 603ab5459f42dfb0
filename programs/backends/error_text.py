"""What a server says in the body of an error, in whatever shape it says it."""

import json
from typing import Any

LONGEST = 2_000  # characters
_KEYS = ("message", "msg", "detail", "error", "errors", "title", "reason")


def readable_error(body: bytes) -> bytes:
    """The body of an error; where it is JSON without a text in ``error.message``, as OpenAI writes it, with one.

    FastAPI's list under ``detail`` becomes ``body.messages.1: what is wrong; ...``. Pages, texts, and JSON in which
    nothing says what is wrong stay as they are.
    """
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return body
    error = said.get("error") if isinstance(said, dict) else None
    if isinstance(error, dict) and isinstance(error.get("message"), str) and len(error["message"]) <= LONGEST:
        return body
    text = _text(said)[:LONGEST]
    if not text:
        return body
    beside = error if isinstance(error, dict) else {}
    kept = {key: beside[key] for key in ("code", "type", "status") if isinstance(beside.get(key), str | int)}
    return json.dumps({"error": {**kept, "message": text}}).encode()


def _text(said: Any, depth: int = 4) -> str:
    if isinstance(said, str):
        return said.strip()
    if depth and isinstance(said, list):
        return "; ".join(filter(None, (_text(each, depth - 1) for each in said[:10])))
    if depth and isinstance(said, dict):
        words = next(filter(None, (_text(said.get(key), depth - 1) for key in _KEYS)), "")
        place = said.get("loc")
        return f"{'.'.join(map(str, place))}: {words}" if words and isinstance(place, list) else words
    return ""
