"""OpenAI's files and batches, by the package ``openai``; also of gateways that have them.

https://platform.openai.com/docs/api-reference/batch: 50,000 requests and 200 MB a file, one model, 24 hours.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from agenticiqa.programs.backends.batches.services import (
    BatchAnswer,
    Progress,
    Service,
    ServiceError,
    http_client,
    in_words,
    json_lines,
    named,
)
from agenticiqa.programs.backends.wire import Server, openai_client

OURS = "agenticiqa"  # the key of our name for a batch in its metadata
LOOKED_THROUGH = 2000  # batches or files of an account, the newest first
OVER = frozenset({"completed", "failed", "expired", "cancelled"})


def framed(id: str) -> tuple[bytes, bytes]:
    """What stands before and after the body of a request, as OpenAI and vLLM read it."""
    return f'{{"custom_id":"{id}","method":"POST","url":"/v1/chat/completions","body":'.encode(), b"}"


def answer_in(line: dict[str, Any]) -> BatchAnswer:
    """A line of results, as OpenAI and vLLM write it."""
    id, reply = line.get("custom_id"), line.get("response") or {}
    status = reply.get("status_code") if isinstance(reply, dict) else None
    if not isinstance(id, str):
        return BatchAnswer("")
    if isinstance(status, int) and "body" in reply:
        return BatchAnswer(id, status, json.dumps(reply["body"]).encode())
    return BatchAnswer(id)  # batch_expired, batch_cancelled


class OpenAIFiles(Service):
    """See ``services.Service``."""

    most_requests, most_bytes = 50_000, 200_000_000
    frame = staticmethod(framed)

    def __init__(self, server: Server, folder: Path) -> None:
        self.server, self.client = server, openai_client(server, http_client(server))

    def upload(self, path: Path, name: str) -> str | None:
        """The file's id."""
        with in_words(self.server), path.open("rb") as file:
            return named(self.client.files.create(file=(f"{name}.jsonl", file), purpose="batch"))

    def uploaded(self, name: str) -> str | None:
        """The newest of this name, among the newest; ``None`` also where a gateway lists no files."""
        with suppress(ServiceError), in_words(self.server):
            files = islice(self.client.files.list(purpose="batch", limit=1000), LOOKED_THROUGH)
            return next((str(file.id) for file in files if file.filename == f"{name}.jsonl"), None)
        return None

    def create(self, path: Path, file: str | None, name: str) -> str:
        """With our name in its metadata, by which it is found again."""
        with in_words(self.server):
            begun = self.client.batches.create(
                input_file_id=file, endpoint="/v1/chat/completions", completion_window="24h", metadata={OURS: name}
            )
            return named(begun)

    def find(self, name: str, requests: frozenset[str], newest: str | None, known: frozenset[str]) -> str | None:
        """By its metadata."""
        with in_words(self.server):
            batches = islice(self.client.batches.list(limit=100), LOOKED_THROUGH)
            return next((str(batch.id) for batch in batches if (batch.metadata or {}).get(OURS) == name), None)

    def progress(self, handle: str, requests: int) -> Progress:
        """As its status says."""
        with in_words(self.server):
            batch = self.client.batches.retrieve(handle)
        errors = (batch.errors.data if batch.errors else None) or []
        told = "; ".join(f"{error.code}: {error.message}" for error in errors[:3])
        full = any(error.code == "token_limit_exceeded" for error in errors)
        is_over = batch.status in OVER
        return Progress(is_over, told or str(batch.status), batch.status == "failed", full)

    def results(self, handle: str) -> Iterator[BatchAnswer]:
        """Of both files: what was answered, and what failed."""
        with in_words(self.server):
            batch = self.client.batches.retrieve(handle)
            for file in filter(None, (batch.output_file_id, batch.error_file_id)):
                try:
                    with self.client.files.with_streaming_response.content(file) as reply:
                        yield from map(answer_in, json_lines(reply.iter_lines()))
                except Exception as error:
                    if getattr(error, "status_code", None) != 404:
                        raise
                    yield BatchAnswer("")  # the file was deleted

    def cancel(self, handle: str) -> None:
        """Cancel it."""
        with in_words(self.server):
            self.client.batches.cancel(handle)

    def discard(self, file: str) -> None:
        """Delete it, as it holds the images."""
        with in_words(self.server):
            self.client.files.delete(file)
