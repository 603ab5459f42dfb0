"""Odd answers of a server over raw sockets: none is mixed up, read without end, or followed to another address."""

import gc
import gzip
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from dspy import lm15

from agenticiqa.programs.backends import transport
from agenticiqa.programs.backends.failures import classified, is_retryable, ran_out_of_time
from agenticiqa.programs.backends.providers import PROVIDERS
from agenticiqa.programs.backends.transport import Transport, largest_answer, proxy_for
from agenticiqa.programs.backends.wire import ChatServer
from support.loopback import serving

Serve = Callable[[socket.socket, bytes], None]


@contextmanager
def raw_server(serve: Serve) -> Iterator[str]:
    """Run a server that lets ``serve`` write any bytes for each request of a connection."""
    with serving(lambda ex: serve(ex.connection, ex.head + ex.raw)) as server:
        yield f"{server.address}/v1"


def answer(body: bytes, status: str = "200 OK", headers: bytes = b"") -> bytes:
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n%s\r\n%s" % (status.encode(), len(body), headers, body)


def send(
    url: str,
    timeout: float = 5.0,
    body: bytes = b"{}",
    largest: int = largest_answer(2048),
    by: Transport | None = None,
) -> httpx.Response:
    return (by or Transport(timeout, largest)).handle_request(httpx.Request("POST", url, content=body))


def echoed(received: bytes) -> bytes:
    return answer(received.partition(b"\r\n\r\n")[2])


def test_header_lines_may_end_with_lf_and_contain_any_characters() -> None:
    bare = b"HTTP/1.1 200 OK\nContent-Type: application/json\nX-Name: J\xfcrgen\nContent-Length: 4\n\nwell"
    with raw_server(lambda client, _: client.sendall(bare)) as url:
        received = send(url)
    assert received.content == b"well"
    assert received.headers["x-name"] == "J\xfcrgen"


@pytest.mark.parametrize("interim", [b"100 Continue", b"102 Processing", b"103 Early Hints", b"199 Anything"])
@pytest.mark.parametrize("times", [1, 3])
def test_interim_responses_are_skipped(interim: bytes, times: int) -> None:
    hint = b"HTTP/1.1 " + interim + b"\r\nLink: </style.css>; rel=preload\r\n\r\n"

    def serve(client: socket.socket, received: bytes) -> None:
        client.sendall(hint * times)
        time.sleep(0.02)
        client.sendall(echoed(received))

    with raw_server(serve) as url, ThreadPoolExecutor(8) as pool:
        sent = [b"{%d}" % number for number in range(32)]
        received = [*pool.map(lambda body: send(url, body=body), sent)]
    assert [(each.status_code, each.content) for each in received] == [(200, body) for body in sent]


@pytest.mark.parametrize(("late", "reuse"), [(0.0, False), (0.02, False), (0.02, True)])
def test_an_extra_answer_is_never_the_answer_to_another_request(late: float, reuse: bool) -> None:
    sent = threading.Semaphore(0)  # the answers to a request were sent, the extra one included

    def serve(client: socket.socket, received: bytes) -> None:
        client.sendall(echoed(received) + (b"" if late else answer(b"stale")))
        try:
            if late:
                time.sleep(late)
                client.sendall(answer(b"stale"))
        finally:
            sent.release()

    transport = Transport(5.0, 1 << 20, reuse=reuse)
    with raw_server(serve) as url:
        for number in range(6):
            assert send(url, body=b"{%d}" % number, by=transport).content == b"{%d}" % number
            assert sent.acquire(timeout=5)


@pytest.mark.parametrize(
    ("address", "reuse"), [(None, True), ("https://a.example/v1", True), ("http://gpu:8000/v1", False)]
)
def test_only_connections_with_tls_are_used_again(address: str | None, reuse: bool) -> None:
    assert ChatServer(PROVIDERS["openai"], "m", address, "key", 5.0).transport().transport.reuse == reuse


