"""The faulty server does what each fault says: seen with raw sockets, not with the program's client."""

import contextlib
import json
import math
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.faulty import healthy
from support.faulty.exchange import Profile
from support.faulty.profiles import FAMILIES, PROFILES
from support.faulty.raw_client import STAGES, Client, Received, asked
from support.faulty_server import FaultyServer, faulty_server

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "tests/support/faulty_server.py"
MOST_TRIED = 30  # questions until a fault comes

# What one request after another cannot tell from a healthy server; the tests below do.
SEEN_OTHERWISE = {
    "slow-first-byte",
    "head-byte-by-byte",
    "answer-to-the-last",
    "takes-20-of-64",
    "takes-2-of-4",
    "busy-above-20-of-64",
    "slower-with-each",
    "price-honest",
    "restart-mid-run",
}


def affected(profile: Profile) -> Received:
    """The answer to the first request that the fault is done to."""
    with faulty_server(profile.name) as server:
        for number in range(MOST_TRIED):
            for body in (asked(stage, number) for stage in STAGES):
                with Client(server.port) as client:
                    received = client.ask(body)
                if _waited_for(lambda: server.log)[-1].affected:
                    return received
                server.clear()
    raise AssertionError(f"{profile.name} was never done")


def _waited_for(log: Callable[[], list[object]]) -> list[object]:
    """The log once the last request is in it, which it is when its connection is done."""
    for _ in range(1500):
        if log():
            return log()
        time.sleep(0.01)
    raise AssertionError("no request was noted")


@pytest.mark.slow  # hundreds of servers, some of which take seconds by design
@pytest.mark.parametrize("family", FAMILIES)
def test_every_fault_differs_from_a_healthy_answer_in_bytes_or_end(family: str) -> None:
    """And has the pattern that it says to have."""
    wanted = [row for row in PROFILES.values() if row.family == family and row.name not in SEEN_OTHERWISE]
    with ThreadPoolExecutor(24) as pool:
        seen = dict(zip([row.name for row in wanted], pool.map(affected, wanted), strict=True))
    with faulty_server() as server:
        usual = set()
        for body in map(asked, STAGES):
            with Client(server.port) as client:
                usual.add(client.ask(body, idle=0.05).data)
    same = [
        name
        for name, got in seen.items()
        if got.end == "open" and any(got.data == _numbered(data, got.data) for data in usual)
    ]
    assert not same
    unlike = [row.name for row in wanted if row.shows and not re.search(row.shows, seen[row.name].data)]
    assert not unlike


def _numbered(data: bytes, like: bytes) -> bytes:
    """A healthy answer under the mark of another image, so that the two can be compared."""
    marks = re.findall(rb"img-[0-9a-f]{8}", like)
    return re.sub(rb"img-[0-9a-f]{8}", marks[0], data) if marks else data


def test_there_are_many_faults_each_with_a_name_of_its_own() -> None:
    names = [row.name for rows in FAMILIES.values() for row in rows]
    assert len(names) == len(set(names)) == len(PROFILES)
    assert len(names) >= 200
    assert set(names) >= SEEN_OTHERWISE


def test_a_healthy_answer_depends_on_the_image_and_on_the_question() -> None:
    with faulty_server() as server, Client(server.port) as client:
        said = [json.dumps(client.ask(asked(stage, n), idle=0.05).said) for stage in STAGES[:-1] for n in range(8)]
        scores = [client.ask(asked("assessment", n), idle=0.05).said["assessment"] for n in range(40)]
    assert len(set(said)) > 8 * 4  # a plan is the same for all, categories and severities are few
    assert len({json.dumps(score["quality_probs"]) for score in scores}) == 40
    assert {score["quality_level"] for score in scores} == set(healthy.LEVELS)
    for score in scores:
        shares = {level: math.exp(log) for level, log in score["quality_probs"].items()}
        assert sum(shares.values()) == pytest.approx(1, abs=1e-4)
        assert max(shares, key=lambda level: shares[level]) == str(healthy.LEVELS.index(score["quality_level"]) + 1)


def test_log_probabilities_say_the_same_as_the_text() -> None:
    with faulty_server() as server, Client(server.port) as client:
        choice = client.ask(asked()).body["choices"][0]
    assert "".join(entry["token"] for entry in choice["logprobs"]["content"]) == choice["message"]["content"]
    answer = json.loads(choice["message"]["content"])["assessment"]
    (named,) = [e for e in choice["logprobs"]["content"] if e["token"] == answer["quality_level"]]
    read = {str(healthy.LEVELS.index(t["token"]) + 1): t["logprob"] for t in named["top_logprobs"]}
    assert read == answer["quality_probs"]


