"""Chunked encoding, right in odd ways and wrong in every way."""

from collections.abc import Callable

from support.faulty.exchange import Act, Exchange, Profile, blocks, dumped

HEAD = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: {}\r\n\r\n"


def _raw(write: Callable[[bytes], bytes], coding: str = "chunked", end: str = "keep") -> Act:
    """The healthy answer's body as this function writes it."""

    def act(ex: Exchange) -> None:
        ex.send(HEAD.format(coding).encode() + write(dumped(ex.answer())))
        if end == "close":
            ex.close()
        elif end == "hang":
            ex.hang()
        elif end == "reset":
            ex.pause(0.02)
            ex.reset()

    return act


def _chunk(data: bytes, extension: bytes = b"", eol: bytes = b"\r\n", form: str = "{:x}") -> bytes:
    return form.format(len(data)).encode() + extension + eol + data + eol


def _chunks(body: bytes, size: int = 200, last: bytes = b"0\r\n\r\n", **form: object) -> bytes:
    return b"".join(_chunk(piece, **form) for piece in blocks(body, size)) + last  # type: ignore[arg-type]


def _first(
    size: str, rest: Callable[[bytes], bytes] = lambda body: body + b"\r\n0\r\n\r\n"
) -> Callable[[bytes], bytes]:
    """One chunk that begins with this as its size."""
    return lambda body: size.encode() + b"\r\n" + rest(body)


def _slow_chunks(ex: Exchange) -> None:
    ex.send(HEAD.format("chunked").encode())
    for piece in blocks(dumped(ex.answer()), 100):
        ex.send(_chunk(piece))
        ex.pause(0.01)
    ex.send(b"0\r\n\r\n")


GOOD = b"0\r\n\r\n"
TRAILERS = b"0\r\nX-Sum: 1\r\nX-Other: 2\r\n\r\n"

ROWS = [
    Profile("chunked", "as it should be", _raw(_chunks), shows=b"chunked", expect="judged"),
    Profile("chunked-one-byte", "chunks of one byte", _raw(lambda b: _chunks(b, 1)), expect="judged"),
    Profile("chunked-slow", "a chunk every 10 ms", _slow_chunks, expect="judged"),
    Profile("chunked-extensions", "with extensions", _raw(lambda b: _chunks(b, extension=b";a=b;c")), expect="judged"),
    Profile("chunked-trailers", "with trailers", _raw(lambda b: _chunks(b, last=TRAILERS)), expect="judged"),
    Profile("chunked-upper-case", "sizes in capitals", _raw(lambda b: _chunks(b, 171, form="{:X}")), expect="judged"),
    Profile("chunked-zeros", "sizes with zeros", _raw(lambda b: _chunks(b, form="{:012x}")), expect="judged"),
    Profile("chunked-capital-coding", "Chunked", _raw(_chunks, coding="Chunked"), expect="judged"),
    Profile("chunked-no-end", "no last chunk, closed", _raw(lambda b: _chunks(b, last=b""), end="close")),
    Profile("chunked-no-end-kept", "no last chunk, kept open", _raw(lambda b: _chunks(b, last=b""), end="hang")),
    Profile("chunked-end-cut", "closed inside the last chunk", _raw(lambda b: _chunks(b, last=b"0\r\n"), end="close")),
    Profile("chunked-reset", "reset before the last chunk", _raw(lambda b: _chunks(b, last=b""), end="reset")),
    Profile("chunked-half", "closed inside a chunk", _raw(lambda b: _chunks(b)[: len(b) // 2], end="close")),
    Profile("chunked-size-word", "a size that is no number", _raw(_first("zz"))),
    Profile("chunked-size-negative", "a negative size", _raw(_first("-5"))),
    Profile("chunked-size-empty", "no size", _raw(_first(""))),
    Profile("chunked-size-huge", "16 F as a size, closed", _raw(_first("f" * 16), end="close")),
    Profile("chunked-size-5000-digits", "a size of 5,000 digits", _raw(_first("f" * 5000), end="close")),
    Profile("chunked-size-0x", "sizes with 0x", _raw(lambda b: _chunks(b, form="0x{:x}"))),
    Profile("chunked-size-underscore", "sizes as Python writes them", _raw(lambda b: _chunks(b, 0x123, form="{:_x}"))),
    Profile("chunked-size-decimal", "sizes in decimals", _raw(lambda b: _chunks(b, form="{:d}"))),
    Profile("chunked-size-blanks", "blanks around sizes", _raw(lambda b: _chunks(b, form=" {:x} "))),
    Profile("chunked-size-line-1-mb", "a size line of 1 MB", _raw(_first("1;" + "a" * 1_000_000), end="close")),
    Profile("chunked-short", "chunks shorter than their size", _raw(lambda b: _first(f"{len(b) + 50:x}")(b))),
    Profile("chunked-long", "chunks longer than their size", _raw(lambda b: _first(f"{len(b) - 50:x}")(b))),
    Profile("chunked-no-line-end", "no line end after chunks", _raw(lambda b: f"{len(b):x}\r\n".encode() + b + GOOD)),
    Profile("chunked-bare-lf", "line feeds only", _raw(lambda b: _chunks(b, eol=b"\n", last=b"0\n\n"))),
    Profile("chunked-body-plain", "said to be chunked, and is not", _raw(lambda b: b, end="close")),
    Profile("chunked-twice", "chunked, chunked", _raw(_chunks, coding="chunked, chunked")),
    Profile("chunked-gzip", "gzip, chunked, and no gzip", _raw(_chunks, coding="gzip, chunked")),
    Profile("chunked-identity", "identity", _raw(lambda b: b, coding="identity", end="close")),
    Profile("chunked-unknown", "a coding nobody knows", _raw(_chunks, coding="smoke-signals")),
    Profile("chunked-extra-after", "a second body after the end", _raw(lambda b: _chunks(b) + _chunks(b))),
    Profile(
        "chunked-trailers-1-mb",
        "1 MB of trailers",
        _raw(lambda b: _chunks(b, last=b"0\r\n" + b"X: y\r\n" * 170_000 + b"\r\n")),
    ),
]
