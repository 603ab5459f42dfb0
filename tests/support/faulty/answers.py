"""Make odd or wrong answers: their JSON, fields other than the content, the content, its levels and tokens."""

import gzip
import json
import math
import zlib
from collections.abc import Callable
from typing import Any

from support.faulty import healthy
from support.faulty.exchange import (
    Act,
    Profile,
    Question,
    changed,
    fails,
    of_stage,
    once,
    question,
    rewritten,
    said,
    scoring,
    with_logprobs,
)

Entry = dict[str, Any]

ESCAPES = "\x1b[2J\x1b[31mred\x1b]0;owned\x07 \x9b31m \x08\x08 \r over \x00 \u202e"
MEGABYTE = 1_000_000
LEVELS = healthy.LEVELS


def _put(name: str, value: bytes) -> Callable[[bytes], bytes]:
    """Return the JSON with one more field, this raw text, at its beginning."""
    return lambda body: b'{"%s": %s, ' % (name.encode(), value) + body[1:]


def _zipped(coding: str, write: Callable[[bytes], bytes]) -> Act:
    return rewritten(write, headers=f"Content-Encoding: {coding}\r\n")


def _bomb(body: bytes) -> bytes:
    """Send 100 MB of blanks, compressed to 100 KB."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    data = b"".join(packer.compress(b" " * 1_000_000) for _ in range(100))
    return data + packer.compress(body) + packer.flush()


def _field(name: str, value: Any) -> Act:
    """Return the healthy answer with this value of a top-level field."""
    return changed(lambda body: body.update({name: value}))


def _tokens(value: Any) -> Act:
    return _field("usage", dict.fromkeys(("prompt_tokens", "completion_tokens", "total_tokens"), value))


def _second_choice(body: dict[str, Any]) -> None:
    body["choices"].append({**body["choices"][0], "index": 1})


def _object(change: Callable[[dict[str, Any]], Any]) -> Act:
    """Return the content after a change of the stage's object, in place or returned by the function."""

    def content(text: str) -> str:
        whole = json.loads(text)
        (field,) = whole
        result = change(whole[field])
        return json.dumps({field: whole[field] if result is None else result})

    return said(content)


def _every(name: str, **values: Any) -> Act:
    """Return each record of a list in the answer with these values."""

    def change(answer: dict[str, Any]) -> None:
        for record in answer[name]:
            record.update(values)

    return _object(change)


def _reason(text: str) -> Act:
    return _object(lambda answer: answer.update(quality_reasoning=text))


def _level(value: Any) -> Act:
    return _object(lambda answer: answer.update(quality_level=value))


def _probs(change: Callable[[float], Any]) -> Act:
    """Return the assessment with the function applied to each of its written log-probabilities."""
    return _object(lambda a: a.update(quality_probs={level: change(log) for level, log in a["quality_probs"].items()}))


def _detection(ex: Question) -> None:
    """Send the healthy answer to another question about the same image."""
    said(json.dumps({"detection": {"distortion_set": [{"region": "Global", "distortions": ["Noise"]}]}}))(ex)


def _parts(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text[:20]}, {"type": "text", "text": text[20:]}]


def _set(value: Any) -> Act:
    """Return the healthy answer with these log-probabilities, or with a function applied to its own."""

    def change(body: dict[str, Any]) -> None:
        choice = body["choices"][0]
        choice["logprobs"] = value(choice["logprobs"]) if callable(value) else value

    return changed(change)


def _entries(make: Callable[[list[Entry]], Any]) -> Act:
    return _set(lambda logprobs: {"content": make(logprobs["content"])})


def _entry(**values: Any) -> Act:
    """Return every token with these values."""
    return _entries(lambda entries: [{**entry, **values} for entry in entries])


def _logs(make: Callable[[float], Any]) -> Act:
    """Return the answer with the function applied to every log-probability."""

    def one(entry: Entry) -> Entry:
        top = [{**other, "logprob": make(other["logprob"])} for other in entry["top_logprobs"]]
        return {**entry, "logprob": make(entry["logprob"]), "top_logprobs": top}

    return _entries(lambda entries: [one(entry) for entry in entries])


def _of_level(change: Callable[[Entry], Entry]) -> Act:
    """Return the answer with the function applied to the token that names the level."""
    return _entries(lambda entries: [change(entry) if entry["token"] in LEVELS else entry for entry in entries])


def _other(token: str) -> str:
    return LEVELS[4 - LEVELS.index(token)] if token != "Fair" else "Bad"


def _respelled(entry: Entry) -> Entry:
    return {**entry, "token": _other(entry["token"]), "bytes": list(_other(entry["token"]).encode())}


def _contradicting(entry: Entry) -> Entry:
    """Move nearly all probability to another level than the written one."""
    top = [
        {"token": level, "logprob": math.log(0.96 if level == _other(entry["token"]) else 0.01), "bytes": None}
        for level in LEVELS
    ]
    return {**entry, "top_logprobs": top, "logprob": math.log(0.01)}


