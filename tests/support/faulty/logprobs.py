"""Log-probabilities of tokens that are odd, wrong or about something else; the text is the healthy one."""

import math
from collections.abc import Callable
from typing import Any

from support.faulty.exchange import Act, Expect, Profile, changed, with_logprobs
from support.faulty.healthy import LEVELS

Entry = dict[str, Any]


def _set(value: Any) -> Act:
    """The healthy answer with this in place of its log-probabilities, or what a function makes of them."""

    def change(body: dict[str, Any]) -> None:
        choice = body["choices"][0]
        choice["logprobs"] = value(choice["logprobs"]) if callable(value) else value

    return changed(change)


def _entries(make: Callable[[list[Entry]], Any]) -> Act:
    return _set(lambda logprobs: {"content": make(logprobs["content"])})


def _entry(**values: Any) -> Act:
    """Every token with these values."""
    return _entries(lambda entries: [{**entry, **values} for entry in entries])


def _without(name: str) -> Act:
    return _entries(lambda entries: [{k: v for k, v in entry.items() if k != name} for entry in entries])


def _logs(make: Callable[[float], Any]) -> Act:
    """Every log-probability as the function makes it."""

    def one(entry: Entry) -> Entry:
        top = [{**other, "logprob": make(other["logprob"])} for other in entry["top_logprobs"]]
        return {**entry, "logprob": make(entry["logprob"]), "top_logprobs": top}

    return _entries(lambda entries: [one(entry) for entry in entries])


def _of_level(change: Callable[[Entry], Entry]) -> Act:
    """The token that names the level as the function makes it."""
    return _entries(lambda entries: [change(entry) if entry["token"] in LEVELS else entry for entry in entries])


def _other(token: str) -> str:
    return LEVELS[4 - LEVELS.index(token)] if token != "Fair" else "Bad"


def _respelled(entry: Entry) -> Entry:
    return {**entry, "token": _other(entry["token"]), "bytes": list(_other(entry["token"]).encode())}


def _contradicting(entry: Entry) -> Entry:
    """Nearly all on another level than the one that was written."""
    top = [
        {"token": level, "logprob": math.log(0.96 if level == _other(entry["token"]) else 0.01), "bytes": None}
        for level in LEVELS
    ]
    return {**entry, "top_logprobs": top, "logprob": math.log(0.01)}


def _elsewhere(entry: Entry) -> Entry:
    return {**entry, "top_logprobs": [{"token": "banana", "logprob": -0.01, "bytes": None}], "logprob": -9.0}


def _twice(entry: Entry) -> Entry:
    return {**entry, "top_logprobs": entry["top_logprobs"] * 2}


def _many(entry: Entry) -> Entry:
    more = [{"token": f"t{n}", "logprob": -20.0, "bytes": None} for n in range(2000)]
    return {**entry, "top_logprobs": [*entry["top_logprobs"], *more]}


def _letters(entries: list[Entry]) -> list[Entry]:
    """The text in tokens of one letter, each sure of itself."""
    text = "".join(entry["token"] for entry in entries)
    return [
        {"token": c, "logprob": -0.01, "bytes": None, "top_logprobs": [{"token": c, "logprob": -0.01, "bytes": None}]}
        for c in text
    ]


def _legacy(logprobs: dict[str, Any]) -> dict[str, Any]:
    """The form of the older completions."""
    entries = logprobs["content"]
    return {"tokens": [e["token"] for e in entries], "token_logprobs": [e["logprob"] for e in entries]}


CASES: list[tuple[str, str, Act, bool]] = [
    ("logprobs-null", "logprobs: null", _set(None), True),
    ("logprobs-empty", "logprobs: {}", _set({}), True),
    ("logprobs-content-null", "content: null", _set({"content": None}), True),
    ("logprobs-content-empty", "content: []", _set({"content": []}), True),
    ("logprobs-string", "a text", _set("none"), True),
    ("logprobs-list", "a list", _set([]), True),
    ("logprobs-number", "a number", _set(0.5), True),
    ("logprobs-content-string", "a text as content", _set({"content": "abc"}), True),
    ("logprobs-content-of-null", "a list of null", _entries(lambda e: [None] * len(e)), True),
    ("logprobs-content-of-numbers", "a list of numbers", _entries(lambda e: [-0.1] * len(e)), True),
    ("logprobs-legacy", "the form of older completions", _set(_legacy), True),
    ("logprobs-value-null", "logprob: null", _logs(lambda log: None), True),
    ("logprobs-value-string", "logprob as a text", _logs(str), True),
    ("logprobs-value-word", "logprob as a word", _logs(lambda log: "high"), True),
    ("logprobs-nan", "NaN", _logs(lambda log: math.nan), True),
    ("logprobs-infinity", "-Infinity", _logs(lambda log: -math.inf), True),
    ("logprobs-floor", "-9999 for all", _logs(lambda log: -9999.0), True),
    ("logprobs-positive", "above 0", _logs(lambda log: -log + 0.3), True),
    ("logprobs-percent", "percentages", _logs(lambda log: 100 * math.exp(log)), True),
    ("logprobs-plain", "probabilities, not their logarithms", _logs(math.exp), True),
    ("logprobs-zero", "0 for all", _logs(lambda log: 0.0), True),
    ("logprobs-1e300", "-10^300", _logs(lambda log: -1e300), True),
    ("logprobs-top-empty", "no alternatives", _entry(top_logprobs=[]), True),
    ("logprobs-top-null", "top_logprobs: null", _entry(top_logprobs=None), True),
    ("logprobs-top-missing", "no top_logprobs", _without("top_logprobs"), True),
    ("logprobs-top-object", "alternatives as an object", _entry(top_logprobs={"Good": -0.1}), True),
    ("logprobs-token-null", "token: null", _entry(token=None), True),
    ("logprobs-token-missing", "no token", _without("token"), True),
    ("logprobs-token-number", "token ids in place of tokens", _entry(token=1734), True),
    ("logprobs-bytes-null", "bytes: null", _entry(bytes=None), True),
    ("logprobs-bytes-missing", "no bytes", _without("bytes"), True),
    ("logprobs-half", "half of the tokens", _entries(lambda e: e[: len(e) // 2]), False),
    ("logprobs-first-missing", "the first 20 tokens are missing", _entries(lambda e: e[20:]), True),
    ("logprobs-letters", "tokens of one letter", _entries(_letters), False),
    ("logprobs-other-text", "the tokens of another text", _entries(lambda e: [{**x, "token": "no "} for x in e]), True),
    ("logprobs-other-level", "tokens that spell another level than the text", _of_level(_respelled), True),
    ("logprobs-contradict", "nearly all on another level", _of_level(_contradicting), False),
    ("logprobs-elsewhere", "nearly all on no level", _of_level(_elsewhere), True),
    ("logprobs-twice", "each alternative twice", _of_level(_twice), True),
    ("logprobs-2000", "2,000 alternatives for the level", _of_level(_many), True),
    (
        "logprobs-one",
        "one alternative for the level",
        _of_level(lambda e: {**e, "top_logprobs": e["top_logprobs"][:1]}),
        False,
    ),
]

SURE = {"logprobs-letters"}  # such tokens say that the level is certain, and nothing shows that they do not mean it


def _expected(name: str, same: bool) -> Expect:
    return "undetectable" if name in SURE else "judged" if same else "any"


ROWS = [Profile(name, what, act, with_logprobs, expect=_expected(name, same)) for name, what, act, same in CASES]
