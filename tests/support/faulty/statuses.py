"""Refusals of every kind, and redirects to elsewhere."""

from support.faulty.exchange import Act, Exchange, Profile, after, fails, first, once

REASONS = {
    400: "Bad Request",
    401: "Unauthorized",
    402: "Payment Required",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    406: "Not Acceptable",
    407: "Proxy Authentication Required",
    408: "Request Timeout",
    409: "Conflict",
    410: "Gone",
    411: "Length Required",
    412: "Precondition Failed",
    413: "Content Too Large",
    414: "URI Too Long",
    415: "Unsupported Media Type",
    417: "Expectation Failed",
    418: "I'm a teapot",
    421: "Misdirected Request",
    422: "Unprocessable Content",
    423: "Locked",
    424: "Failed Dependency",
    425: "Too Early",
    426: "Upgrade Required",
    428: "Precondition Required",
    431: "Request Header Fields Too Large",
    451: "Unavailable For Legal Reasons",
    499: "Client Closed Request",
    500: "Internal Server Error",
    501: "Not Implemented",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
    505: "HTTP Version Not Supported",
    507: "Insufficient Storage",
    508: "Loop Detected",
    511: "Network Authentication Required",
    520: "Web Server Returned an Unknown Error",
    521: "Web Server Is Down",
    522: "Connection Timed Out",
    523: "Origin Is Unreachable",
    524: "A Timeout Occurred",
    525: "SSL Handshake Failed",
    526: "Invalid SSL Certificate",
    527: "Railgun Error",
    529: "Site is overloaded",
    530: "Origin DNS Error",
    598: "Network Read Timeout",
    600: "Beyond All",
    999: "Request Denied",
}
PASSING = (408, 409, 421, 425, 500, 502, 503, 504, 520, 522, 524, 529)  # the same request may succeed later
PAGE = b"<html><head><title>502 Bad Gateway</title></head><body><center>nginx/1.24</center></body></html>"
DETAIL = {"detail": [{"loc": ["body", "messages", 1], "msg": "image_url: the picture is too small", "type": "value"}]}


def _line(code: int) -> str:
    return f"{code} {REASONS[code]}"


def _away(code: int, where: str | None) -> Act:
    location = "" if where is None else f"Location: {where}\r\n"
    return fails(f"{code} Found", b"<html>Moved</html>", location, kind="text/html")


def _repeats_the_key(status: str, template: str, kind: str = "application/json") -> Act:
    """An error that repeats the key of the request, and every header."""

    def act(ex: Exchange) -> None:
        text = template.format(key=ex.key, half=ex.key[: len(ex.key) // 2])
        body = text.encode() if kind == "text/html" else {"error": {"message": text, "code": ex.key}}
        ex.reply(body, status, kind=kind)

    return act


def _escapes(ex: Exchange) -> None:
    ex.reply({"error": {"message": "\x1b]0;owned\x07\x1b[2J\x1b[31mred \u009b31m \u202e reversed \r over"}}, "400 Bad")


def _long(ex: Exchange) -> None:
    ex.reply({"error": {"message": "too much " * 500_000}}, "400 Bad Request")


ELSEWHERE = "http://127.0.0.1:9/v1/chat/completions"

ROWS = [
    *(Profile(f"status-{code}", _line(code), fails(_line(code)), shows=b"^HTTP/1.1 %d " % code) for code in REASONS),
    *(
        Profile(
            f"status-{code}-once", f"{_line(code)}, once for each question", fails(_line(code)), once, expect="judged"
        )
        for code in PASSING
    ),
    *(
        Profile(f"redirect-{code}", f"{code} to another port", _away(code, ELSEWHERE), shows=b"(?i)location: http")
        for code in (300, 301, 302, 303, 307, 308)
    ),
    Profile("redirect-https", "301 to https on the same host", _away(301, "https://127.0.0.1/v1/chat/completions")),
    Profile("redirect-self", "307 to the same place", _away(307, "/v1/chat/completions")),
    Profile("redirect-nowhere", "302 without a place", _away(302, None), shows=b" 302 "),
    Profile("redirect-escapes", "302 to a place with escapes", _away(302, "http://x/\x1b[31m\x07")),
    Profile("error-422-detail", "422 with FastAPI's detail", fails(_line(422), DETAIL), shows=b'"detail"'),
    Profile("error-detail-text", "400 with a detail in words", fails(_line(400), {"detail": "no such engine"})),
    Profile("error-text", "500 in plain text", fails(_line(500), b"upstream broke", kind="text/plain")),
    Profile("error-html", "502 with a proxy's page", fails(_line(502), PAGE, kind="text/html")),
    Profile("error-empty", "500 without a body", fails(_line(500), b"")),
    Profile("error-not-json", "500 with broken JSON", fails(_line(500), b'{"error": {"mess')),
    Profile("error-null-400", "400 with error: null", fails(_line(400), {"error": None})),
    Profile("error-number", "400 with a number", fails(_line(400), 17)),
    Profile("error-list", "400 with a list of errors", fails(_line(400), [{"error": {"message": "one"}}])),
    Profile("error-message-list", "400 with a list as message", fails(_line(400), {"error": {"message": ["a", "b"]}})),
    Profile("error-message-null", "400 with message: null", fails(_line(400), {"error": {"message": None}})),
    Profile(
        "error-code-dict", "400 with an odd code", fails(_line(400), {"error": {"message": "m", "code": {"a": 1}}})
    ),
    Profile("error-utf-16", "500 in UTF-16", fails(_line(500), '{"error": {"message": "broken"}}'.encode("utf-16"))),
    Profile("error-binary", "500 with bytes without sense", fails(_line(500), bytes(range(256)) * 4)),
    Profile("error-escapes", "400 with terminal escapes in its message", _escapes),
    Profile("error-4-mb", "400 with 4 MB of words", _long),
    Profile("error-key-400", "400 that repeats the key", _repeats_the_key(_line(400), "bad header: Bearer {key}")),
    Profile("error-key-401", "401 that repeats the key", _repeats_the_key(_line(401), "Incorrect API key: {key}.")),
    Profile("error-key-half", "401 with half of the key", _repeats_the_key(_line(401), "Incorrect API key: {half}***")),
    Profile(
        "error-key-500-html",
        "500 with the key in a page",
        _repeats_the_key(_line(500), "<pre>{key}</pre>", "text/html"),
    ),
    Profile("key-refused-after-15", "401 from the 16th question on", fails(_line(401)), after(15)),
    Profile("forbidden-after-15", "403 from the 16th question on", fails(_line(403)), after(15)),
    Profile("unpaid-after-15", "402 from the 16th question on", fails(_line(402)), after(15)),
    Profile("gone-after-15", "404 from the 16th question on", fails(_line(404)), after(15)),
    Profile("broken-after-15", "500 from the 16th question on", fails(_line(500)), after(15)),
    Profile("broken-first-3", "503 for the first 3 questions", fails(_line(503)), first(3), expect="judged"),
]