def _elsewhere(entry: Entry) -> Entry:
    return {**entry, "top_logprobs": [{"token": "banana", "logprob": -0.01, "bytes": None}], "logprob": -9.0}


def _letters(entries: list[Entry]) -> list[Entry]:
    """Split the text into tokens of one letter, each with probability one."""
    text = "".join(entry["token"] for entry in entries)
    return [
        {"token": c, "logprob": -0.01, "bytes": None, "top_logprobs": [{"token": c, "logprob": -0.01, "bytes": None}]}
        for c in text
    ]


BROKEN: dict[str, tuple[str, Act]] = {
    "json-cut": ("the second half is missing", rewritten(lambda b: b[: len(b) // 2])),
    "json-bom": ("a byte order mark first", rewritten(lambda b: b"\xef\xbb\xbf" + b)),
    "json-utf-16": ("UTF-16 with a mark", rewritten(lambda b: b.decode().encode("utf-16"))),
    "json-invalid-utf-8": ("bytes that are no UTF-8", rewritten(_put("x", b'"\xff\xfe\xc3"'))),
    "json-surrogate": ("half of a pair of surrogates", rewritten(_put("x", b'"\\ud800"'))),
    "json-deep": ("100,000 lists in lists", rewritten(_put("x", b"[" * 100_000 + b"]" * 100_000))),
    "json-4301-digits": ("a number of 4,301 digits", rewritten(_put("x", b"9" * 4301))),
    "json-nan": ("NaN", rewritten(_put("x", b"NaN"))),
    "json-braces": ("a megabyte of braces", fails("200 OK", b"{" * MEGABYTE)),
    "gzip-false": ("said to be gzip, and is not", _zipped("gzip", lambda b: b)),
    "gzip-cut": ("gzip that is cut off", _zipped("gzip", lambda b: gzip.compress(b)[:-20])),
    "gzip-bomb": ("100 MB of blanks, as gzip", _zipped("gzip", _bomb)),
    "coding-unknown": ("a content coding nobody knows", _zipped("smoke", lambda b: b)),
}
BODY = [
    *(Profile(name, what, act, scoring) for name, (what, act) in BROKEN.items()),
    *(
        Profile(f"{name}-once", "the same, once for each question", BROKEN[name][1], once, expect="assessed")
        for name in ("json-cut", "json-deep", "gzip-false")
    ),
    Profile("gzip", "gzip, unasked", _zipped("gzip", gzip.compress), expect="assessed"),
    Profile("deflate", "deflate, unasked", _zipped("deflate", zlib.compress), expect="assessed"),
    Profile(
        "blanks-1-mb", "1 MB of blanks, then the answer", rewritten(lambda b: b" " * MEGABYTE + b), expect="assessed"
    ),
]
FIELD = [
    Profile(name, what, act, question, expect="assessed")
    for name, what, act in (
        ("usage-null", "usage: null", _field("usage", None)),
        ("usage-string", "usage as a text", _field("usage", "many")),
        ("usage-tokens-string", "tokens as texts", _tokens("1000")),
        ("usage-tokens-list", "tokens as lists", _tokens([1000])),
        ("usage-tokens-negative", "tokens below 0", _tokens(-1000)),
        ("usage-tokens-nan", "tokens NaN", _tokens(math.nan)),
        ("usage-details", "details as a text", _field("usage", {"prompt_tokens": 9, "prompt_tokens_details": "none"})),
        ("id-number", "id as a number", _field("id", 17)),
        ("model-null", "model: null", _field("model", None)),
        ("model-number", "model as a number", _field("model", 4)),
        ("model-escapes", "terminal escapes in the model's name", _field("model", "m\x1b[31m\x07\r")),
        ("choices-two", "two choices", changed(_second_choice)),
    )
]
CONTENT = [
    Profile("content-parts", "the content as a list of parts", said(_parts)),
    Profile("content-number", "a number", said(3), scoring),
    Profile("content-object", "the JSON object itself, not its text", said(json.loads), scoring),
    Profile("content-fence", "in a Markdown fence", said(lambda t: f"```json\n{t}\n```"), expect="assessed"),
    Profile("content-thoughts", "after thoughts", said(lambda t: f"<think>Hm. {{}}</think>{t}"), expect="assessed"),
    Profile(
        "content-words-around", "with words around", said(lambda t: f"Sure! {t} Hope it helps."), expect="assessed"
    ),
    Profile("content-prose", "prose", said("The picture is quite nice, I would say."), scoring),
    Profile("content-refusal-words", "a refusal in words", said("I'm sorry, but I can't assist with that."), scoring),
    Profile("content-escapes-all", "terminal escapes and nothing else", said(ESCAPES), question),
    Profile("content-10-mb", "10 MB of prose", said("The picture is nice. " * 500_000), scoring),
    Profile("content-braces", "a megabyte of braces", said("{" * MEGABYTE), scoring),
    Profile("content-backslashes", "a megabyte of backslashes", said("\\" * MEGABYTE), scoring),
    Profile("content-2000-objects", "2,000 objects in objects", said('{"a": ' * 2000 + "1" + "}" * 2000), scoring),
    Profile("content-20000-objects", "20,000 small objects", said('{"a": 1} ' * 20_000), scoring),
    Profile(
        "content-digits",
        "a million digits in a number",
        said(lambda t: t.replace("-", "-" + "9" * MEGABYTE, 1)),
        scoring,
        expect="undetectable",
    ),
    Profile("content-surrogate", "half a pair of surrogates in the reason", _reason("half \ud800"), scoring),
    Profile("content-nul", "a NUL in the reason", _reason("a\0b"), scoring),
    Profile("content-marker", "DSPy's own marker", _reason("<<CUSTOM-TYPE-START-IDENTIFIER>>"), scoring),
    Profile("reason-escapes", "terminal escapes in the reason", _reason(ESCAPES), scoring),
    Profile("scored-by-detection", "a detection in place of a score", _detection, scoring),
    *(
        Profile(name, what, act, of_stage(stage))
        for name, what, act, stage in (
            ("detected-elsewhere", "another region", _every("distortion_set", region="the sky"), "detection"),
            ("detected-unknown", "no such distortion", _every("distortion_set", distortions=["Ghosts"]), "detection"),
            ("analyzed-unknown", "no such severity", _every("distortion_analysis", severity="awful"), "analysis"),
            ("analyzed-nothing", "no analysis", _object(lambda a: a.update(distortion_analysis=[])), "analysis"),
            ("analyzed-escapes", "escapes", _every("distortion_analysis", explanation=ESCAPES), "analysis"),
            ("selected-unknown", "no such tool", _every("selected_tools", tool="CRYSTAL-BALL"), "selection"),
            ("planned-tool", "a tool nobody named", _object(lambda a: a.update(required_tool=["ORACLE"])), "plan"),
            ("planned-other", "another kind of question", _object(lambda a: a.update(query_type="Other")), "plan"),
        )
    ),
]
LEVEL = [
    *(
        Profile(name, what, act, scoring)
        for name, what, act in (
            ("probs-positive", "log-probabilities above 0", _probs(lambda log: -log)),
            ("probs-percent", "percentages", _probs(lambda log: round(100 * math.exp(log), 1))),
            ("probs-plain", "probabilities, not their logarithms", _probs(math.exp)),
            ("probs-zero", "0 for each", _probs(lambda log: 0.0)),
            ("probs-nan", "NaN", _probs(lambda log: math.nan)),
            ("probs-null", "null for each", _probs(lambda log: None)),
            ("probs-words", "words", _probs(lambda log: "likely")),
            ("probs-empty", "{}", _object(lambda a: a.update(quality_probs={}))),
            ("level-unknown", "a level nobody knows", _level("Superb")),
            ("level-half", "3.5", _level(3.5)),
            ("level-escapes", "terminal escapes", _level("Good\x1b[31m\x07")),
            (
                "level-other",
                "another level than the probabilities'",
                _object(lambda a: a.update(quality_level="Bad" if a["quality_level"] != "Bad" else "Excellent")),
            ),
        )
    ),
    Profile("probs-same", "no opinion", _probs(lambda log: -1.609438), scoring, expect="undetectable"),
]
LOGPROB = [
    *(
        Profile(name, what, act, with_logprobs, expect="assessed")
        for name, what, act in (
            ("logprobs-null", "logprobs: null", _set(None)),
            ("logprobs-content-of-null", "a list of null", _entries(lambda e: [None] * len(e))),
            ("logprobs-value-word", "logprob as a word", _logs(lambda log: "high")),
            ("logprobs-nan", "NaN", _logs(lambda log: math.nan)),
            ("logprobs-infinity", "-Infinity", _logs(lambda log: -math.inf)),
            ("logprobs-floor", "-9999 for all", _logs(lambda log: -9999.0)),
            ("logprobs-positive", "above 0", _logs(lambda log: -log + 0.3)),
            ("logprobs-plain", "probabilities, not their logarithms", _logs(math.exp)),
            ("logprobs-zero", "0 for all", _logs(lambda log: 0.0)),
            ("logprobs-top-empty", "no alternatives", _entry(top_logprobs=[])),
            ("logprobs-token-null", "token: null", _entry(token=None)),
            ("logprobs-bytes-null", "bytes: null", _entry(bytes=None)),
            ("logprobs-first-missing", "the first 20 tokens are missing", _entries(lambda e: e[20:])),
            ("logprobs-other-text", "another text", _entries(lambda e: [{**x, "token": "no "} for x in e])),
            ("logprobs-other-level", "tokens of another level than the text's", _of_level(_respelled)),
            ("logprobs-elsewhere", "nearly all on no level", _of_level(_elsewhere)),
        )
    ),
    Profile("logprobs-half", "half of the tokens", _entries(lambda e: e[: len(e) // 2]), with_logprobs),
    Profile("logprobs-contradict", "nearly all on another level", _of_level(_contradicting), with_logprobs),
    # Such tokens say that the level is certain, and a client cannot detect that this is wrong.
    Profile("logprobs-letters", "tokens of one letter", _entries(_letters), with_logprobs, expect="undetectable"),
]
