"""Connections that are closed, reset or silent at each point."""

from collections.abc import Callable

from support.faulty.exchange import Act, Exchange, Profile, dumped, http, once, question, scoring


def _parts(ex: Exchange) -> tuple[bytes, bytes]:
    """Head and body of the healthy answer."""
    head, _, body = http(ex.answer()).partition(b"\r\n\r\n")
    return head + b"\r\n\r\n", body


def _in_head(ex: Exchange) -> bytes:
    return _parts(ex)[0][:30]


def _head(ex: Exchange) -> bytes:
    return _parts(ex)[0]


def _in_body(ex: Exchange) -> bytes:
    head, body = _parts(ex)
    return head + body[: len(body) // 2]


def _all_but_one(ex: Exchange) -> bytes:
    return http(ex.answer())[:-1]


def _nothing(ex: Exchange) -> bytes:
    return b""


def _whole(ex: Exchange) -> bytes:
    return http(ex.answer())


def _closed(ex: Exchange) -> None:
    ex.close()


def _at(point: Callable[[Exchange], bytes], end: Act) -> Act:
    """Send the answer up to that point, and end in that way."""

    def act(ex: Exchange) -> None:
        ex.send(point(ex))
        if end is Exchange.reset:
            ex.pause(0.02)  # a reset may overtake what was sent
        end(ex)

    return act


POINTS = {"at-once": _nothing, "in-head": _in_head, "after-head": _head, "in-body": _in_body, "last-byte": _all_but_one}
ENDS = {"close": Exchange.close, "reset": Exchange.reset, "hang": Exchange.hang}


def _stale(ex: Exchange) -> None:
    """Answer, and be closed when the client comes back."""
    ex.send(_whole(ex))
    ex.pause(0.03)
    ex.close()


def _second_reset(ex: Exchange) -> None:
    if ex.on_connection > 1:
        ex.reset()
    else:
        ex.send(_whole(ex))


def _second_closed_after_reading(ex: Exchange) -> None:
    if ex.on_connection > 1:
        ex.close()
    else:
        ex.send(_whole(ex))


def _tls(ex: Exchange) -> None:
    ex.send(b"\x15\x03\x01\x00\x02\x02\x46")
    ex.close()


def _tls_hello(ex: Exchange) -> None:
    ex.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)))
    ex.close()


def _byte_by_byte(ex: Exchange) -> None:
    head, body = _parts(ex)
    for at in range(len(head)):
        ex.send(head[at : at + 1])
    ex.send(body)


def _other_protocol(data: bytes) -> Act:
    def act(ex: Exchange) -> None:
        ex.send(data)
        ex.close()

    return act


def _slow(ex: Exchange) -> None:
    ex.pause(0.7)
    ex.send(_whole(ex))


ROWS = [
    *(
        Profile(f"{end}-{point}", f"{end} {point.replace('-', ' ')} of the answer", _at(POINTS[point], ENDS[end]))
        for end in ENDS
        for point in POINTS
    ),
    *(
        Profile(
            f"{end}-{point}-once",
            "the same, the first time a question comes",
            _at(POINTS[point], ENDS[end]),
            when=once,
            expect="judged",
        )
        for end, point in (("close", "at-once"), ("close", "in-body"), ("reset", "in-body"))
    ),
    Profile(
        "hang-in-body-once",
        "the same, the first time a score is asked",
        _at(_in_body, Exchange.hang),
        when=lambda ex: scoring(ex) and once(ex),
        expect="judged",
    ),
    Profile(
        "reset-after-answer",
        "a whole answer, then a reset",
        _at(_whole, Exchange.reset),
        shows=b"chatcmpl",
        expect="any",
    ),
    Profile("close-after-answer", "closed after each answer, unannounced", _at(_whole, _closed), expect="judged"),
    Profile("stale-connection", "closed 30 ms after the answer, unannounced", _stale, expect="judged"),
    Profile("second-request-reset", "the second request of a connection is reset", _second_reset, expect="judged"),
    Profile(
        "second-request-closed",
        "the second request of a connection is read and closed",
        _second_closed_after_reading,
        expect="judged",
    ),
    Profile(
        "connection-close",
        "Connection: close, and closed",
        lambda ex: (ex.reply(ex.answer(), headers="Connection: close\r\n"), ex.close())[1],
        shows=b"Connection: close",
        expect="judged",
    ),
    Profile(
        "connection-close-kept",
        "Connection: close, and kept open",
        lambda ex: ex.reply(ex.answer(), headers="Connection: close\r\n"),
        shows=b"Connection: close",
        expect="judged",
    ),
    Profile("slow-first-byte", "0.7 s until the first byte", _slow, expect="judged"),
    Profile("head-byte-by-byte", "the head in pieces of one byte", _byte_by_byte, expect="judged"),
    Profile("tls-alert", "a TLS alert on a plain port", _tls, shows=rb"^\x15\x03\x01"),
    Profile("tls-hello", "a TLS handshake on a plain port", _tls_hello, shows=rb"^\x16\x03\x01"),
    Profile("ssh-banner", "another protocol", _other_protocol(b"SSH-2.0-OpenSSH_9.6\r\n"), shows=b"^SSH"),
    Profile(
        "http2-preface",
        "HTTP/2 frames",
        _other_protocol(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x80\x00\x04\x00\x01\x00\x00"),
        shows=rb"^\x00\x00\x12\x04",
    ),
    Profile(
        "http-0.9",
        "a body without any head",
        lambda ex: (ex.send(dumped(ex.answer())), ex.close())[1],
        when=question,
        shows=b"^{",
    ),
]
