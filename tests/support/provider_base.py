"""Shared code of the loopback servers of all providers: the table of errors, request records, images, tokens."""

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn
from urllib.request import urlopen

from support.loopback import Arrived, Body, Reply

Kind = Literal["bad_key", "context", "image", "no_images", "no_model", "overloaded", "quota", "rate_limit", "server"]
Finish = Literal["stop", "length", "refusal"]
Entry = Mapping[str, Any]  # one token of the "content" of OpenAI's log-probabilities

SIGNATURES = {"image/png": b"\x89PNG\r\n", "image/jpeg": b"\xff\xd8\xff", "image/gif": b"GIF8", "image/bmp": b"BM"}


class ErrorOf(NamedTuple):
    """An error of a provider; ``type`` is its type, or the provider's word for the status."""

    status: int
    type: str
    code: str | None
    message: str


@cache
def errors_of(name: str) -> Mapping[Kind, ErrorOf]:
    """Return the errors of a provider, from the table beside this file."""
    import yaml  # here, because support/faulty_server.py runs with the standard library alone

    table = yaml.safe_load(Path(__file__).with_name("provider_errors.yaml").read_text(encoding="utf-8"))
    return {kind: ErrorOf(*values) for kind, values in table[name].items()}


def kinds(**names: str) -> dict[str, str]:
    """Return the kind of JSON value by field, from fields by kind."""
    return {name: kind for kind, listed in names.items() for name in listed.split()}


@dataclass(frozen=True)
class Picture:
    """An image of a request; ``text`` is its base64 as in the body."""

    mime: str
    data: bytes = field(repr=False)
    text: str = field(repr=False)


@dataclass(frozen=True)
class Seen:
    """The content of a request, in the same form for every provider.

    ``parts`` are the texts and images of the last user message, in their order. ``structured`` is the field that
    requests JSON, with dots (``response_format.json_schema``), ``schema`` its schema. ``sampling`` has the names of the
    provider. ``ignored`` are fields that the server accepts without effect.
    """

    arrived: Arrived = field(repr=False)
    body: Body = field(repr=False)
    key: str | None
    model: str
    system: str
    parts: tuple[str | Picture, ...] = field(repr=False)
    structured: str | None = None
    schema: Mapping[str, Any] | None = field(default=None, repr=False)
    sampling: Mapping[str, Any] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        return self.arrived.path

    @property
    def headers(self) -> Mapping[str, str]:
        return self.arrived.headers

    @property
    def pictures(self) -> list[Picture]:
        return [part for part in self.parts if isinstance(part, Picture)]

    @property
    def images(self) -> list[tuple[str, bytes]]:
        """Return mime type and bytes of each image, in order."""
        return [(picture.mime, picture.data) for picture in self.pictures]

    @property
    def texts(self) -> list[str]:
        return [part for part in self.parts if isinstance(part, str)]

    def as_chat(self) -> Body:
        """Return the request in OpenAI's chat form, which scripts (``by_stage``, ``field_of``) read."""
        content = [
            {"type": "text", "text": part}
            if isinstance(part, str)
            else {"type": "image_url", "image_url": {"url": f"data:{part.mime};base64,{part.text}"}}
            for part in self.parts
        ]
        messages = [{"role": "system", "content": self.system}, {"role": "user", "content": content}]
        return {"model": self.model, "messages": messages}


@dataclass(frozen=True)
class Completion:
    """An answer that is independent of the provider; ``entries`` are log-probabilities, if requested."""

    text: str | None
    model: str
    usage: tuple[int, int] = (10, 5)
    finish: Finish = "stop"
    entries: Sequence[Entry] | None = None


class Refused(Exception):
    """Raised when the server refuses the request, with its answer."""

    def __init__(self, reply: Reply) -> None:
        super().__init__((reply.raw_body or b"").decode())
        self.reply = reply


def parsed(arrived: Arrived, refuse: Callable[[str], NoReturn]) -> Body:
    """Return the JSON object of a request with the content type of JSON."""
    if not arrived.headers.get("content-type", "").startswith("application/json"):
        refuse("the content type is not application/json")
    try:
        body = json.loads(arrived.raw)
    except ValueError:
        refuse("we could not parse the JSON body of your request")
    if not isinstance(body, dict):
        refuse("the body is not a JSON object")
    return body


def of_type(value: Any, kind: str) -> bool:
    """Return whether a JSON value is of a kind; a boolean is no number."""
    if kind == "any":
        return True
    kinds: dict[str, tuple[type, ...]] = {
        "string": (str,),
        "integer": (int,),
        "number": (int, float),
        "boolean": (bool,),
        "array": (list,),
        "object": (dict,),
    }
    return isinstance(value, kinds[kind]) and (kind == "boolean" or not isinstance(value, bool))


def picture(mime: str, text: str, refuse: Callable[[str], NoReturn]) -> Picture:
    """Return the image in a base64 text; its bytes must match the type."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        refuse("could not decode the base64 of the image")
    found = sniffed(data)
    if found != mime:
        refuse(f"the image was specified using the {mime} media type, but appears to be {found}")
    return Picture(mime, data, text)


def fetched(url: str, refuse: Callable[[str], NoReturn]) -> Picture:
    """Return the image at a loopback address that a test serves."""
    try:
        with urlopen(url) as reply:
            data: bytes = reply.read()
    except OSError as error:
        refuse(f"could not fetch {url}: {error}")
    return Picture(sniffed(data) or "", data, base64.b64encode(data).decode())


def sniffed(data: bytes) -> str | None:
    """Return the type by the first bytes."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for mime, start in SIGNATURES.items() if data.startswith(start)), None)


def tokens(text: str, choices: Mapping[str, Mapping[str, float]] | None = None) -> list[dict[str, Any]]:
    """Return log-probabilities of an answer, word by word; ``choices`` has alternatives for some words."""
    entries = []
    for token in re.findall(r"\w+|\W", text):
        others = (choices or {}).get(token, {token: -0.01})
        ranked = sorted(others.items(), key=lambda item: -item[1])
        entries.append({**_token(token, others[token]), "top_logprobs": [_token(*each) for each in ranked]})
    return entries


def spoken(text: str, choices: Mapping[str, Mapping[str, float]]) -> Reply:
    """Return an answer with log-probabilities, for requests that ask for them."""
    return Reply(text, logprobs=tokens(text, choices))


def _token(token: str, logprob: float) -> dict[str, Any]:
    return {"token": token, "logprob": logprob, "bytes": list(token.encode())}