def test_connections_are_used_again_and_closed_with_the_transport() -> None:
    opened, left = set[socket.socket](), threading.Semaphore(0)

    def serve(client: socket.socket, received: bytes) -> None:
        opened.add(client)
        client.sendall(echoed(received))
        if client.recv(1, socket.MSG_PEEK) == b"":
            left.release()

    transports = [Transport(5.0, 1 << 20, reuse=True)]
    with raw_server(serve) as url:
        with ThreadPoolExecutor(4) as pool:
            sent = [b"{%d}" % number for number in range(100)]
            assert [*pool.map(lambda body: send(url, body=body, by=transports[0]).content, sent)] == sent
        assert 1 <= len(opened) <= 4
        transports.clear()
        gc.collect()
        assert all(left.acquire(timeout=5) for _ in opened)


@pytest.mark.parametrize("pause", [0.0, 0.1], ids=["at once", "when idle"])
def test_a_connection_that_the_server_closes_is_opened_again_or_a_temporary_fault(pause: float) -> None:
    def serve(client: socket.socket, received: bytes) -> None:
        client.sendall(echoed(received))
        client.shutdown(socket.SHUT_RDWR)

    transport, answered = Transport(5.0, 1 << 20, reuse=True), 0
    with raw_server(serve) as url:
        for number in range(20):
            with suppress(lm15.TransportError):  # which is retried
                assert send(url, body=b"{%d}" % number, by=transport).content == b"{%d}" % number
                answered += 1
            time.sleep(pause)
    assert answered >= (20 if pause else 10)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks a process")
def test_a_forked_process_opens_its_own_connections() -> None:
    opened = set[socket.socket]()

    def serve(client: socket.socket, received: bytes) -> None:
        opened.add(client)
        client.sendall(echoed(received))

    transport = Transport(5.0, 1 << 20, reuse=True)
    with raw_server(serve) as url:
        send(url, by=transport)
        child = os.fork()
        if not child:
            os._exit(send(url, body=b"{2}", by=transport).content != b"{2}")
        assert os.waitpid(child, 0)[1] == 0
        assert send(url, body=b"{3}", by=transport).content == b"{3}"
    assert len(opened) == 2


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_compressed_answer_is_unpacked_up_to_the_limit(encoding: str) -> None:
    pack = zlib.compressobj(wbits=31 if encoding == "gzip" else 15)
    packed = pack.compress(b" " * (100 << 20)) + pack.flush()
    head = f"Content-Encoding: {encoding}\r\n".encode()
    with raw_server(lambda client, _: client.sendall(answer(packed, headers=head))) as url:
        tracemalloc.start()
        with pytest.raises(lm15.ServerError, match="larger than 3 MiB"):
            send(url, largest=3 << 20)
    assert tracemalloc.get_traced_memory()[1] < 12 << 20
    tracemalloc.stop()
    with raw_server(lambda client, _: client.sendall(answer(gzip.compress(b"{}"), headers=head))) as url:
        assert send(url).content == b"{}"


@pytest.mark.parametrize(("encoding", "body"), [("br", b"{}"), ("gzip, gzip", b"{}"), ("gzip", b"{}")])
def test_an_answer_that_cannot_be_unpacked_is_a_fault(encoding: str, body: bytes) -> None:
    head = f"Content-Encoding: {encoding}\r\n".encode()
    with (
        raw_server(lambda client, _: client.sendall(answer(body, headers=head))) as url,
        pytest.raises((lm15.ServerError, lm15.TransportError)) as raised,
    ):
        send(url)
    assert is_retryable(raised.value)


def trickle(client: socket.socket, head: bytes, each: bytes) -> None:
    client.sendall(head)
    client.settimeout(0.05)
    while True:
        with suppress(TimeoutError):
            if not client.recv(1):  # the other side has closed
                return
        client.sendall(each)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("head", "each"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b" "),
        (b"HTTP/1.1 200 OK\r\nX-Slow: ", b"a"),
        (b"", b"\r\n"),
        (b"HTTP/1.1 200 OK\r\n", b"X-More: a\r\n"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"", b""),
    ],
    ids=["body", "a header", "blank lines", "headers", "chunks", "interim responses", "nothing"],
)
def test_a_request_ends_at_its_deadline_even_if_bytes_arrive(head: bytes, each: bytes) -> None:
    began = time.monotonic()
    with raw_server(lambda client, _: trickle(client, head, each)) as url, pytest.raises(lm15.TransportError) as raised:
        send(url, timeout=0.6)
    assert time.monotonic() - began < 3
    assert re.search("no answer within 0.6 s|no response line", str(raised.value))


