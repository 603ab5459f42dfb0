"""Simultaneous requests to a server are limited, and all of them wait if it asks one of them to wait."""

import math
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from dspy import lm15

from agenticiqa.configs import StageConfig
from agenticiqa.programs.backends import in_flight as module
from agenticiqa.programs.backends.connect import connect
from agenticiqa.programs.backends.engine import Model
from agenticiqa.programs.backends.in_flight import InFlight, in_flight_at
from agenticiqa.programs.backends.limits import Halted, RunLimits
from agenticiqa.programs.backends.providers import Provider
from agenticiqa.programs.backends.run_context import within
from support.loopback import Reply, loopback

BUSY = lm15.ServerError("busy", status=503)
ONE = RunLimits(in_flight=1)


def caused_by(cause: BaseException, text: str = "cut") -> lm15.TransportError:
    error = lm15.TransportError(text)
    error.__cause__ = cause
    return error


class Wire:
    """A server that accepts this number of requests at a time and refuses others at once; an answer takes 5 ms."""

    model, secrets, provider, timeout = "m", (), Provider(), 9.0

    def __init__(self, most: int, error: Callable[[], Exception] = lambda: BUSY) -> None:
        self.most, self.error = most, error
        self.under_way = self.highest = 0
        self.times: list[float] = []  # of the requests
        self.refusals = 0
        self._lock = threading.Lock()

    def prepared(self, request: lm15.Request) -> lm15.Request:
        return request

    def complete(self, request: lm15.Request, token_limit: str) -> lm15.Response:
        with self._lock:
            self.times.append(time.monotonic())
            if self.under_way >= self.most:
                self.refusals += 1
                raise self.error()
            self.under_way += 1
            self.highest = max(self.highest, self.under_way)
        threading.Event().wait(0.005)
        with self._lock:
            self.under_way -= 1
        message = lm15.Message.assistant([lm15.TextPart("well")])
        usage = lm15.Usage(input_tokens=1, output_tokens=1, total_tokens=2)
        return lm15.Response(id=None, model="m", message=message, finish_reason="stop", usage=usage)


REQUEST = lm15.Request(model="m", messages=(lm15.Message.user("well?"),))


def model(wire: Wire, in_flight: InFlight | None = None) -> Model:
    stage = StageConfig(backend="vllm.m", timeout=9.0)
    return Model("vllm/m at a server", wire, stage, in_flight=in_flight or InFlight())  # type: ignore[arg-type]


def ask_all(asked: Model, requests: int, threads: int, limits: RunLimits | None = None) -> None:
    """Ask this number of times from this number of threads; raise the first error."""

    def ask(_: int) -> None:
        with within(limits or RunLimits()):
            asked.complete(REQUEST)

    with ThreadPoolExecutor(threads) as pool:
        assert len(list(pool.map(ask, range(requests)))) == requests
    assert not asked.in_flight.slots


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "seconds_to_wait", lambda attempt, error: 0.02 * 2**attempt)


@pytest.mark.parametrize("most", [1, 5])
def test_no_more_requests_than_the_limit_are_sent_at_a_time(most: int) -> None:
    wire = Wire(64)
    ask_all(model(wire), 40, 20, RunLimits(in_flight=most))
    assert wire.highest == most


ERRORS = [
    pytest.param(lambda: lm15.ServerError("busy", status=503), id="503"),
    pytest.param(lambda: lm15.RateLimitError("slow down", status=429), id="429"),
    pytest.param(lambda: lm15.RateLimitError("slow down", status=429, retry_after=0.05), id="429 with a wait"),
    pytest.param(lambda: caused_by(ConnectionResetError()), id="reset"),
]


@pytest.mark.slow
@pytest.mark.usefixtures("short_waits")
@pytest.mark.parametrize("error", ERRORS)
def test_64_at_a_time_against_a_server_that_takes_20_are_all_served(error: Callable[[], Exception]) -> None:
    wire = Wire(20, error)
    ask_all(model(wire), 600, 64)
    assert wire.refusals


@pytest.mark.usefixtures("short_waits")
def test_requests_that_time_out_together_are_sent_fewer_at_a_time(caplog: pytest.LogCaptureFixture) -> None:
    """A server with one slot, which answers a second request too late, answers all of them in the end."""
    wire = Wire(1, lambda: caused_by(TimeoutError(), "late"))
    asked = model(wire, InFlight("server", 1))
    ask_all(asked, 12, 4, RunLimits(in_flight=4))
    assert wire.refusals >= 1
    last = [record.getMessage() for record in caplog.records if "--workers" in record.getMessage()][-1]
    assert last
    wire.refusals = 0
    ask_all(asked, 12, 4, RunLimits(in_flight=4))
    assert wire.refusals == 0, "one at a time from now on"


def test_a_single_time_out_says_little_about_a_server_that_answers_many_at_a_time() -> None:
    in_flight, limits = InFlight("server"), RunLimits()
    with in_flight.slot(limits) as one, in_flight.slot(limits) as two, in_flight.slot(limits) as three:
        with in_flight.sending(one, limits), in_flight.sending(two, limits), in_flight.sending(three, limits):
            assert (one.others, three.others) == (2, 2)
        for expected in (math.inf, 1):
            with in_flight.sending(one, limits), suppress(lm15.TimeoutError), in_flight.sending(two, limits):
                raise lm15.TimeoutError("late")
            assert in_flight.most == expected


def test_one_request_at_a_time_is_sent_to_a_server_of_one_slot_unless_the_run_says_otherwise() -> None:
    for limits, expected in ((RunLimits(), 1), (RunLimits(in_flight=3), 3)):
        wire = Wire(64)
        ask_all(model(wire, InFlight("server", 1)), 12, 6, limits)
        assert wire.highest == expected


