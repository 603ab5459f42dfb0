"""Bodies that are no JSON, other JSON, or too much of it; the content in them would be the healthy one."""

import gzip
import json
import zlib
from collections.abc import Callable

from support.faulty.exchange import Act, Profile, fails, once, question, rewritten, scoring


def _put(name: str, value: bytes) -> Callable[[bytes], bytes]:
    """The JSON with one more field of this raw text, first."""
    return lambda body: b'{"%s": %s, ' % (name.encode(), value) + body[1:]


def _utf(coding: str) -> Callable[[bytes], bytes]:
    return lambda body: body.decode().encode(coding)


def _zipped(coding: str, write: Callable[[bytes], bytes]) -> Act:
    return rewritten(write, headers=f"Content-Encoding: {coding}\r\n")


def _bomb(body: bytes) -> bytes:
    """100 MB of blanks in 100 KB."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    data = b"".join(packer.compress(b" " * 1_000_000) for _ in range(100))
    return data + packer.compress(body) + packer.flush()


def _later(body: bytes) -> bytes:
    """The field with the answer twice, first another one."""
    return b'{"choices": [], ' + body[1:]


def _first(body: bytes) -> bytes:
    return body[:-1] + b', "choices": []}'


BROKEN: list[tuple[str, str, Act]] = [
    ("json-cut", "the second half is missing", rewritten(lambda b: b[: len(b) // 2])),
    ("json-cut-brace", "the last brace is missing", rewritten(lambda b: b[:-1])),
    ("json-comma", "a comma too many", rewritten(lambda b: b[:-1] + b",}")),
    ("json-single-quotes", "Python's quotes", rewritten(lambda b: b.replace(b'"', b"'"))),
    ("json-comment", "a comment first", rewritten(lambda b: b"// hello\n" + b)),
    ("json-then-words", "words after it", rewritten(lambda b: b + b" and that is all")),
    ("json-twice", "two documents", rewritten(lambda b: b + b"\n" + b)),
    ("json-bom", "a byte order mark first", rewritten(lambda b: b"\xef\xbb\xbf" + b)),
    ("json-utf-16", "UTF-16 with a mark", rewritten(_utf("utf-16"))),
    ("json-utf-16-le", "UTF-16 without one", rewritten(_utf("utf-16-le"))),
    ("json-utf-32", "UTF-32", rewritten(_utf("utf-32"))),
    ("json-invalid-utf-8", "bytes that are no UTF-8", rewritten(_put("x", b'"\xff\xfe\xc3"'))),
    ("json-latin-1", "Latin-1", rewritten(_put("x", '"Jürgen"'.encode("latin-1")))),
    ("json-nul", "a NUL in it", rewritten(_put("x", b'"\x00"'))),
    ("json-nul-padded", "NULs after it", rewritten(lambda b: b + b"\0" * 64)),
    ("json-raw-control", "a raw line break in a text", rewritten(_put("x", b'"a\nb"'))),
    ("json-surrogate", "half of a pair of surrogates", rewritten(_put("x", b'"\\ud800"'))),
    ("json-deep", "100,000 lists in lists", rewritten(_put("x", b"[" * 100_000 + b"]" * 100_000))),
    ("json-deep-open", "100,000 braces that stay open", fails("200 OK", b'{"a":' * 100_000)),
    ("json-4301-digits", "a number of 4,301 digits", rewritten(_put("x", b"9" * 4301))),
    ("json-million-digits", "a number of a million digits", rewritten(_put("x", b"9" * 1_000_000))),
    ("json-nan", "NaN", rewritten(_put("x", b"NaN"))),
    ("json-infinity", "Infinity", rewritten(_put("x", b"-Infinity"))),
    ("json-1e400", "a number past all floats", rewritten(_put("x", b"1e400"))),
    ("json-braces", "a megabyte of braces", fails("200 OK", b"{" * 1_000_000)),
    ("json-quotes", "a megabyte of quotes", fails("200 OK", b'"' * 1_000_000)),
    ("json-digits", "a megabyte of digits", fails("200 OK", b"7" * 1_000_000)),
    ("json-choices-later", "choices twice, the healthy ones last", rewritten(_later)),
    ("json-choices-first", "choices twice, the healthy ones first", rewritten(_first)),
    ("gzip-false", "said to be gzip, and is not", _zipped("gzip", lambda b: b)),
    ("gzip-cut", "gzip that is cut off", _zipped("gzip", lambda b: gzip.compress(b)[:-20])),
    ("gzip-bomb", "100 MB of blanks, as gzip", _zipped("gzip", _bomb)),
    ("gzip-unsaid", "gzip that nobody mentions", rewritten(gzip.compress)),
    ("coding-unknown", "a content coding nobody knows", _zipped("smoke", lambda b: b)),
]

ROWS = [
    *(Profile(name, what, act, scoring) for name, what, act in BROKEN),
    *(
        Profile(f"{name}-once", "the same, once for each question", act, once, expect="judged")
        for name, _, act in BROKEN
        if name in ("json-cut", "json-4301-digits", "json-deep", "json-utf-16", "gzip-false")
    ),
    *(
        Profile(f"{name}-all", "the same, for every question", act, question)
        for name, _, act in BROKEN
        if name in ("json-cut", "json-braces", "json-million-digits")
    ),
    Profile("gzip", "gzip, unasked", _zipped("gzip", gzip.compress)),
    Profile("deflate", "deflate, unasked", _zipped("deflate", zlib.compress)),
    Profile("identity", "the coding identity", _zipped("identity", lambda b: b), expect="judged"),
    Profile(
        "json-indented",
        "white space everywhere",
        rewritten(lambda b: json.dumps(json.loads(b), indent=4).encode()),
        expect="judged",
    ),
    Profile(
        "json-escaped",
        "every letter of a name escaped",
        rewritten(lambda b: b.replace(b'"choices"', b'"\\u0063hoices"')),
        expect="judged",
    ),
]