def test_a_connection_timeout_differs_from_an_answer_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "CONNECT", 0.5)
    with socket.socket() as listening, socket.socket() as first, socket.socket() as second:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for waiting in (first, second):  # they fill its queue, so that the third gets no reply
            waiting.setblocking(False)
            waiting.connect_ex(listening.getsockname())
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(lm15.TransportError) as raised:
            send(f"http://{address}/v1", timeout=20)
    shown = str(classified(raised.value, 20, ()))
    assert shown.startswith(f"failed to connect to {address}/v1: no connection within 0.5 s")
    assert not ran_out_of_time(raised.value)


@pytest.mark.parametrize(
    "framing", [b"Content-Length: 99999999999", b"Transfer-Encoding: chunked", b"Connection: close"]
)
def test_an_endless_body_is_stopped(framing: bytes) -> None:
    block = b" " * 65536
    block = b"%x\r\n%s\r\n" % (len(block), block) if b"chunked" in framing else block
    taken = 0

    def serve(client: socket.socket, _: bytes) -> None:
        nonlocal taken
        client.sendall(b"HTTP/1.1 200 OK\r\n" + framing + b"\r\n\r\n")
        while True:
            client.sendall(block)
            taken += len(block)

    with raw_server(serve) as url, pytest.raises(lm15.ServerError, match=r"larger than 3\.5 MiB"):
        send(url, largest=largest_answer(512))
    assert taken < 64 << 20


@pytest.mark.parametrize("max_tokens", [2048, 8192])
def test_the_longest_answer_with_log_probabilities_is_accepted(max_tokens: int) -> None:
    """Each token has twenty alternatives of four characters, which take three bytes each, or six in escaped JSON."""
    said = "\u6f22\u5b57\u6f22\u5b57"
    token = {"token": said, "logprob": -12.345678901234567, "bytes": list(said.encode())}
    answer = {"content": [{**token, "top_logprobs": [token] * 20}] * max_tokens}
    body = json.dumps({"choices": [{"message": {"content": said * max_tokens}, "logprobs": answer}]})
    assert 0.5 * largest_answer(max_tokens) < len(body) < largest_answer(max_tokens)


MEMORY = """
import resource, sys
from concurrent.futures import ThreadPoolExecutor
from dspy import lm15
from test_transport import send
from agenticiqa.programs.backends.failures import is_retryable
from agenticiqa.programs.backends.transport import largest_answer

def given_up(_):
    try:
        send(sys.argv[1], timeout=30, largest=largest_answer(2048))
    except lm15.ServerError as error:
        assert "8 MiB" in str(error), error
        return 1

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

before = peak()
with ThreadPoolExecutor(10) as pool:
    assert sum(pool.map(given_up, range(30))) == 30
print(peak() - before)
"""


