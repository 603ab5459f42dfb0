"""A loopback provider of OpenAI's files and batches.

::

    with batch_server(by_stage({...}), key="sk-test") as server:
        ...                              # StageConfig(backend="openai.m", api_base=server.url, ...)
        assert server.asked_twice() == []

Each line of a batch is answered as the server (``support.providers``) answers a single request, which it
also accepts. A batch ends ``hours`` seconds after its creation. ``faults`` are named in ``FAULTS``.
"""

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import RLock
from typing import Any
from urllib.parse import urlsplit

from support.fake_server import Script
from support.loopback import Arrived, Body, Reply, error_reply, loopback
from support.providers import OPENAI, Refused, written

Line = dict[str, Any]


@dataclass
class Made:
    """A batch: its request bodies by id, its creation time, and its state."""

    handle: str
    name: str | None
    requests: dict[str, Body]
    made: float
    state: str = "in_progress"
    answers: list[Line] = field(default_factory=list)
    errors: list[Line] = field(default_factory=list)


@dataclass(frozen=True)
class Fault:
    """A fault that happens ``times`` times at a ``step`` (upload, uploaded, create, created, ended, state, results,
    download).

    ``do`` gets the server and the data of the step: the batch, or the lines of its results. It returns a reply to
    send instead of the right one, other lines, or ``None``.
    """

    step: str
    do: Callable[["BatchServer", Any], Any]
    times: int = 1


