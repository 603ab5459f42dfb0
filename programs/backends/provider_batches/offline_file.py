"""vLLM's offline batches: a file of requests to be run by ``vllm run-batch``, and the file that it writes.

https://docs.vllm.ai/en/latest/examples/offline_inference/openai_batch
"""

import os
from collections.abc import Iterator
from pathlib import Path

from agenticiqa.programs.backends.provider_batches.openai_files import answers_in
from agenticiqa.programs.backends.provider_batches.services import BatchAnswer, Progress, Service, ServiceError
from agenticiqa.programs.backends.wire import Server


class OfflineFile(Service):
    """See ``services.Service``; the handle is the path of the file that vLLM is to write."""

    most_requests, most_bytes = 1_000_000, 2_000_000_000

    def __init__(self, server: Server, folder: Path) -> None:
        super().__init__(server, folder)
        self.sizes: dict[str, int] = {}  # of the files that are written, when they were last looked at

    def upload(self, path: Path, name: str) -> str:
        """Put the file where the user has vLLM read it."""
        asked = self._asked(name)
        os.replace(path, asked)
        return str(asked)

    def uploaded(self, name: str) -> str | None:
        """Return the file, if it is there."""
        asked = self._asked(name)
        return str(asked) if asked.exists() else None

    def create(self, file: str, name: str) -> str:
        """Do nothing: the user runs vLLM."""
        return str((self.folder / f"{name}.out.jsonl").resolve())

    def find(self, name: str) -> str | None:
        """Return ``None``: ``create`` may be repeated."""
        return None

    def progress(self, handle: str, requests: int) -> Progress:
        """Report the end once vLLM's file exists and has all lines or stops growing."""
        try:
            with open(handle, "rb") as file:
                lines, size = sum(1 for line in file if line.strip()), file.tell()
            before, self.sizes[handle] = self.sizes.get(handle), size
            return Progress(lines >= requests or size == before)
        except FileNotFoundError:
            return Progress(False)
        except OSError as error:
            raise ServiceError(str(error)) from error

    def results(self, handle: str) -> Iterator[BatchAnswer]:
        """Yield the answers that vLLM wrote."""
        with open(handle, encoding="utf-8", errors="replace") as file:
            yield from answers_in(file)

    def cancel(self, handle: str) -> None:
        """Remove the file; a vLLM that already reads it continues."""
        Path(handle.replace(".out.jsonl", ".in.jsonl")).unlink(missing_ok=True)

    def discard(self, file: str) -> None:
        """Keep the file: the user may run it again."""

    def _asked(self, name: str) -> Path:
        return self.folder / f"{name}.in.jsonl"
