"""The HTTP server of the tests: it answers requests on 127.0.0.1 by a function, also with faults."""

import contextlib
import json
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Body = dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """One answer of a server; in a script a plain string means ``Reply(content=...)``.

    ``delay`` is in seconds and ends early when the server stops. ``cut`` closes the connection within the body.
    ``raw_body`` is sent in place of the JSON. ``logprobs`` is the content list of the first choice's log-probabilities.
    """

    content: str | None = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut: bool = False
    raw_body: bytes | None = None
    logprobs: Sequence[Mapping[str, Any]] | None = None
    usage: tuple[int, int] = (10, 5)


@dataclass(frozen=True)
class Arrived:
    """A request as received: path with query, headers by their names in lower case, body."""

    path: str
    headers: Mapping[str, str]
    raw: bytes
    method: str = "POST"


@contextmanager
def loopback(respond: Callable[[Arrived], Reply], port: int = 0, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Run a server until the context ends, and yield its address without a path, such as ``http://127.0.0.1:8123``.

    ``respond`` returns the reply with its ``raw_body``; if it raises, the reply is status 400 with the exception.
    Port 0 is any free port. With ``tls`` the server speaks HTTPS. At the end all connections are closed, as when a
    process ends.
    """
    stopping = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            raw = self._body()
            headers = {name.lower(): value for name, value in self.headers.items()}
            try:
                reply = respond(Arrived(self.path, headers, raw, self.command))
            except Exception as error:  # a faulty script shows up in the test, not as a hanging connection
                reply = error_reply(400, {"error": {"message": repr(error)}})
            stopping.wait(reply.delay)
            data = reply.raw_body or b""
            self.close_connection |= reply.cut
            try:
                self.send_response(reply.status)
                for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data[: len(data) // 2] if reply.cut else data)
            except OSError:
                self.close_connection = True  # the client gave up waiting

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") != "chunked":
                return self.rfile.read(int(self.headers["Content-Length"] or 0))
            pieces = []
            while size := int(self.rfile.readline(), 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(pieces)

        do_GET = do_DELETE = do_POST

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing, to keep the test's output clean."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 128  # Linux drops connections beyond the 5 of the base class for a second or more

        def process_request(self, request: Any, client_address: Any) -> None:
            connections.append(request)
            super().process_request(request, client_address)

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Ignore the error: tests include clients that disconnect."""

    connections: list[socket.socket] = []
    httpd = Server(("127.0.0.1", port), Handler)
    if tls is not None:
        httpd.socket = tls.wrap_socket(httpd.socket, server_side=True)
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"{'http' if tls is None else 'https'}://127.0.0.1:{httpd.server_port}"
    finally:
        stopping.set()
        httpd.shutdown()
        httpd.server_close()
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        thread.join()


def error_reply(status: int, body: Any, headers: Mapping[str, str] | None = None) -> Reply:
    """Return an error with a JSON body."""
    return Reply(status=status, headers=headers or {}, raw_body=json.dumps(body).encode())


def chat_completion(reply: Reply, model: str) -> bytes:
    """Return a reply in the form that all OpenAI-compatible servers share."""
    asked, written = reply.usage
    choice: Body = {
        "index": 0,
        "message": {"role": "assistant", "content": reply.content},
        "finish_reason": "stop",
    }
    if reply.logprobs is not None:
        choice["logprobs"] = {"content": list(reply.logprobs), "refusal": None}
    return json.dumps(
        {
            "id": "chatcmpl-test",
            "object": "chat.completion",
            "created": 0,
            "model": model,
            "choices": [choice],
            "usage": {"prompt_tokens": asked, "completion_tokens": written, "total_tokens": asked + written},
        }
    ).encode()


def tokens(text: str, choices: Mapping[str, Mapping[str, float]] | None = None) -> list[dict[str, Any]]:
    """Return log-probabilities of an answer, word by word; ``choices`` has alternatives for some words."""
    entries = []
    for token in re.findall(r"\w+|\W", text):
        others = (choices or {}).get(token, {token: -0.01})
        ranked = sorted(others.items(), key=lambda item: -item[1])
        entries.append({**_token(token, others[token]), "top_logprobs": [_token(*each) for each in ranked]})
    return entries


def spoken(text: str, choices: Mapping[str, Mapping[str, float]]) -> Reply:
    """Return an answer with log-probabilities, for requests that ask for them."""
    return Reply(text, logprobs=tokens(text, choices))


def _token(token: str, logprob: float) -> dict[str, Any]:
    return {"token": token, "logprob": logprob, "bytes": list(token.encode())}