@dataclass
class BatchServer:
    """A running provider."""

    script: Script
    key: str | None
    hours: float
    url: str = ""
    faults: list[Fault] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    batches: dict[str, Made] = field(default_factory=dict)
    removed: list[Made] = field(default_factory=list)
    at_once: list[Body] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    lock: RLock = field(default_factory=RLock)

    def made(self) -> list[Made]:
        """Return every batch that was created."""
        return [*self.removed, *self.batches.values()]

    def ids(self) -> list[str]:
        """Return the id of every request in every batch."""
        return [id for batch in self.made() for id in batch.requests]

    def sent_twice(self) -> list[str]:
        """Return the ids that were in more than one batch."""
        return [id for id, times in Counter(self.ids()).items() if times > 1]

    def fault(self, step: str, given: Any) -> Any:
        """Apply a remaining fault of this step, if any, and return its result."""
        for number, fault in enumerate(self.faults):
            if fault.step == step and fault.times > 0:
                self.faults[number] = replace(fault, times=fault.times - 1)
                return fault.do(self, given)
        return None

    def make(self, requests: list[tuple[str, Body]], name: str | None) -> Made:
        """Create a new batch."""
        assert len(dict(requests)) == len(requests), "providers refuse the same id twice in a batch"
        handle = f"batch_{len(self.made()) + 1}"
        batch = Made(handle, name, dict(requests), time.monotonic())
        self.batches[handle] = batch
        return batch

    def settle(self, batch: Made) -> None:
        """End the batch when its time is over."""
        if batch.state != "in_progress" or time.monotonic() - batch.made < self.hours:
            return
        for id, body in batch.requests.items():
            reply = self.answer(body)
            batch.answers.append({"id": id, "status": reply.status, "body": json.loads(reply.raw_body or b"{}")})
        batch.state = "completed"
        self.fault("ended", batch)

    def lines(self, batch: Made, write: Callable[[Line], Line]) -> bytes:
        """Return the results of a batch as JSON lines in the provider's form; a ``cut`` line is incomplete."""
        lines = batch.answers
        if (other := self.fault("results", lines)) is not None:
            lines = other
        texts = [json.dumps(write(line)).encode() for line in lines]
        return b"".join(
            text[: len(text) // 2] if line.get("cut") else text + b"\n" for line, text in zip(lines, texts, strict=True)
        )

    def answer(self, body: Body) -> Reply:
        """Return the reply to one request of a batch."""
        headers = {"content-type": "application/json", "authorization": f"Bearer {self.key}"}
        return self.respond_at_once(Arrived(f"{OPENAI.base}/chat/completions", headers, json.dumps(body).encode()))

    def respond_at_once(self, arrived: Arrived) -> Reply:
        """Return the reply to a single request."""
        try:
            seen = OPENAI.read(arrived, self.key)
        except Refused as refused:
            return refused.reply
        said = self.script(seen.as_chat()) if callable(self.script) else self.script
        reply = Reply(said) if isinstance(said, str) else said
        return reply if reply.raw_body is not None else written(OPENAI, seen, reply)


@contextmanager
def batch_server(script: Script, key: str | None = "sk-batch-key", hours: float = 0.05) -> Iterator[BatchServer]:
    """Run a provider on loopback."""
    server = BatchServer(script, key, hours)

    def respond(arrived: Arrived) -> Reply:
        with server.lock:
            _, _, path, query, _ = urlsplit(arrived.path)
            server.queries.append(query)
            server.log.append(f"{arrived.method} {path}")
            if str(server.key) not in arrived.headers.get("authorization", ""):
                return OPENAI.fault("bad_key")
            for batch in list(server.batches.values()):
                server.settle(batch)
            reply = openai_api(server, arrived, path.removeprefix(OPENAI.base))
            return reply if isinstance(reply, Reply) else Reply(raw_body=json.dumps(reply).encode())

    with loopback(respond) as address:
        server.url = f"{address}{OPENAI.base}"
        yield server


def openai_api(server: BatchServer, arrived: Arrived, path: str) -> Any:
    """Answer as https://platform.openai.com/docs/api-reference/batch and .../files describe."""
    if path == "/chat/completions":
        server.at_once.append(json.loads(arrived.raw))
        return server.respond_at_once(arrived)
    if (arrived.method, path) == ("POST", "/files"):
        if (wrong := server.fault("upload", arrived)) is not None:
            return wrong
        name, content = _file_of_form(arrived)
        id = f"file-{len(server.names) + 1}"
        server.files[id], server.names[id] = content, name
        wrong = server.fault("uploaded", arrived)
        return _openai_file(server, id) if wrong is None else wrong
    if (arrived.method, path) == ("GET", "/files"):
        return {"object": "list", "data": [_openai_file(server, id) for id in server.files], "has_more": False}
    if (arrived.method, path) == ("POST", "/batches"):
        return _openai_create(server, json.loads(arrived.raw))
    if (arrived.method, path) == ("GET", "/batches"):
        shown = [_openai_batch(batch) for batch in reversed(server.batches.values())]
        return {"object": "list", "data": shown, "has_more": False, "first_id": None, "last_id": None}
    if found := re.fullmatch(r"/batches/(\w+)(/cancel)?", path):
        if (batch := server.batches.get(found[1])) is None:
            return error_reply(404, {"error": {"message": f"No batch found with id '{found[1]}'."}})
        batch.state = "cancelled" if found[2] else batch.state
        server.settle(batch)
        wrong = server.fault("state", batch)
        return _openai_batch(batch) if wrong is None else wrong
    if found := re.fullmatch(r"/files/([\w-]+)/content", path):
        if (wrong := server.fault("download", found[1])) is not None:
            return wrong
        handle, _, kind = found[1].partition("-")
        batch = server.batches[handle]
        good = [line for line in batch.answers if (line["status"] == 200) == (kind == "output")]
        return Reply(raw_body=server.lines(replace(batch, answers=good), _openai_line))
    if (found := re.fullmatch(r"/files/([\w-]+)", path)) and arrived.method == "DELETE":
        server.files.pop(found[1], None)
        return {"id": found[1], "object": "file", "deleted": True}
    return error_reply(404, {"error": {"message": f"Invalid URL ({arrived.method} {path})"}})


def _openai_file(server: BatchServer, id: str) -> Line:
    size = len(server.files[id])
    return {
        "id": id, "object": "file", "bytes": size, "created_at": 0, "filename": server.names[id], "purpose": "batch"
    }  # fmt: skip


def _openai_create(server: BatchServer, body: Body) -> Any:
    if (wrong := server.fault("create", body)) is not None:
        return wrong
    lines = [json.loads(line) for line in server.files[body["input_file_id"]].splitlines()]
    assert len({line["body"]["model"] for line in lines}) == 1, "OpenAI takes one model a batch"
    assert all((line["method"], line["url"]) == ("POST", body["endpoint"]) for line in lines)
    requests = [(line["custom_id"], line["body"]) for line in lines]
    batch = server.make(requests, (body.get("metadata") or {}).get("agenticiqa"))
    wrong = server.fault("created", batch)
    return _openai_batch(batch) if wrong is None else wrong


def _openai_batch(batch: Made) -> Line:
    over = batch.state in ("completed", "expired", "cancelled")
    kinds = {"output": any(line["status"] == 200 for line in batch.answers) and over}
    kinds["error"] = any(line["status"] != 200 for line in batch.answers) and over
    return {
        "id": batch.handle,
        "object": "batch",
        "endpoint": "/v1/chat/completions",
        "completion_window": "24h",
        "created_at": 0,
        "input_file_id": "file-1",
        "status": batch.state,
        "metadata": {"agenticiqa": batch.name},
        "errors": {"object": "list", "data": batch.errors} if batch.errors else None,
        **{f"{kind}_file_id": f"{batch.handle}-{kind}" if there else None for kind, there in kinds.items()},
    }


def _openai_line(answer: Line) -> Line:
    reply = {"status_code": answer["status"], "request_id": "r", "body": answer["body"]} if answer["status"] else None
    error = None if reply else {"code": "batch_expired", "message": "This request could not be executed in time."}
    return {"id": f"batch_req_{answer['id'][-4:]}", "custom_id": answer["id"], "response": reply, "error": error}


def _file_of_form(arrived: Arrived) -> tuple[str, bytes]:
    """Return name and content of the file in a form."""
    boundary = b"--" + arrived.headers["content-type"].partition("boundary=")[2].encode()
    for part in arrived.raw.split(boundary):
        head, _, content = part.partition(b"\r\n\r\n")
        if found := re.search(rb'filename="([^"]+)"', head):
            return found[1].decode(), content.removesuffix(b"\r\n")
    raise AssertionError("no file in the form")


# Faults by name.


def _lines(change: Callable[[list[Line]], list[Line]], times: int = 1) -> Fault:
    return Fault("results", lambda server, lines: change(lines), times)


def _reply(step: str, status: int, message: str = "try later", times: int = 1) -> Fault:
    wrong = error_reply(status, {"error": {"message": message}})
    return Fault(step, lambda server, given: wrong, times)


def _ended(state: str, kept: int, times: int = 1) -> Fault:
    """Return a fault that ends the batch in this state with this many answers."""

    def end(server: BatchServer, batch: Made) -> None:
        batch.state = state
        for line in batch.answers[kept:]:
            line.update(status=0)

    return Fault("ended", end, times)


def _answered(status: int, times: int = 1) -> Fault:
    """Return a fault that answers the first request of a batch with this status."""

    def fail(server: BatchServer, batch: Made) -> None:
        batch.answers[0] |= {"status": status, "body": {"error": {"message": "no"}}}

    return Fault("ended", fail, times)


def _refused(code: str) -> Fault:
    def refuse(server: BatchServer, batch: Made) -> None:
        batch.state, batch.answers, batch.errors = "failed", [], [{"code": code, "message": "of the account"}]

    return Fault("ended", refuse)


def _lost(server: BatchServer, batch: Made) -> Any:
    server.removed.append(server.batches.pop(batch.handle))
    return error_reply(404, {"error": {"message": "No batch found"}})


FAULTS: Mapping[str, Fault] = {
    "upload: 429": _reply("upload", 429),
    "upload: 500": _reply("upload", 500),
    "upload: broken off": Fault("upload", lambda server, given: Reply(raw_body=b"{}", cut=True)),
    "upload: no answer after the upload": Fault("uploaded", lambda server, given: Reply(raw_body=b"{}", cut=True)),
    "create: 429": _reply("create", 429),
    "create: 500": _reply("create", 500),
    "create: 500 after it was made": _reply("created", 500),
    "create: no answer after it was made": Fault("created", lambda server, given: Reply(raw_body=b"{}", cut=True)),
    "create: a page instead of JSON": Fault("created", lambda server, given: Reply(raw_body=b"<html>hello</html>")),
    "create: an object without an id": Fault("created", lambda server, given: Reply(raw_body=b"{}")),
    "create: 401": _reply("create", 401, "the key sk-batch-key is wrong"),
    "create: 400": _reply("create", 400, "no such endpoint"),
    "refused: too many tokens in progress": _refused("token_limit_exceeded"),
    "refused: a wrong file": _refused("invalid_json_line"),
    "state: 500": _reply("state", 500),
    "state: 429": _reply("state", 429, times=3),
    "state: broken off": Fault("state", lambda server, given: Reply(raw_body=b'{"id":', cut=True)),
    "state: the batch was removed": Fault("state", _lost),
    "ended: expired, none answered": _ended("expired", 0),
    "ended: expired, one answered": _ended("expired", 1),
    "ended: cancelled, one answered": _ended("cancelled", 1),
    "answer: 500": _answered(500),
    "answer: 429": _answered(429),
    "answer: 500 every time": _answered(500, times=9),
    "answer: 400": _answered(400),
    "answer: a status of 20 digits": _answered(-(10**19)),
    "results: shuffled": _lines(lambda lines: lines[::-1], times=9),
    "results: one missing": _lines(lambda lines: lines[1:]),
    "results: none": _lines(lambda lines: []),
    "results: all duplicated": _lines(lambda lines: lines + lines, times=9),
    "results: one of another request": _lines(lambda lines: [{**lines[0], "id": "request-1"}, *lines], times=9),
    "results: cut off once": _lines(lambda lines: [*lines[:-1], {**lines[-1], "cut": True}]),
    "results: cut off twice": _lines(lambda lines: [*lines[:-1], {**lines[-1], "cut": True}], times=2),
    "results: connection broken off": Fault("download", lambda server, given: Reply(raw_body=b"{}" * 9, cut=True)),
    "results: 500": _reply("download", 500),
    "results: the file is deleted": _reply("download", 404, "No such File object", times=2),
}
RESENT = {  # faults after which some requests must be in a second batch
    "ended: expired, none answered",
    "ended: expired, one answered",
    "ended: cancelled, one answered",
    "answer: 500",
    "answer: 429",
    "answer: a status of 20 digits",
    "answer: 500 every time",
    "results: one missing",
    "results: none",
    "results: cut off twice",
    "results: the file is deleted",
    "state: the batch was removed",
    "refused: a wrong file",
    "refused: too many tokens in progress",  # the first batch was refused
}
