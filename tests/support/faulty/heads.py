"""Status lines and headers that are not as they should be."""

from support.faulty.exchange import Act, Exchange, Profile, dumped


def _head(status: str = "HTTP/1.1 200 OK", more: str = "", end: str = "\r\n", before: bytes = b"") -> Act:
    """The healthy answer with this status line, these header lines, these line ends."""

    def act(ex: Exchange) -> None:
        body = dumped(ex.answer())
        lines = [status, "Content-Type: application/json", *([more] if more else []), f"Content-Length: {len(body)}"]
        ex.send(before + (end.join(lines) + end * 2).encode("latin-1") + body)

    return act


def _close(act: Act) -> Act:
    def closing(ex: Exchange) -> None:
        act(ex)
        ex.close()

    return closing


ROWS = [
    Profile("http-1.0", "HTTP/1.0, closed", _close(_head("HTTP/1.0 200 OK")), shows=b"^HTTP/1.0", expect="judged"),
    Profile("http-1.0-kept", "HTTP/1.0, kept open", _head("HTTP/1.0 200 OK"), expect="judged"),
    Profile("http-2.0", "HTTP/2.0 in a status line", _head("HTTP/2.0 200 OK")),
    Profile("http-lower-case", "http/1.1 in small letters", _head("http/1.1 200 OK")),
    Profile("no-reason", "a status without words", _head("HTTP/1.1 200"), expect="judged"),
    Profile("no-reason-blank", "a status with a blank", _head("HTTP/1.1 200 "), expect="judged"),
    Profile("reason-not-ascii", "umlauts in the status line", _head("HTTP/1.1 200 Schön gemacht")),
    Profile("status-line-escapes", "terminal escapes in a refusal", _head("HTTP/1.1 500 \x1b[31mred\x1b[2J")),
    Profile("status-two-digits", "20", _head("HTTP/1.1 20 OK")),
    Profile("status-four-digits", "2000", _head("HTTP/1.1 2000 OK")),
    Profile("status-negative", "-200", _head("HTTP/1.1 -200 OK")),
    Profile("status-zero", "000", _head("HTTP/1.1 000 OK")),
    Profile("status-word", "no number", _head("HTTP/1.1 OK 200")),
    Profile("status-line-garbage", "no status line", _head("lorem ipsum")),
    Profile("status-line-empty", "an empty one", _head("")),
    Profile("status-line-icy", "ICY 200 OK", _head("ICY 200 OK")),
    Profile("status-line-100-kb", "with 100 KB of words", _head("HTTP/1.1 200 " + "O" * 100_000)),
    Profile("blank-lines-first", "two empty lines first", _head(before=b"\r\n\r\n")),
    Profile("garbage-first", "bytes before the status line", _head(before=b"\x00\x01\x02")),
    Profile("bare-lf", "lines that end without a return", _head(end="\n"), shows=b"OK\nContent"),
    Profile("bare-cr", "lines that end without a feed", _close(_head(end="\r"))),
    Profile("header-without-colon", "a line that is no header", _head(more="this is no header")),
    Profile("header-folded", "a header of two lines", _head(more="X-Folded: one\r\n two")),
    Profile("header-blank-before-colon", "a blank before a colon", _head(more="X-Blank : one")),
    Profile("header-no-name", "a header without a name", _head(more=": value")),
    Profile("header-no-value", "a header without a value", _head(more="X-Empty:"), expect="judged"),
    Profile("header-nul", "a NUL in a value", _head(more="X-Nul: a\0b")),
    Profile("header-escapes", "terminal escapes in a value", _head(more="X-Color: \x1b[31mred")),
    Profile("header-latin-1", "umlauts in a value", _head(more="X-Name: Jürgen"), expect="judged"),
    Profile("header-8-kb", "one of 8 KB", _head(more="X-Long: " + "a" * 8_000), expect="judged"),
    Profile("header-1-mb", "one of 1 MB", _head(more="X-Long: " + "a" * 1_000_000)),
    Profile("headers-100", "100 of them", _head(more="\r\n".join(f"X-{n}: {n}" for n in range(100)))),
    Profile("headers-5000", "5,000 of them", _head(more="\r\n".join(f"X-{n}: {n}" for n in range(5000)))),
    Profile("type-missing", "no content type", lambda ex: ex.reply(ex.answer(), kind=None), expect="judged"),
    Profile("type-html", "text/html over JSON", lambda ex: ex.reply(ex.answer(), kind="text/html"), expect="judged"),
    Profile(
        "type-charset", "a charset nobody knows", lambda ex: ex.reply(ex.answer(), kind="application/json; charset=x-7")
    ),
]
