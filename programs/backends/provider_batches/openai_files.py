"""Use OpenAI's Files and Batch APIs with the package ``openai``, also on compatible servers and gateways.

https://platform.openai.com/docs/api-reference/batch: at most 50,000 requests and 200 MB per file, one model, 24 hours.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from agenticiqa.configs.yaml_json import json_value
from agenticiqa.programs.backends.failures import is_temporary, masked, redacted
from agenticiqa.programs.backends.transport import proxy_for
from agenticiqa.programs.backends.wire import SENT, Server, WithQuery, openai_client
from agenticiqa.signatures.vocabulary import well_formed

LABEL = "agenticiqa"  # the key in a batch's metadata under which it stores this program's name for it
MOST_LISTED = 2000  # batches or files of an account that are searched, the newest first
FINISHED = frozenset({"completed", "failed", "expired", "cancelled"})
LONGEST_MESSAGE = 300  # characters of a provider's message
UPLOAD = 600.0  # seconds for the write or read of one piece


class BatchAnswer(NamedTuple):
    """One line of results: the id of a request, and the HTTP status and body of its answer.

    ``status`` is 0 for a request without an answer. ``id`` is empty for a line that cannot be parsed.
    """

    id: str
    status: int = 0
    body: bytes = b""

    @property
    def is_fault(self) -> bool:
        """Return whether the same request may get an answer later."""
        return not self.status or is_temporary(self.status)


class Progress(NamedTuple):
    """The state of a batch. ``refused``: no request was accepted; ``full``: because too many are already under way."""

    is_over: bool
    message: str = ""
    refused: bool = False
    full: bool = False


class ServiceError(Exception):
    """Raised when a provider's request fails; ``status`` is ``None`` without a response."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status

    @property
    def is_temporary(self) -> bool:
        """Return whether the same request may succeed later."""
        return self.status is None or is_temporary(self.status)


def framed(id: str) -> tuple[bytes, bytes]:
    """Return the text before and after the body of a request in a line of a file."""
    return f'{{"custom_id":"{id}","method":"POST","url":"/v1/chat/completions","body":'.encode(), b"}"


def answer_in(line: dict[str, Any]) -> BatchAnswer:
    """Return the answer in a line of results."""
    id, reply = line.get("custom_id"), line.get("response") or {}
    status = reply.get("status_code") if isinstance(reply, dict) else None
    if not isinstance(id, str):
        return BatchAnswer("")
    if isinstance(status, int) and 100 <= status < 600 and "body" in reply:
        return BatchAnswer(id, status, json.dumps(reply["body"]).encode())
    return BatchAnswer(id)  # batch_expired, batch_cancelled


def answers_in(lines: Iterable[str]) -> Iterator[BatchAnswer]:
    """Yield the answer in each line of results, except blank lines."""
    for line in lines:
        if line.strip():
            try:
                reply = json_value(line)
            except (ValueError, RecursionError):
                reply = None
            yield answer_in(reply) if isinstance(reply, dict) else BatchAnswer("")