def test_an_aborted_run_does_not_wait_for_an_answer() -> None:
    limits = RunLimits()
    threading.Timer(0.3, limits.abort).start()
    with loopback(lambda arrived: Reply(delay=30.0)) as address, within(limits):
        backend = connect(StageConfig(backend="vllm.m", api_base=f"{address}/v1"), cache=False)
        assert backend is not None
        began = time.monotonic()
        with pytest.raises(Halted):
            backend.lms[0].engine.complete(REQUEST)  # type: ignore[union-attr]
        assert time.monotonic() < began + 5


def test_nothing_is_sent_while_one_request_has_to_wait() -> None:
    wire, began = Wire(9), time.monotonic()
    asked, limits = model(wire), RunLimits()
    with asked.in_flight.slot(limits) as other, asked.in_flight.slot(limits) as shown:
        with suppress(lm15.RateLimitError), asked.in_flight.sending(shown, limits):
            raise lm15.RateLimitError("wait", status=429, retry_after=0.3)
        with asked.in_flight.sending(other, limits):
            assert time.monotonic() >= began + 0.3
    with suppress(lm15.ServerError), asked.in_flight.slot(limits) as shown, asked.in_flight.sending(shown, limits):
        raise lm15.ServerError("wait", status=500, retry_after=0.3)
    ask_all(asked, 4, 4)
    assert min(wire.times) >= began + 0.6, "new ones, too"


@pytest.mark.usefixtures("short_waits")
def test_all_requests_try_an_unreachable_server_at_the_same_time() -> None:
    wire, began = Wire(0), time.monotonic()
    with pytest.raises(lm15.ServerError, match="busy"):
        ask_all(model(wire), 8, 8)
    assert wire.refusals == 8 * 4
    assert time.monotonic() - began < 8 * 0.28, "not one after the other"


def test_new_requests_are_sent_one_at_a_time_while_a_refused_one_waits() -> None:
    in_flight, limits, order = InFlight(), RunLimits(), []

    def again() -> None:
        with in_flight.sending(refused, limits):
            order.append("again")

    def new() -> None:
        with in_flight.slot(limits) as place, in_flight.sending(place, limits):
            order.append("new")

    with in_flight.slot(limits) as refused:
        with in_flight.slot(limits) as served, in_flight.sending(served, limits):
            with suppress(lm15.ServerError), in_flight.sending(refused, limits):
                raise BUSY
            threads = [threading.Thread(target=each) for each in (again, new)]
            for thread in threads:
                thread.start()
            threads[1].join(0.3)
            assert order == [], "there is as much under way as when it was refused"
        for thread in threads:
            thread.join(5)
    assert sorted(order) == ["again", "new"]


def test_an_interrupted_run_does_not_wait_for_a_slot_or_the_server() -> None:
    asked, limits, outcomes = model(Wire(9)), RunLimits(in_flight=3), []

    def ask() -> None:
        try:
            with within(limits):
                asked.complete(REQUEST)
        except Halted as error:
            outcomes.append(error)

    with asked.in_flight.slot(limits) as place:
        with suppress(lm15.RateLimitError), asked.in_flight.sending(place, limits):
            raise lm15.RateLimitError("wait", status=429, retry_after=60.0)
        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        limits.halt()
        for thread in threads:
            thread.join(5)
    assert len(outcomes) == 8


def test_a_retry_is_sent_when_the_time_that_the_server_asked_for_is_over() -> None:
    wire = Wire(0, lambda: lm15.RateLimitError("wait", status=429, retry_after=1.0))
    threading.Timer(0.1, setattr, (wire, "most", 1)).start()
    ask_all(model(wire), 1, 1)
    first, second = wire.times
    assert 1.0 <= second - first < 2.0, "the hint and at most a quarter more, not twice the hint"


@pytest.mark.parametrize("seconds", [0.0, 0.3], ids=["before the failure", "while it waits"])
def test_a_halted_run_ends_a_wait_and_sends_nothing_again(seconds: float, caplog: pytest.LogCaptureFixture) -> None:
    limits, began = RunLimits(), time.monotonic()

    def refused() -> lm15.LM15Error:
        threading.Timer(seconds, limits.halt).start() if seconds else limits.halt()
        return lm15.RateLimitError("wait", status=429, retry_after=60.0)

    wire = Wire(0, refused)
    with pytest.raises(Halted):
        ask_all(model(wire), 1, 1, limits)
    assert len(wire.times) == 1
    assert time.monotonic() < began + 5
    assert len(caplog.records) == (1 if seconds else 0), "no attempt is announced that does not follow"


def test_a_request_interrupted_while_waiting_releases_its_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    in_flight = InFlight()
    with in_flight.slot(ONE), monkeypatch.context() as patched:
        patched.setattr(threading.Condition, "wait", lambda self, timeout=None: signal.raise_signal(signal.SIGINT))
        with pytest.raises(KeyboardInterrupt), in_flight.slot(ONE):
            pass
    with in_flight.slot(ONE):
        assert len(in_flight.slots) == 1


def test_stages_with_one_server_share_its_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    def of(backend: str, api_base: str | None) -> InFlight:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-in-flight-4711")
        backend_of_stage = connect(StageConfig(backend=backend, api_base=api_base))
        assert backend_of_stage is not None
        engine = backend_of_stage.lms[0].engine
        assert isinstance(engine, Model)
        return engine.in_flight

    here = of("vllm.one", "http://127.0.0.1:8123/v1")
    assert here is of("vllm.two", "http://name:word@127.0.0.1:8123/other")
    assert here is in_flight_at("127.0.0.1:8123")
    assert here is not of("vllm.one", "http://127.0.0.1:8124/v1")
    assert of("openai.one", None) is of("openai.two", None)