@pytest.mark.parametrize(
    ("name", "pattern", "end"),
    [
        ("close-at-once", rb"^$", "closed"),
        ("reset-after-head", rb"\r\n\r\n$", "reset"),
        ("hang-at-once", rb"^$", "open"),
        ("close-in-body-once", rb'\r\n\r\n\{"id"', "closed"),
        ("answer-twice", rb"HTTP/1.1 200 OK.*chatcmpl.*HTTP/1.1 200 OK.*chatcmpl", "open"),
        ("chunked", rb"chunked\r\n\r\nc8\r\n.*\r\n0\r\n\r\n$", "open"),
        ("json-4301-digits", rb'"x": 9{4301}, ', "open"),
    ],
)
def test_the_bytes_and_the_end_of_a_fault(name: str, pattern: bytes, end: str) -> None:
    received = affected(PROFILES[name])
    assert re.search(pattern, received.data, re.DOTALL)
    assert received.end == end


def test_log_probabilities_of_another_level_spell_another_text() -> None:
    choice = affected(PROFILES["logprobs-other-level"]).body["choices"][0]
    spelled = json.loads("".join(entry["token"] for entry in choice["logprobs"]["content"]))
    written = json.loads(choice["message"]["content"])
    assert spelled["assessment"]["quality_level"] != written["assessment"]["quality_level"]


def test_the_answer_to_the_last_request_is_about_another_image() -> None:
    with faulty_server("answer-to-the-last") as server, Client(server.port) as one, Client(server.port) as other:
        own = one.ask(asked(image=1)).said
        stale = other.ask(asked(image=2)).said
    assert stale == own


def test_only_so_many_connections_are_taken() -> None:
    with faulty_server("takes-2-of-4") as server, Client(server.port) as one, Client(server.port) as two:
        taken = [client.ask(asked(image=n), idle=0.3).data[:12] for n, client in enumerate((one, two))]
        for _ in range(2):
            with contextlib.suppress(ConnectionResetError), Client(server.port) as more:
                assert more.ask(asked()).data == b""
    assert taken == [b"HTTP/1.1 200", b"HTTP/1.1 200"]


def test_a_server_that_restarts_is_gone_and_comes_back() -> None:
    with faulty_server("restart-mid-run") as server:
        for number in range(11):
            with Client(server.port) as client:
                assert client.ask(asked(image=number), idle=0.02).data
        with Client(server.port) as client:
            assert client.ask(asked(image=12), idle=0.05).data == b""
        with pytest.raises(OSError, match="refused"):
            Client(server.port)
        time.sleep(1.3)
        with Client(server.port) as client:
            assert client.ask(asked(image=13), idle=0.05).data


def test_a_slow_answer_takes_its_time() -> None:
    assert affected(PROFILES["slow-first-byte"]).seconds > 0.7
    trickled = affected(PROFILES["trickle-all"])
    assert trickled.data == b"H"  # the next byte comes after the client has lost its patience


def test_endless_answers_go_on_until_the_client_leaves() -> None:
    with faulty_server("endless-chunks") as server:
        with Client(server.port) as client:
            received = client.ask(asked())
        assert len(received.data) >= 400_000
        assert received.end == "open"
        assert _waited_for(lambda: server.log)  # the server noticed that the client left


def test_a_fault_can_be_changed_while_the_server_runs() -> None:
    with faulty_server("hang-at-once") as server:
        with Client(server.port) as client:
            assert client.ask(asked()).data == b""
        server.fault = "healthy"
        with Client(server.port) as client:
            assert client.ask(asked()).said


def test_what_is_not_affected_is_answered_as_ever() -> None:
    with faulty_server("logprobs-400") as server, Client(server.port) as client:
        assert client.ask({**asked(), "logprobs": False}).data.startswith(b"HTTP/1.1 200")
        assert client.ask(asked()).data.startswith(b"HTTP/1.1 400")
        assert [entry.affected for entry in server.log] == [False, True]


def test_the_command_lists_the_faults_and_serves_one_with_a_log(tmp_path: Path) -> None:
    listed = subprocess.run(
        [sys.executable, "-S", "-E", SCRIPT, "--list"], capture_output=True, text=True, check=True
    ).stdout  # -S: without site-packages
    assert f"{len(PROFILES)} faults" in listed
    command = [sys.executable, "-S", "-E", SCRIPT, "--fault", "status-418", "--log", tmp_path / "log"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            address = process.stdout.readline().split()[0]  # type: ignore[union-attr]
            with Client(int(address.rpartition(":")[2].partition("/")[0])) as client:
                assert client.ask(asked()).data.startswith(b"HTTP/1.1 418 ")
        finally:
            process.terminate()
    (entry,) = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert entry["stage"] == "assessment"
    assert entry["affected"]
    unknown = subprocess.run(
        [sys.executable, SCRIPT, "--fault", "no-such"], capture_output=True, text=True, check=False
    )
    assert unknown.returncode == 2
    assert "no fault is named 'no-such'" in unknown.stderr


def test_a_stopped_server_leaves_nothing_behind() -> None:
    server = FaultyServer("hang-at-once")
    client = Client(server.port)
    raw = json.dumps(asked()).encode()
    client.socket.sendall(b"POST /v1 HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(raw) + raw)
    server.stop()
    client.socket.settimeout(3)
    with contextlib.suppress(ConnectionResetError):
        assert client.socket.recv(1) == b""
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", server.port), 1)
    client.close()
