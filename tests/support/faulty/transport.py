"""Faults outside the JSON: connections, interim answers, headers, lengths, chunks, and endless answers."""

from collections.abc import Callable

from support.faulty.exchange import Act, Profile, Question, blocks, once, question, scoring
from support.loopback import BLOCK, dumped, http

JSON_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = JSON_HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
PROCESSING = b"HTTP/1.1 102 Processing\r\n\r\n"
HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n"
HINTS_WITH_BODY = b"HTTP/1.1 103 Early Hints\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
IDLE = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
LAST = b"0\r\n\r\n"
BREATH = 0.001  # seconds between blocks of 64 KB
TRICKLE = 0.5


def _sent(make: Callable[[Question], bytes], end: Act | None = None, pause: float = 0.0) -> Act:
    """Send these bytes after a pause, and end in this way; without an end the connection is kept."""

    def act(ex: Question) -> None:
        ex.pause(pause)
        ex.send(make(ex))
        if end is Question.reset:
            ex.pause(0.02)  # a reset may overtake what was sent
        if end is not None:
            end(ex)

    return act


def _whole(ex: Question) -> bytes:
    return http(ex.answer())


def _head(ex: Question) -> bytes:
    return _whole(ex).partition(b"\r\n\r\n")[0] + b"\r\n\r\n"


