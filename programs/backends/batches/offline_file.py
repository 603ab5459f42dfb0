"""vLLM's offline batches: a file of requests to be run by ``vllm run-batch``, and the file that it writes.

https://docs.vllm.ai/en/latest/examples/offline_inference/openai_batch
"""

import os
from collections.abc import Iterator
from pathlib import Path

from agenticiqa.programs.backends.batches.openai_files import answer_in, framed
from agenticiqa.programs.backends.batches.services import BatchAnswer, Progress, Service, ServiceError, json_lines
from agenticiqa.programs.backends.wire import Server


class OfflineFile(Service):
    """See ``services.Service``; the handle is the path of the file that vLLM is to write."""

    most_requests, most_bytes = 1_000_000, 2_000_000_000
    at_once = False
    frame = staticmethod(framed)

    def __init__(self, server: Server, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.sizes: dict[str, int] = {}  # of the files that are written, when they were last looked at

    def create(self, path: Path, file: str | None, name: str) -> str:
        """Put the file where vLLM is told to read it."""
        asked = self.folder / f"{name}.in.jsonl"
        if path.exists():
            os.replace(path, asked)
        return str((self.folder / f"{name}.out.jsonl").resolve())

    def find(self, name: str, requests: frozenset[str], newest: str | None, known: frozenset[str]) -> str | None:
        """It is there when its file is."""
        asked = self.folder / f"{name}.in.jsonl"
        return str((self.folder / f"{name}.out.jsonl").resolve()) if asked.exists() else None

    def progress(self, handle: str, requests: int) -> Progress:
        """It is over when there is a file, which vLLM writes at its end, and it has all lines or grows no more."""
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
        """What vLLM wrote."""
        with open(handle, encoding="utf-8", errors="replace") as file:
            yield from map(answer_in, json_lines(iter(file)))

    def cancel(self, handle: str) -> None:
        """Take the file away; one that vLLM is reading goes on."""
        Path(handle.replace(".out.jsonl", ".in.jsonl")).unlink(missing_ok=True)
