"""Gemini's batch jobs on uploaded files, by the package ``google-genai``.

https://ai.google.dev/gemini-api/docs/batch-api: a file of 2 GB, 24 hours; a file is deleted after 48. Results of a file
have the keys of their requests; those of inline requests have none, and are not used.
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
    http_client,
    in_words,
    json_lines,
    named,
)
from agenticiqa.programs.backends.wire import Server
from agenticiqa.programs.errors import BackendError

OVER = ("SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED")
RPC = {3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 9: 400, 13: 500, 14: 503, 16: 401}  # codes of google.rpc.Status
ITS_OWN = "https://generativelanguage.googleapis.com/v1beta"
HEADERS = frozenset({"x-goog-api-key", "x-goog-upload-protocol", "x-goog-upload-command", "x-goog-upload-offset"}) | {
    f"x-goog-upload-header-content-{what}" for what in ("length", "type")
}


def answer_in(line: dict[str, Any]) -> BatchAnswer:
    """A line of results."""
    key, error = line.get("key"), line.get("error")
    if not isinstance(key, str):
        return BatchAnswer("")
    if isinstance(line.get("response"), dict):
        return BatchAnswer(key, 200, json.dumps(line["response"]).encode())
    if isinstance(error, dict):
        code = error.get("code")
        status = code if isinstance(code, int) and code >= 400 else RPC.get(code or 0, 500)
        return BatchAnswer(key, status, json.dumps({"error": {**error, "code": status}}).encode())
    return BatchAnswer(key)


class GeminiJobs(Service):
    """See ``services.Service``."""

    most_requests, most_bytes = 1_000_000, 2_000_000_000

    def __init__(self, server: Server, folder: Path) -> None:
        try:
            from google import genai
            from google.genai.types import HttpOptions
        except ImportError as error:
            raise BackendError("--batch needs a package for this: pip install 'agenticiqa[google]'") from error
        self.server, self.folder = server, folder
        base, _, version = (without_login(server.address) if server.address else ITS_OWN).rstrip("/").rpartition("/")
        options = HttpOptions(base_url=base, api_version=version, httpx_client=http_client(server, HEADERS))
        self.client = genai.Client(api_key=server.key, vertexai=False, http_options=options)

    def frame(self, id: str) -> tuple[bytes, bytes]:
        """See ``services.Service``."""
        return f'{{"key":"{id}","request":'.encode(), b"}"

    def upload(self, path: Path, name: str) -> str | None:
        """The file's name."""
        with in_words(self.server):
            made = self.client.files.upload(
                file=str(path), config={"display_name": name, "mime_type": "application/jsonl"}
            )
            return named(made, "name")

    def uploaded(self, name: str) -> str | None:
        """By its name."""
        with in_words(self.server):
            files = self.client.files.list(config={"page_size": 100})
            return next((file.name for file in files if file.display_name == name), None)

    def create(self, path: Path, file: str | None, name: str) -> str:
        """With our name, by which it is found again."""
        with in_words(self.server):
            config: Any = {"display_name": name}
            return named(self.client.batches.create(model=self.server.model, src=file or "", config=config), "name")

    def find(self, name: str, requests: frozenset[str], newest: str | None, known: frozenset[str]) -> str | None:
        """By its name."""
        with in_words(self.server):
            jobs = self.client.batches.list(config={"page_size": 100})
            return next((job.name for job in jobs if job.display_name == name), None)

    def progress(self, handle: str, requests: int) -> Progress:
        """As its state says."""
        with in_words(self.server):
            job = self.client.batches.get(name=handle)
        state = job.state.name.removeprefix("JOB_STATE_") if job.state else ""
        told = f"{state.lower()} {job.error.message}" if job.error else state.lower()
        return Progress(state.endswith(OVER), told, refused=state == "FAILED")

    def results(self, handle: str) -> Iterator[BatchAnswer]:
        """Of the file that the job has written, which is kept here while it is read."""
        with in_words(self.server):
            job = self.client.batches.get(name=handle)
            if job.dest is None or job.dest.file_name is None:
                return
            path = self.folder / "results.part"
            try:
                path.write_bytes(self.client.files.download(file=job.dest.file_name) or b"")
                with path.open(encoding="utf-8", errors="replace") as lines:
                    yield from map(answer_in, json_lines(iter(lines)))
            except Exception as error:
                if getattr(error, "code", None) != 404:
                    raise
                yield BatchAnswer("")  # the file was deleted
            finally:
                path.unlink(missing_ok=True)

    def cancel(self, handle: str) -> None:
        """Cancel it."""
        with in_words(self.server):
            self.client.batches.cancel(name=handle)

    def discard(self, file: str) -> None:
        """Delete it, as it holds the images."""
        with in_words(self.server):
            self.client.files.delete(name=file)