def _half(ex: Question) -> bytes:
    return _whole(ex)[: len(_head(ex)) + len(dumped(ex.answer())) // 2]


def _nothing(ex: Question) -> bytes:
    return b""


def _byte_by_byte(ex: Question) -> None:
    head = _head(ex)
    for at in range(len(head)):
        ex.send(head[at : at + 1])
    ex.send(dumped(ex.answer()))


def _before(first: bytes) -> Act:
    """Send these bytes, then the healthy answer."""
    return _sent(lambda ex: first + _whole(ex))


def _after(more: Callable[[Question], bytes], pause: float = 0.0) -> Act:
    """Send the healthy answer and these bytes after it, in one piece if there is no pause."""

    def act(ex: Question) -> None:
        ex.send(_whole(ex) + (b"" if pause else more(ex)))
        if pause:
            ex.pause(pause)
            ex.send(more(ex))

    return act


def _answer_of_the_last(ex: Question) -> None:
    """Send the healthy answer to the last request of the same stage, from any connection."""
    own = http(ex.answer())
    with ex.shared.lock:
        other = ex.shared.last.get(ex.stage, own)
        ex.shared.last[ex.stage] = own
    ex.send(other)


def _headed(status: str = "HTTP/1.1 200 OK", more: str = "", end: str = "\r\n", before: bytes = b"") -> Act:
    """Send the healthy answer with this status line, these header lines and these line ends."""

    def act(ex: Question) -> None:
        body = dumped(ex.answer())
        lines = [status, "Content-Type: application/json", *([more] if more else []), f"Content-Length: {len(body)}"]
        ex.send(before + (end.join(lines) + end * 2).encode("latin-1") + body)

    return act


def _length(header: Callable[[int], str], end: Act | None = None) -> Act:
    """Send the healthy answer with these lines instead of its Content-Length."""
    return _sent(lambda ex: JSON_HEAD + f"{header(len(dumped(ex.answer())))}\r\n".encode() + dumped(ex.answer()), end)


def _chunks(body: bytes, last: bytes = LAST, form: str = "{:x}", extension: str = "") -> bytes:
    pieces = (form.format(len(piece)).encode() + extension.encode() + b"\r\n" + piece for piece in blocks(body, 200))
    return b"\r\n".join(pieces) + b"\r\n" + last


def _chunked(write: Callable[[bytes], bytes], end: Act | None = None) -> Act:
    """Send the body of the healthy answer as this function writes it."""
    return _sent(lambda ex: CHUNKED + write(dumped(ex.answer())), end)


def _for_ever(first: bytes, again: bytes, pause: float = BREATH) -> Callable[[Question], None]:
    """Send the first bytes, then the others without end."""

    def act(ex: Question) -> None:
        ex.keep = False
        ex.send(first)
        while True:
            ex.pause(pause)
            ex.send(again)

    return act


def _block(text: bytes) -> bytes:
    return text * (BLOCK // len(text))


def _chunk(text: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(text), text)


def _by_bytes(ex: Question) -> None:
    """Send the healthy answer, a byte every half second, for about eight minutes."""
    for byte in _whole(ex):
        ex.send(bytes([byte]))
        ex.pause(TRICKLE)


CONNECTION = [
    Profile("close-at-once", "closed without an answer", _sent(_nothing, Question.close)),
    Profile("reset-after-head", "reset after the head", _sent(_head, Question.reset)),
    Profile("close-in-body-once", "closed in mid-body, once", _sent(_half, Question.close), once, expect="assessed"),
    Profile("hang-at-once", "no answer at all", _sent(_nothing, Question.hang)),
    Profile(
        "hang-in-body-once",
        "nothing more in mid-body, the first time a score is asked",
        _sent(_half, Question.hang),
        lambda ex: scoring(ex) and once(ex),
        expect="assessed",
    ),
    Profile(
        "stale-connection", "closed after the answer, unannounced", _sent(_whole, Question.close), expect="assessed"
    ),
    Profile("slow-first-byte", "0.7 s until the first byte", _sent(_whole, pause=0.7), expect="assessed"),
    Profile("head-byte-by-byte", "the head in pieces of one byte", _byte_by_byte, expect="assessed"),
    Profile("tls-alert", "a TLS alert on a plain port", _sent(lambda ex: b"\x15\x03\x01\0\2\2\x46", Question.close)),
    Profile("http-0.9", "a body without any head", _sent(lambda ex: dumped(ex.answer()), Question.close)),
]
INTERIM = [
    Profile(
        "interim-three", "100, 102 and 103, then the answer", _before(CONTINUE + PROCESSING + HINTS), expect="assessed"
    ),
    Profile("interim-199", "an unknown 1xx", _before(b"HTTP/1.1 199 Thinking\r\n\r\n"), expect="assessed"),
    Profile("interim-5000", "100 five thousand times", _before(CONTINUE * 5000)),
    Profile("interim-103-with-body", "103 with something like a body", _before(HINTS_WITH_BODY)),
    Profile("interim-then-hang", "100, then nothing", _sent(lambda ex: CONTINUE, Question.hang)),
    Profile("answer-twice", "each answer twice, at once", _after(_whole)),
    Profile("answer-twice-late", "each answer twice, the second 20 ms later", _after(_whole, 0.02)),
    Profile(
        "answer-then-408", "a 408 for idling 20 ms after the answer", _after(lambda ex: IDLE, 0.02), expect="assessed"
    ),
    Profile("answer-then-garbage", "bytes without sense after each answer", _after(lambda ex: b"\0\xffgarbage")),
    Profile(
        "answer-to-the-last",
        "the answer to the last request of the same stage",
        _answer_of_the_last,
        expect="undetectable",
    ),
]
LENGTH = [
    Profile("no-length", "no length, the end is the end", _length(lambda n: "", Question.close), expect="assessed"),
    Profile("length-too-long", "10 more than come", _length(lambda n: f"Content-Length: {n + 10}\r\n", Question.close)),
    Profile("length-too-short", "10 less than come", _length(lambda n: f"Content-Length: {n - 10}\r\n")),
    Profile("length-word", "no number", _length(lambda n: "Content-Length: many\r\n")),
    Profile("length-double-different", "two", _length(lambda n: f"Content-Length: {n}\r\nContent-Length: {n + 7}\r\n")),
    Profile("status-204", "204 without a body", _sent(lambda ex: b"HTTP/1.1 204 No Content\r\n\r\n")),
]
HEAD = [
    Profile("http-1.0", "HTTP/1.0, kept open", _headed("HTTP/1.0 200 OK"), expect="assessed"),
    Profile("no-reason", "a status without words", _headed("HTTP/1.1 200"), expect="assessed"),
    Profile("status-line-escapes", "terminal escapes in a refusal", _headed("HTTP/1.1 500 \x1b[31mred\x1b[2J")),
    Profile("status-word", "no number", _headed("HTTP/1.1 OK 200")),
    Profile("blank-lines-first", "two empty lines first", _headed(before=b"\r\n\r\n")),
    Profile("bare-lf", "lines that end without a return", _headed(end="\n")),
    Profile("header-without-colon", "a line that is no header", _headed(more="this is no header")),
    Profile("header-folded", "a header of two lines", _headed(more="X-Folded: one\r\n two")),
    Profile("header-latin-1", "umlauts in a value", _headed(more="X-Name: J\xfcrgen"), expect="assessed"),
    Profile("header-escapes", "terminal escapes in a value", _headed(more="X-Color: \x1b[31mred")),
    Profile("header-1-mb", "one of 1 MB", _headed(more="X-Long: " + "a" * 1_000_000)),
    Profile("type-html", "text/html over JSON", lambda ex: ex.reply(ex.answer(), kind="text/html"), expect="assessed"),
]
CHUNKS = [
    Profile("chunked", "chunked, as it should be", _chunked(_chunks), expect="assessed"),
    Profile(
        "chunked-odd",
        "sizes with zeros, with extensions and trailers",
        _chunked(lambda b: _chunks(b, b"0\r\nX-Sum: 1\r\n\r\n", "{:012X}", ";a=b;c")),
        expect="assessed",
    ),
    Profile("chunked-no-end", "no last chunk, closed", _chunked(lambda b: _chunks(b, b""), Question.close)),
    Profile("chunked-no-end-kept", "no last chunk, kept open", _chunked(lambda b: _chunks(b, b""), Question.hang)),
    Profile("chunked-size-word", "a size that is no number", _chunked(lambda b: b"zz\r\n" + b + b"\r\n" + LAST)),
    Profile("chunked-size-huge", "16 F as a size, closed", _chunked(lambda b: b"f" * 16 + b"\r\n" + b, Question.close)),
    Profile(
        "chunked-long",
        "chunks longer than their size",
        _chunked(lambda b: _chunks(b, form="{:x}").replace(b"c8", b"64")),
    ),
    Profile("chunked-body-plain", "said to be chunked, and is not", _chunked(lambda b: b, Question.close)),
]
ENDLESS = [
    Profile(name, what, act, when, slow=True)
    for name, what, act, when in (
        ("endless-body", "a body without an end", _for_ever(JSON_HEAD + b'\r\n{"choices": "', _block(b"a")), question),
        ("endless-chunks", "chunks without an end, for scores", _for_ever(CHUNKED, _chunk(_block(b"a"))), scoring),
        ("endless-headers", "headers without an end", _for_ever(JSON_HEAD, _block(b"X-More: more\r\n")), question),
        ("endless-interim", "100 Continue without an end", _for_ever(b"", _block(CONTINUE)), question),
        ("trickle-all", "the healthy answer, a byte every half second", _by_bytes, question),
        ("trickle-blanks", "a blank every half second", _for_ever(CHUNKED, _chunk(b" "), TRICKLE), question),
        ("trickle-interim", "a 102 every half second", _for_ever(b"", PROCESSING, TRICKLE), question),
    )
]