@pytest.mark.slow
def test_ten_workers_reading_endless_bodies_use_less_than_200_mb() -> None:
    def serve(client: socket.socket, _: bytes) -> None:
        client.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        while True:
            client.sendall(b" " * 65536)

    with raw_server(serve) as url:
        ended = subprocess.run(
            [sys.executable, "-c", MEMORY, url],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert ended.returncode == 0, ended.stderr
    assert float(ended.stdout) < 200


def test_endless_headers_are_stopped() -> None:
    def serve(client: socket.socket, _: bytes) -> None:
        client.sendall(b"HTTP/1.1 200 OK\r\n")
        while True:
            client.sendall(b"X-More: " + b"a" * 4096 + b"\r\n")

    with raw_server(serve) as url, pytest.raises(lm15.TransportError):
        send(url, timeout=5.0)


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"])
def test_a_redirect_is_not_followed_and_its_target_is_shown_without_secrets(status: str) -> None:
    location = b"Location: http://user:secret@login.example/start?token=secret\r\n"
    with (
        raw_server(lambda client, _: client.sendall(answer(b"<html>", status, location))) as url,
        pytest.raises(
            lm15.InvalidRequestError, match=r"redirects to login\.example/start, but redirects are not followed"
        ) as raised,
    ):
        send(url)
    assert "secret" not in str(raised.value)


def test_a_proxy_from_the_environment_is_not_used_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://user:secret@proxy.example:3128")
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", "inside.example")
    for address in ("http://127.0.0.1:8000/v1", "http://localhost/v1", "http://[::1]/", "https://a.inside.example/v1"):
        assert not proxy_for(address)
    own = "127.1 LOCALHOST. x.localhost [::ffff:127.0.0.1] 0.0.0.0 [::] 0 0x7f.1 2130706433 0177.0.0.1 127.0.0.1."
    assert not any(proxy_for(f"http://{host}:8000/v1") for host in own.split())
    for host in ("localhost.example", "notlocalhost", "[::ffff:10.0.0.1]", "10.1", "x" * 300):
        assert proxy_for(f"http://{host}/v1")
    assert proxy_for("https://api.example/v1") == "http://proxy.example:3128"


@pytest.mark.parametrize(
    ("entry", "address", "has_proxy"),
    [
        ("10.*", "http://10.1.2.3/v1", False),
        ("192.168.*.*", "http://192.169.3.4/v1", True),
        ("10.0.0.0/255.0.0.0", "http://10.1.2.3/v1", False),
        ("*.inside.example:8000", "http://gpu.inside.example:8000/v1", False),
        ("gpu.inside.example:443", "https://gpu.inside.example/v1", False),
        ("gpu.inside.example:8001", "https://gpu.inside.example:8000/v1", True),
        ("[fd00::1]:8000", "http://[fd00::1]:8000/v1", False),
        ("fd00::/8", "http://[fd00::1]:8000/v1", False),
        ("inside.example", "https://gpu.inside.example./v1", False),
        ("inside.example", "https://notinside.example/v1", True),
    ],
)
def test_entries_of_no_proxy(entry: str, address: str, has_proxy: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", entry)
    assert bool(proxy_for(address)) == has_proxy


@pytest.mark.parametrize(
    "host", ["vm", "VM.", "vm.lan.example", "ip6-localhost", "localhost.localdomain", "localhost6"]
)
def test_names_of_this_machine_have_no_proxy(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "vm.lan.example")
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    monkeypatch.delenv("no_proxy", raising=False)
    assert not proxy_for(f"http://{host}:8000/v1")
    for other in ("vm2", "vm.example", "lan.example", "my-localhost", "localdomain"):
        assert proxy_for(f"http://{other}:8000/v1")


@pytest.mark.parametrize(
    ("entry", "listed", "unlisted"),
    [
        ("10.0.0.0/8", "10.1.2.3", "11.1.2.3"),
        ("a.example, 10.0.0.0/8 , b.example", "10.255.255.255", "a10.example"),
        ("10.0.0.0/255.0.0.0", "10.1.2.3", "12.1.2.3"),
        ("10.7.7.7/8", "10.1.2.3", "9.1.2.3"),
        ("192.168.0.0/16", "[::ffff:192.168.3.4]", "192.169.0.1"),
        ("10.0.0.1", "10.1", "10.2"),
        ("fd00::/8", "[fd12::1]", "[fe12::1]"),
        ("[fd00::1]", "[fd00:0::1]", "[fd00::2]"),
        ("*.inside.example", "gpu.inside.example", "inside.example.com"),
        ("inside.example", "gpu.inside.example", "otherinside.example"),
        (".inside.example", "gpu.inside.example", "otherinside.example"),
        ("gpu.example:8000", "gpu.example", "gpu2.example"),
        ("gpu.example:8001", "no.localhost", "gpu.example"),
        ("10.0.0.0/99, nonsense/8", "a.localhost", "10.1.2.3"),
        ("*", "any.example", ""),
    ],
)
def test_address_blocks_and_patterns_in_no_proxy(
    entry: str, listed: str, unlisted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", entry)
    assert not proxy_for(f"http://me:secret@{listed}:8000/v1")
    assert not unlisted or proxy_for(f"http://me:secret@{unlisted}:8000/v1")


def test_an_unreachable_proxy_is_named_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    monkeypatch.setenv("http_proxy", f"http://user:secret@127.0.0.1:{port}")
    monkeypatch.delenv("no_proxy", raising=False)
    with pytest.raises(lm15.TransportError, match=rf"through the proxy 127\.0\.0\.1:{port}") as raised:
        send("http://api.example/v1")
    assert "secret" not in str(raised.value)
