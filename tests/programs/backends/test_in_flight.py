"""The number of requests in flight halves where a server refuses some and serves others, and grows again slowly."""

import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import httpcore
import pytest
from dspy import lm15

from agenticiqa.configs import StageConfig
from agenticiqa.programs.backends import retries
from agenticiqa.programs.backends.connect import connect
from agenticiqa.programs.backends.engine import Model
from agenticiqa.programs.backends.in_flight import InFlight, in_flight_at, is_refused
from agenticiqa.programs.backends.ledger import Halted, LimitReached, Limits, set_current

pytestmark = pytest.mark.slow

BUSY = lm15.ServerError("busy", status=503)


class Requests:
    """Requests that are begun and ended by hand, in this thread."""

    def __init__(self, in_flight: InFlight) -> None:
        self.in_flight, self.under_way = in_flight, []

    def begin(self, count: int) -> None:
        for _ in range(count):
            stack = ExitStack()
            stack.enter_context(self.in_flight.place())
            self.under_way.append(stack)

    def end(self, count: int, error: Exception | None = None) -> None:
        for _ in range(count):
            ended = self.under_way.pop(0)
            if error is None:
                ended.close()
                continue
            with suppress(type(error)), ended:
                raise error


@pytest.fixture
def requests() -> Requests:
    return Requests(InFlight("a server"))


def caused_by(cause: BaseException, text: str = "cut") -> lm15.TransportError:
    error = lm15.TransportError(text)
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "error",
    [
        lm15.RateLimitError("slow down", status=429),
        BUSY,
        lm15.ServerError("overloaded", status=529),
        caused_by(ConnectionRefusedError()),
        caused_by(ConnectionResetError()),
        caused_by(httpcore.RemoteProtocolError("Server disconnected without sending a response.")),
        caused_by(OSError(24, "too many open files")),
    ],
)
def test_what_too_many_requests_may_cause(error: Exception) -> None:
    assert is_refused(error)


@pytest.mark.parametrize(
    "error",
    [
        lm15.ServerError("broken", status=500),
        lm15.AuthError("wrong key", status=401),
        lm15.TimeoutError("late"),
        caused_by(TimeoutError()),
        caused_by(OSError(-2, "no such host")),
        ValueError("a mistake of ours"),
    ],
)
def test_what_it_does_not_cause(error: Exception) -> None:
    assert not is_refused(error)


def test_without_a_refusal_nothing_waits(requests: Requests) -> None:
    requests.begin(500)
    requests.end(250, lm15.ServerError("broken", status=500))
    requests.begin(500)
    assert requests.in_flight.under_way == 750


def test_a_server_that_refuses_everything_is_down_and_not_crowded(requests: Requests) -> None:
    requests.begin(64)
    requests.end(64, BUSY)
    requests.begin(64)
    requests.end(64)  # it is back, and refused nothing of these
    requests.begin(500)


def test_one_refused_beside_others_that_are_served_halves_what_is_in_flight(requests: Requests) -> None:
    requests.begin(64)
    requests.end(44, BUSY)
    requests.end(1)
    assert requests.in_flight.most == 32
    requests.end(10, BUSY)
    requests.end(9)
    assert requests.in_flight.most == 32, "these were sent before it was halved"
    requests.begin(32)
    requests.end(31, BUSY)
    requests.end(1)
    assert requests.in_flight.most == 16


def test_it_is_never_halved_below_one(requests: Requests) -> None:
    for _ in range(9):
        count = 2 if requests.in_flight.most >= 2 else 1
        requests.begin(count)
        requests.end(count - 1, BUSY)
        requests.end(1)
    assert 1 <= requests.in_flight.most <= 3
    requests.begin(1)


def test_requests_that_are_served_add_one_in_the_time_of_a_round(requests: Requests) -> None:
    requests.begin(20)
    requests.end(1, BUSY)
    requests.end(19)
    assert requests.in_flight.most == 10
    for _ in range(10):
        requests.begin(1)
        requests.end(1)
    assert 10.9 < requests.in_flight.most < 11


@pytest.mark.parametrize("error", [None, BUSY], ids=["serves others", "is down"])
def test_after_a_refusal_nothing_is_sent_until_it_is_known_whether_the_server(
    requests: Requests, error: Exception | None
) -> None:
    sent = threading.Event()

    def ask() -> None:
        with requests.in_flight.place():
            sent.set()

    requests.begin(3)
    requests.end(1, BUSY)
    thread = threading.Thread(target=ask)
    thread.start()
    assert not sent.wait(0.05)
    requests.end(2, error)
    assert sent.wait(5)
    thread.join(5)