class OpenAIFiles:
    """OpenAI's Batch API on a server. Every method may raise ServiceError.

    A batch has at most ``most_requests`` requests and ``most_bytes`` bytes.
    """

    most_requests, most_bytes = 50_000, 200_000_000

    def __init__(self, server: Server) -> None:
        self.server = server
        self.client = openai_client(server, _http_client(server))

    def upload(self, path: Path, name: str) -> str:
        """Upload the file to the provider under this name, and return its id."""
        with _as_service_error(self.server), path.open("rb") as file:
            return self._id_of(self.client.files.create(file=(f"{name}.jsonl", file), purpose="batch"))

    def uploaded(self, name: str) -> str | None:
        """Return the newest file with this name; ``None`` without one, or if a gateway cannot list files."""
        with suppress(ServiceError), _as_service_error(self.server):
            files = islice(self.client.files.list(purpose="batch", limit=1000), MOST_LISTED)
            return next((str(file.id) for file in files if file.filename == f"{name}.jsonl"), None)
        return None

    def create(self, file: str, name: str) -> str:
        """Create the batch with this name in its metadata, by which ``find`` finds it, and return its id."""
        with _as_service_error(self.server):
            begun = self.client.batches.create(
                input_file_id=file, endpoint="/v1/chat/completions", completion_window="24h", metadata={LABEL: name}
            )
            return self._id_of(begun)

    def find(self, name: str) -> str | None:
        """Return the id of the batch with this name in its metadata; ``None`` without one."""
        with _as_service_error(self.server):
            batches = islice(self.client.batches.list(limit=100), MOST_LISTED)
            return next((str(batch.id) for batch in batches if (batch.metadata or {}).get(LABEL) == name), None)

    def progress(self, handle: str) -> Progress:
        """Return the progress of a batch with this handle, by its status."""
        with _as_service_error(self.server):
            batch = self.client.batches.retrieve(handle)
        errors = (batch.errors.data if batch.errors else None) or []
        message = "; ".join(f"{error.code}: {error.message}" for error in errors[:3]) or str(batch.status)
        full = any(error.code == "token_limit_exceeded" for error in errors)
        is_over = batch.status in FINISHED
        return Progress(is_over, _shown(message, self.server), batch.status == "failed", full)

    def results(self, handle: str) -> Iterator[BatchAnswer]:
        """Yield the answers in both files of a batch (answered and failed requests), in any order."""
        with _as_service_error(self.server):
            batch = self.client.batches.retrieve(handle)
            for file in filter(None, (batch.output_file_id, batch.error_file_id)):
                try:
                    with self.client.files.with_streaming_response.content(file) as reply:
                        yield from answers_in(masked(line, self.server.secrets) for line in reply.iter_lines())
                except Exception as error:
                    if getattr(error, "status_code", None) != 404:
                        raise
                    yield BatchAnswer("")  # the file was deleted

    def _id_of(self, created: object) -> str:
        """Return the id of an object that the provider created. Raises ServiceError without an id."""
        id = getattr(created, "id", None)
        if not isinstance(id, str) or not id:
            raise ServiceError("the provider's response has no id")
        return masked(id, self.server.secrets)

    def cancel(self, handle: str) -> None:
        """End the batch early; answers that the provider already has are kept."""
        with _as_service_error(self.server):
            self.client.batches.cancel(handle)

    def discard(self, file: str) -> None:
        """Delete the file, because it contains the images."""
        with _as_service_error(self.server):
            self.client.files.delete(file)


def _http_client(server: Server) -> httpx.Client:
    """Return a client for files of any size.

    As for single requests, it does not follow redirects or send headers that describe this machine.
    """

    def bare(request: httpx.Request) -> None:
        for name in set(request.headers) - SENT - {"content-length", "transfer-encoding"}:
            del request.headers[name]

    proxy = proxy_for(server.address or str(server.provider.address)) or None
    return httpx.Client(
        trust_env=False,
        transport=WithQuery(httpx.HTTPTransport(trust_env=False, proxy=proxy), server),
        timeout=(10.0, UPLOAD, UPLOAD, UPLOAD),
        follow_redirects=False,
        event_hooks={"request": [bare]},
    )


@contextmanager
def _as_service_error(server: Server) -> Iterator[None]:
    """Convert errors of the package and of connections to ServiceError, without the key."""
    from openai import OpenAIError

    try:
        yield
    except (OpenAIError, httpx.HTTPError, OSError, ValueError) as error:
        status = getattr(error, "status_code", None)
        message = getattr(error, "message", None) or str(error) or type(error).__name__
        text = _shown(str(message), server)
        raise ServiceError(f"status {status}: {text}" if status else text, status) from error


def _shown(message: str, server: Server) -> str:
    """Return a message of a server as one line without secrets and lone surrogates."""
    return redacted(" ".join(well_formed(message).split()), server.secrets)[:LONGEST_MESSAGE]
