"""Servers that are healthy for a while, for some requests, or for some clients; and the price of what fails."""

from support.faulty.exchange import (
    Act,
    Exchange,
    Profile,
    When,
    after,
    changed,
    each,
    fails,
    first,
    probe,
    question,
    scoring,
    with_format,
    with_image,
    with_logprobs,
)

REFUSED, BROKEN, BUSY = "400 Bad Request", "500 Internal Server Error", "503 Service Unavailable"


def _slower_with_each(ex: Exchange) -> None:
    """A tenth of a second for every request that is under way."""
    ex.pause(0.1 * ex.shared.in_flight)
    ex.reply(ex.answer())


def _busy_above(most: int) -> Act:
    """503 while more than so many are under way; an answer takes 50 ms."""

    def act(ex: Exchange) -> None:
        if ex.shared.in_flight > most:
            fails(BUSY)(ex)
        else:
            ex.pause(0.05)
            ex.reply(ex.answer())

    return act


def _restart_at(number: int, seconds: float) -> Act:
    def act(ex: Exchange) -> None:
        if ex.number == number:
            ex.keep = False
            ex.shared.restart(seconds)
        else:
            ex.reply(ex.answer())

    return act


def _answered_late(ex: Exchange) -> None:
    ex.pause(0.05)
    ex.reply(ex.answer())


def _probe_first(ex: Exchange) -> bool:
    """The first time that a request of the probe comes."""
    return ex.is_probe and ex.arrival == 1


def _probe_with(text: bytes) -> When:
    return lambda ex: ex.is_probe and text in ex.raw


def _no_usage(body: dict[str, object]) -> None:
    del body["usage"]


def _zero_usage(body: dict[str, object]) -> None:
    body["usage"] = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


def _null_usage(body: dict[str, object]) -> None:
    body["usage"] = {"prompt_tokens": None, "completion_tokens": None, "total_tokens": None}


def _cut(ex: Exchange) -> None:
    """All of the work, and half of the answer."""
    ex.reply(ex.answer(), length="1000000")
    ex.close()


SHARE = 0.4  # of the healthy run's price

ROWS = [
    Profile(
        "takes-20-of-64",
        "more than 20 connections are reset, 64 workers",
        _answered_late,
        workers=64,
        photos=60,
        connections=20,
    ),
    Profile("takes-2-of-4", "more than 2 connections are reset", _answered_late, connections=2),
    Profile("busy-above-2", "503 above 2 at a time", _busy_above(2)),
    Profile("busy-above-20-of-64", "503 above 20 at a time, 64 workers", _busy_above(20), workers=64, photos=60),
    Profile("slower-with-each", "0.1 s for each request under way", _slower_with_each, expect="judged"),
    Profile("restart-mid-run", "away for a second at the 12th question", _restart_at(12, 1.0), expect="judged"),
    Profile("restart-long", "away for 6 s at the 12th question", _restart_at(12, 6.0)),
    Profile("fails-every-3rd", "500 for every third request", fails(BROKEN), each(3)),
    Profile("fails-every-10th", "500 for every tenth request", fails(BROKEN), each(10), expect="judged"),
    Profile("resets-every-5th", "every fifth request is reset", lambda ex: ex.reset(), each(5)),
    Profile("hangs-every-20th", "every twentieth request hangs", lambda ex: ex.hang(), each(20), expect="judged"),
    Profile("fails-first-10", "500 for the first 10 questions", fails(BROKEN), first(10)),
    Profile("fails-from-20th", "503 from the 21st question on", fails(BUSY), after(20)),
    Profile("resets-from-20th", "reset from the 21st question on", lambda ex: ex.reset(), after(20)),
    Profile("images-500", "500 for every image", fails(BROKEN), with_image),
    Profile("images-400", "400 for every image", fails(REFUSED), with_image),
    Profile(
        "images-413", "413 for every image", fails("413 Too Large", b"<html>413</html>", kind="text/html"), with_image
    ),
    Profile("logprobs-500", "500 where log-probabilities are asked for", fails(BROKEN), with_logprobs),
    Profile("logprobs-400", "400 where log-probabilities are asked for", fails(REFUSED), with_logprobs),
    Profile("format-500", "500 where JSON is asked for", fails(BROKEN), with_format),
    Profile("format-400", "400 where JSON is asked for", fails(REFUSED), with_format),
    Profile("format-422", "422 where JSON is asked for", fails("422 No"), with_format),
    *(
        Profile(f"probe-{status}", f"{status} for the probe, questions are fine", fails(f"{status} Fault"), probe)
        for status in (400, 401, 404, 413, 422, 429, 500, 503)
    ),
    *(
        Profile(
            f"probe-{status}-once",
            f"{status} once for each request of the probe",
            fails(f"{status} Fault"),
            _probe_first,
        )
        for status in (400, 409, 413, 422)
    ),
    *(
        Profile(
            f"probe-{status}-once",
            f"{status} once for each request of the probe",
            fails(f"{status} Fault"),
            _probe_first,
            expect="judged",
        )
        for status in (500, 503)
    ),
    Profile("probe-choices-empty", "no choices for the probe", changed(lambda b: b.update(choices=[])), probe),
    Profile(
        "probe-page", "a login page for the probe", fails("200 OK", b"<html>log in</html>", kind="text/html"), probe
    ),
    Profile("probe-hang", "the probe hangs", lambda ex: ex.hang(), probe),
    Profile("probe-reset", "the probe is reset", lambda ex: ex.reset(), probe),
    Profile("probe-images-413", "413 for the probe's image", fails("413 Too Large"), _probe_with(b"image_url")),
    Profile("probe-logprobs-422", "422 for the probe's log-probabilities", fails("422 No"), _probe_with(b'"logprobs"')),
    Profile("probe-schema-500", "500 for the probe's schema", fails(BROKEN), _probe_with(b"json_schema")),
    Profile("price-honest", "a limit in USD, honest usage", changed(lambda b: None), question, budget=SHARE),
    Profile("price-usage-missing", "a limit in USD, no usage", changed(_no_usage), question, budget=SHARE),
    Profile("price-usage-0", "a limit in USD, tokens 0", changed(_zero_usage), question, budget=SHARE),
    Profile("price-usage-null", "a limit in USD, tokens null", changed(_null_usage), question, budget=SHARE),
    Profile("price-cut", "a limit in USD, answers cut off", _cut, question, budget=SHARE),
    Profile("price-500", "a limit in USD, 500 after the work", fails(BROKEN), question, budget=SHARE),
    Profile(
        "price-choices-empty",
        "a limit in USD, answers without choices",
        changed(lambda b: b.update(choices=[])),
        scoring,
        budget=SHARE,
    ),
    Profile("price-every-3rd-cut", "a limit in USD, every third answer cut off", _cut, each(3), budget=SHARE),
]
