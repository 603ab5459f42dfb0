"""Faults of servers that are healthy for a while, for some requests or for some clients; the price of failures."""

from support.faulty.exchange import (
    Act,
    Profile,
    Question,
    after,
    changed,
    each,
    fails,
    question,
    with_image,
    with_logprobs,
    with_schema,
)

BROKEN, BUSY = "500 Internal Server Error", "503 Service Unavailable"
NO_LOGPROBS = fails("400 Bad Request", {"error": {"message": "logprobs are not supported", "type": "bad_request"}})
NO_SCHEMA = fails("422 No", {"detail": [{"loc": ["body", "response_format", "type"], "msg": "unknown"}]})
TOO_LARGE = fails("413 Too Large", b"<html>413</html>", kind="text/html")


def _slower_with_each(ex: Question) -> None:
    """Answer after a tenth of a second for every request that is under way."""
    ex.pause(0.1 * ex.shared.in_flight)
    ex.reply(ex.answer())


def _busy_above(most: int) -> Act:
    """Answer 503 while more than ``most`` requests are under way; other answers take 50 ms."""

    def act(ex: Question) -> None:
        if ex.shared.in_flight > most:
            fails(BUSY)(ex)
        else:
            ex.pause(0.05)
            ex.reply(ex.answer())

    return act


def _restart_at(number: int, seconds: float) -> Act:
    def act(ex: Question) -> None:
        if ex.number == number:
            ex.keep = False
            ex.shared.restart(seconds)
        else:
            ex.reply(ex.answer())

    return act


def _answered_late(ex: Question) -> None:
    ex.pause(0.05)
    ex.reply(ex.answer())


def _zero_usage(body: dict[str, object]) -> None:
    body["usage"] = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


def _cut(ex: Question) -> None:
    """Do all of the work, and send half of the answer."""
    ex.reply(ex.answer(), length="1000000")
    ex.close()


SHARE = 0.4  # of the healthy run's price

LOAD = [
    Profile(
        "takes-20-of-64",
        "more than 20 connections are reset, 64 workers",
        _answered_late,
        workers=64,
        photos=60,
        connections=20,
    ),
    Profile("takes-2-of-4", "more than 2 connections are reset", _answered_late, connections=2),
    Profile("busy-above-20-of-64", "503 above 20 at a time, 64 workers", _busy_above(20), workers=64, photos=60),
    Profile("slower-with-each", "0.1 s for each request under way", _slower_with_each, expect="assessed"),
    Profile("restart-mid-run", "away for a second at the 12th question", _restart_at(12, 1.0), expect="assessed"),
    Profile("fails-every-10th", "500 for every tenth request", fails(BROKEN), each(10), expect="assessed"),
    Profile("resets-every-5th", "every fifth request is reset", lambda ex: ex.reset(), each(5)),
    Profile("hangs-every-20th", "every twentieth request hangs", lambda ex: ex.hang(), each(20), expect="assessed"),
    Profile("resets-from-20th", "reset from the 21st question on", lambda ex: ex.reset(), after(20)),
    Profile("images-413", "413 for every image", TOO_LARGE, with_image),
    Profile("logprobs-400", "no log-probabilities", NO_LOGPROBS, with_logprobs, expect="assessed"),
    Profile("schema-422", "no JSON schemas", NO_SCHEMA, with_schema, expect="assessed"),
    Profile("price-honest", "a limit in USD, honest usage", changed(lambda b: None), question, budget=SHARE),
    Profile("price-usage-0", "a limit in USD, tokens 0", changed(_zero_usage), question, budget=SHARE),
    Profile("price-cut", "a limit in USD, answers cut off", _cut, question, budget=SHARE),
    Profile("price-500", "a limit in USD, 500 after the work", fails(BROKEN), question, budget=SHARE),
]
