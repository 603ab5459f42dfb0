"""Content-Length that is missing, wrong, double or no number."""

from collections.abc import Callable

from support.faulty.exchange import Act, Exchange, Profile, dumped


def _length(header: str | Callable[[int], str], keep: bool = True) -> Act:
    """The healthy answer with these lines in place of its Content-Length."""

    def act(ex: Exchange) -> None:
        body = dumped(ex.answer())
        lines = header(len(body)) if callable(header) else header
        ex.send(f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{lines}\r\n".encode() + body)
        if keep == "hang":
            ex.hang()
        elif not keep:
            ex.close()

    return act


def _line(value: str | Callable[[int], str]) -> Callable[[int], str]:
    return lambda size: f"Content-Length: {value(size) if callable(value) else value}\r\n"


def _empty_of(status: str, headers: str = "") -> Act:
    return lambda ex: ex.send(f"HTTP/1.1 {status}\r\n{headers}\r\n".encode())


ROWS = [
    Profile("no-length-close", "no length, the end is the end", _length("", keep=False), expect="judged"),
    Profile("no-length-kept", "no length, and the connection stays open", _length("")),
    Profile("length-10-too-long", "10 more than come, then closed", _length(_line(lambda n: f"{n + 10}"), keep=False)),
    Profile("length-10-too-long-kept", "10 more than come", _length(_line(lambda n: f"{n + 10}"))),
    Profile("length-10-too-short", "10 less than come", _length(_line(lambda n: f"{n - 10}"))),
    Profile("length-half", "half of what comes", _length(_line(lambda n: f"{n // 2}"))),
    Profile("length-zero", "0, and a body", _length(_line("0"))),
    Profile("length-negative", "-1", _length(_line("-1"))),
    Profile("length-word", "no number", _length(_line("many"))),
    Profile("length-empty", "nothing where the number should be", _length(_line(""))),
    Profile("length-float", "with a fraction", _length(_line(lambda n: f"{n}.0"))),
    Profile("length-hex", "in hex", _length(_line(hex))),
    Profile("length-plus", "with a sign", _length(_line(lambda n: f"+{n}"))),
    Profile("length-underscore", "as Python writes numbers", _length(_line(lambda n: f"{n:_}"))),
    Profile("length-spaces", "with blanks around it", _length(_line(lambda n: f"   {n}   ")), expect="judged"),
    Profile("length-leading-zeros", "with zeros before it", _length(_line(lambda n: f"{n:020}"))),
    Profile("length-huge", "10^18", _length(_line(f"{10**18}"), keep=False)),
    Profile("length-5000-digits", "with 5,000 digits", _length(_line("9" * 5000), keep=False)),
    Profile("length-other-digits", "in Arabic digits", _length(_line("\u0661\u0662"), keep=False)),
    Profile("length-double-same", "twice the same", _length(lambda n: _line(str)(n) * 2)),
    Profile("length-double-different", "two that differ", _length(lambda n: _line(str)(n) + _line(str)(n + 7))),
    Profile("length-double-shorter-first", "two that differ", _length(lambda n: _line("7")(n) + _line(str)(n))),
    Profile("length-list", "a list of two", _length(_line(lambda n: f"{n}, {n}"))),
    Profile(
        "length-and-chunked",
        "a length and chunked, the body plain",
        _length(lambda n: _line(str)(n) + "Transfer-Encoding: chunked\r\n"),
    ),
    Profile("status-204", "204 without a body", _empty_of("204 No Content"), shows=b"^HTTP/1.1 204"),
    Profile("status-205", "205 without a body", _empty_of("205 Reset Content", "Content-Length: 0\r\n")),
    Profile("status-304", "304 without a body", _empty_of("304 Not Modified"), shows=b"^HTTP/1.1 304"),
    Profile("status-204-with-body", "204, and a body", lambda ex: ex.reply(ex.answer(), "204 No Content")),
]