def crowded(in_flight: InFlight, most: int = 1) -> None:
    """Make it allow so many at a time."""
    requests = Requests(in_flight)
    requests.begin(2 * most)
    requests.end(2 * most - 1, BUSY)
    requests.end(1)
    assert in_flight.most == most


def test_who_waits_goes_on_in_the_order_of_arrival() -> None:
    in_flight, order = InFlight(), []
    crowded(in_flight)
    first = Requests(in_flight)
    first.begin(1)
    threads = []

    def ask(number: int) -> None:
        with suppress(LimitReached), in_flight.place():  # an end that says nothing of the server
            order.append(number)
            raise LimitReached("no more")

    for number in range(5):
        threads.append(threading.Thread(target=ask, args=(number,)))
        threads[-1].start()
        while len(in_flight._waiting) <= number:
            threading.Event().wait(0.001)
    first.end(1, LimitReached("no more"))
    for thread in threads:
        thread.join(5)
    assert order == [0, 1, 2, 3, 4]
    assert in_flight.under_way == 0


def test_who_is_interrupted_while_it_waits_leaves_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    in_flight = InFlight()
    crowded(in_flight)
    first = Requests(in_flight)
    first.begin(1)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Condition, "wait", lambda self, timeout=None: signal.raise_signal(signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            first.begin(1)
    first.end(1)
    with in_flight.place():
        assert in_flight.under_way == 1


class Crowded:
    """A wire to a server that takes so many requests at a time and refuses more at once; an answer takes 5 ms."""

    def __init__(self, most: int, error: Callable[[], Exception]) -> None:
        self.most, self.error = most, error
        self.under_way = self.refused = 0
        self._lock = threading.Lock()

    def prepared(self, request: lm15.Request) -> lm15.Request:
        return request

    def complete(self, request: lm15.Request) -> lm15.Response:
        self._enter()
        threading.Event().wait(0.005)
        return self._answer()

    def _enter(self) -> None:
        with self._lock:
            if self.under_way >= self.most:
                self.refused += 1
                raise self.error()
            self.under_way += 1

    def _answer(self) -> lm15.Response:
        with self._lock:
            self.under_way -= 1
        message = lm15.Message.assistant([lm15.TextPart("well")])
        usage = lm15.Usage(input_tokens=1, output_tokens=1, total_tokens=2)
        return lm15.Response(id=None, model="m", message=message, finish_reason="stop", usage=usage)


REQUEST = lm15.Request(model="m", messages=(lm15.Message.user("well?"),))


def model(wire: Crowded) -> Model:
    return Model("a server//m", "m", wire, lambda _: 0, max_retries=3, timeout=9.0)


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "wait", lambda state: 0.02 * 2**state.attempt_number)


ERRORS = [
    pytest.param(lambda: lm15.ServerError("busy", status=503), id="503"),
    pytest.param(lambda: lm15.RateLimitError("slow down", status=429), id="429"),
    pytest.param(lambda: caused_by(ConnectionResetError()), id="reset"),
]


@pytest.mark.usefixtures("short_waits")
@pytest.mark.parametrize("error", ERRORS)
def test_64_at_a_time_against_a_server_that_takes_20_are_all_served(error: Callable[[], Exception]) -> None:
    wire = Crowded(20, error)
    asked = model(wire)
    with ThreadPoolExecutor(64) as pool:
        answers = list(pool.map(lambda _: asked.complete(REQUEST), range(600)))
    assert len(answers) == 600
    assert wire.refused > 0
    assert asked.in_flight.under_way == 0


def test_an_interrupted_run_leaves_the_queue_as_soon_as_one_answer_came() -> None:
    asked, limits, outcomes = model(Crowded(20, lambda: BUSY)), Limits(), []
    crowded(asked.in_flight)
    held = ExitStack()
    held.enter_context(asked.in_flight.place())

    def ask() -> None:
        set_current(limits)
        try:
            asked.complete(REQUEST)
        except Halted as error:
            outcomes.append(error)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    limits.halt()
    held.close()
    for thread in threads:
        thread.join(5)
    assert len(outcomes) == 8


def test_stages_of_one_server_share_what_is_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
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
