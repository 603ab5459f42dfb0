"""Anthropic's message batches, by the package ``anthropic``.

https://docs.anthropic.com/en/api/creating-message-batches: 100,000 requests and 256 MB, 24 hours. A batch has no name
of ours: one that may have been sent is told from others by its ids, once it has ended.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agenticiqa.programs.backends.addresses import without_login
from agenticiqa.programs.backends.batches.services import (
    BatchAnswer,
    Progress,
    Service,
    ServiceError,
    Unclear,
    http_client,
    in_words,
    json_lines,
    named,
)
from agenticiqa.programs.backends.wire import Server
from agenticiqa.programs.errors import BackendError

STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
LOOKED_THROUGH = 2000  # batches of an account, the newest first
ITS_OWN = "https://api.anthropic.com"
PLACE = "/v1/messages/batches"


def answer_in(line: dict[str, Any]) -> BatchAnswer:
    """A line of results."""
    id, result = line.get("custom_id"), line.get("result")
    if not isinstance(id, str) or not isinstance(result, dict):
        return BatchAnswer("")
    if result.get("type") == "succeeded":
        return BatchAnswer(id, 200, json.dumps(result.get("message")).encode())
    if result.get("type") == "errored":
        error = result.get("error") or {}
        kind = (error.get("error") or error).get("type")
        return BatchAnswer(id, STATUS.get(str(kind), 500), json.dumps(error).encode())
    return BatchAnswer(id)  # canceled, expired


class AnthropicMessages(Service):
    """See ``services.Service``."""

    most_requests, most_bytes = 100_000, 256_000_000
    head, between, tail = b'{"requests":[', b",", b"]}"

    def __init__(self, server: Server, folder: Path) -> None:
        try:
            import anthropic
        except ImportError as error:
            raise BackendError("--batch needs a package for this: pip install 'agenticiqa[anthropic]'") from error
        self.server = server
        self.headers = {"x-api-key": server.key, "anthropic-version": "2023-06-01"}
        self.address = without_login(server.address).removesuffix("/v1") if server.address else ITS_OWN
        self.http = http_client(server, frozenset(self.headers))
        client = http_client(server, frozenset(self.headers), anthropic.DefaultHttpxClient)
        self.client = anthropic.Anthropic(api_key=server.key, base_url=self.address, max_retries=0, http_client=client)

    def frame(self, id: str) -> tuple[bytes, bytes]:
        """See ``services.Service``."""
        return f'{{"custom_id":"{id}","params":'.encode(), b"}"

    def create(self, path: Path, file: str | None, name: str) -> str:
        """Send the file as it is, without holding it in memory."""
        from anthropic.types.messages import MessageBatch

        options: Any = {"headers": {"content-type": "application/json"}}
        with in_words(self.server), path.open("rb") as content:
            return named(self.client.post(PLACE, cast_to=MessageBatch, content=content, options=options))

    def newest(self) -> str | None:
        """The newest of the account."""
        with in_words(self.server):
            return next((batch.id for batch in self.client.messages.batches.list(limit=1)), None)

    def find(self, name: str, requests: frozenset[str], newest: str | None, known: frozenset[str]) -> str | None:
        """Among those that are newer than ``newest``: by the ids of one that has ended, else by its size, Unclear."""
        possible = []
        with in_words(self.server):
            for number, batch in enumerate(self.client.messages.batches.list(limit=100)):
                if batch.id == newest or number >= LOOKED_THROUGH:
                    break
                if batch.id in known:
                    continue
                if batch.processing_status == "ended":
                    if any(answer.id in requests for answer in self.results(batch.id)):
                        return str(batch.id)
                elif sum(batch.request_counts.model_dump().values()) == len(requests):
                    possible.append(f"{batch.id} (made {batch.created_at:%Y-%m-%d %H:%M} UTC)")
        if possible:
            raise Unclear(f"it may be {' or '.join(possible)}, of as many requests, and no name tells it")
        return None

    def progress(self, handle: str, requests: int) -> Progress:
        """As its status says."""
        with in_words(self.server):
            batch = self.client.messages.batches.retrieve(handle)
        counts = batch.request_counts.model_dump()
        told = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
        return Progress(batch.processing_status == "ended", told)

    def results(self, handle: str) -> Iterator[BatchAnswer]:
        """One line for each request."""
        # Not at results_url, which could lead elsewhere with the key; nor by the package, which raises at a bad line.
        place = f"{self.address}{PLACE}/{handle}/results"
        with in_words(self.server), self.http.stream("GET", place, headers=self.headers) as reply:
            if reply.status_code == 404:
                yield BatchAnswer("")  # they were deleted
            elif reply.status_code >= 300:
                raise ServiceError(f"status {reply.status_code} in place of its results", reply.status_code)
            else:
                yield from map(answer_in, json_lines(reply.iter_lines()))

    def cancel(self, handle: str) -> None:
        """Cancel it."""
        with in_words(self.server):
            self.client.messages.batches.cancel(handle)
