"""Interim responses, answers too many, and answers to another request."""

from support.faulty.exchange import Act, Exchange, Profile, http, scoring


def _before(first: bytes, pause: float = 0.0) -> Act:
    """These bytes, then the healthy answer."""

    def act(ex: Exchange) -> None:
        ex.send(first)
        if pause:
            ex.pause(pause)
        ex.reply(ex.answer())

    return act


def _after(more: bytes, pause: float = 0.0) -> Act:
    """The healthy answer, and these bytes after it."""

    def act(ex: Exchange) -> None:
        answer = http(ex.answer())
        ex.send(answer if pause else answer + more)
        if pause:
            ex.pause(pause)
            ex.send(more)

    return act


def _twice(pause: float) -> Act:
    return lambda ex: _after(http(ex.answer()), pause)(ex)


def _answer_of_the_last(ex: Exchange) -> None:
    """The healthy answer to the last request of the same kind, from whatever connection."""
    own = http(ex.answer())
    with ex.shared.lock:
        other = ex.shared.last.get(ex.stage, own)
        ex.shared.last[ex.stage] = own
    ex.send(other)


def _split(ex: Exchange) -> None:
    for piece in (b"HTTP/1.1 1", b"00 Continue\r", b"\n\r", b"\n"):
        ex.send(piece)
        ex.pause(0.005)
    ex.reply(ex.answer())


def _then(first: bytes, status: str) -> Act:
    def act(ex: Exchange) -> None:
        ex.send(first)
        ex.reply({"error": {"message": f"refused with {status}"}}, status)

    return act


def _only(first: bytes, keep: bool = True) -> Act:
    def act(ex: Exchange) -> None:
        ex.send(first)
        if keep:
            ex.hang()
        else:
            ex.close()

    return act


CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
PROCESSING = b"HTTP/1.1 102 Processing\r\n\r\n"
HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n"
HINTS_WITH_BODY = b"HTTP/1.1 103 Early Hints\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
HINTS_WITH_LENGTH = b"HTTP/1.1 103 Early Hints\r\nContent-Length: 0\r\n\r\n"
SWITCHING = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n"
IDLE = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
EMPTY = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

ROWS = [
    Profile("interim-100", "100 Continue, then the answer", _before(CONTINUE), shows=b"^HTTP/1.1 100", expect="judged"),
    Profile("interim-102", "102 Processing, then the answer", _before(PROCESSING), shows=b" 102 ", expect="judged"),
    Profile("interim-103", "103 Early Hints, then the answer", _before(HINTS), shows=b" 103 ", expect="judged"),
    Profile("interim-100-late", "the answer 50 ms after 100", _before(CONTINUE, 0.05), expect="judged"),
    Profile("interim-three", "100, 102 and 103", _before(CONTINUE + PROCESSING + HINTS), expect="judged"),
    Profile("interim-twenty", "100 twenty times", _before(CONTINUE * 20), expect="judged"),
    Profile("interim-5000", "100 five thousand times", _before(CONTINUE * 5000)),
    Profile("interim-split", "100 in four pieces", _split, expect="judged"),
    Profile("interim-199", "an unknown 1xx", _before(b"HTTP/1.1 199 Thinking\r\n\r\n"), expect="judged"),
    Profile("interim-103-with-length", "103 with Content-Length: 0", _before(HINTS_WITH_LENGTH), expect="judged"),
    Profile("interim-103-with-body", "103 with something like a body", _before(HINTS_WITH_BODY), shows=b"{}HTTP"),
    Profile("interim-101", "101 Switching Protocols, unasked, then the answer", _before(SWITCHING)),
    Profile("interim-then-500", "100, then 500", _then(CONTINUE, "500 Internal Server Error"), shows=b" 500 "),
    Profile("interim-then-429", "103, then 429", _then(HINTS, "429 Too Many Requests"), shows=b" 429 "),
    Profile("interim-then-close", "100, then closed", _only(CONTINUE, keep=False)),
    Profile("interim-then-hang", "100, then nothing", _only(CONTINUE)),
    Profile("interim-102-only-scoring", "102 before scores only", _before(PROCESSING), when=scoring, expect="judged"),
    Profile("answer-twice", "each answer twice, at once", _twice(0.0)),
    Profile("answer-twice-late", "each answer twice, the second 20 ms later", _twice(0.02)),
    Profile("answer-then-408", "a 408 for idling 20 ms after the answer", _after(IDLE, 0.02), expect="judged"),
    Profile("answer-then-408-at-once", "a 408 in one piece with the answer", _after(IDLE), expect="judged"),
    Profile("answer-then-empty", "an empty answer after each answer", _after(EMPTY)),
    Profile("answer-then-interim", "100 after each answer", _after(CONTINUE), expect="judged"),
    Profile("answer-then-newline", "a line break after each body", _after(b"\r\n"), expect="judged"),
    Profile("answer-then-garbage", "bytes without sense after each answer", _after(b"\x00\xffgarbage")),
    Profile("answer-then-garbage-late", "the same, 20 ms later", _after(b"\x00\xffgarbage", 0.02)),
    Profile(
        "answer-to-the-last",
        "the answer to the last request of the same stage",
        _answer_of_the_last,
        expect="undetectable",
    ),
]
