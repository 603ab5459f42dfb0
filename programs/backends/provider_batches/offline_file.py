"""Write files of requests for ``vllm run-batch``, and read the files of answers that it writes.

https://docs.vllm.ai/en/latest/examples/offline_inference/openai_batch
"""

import os
from collections.abc import Iterator
from pathlib import Path

from agenticiqa.programs.backends.provider_batches.openai_files import answers_in
from agenticiqa.programs.backends.provider_batches.services import BatchAnswer, Progress, Service, ServiceError
from agenticiqa.programs.backends.wire import Server


class OfflineFile(Service):
    """vLLM's offline batches as a ``Service``; the handle is the path of the file that vLLM writes."""

    most_requests, most_bytes = 1_000_000, 2_000_000_000

    def __init__(self, server: Server, folder: Path) -> None:
        super().__init__(server, folder)
        self.sizes: dict[str, int] = {}  # of the files of answers, at the last poll

    def upload(self, path: Path, name: str) -> str:
        """Move the file to the path that the user gives to vLLM."""
        asked = self._asked(name)
        os.replace(path, asked)
        return str(asked)

    def uploaded(self, name: str) -> str | None:
        """Return the file if it exists."""
        asked = self._asked(name)
        return str(asked) if asked.exists() else None

    def create(self, file: str, name: str) -> str:
        """Return the path of the answers; nothing is started, because the user runs vLLM."""
        return str((self.folder / f"{name}.out.jsonl").resolve())

    def find(self, name: str) -> str | None:
        """Return ``None``, because ``create`` may be repeated."""
        return None

    def progress(self, handle: str, requests: int) -> Progress:
        """Return that the batch is over once vLLM's file has all lines or stops growing."""
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
        """Remove the file of requests; a vLLM process that is already reading it continues."""
        Path(handle.replace(".out.jsonl", ".in.jsonl")).unlink(missing_ok=True)

    def discard(self, file: str) -> None:
        """Keep the file, because the user may run it again."""

    def _asked(self, name: str) -> Path:
        return self.folder / f"{name}.in.jsonl"
