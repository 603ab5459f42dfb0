"""Answers that never end, as fast as they can or a byte at a time. They stop when the client leaves."""

from collections.abc import Callable

from support.faulty.exchange import BLOCK, Exchange, Profile, When, dumped, http, question, scoring

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
BREATH = 0.001  # seconds between blocks of 64 KB
TRICKLE = 0.5


def _for_ever(first: bytes, again: bytes, pause: float = BREATH) -> Callable[[Exchange], None]:
    """The first bytes, then the others again and again."""

    def act(ex: Exchange) -> None:
        ex.keep = False
        ex.send(first)
        while True:
            ex.pause(pause)
            ex.send(again)

    return act


def _block(text: bytes) -> bytes:
    return text * (BLOCK // len(text))


def _chunked(text: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(text), text)


def _healthy_by_bytes(ex: Exchange) -> None:
    """The healthy answer, a byte every half second: some eight minutes."""
    for byte in http(ex.answer()):
        ex.send(bytes([byte]))
        ex.pause(TRICKLE)


def _body_by_bytes(ex: Exchange) -> None:
    head, _, body = http(ex.answer()).partition(b"\r\n\r\n")
    ex.send(head + b"\r\n\r\n")
    for byte in body:
        ex.send(bytes([byte]))
        ex.pause(TRICKLE)


def _blanks_then_answer(ex: Exchange) -> None:
    """A megabyte of blanks before the JSON, as gateways send to keep a connection alive."""
    ex.reply(b" " * 1_000_000 + dumped(ex.answer()))


CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
OPEN = OK + b"\r\n"
LONG = OK + b"Content-Length: 1000000000000000\r\n\r\n"


def _slow(name: str, what: str, act: Callable[[Exchange], None], when: When = question) -> Profile:
    return Profile(name, what, act, when, slow=True)


ROWS = [
    _slow("endless-body", "a body without an end", _for_ever(OPEN + b'{"choices": "', _block(b"a"))),
    _slow("endless-body-length", "as long as announced", _for_ever(LONG + b'{"choices": "', _block(b"a"))),
    _slow("endless-chunks", "chunks without an end", _for_ever(CHUNKED, _chunked(_block(b"a")))),
    _slow("endless-chunk-size", "a chunk's size line without an end", _for_ever(CHUNKED, _block(b"1"))),
    _slow("endless-trailers", "trailers without an end", _for_ever(CHUNKED + b"0\r\n", _block(b"X: y\r\n"))),
    _slow("endless-blanks", "blanks without an end", _for_ever(OPEN, _block(b" \r\n "))),
    _slow("endless-headers", "headers without an end", _for_ever(OK, _block(b"X-More: more\r\n"))),
    _slow("endless-header", "one header without an end", _for_ever(OK + b"X-Long: ", _block(b"a"))),
    _slow("endless-status-line", "a status line without an end", _for_ever(b"HTTP/1.1 200 ", _block(b"O"))),
    _slow("endless-interim", "100 Continue without an end", _for_ever(b"", _block(b"HTTP/1.1 100 Continue\r\n\r\n"))),
    _slow(
        "endless-error-body", "a 500 whose body has no end", _for_ever(OPEN.replace(b"200 OK", b"500 No"), _block(b"a"))
    ),
    _slow(
        "endless-scoring", "a body without an end, for scores only", _for_ever(OPEN + b"[", _block(b"[1],")), scoring
    ),
    _slow("trickle-all", "the healthy answer, a byte every half second", _healthy_by_bytes),
    _slow("trickle-body", "its body, a byte every half second", _body_by_bytes),
    _slow("trickle-scoring", "the same, for scores only", _body_by_bytes, scoring),
    _slow("trickle-blanks", "a blank every half second", _for_ever(CHUNKED, _chunked(b" "), TRICKLE)),
    _slow("trickle-headers", "a header every half second", _for_ever(OK, b"X-Wait: please\r\n", TRICKLE)),
    _slow("trickle-interim", "a 102 every half second", _for_ever(b"", b"HTTP/1.1 102 Processing\r\n\r\n", TRICKLE)),
    _slow("trickle-comments", "an event stream's comments", _for_ever(CHUNKED, _chunked(b": keep-alive\n\n"), TRICKLE)),
    Profile("blanks-1-mb", "1 MB of blanks, then the answer", _blanks_then_answer, when=scoring, expect="judged"),
]
