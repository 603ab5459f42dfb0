"""Collect requests into batches, send them to their providers, poll them, and store their answers."""

import json
import logging
import os
import secrets
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock
from typing import IO, TYPE_CHECKING

from agenticiqa.configs import StageConfig
from agenticiqa.programs.backends.addresses import without_secrets
from agenticiqa.programs.backends.connect import server_of
from agenticiqa.programs.backends.held_images import with_held_images
from agenticiqa.programs.backends.limits import LimitReached, RunLimits
from agenticiqa.programs.backends.provider_batches.manifest import ALL, Batch, Manifest, Request
from agenticiqa.programs.backends.provider_batches.openai_files import BatchAnswer, OpenAIFiles, ServiceError, framed
from agenticiqa.programs.errors import BackendError, ImageError

if TYPE_CHECKING:
    from agenticiqa.programs.backends.engine import Model

logger = logging.getLogger(__name__)

FIRST_POLL, LONGEST_POLL = 1.0, 60.0  # seconds between two polls of the batches under way
FAILURES_IN_A_ROW = 20  # failed polls of a provider after which the run ends
MOST_TRIES = 4  # times that a request is sent if it gets no answer or a temporary error
DOWNLOADS = 2  # times that results are downloaded if a line cannot be parsed
AT_A_TIME = 500  # answers that are stored in one transaction
UNANSWERED = json.dumps({"error": {"message": f"no answer in {MOST_TRIES} batches"}}).encode()


@dataclass
class Spool:
    """A file of requests that is being written; ``requests`` has the number of tries and highest price of each."""

    stage: StageConfig
    path: Path
    file: IO[bytes]
    requests: dict[str, tuple[int, float | None]] = field(default_factory=dict)
    size: int = 0


class Batches:
    """The batches of a run; ``manifest`` is their state on disk.

    ``limits`` counts all requests of the manifest; those under way count with their highest price. ``report`` gets one
    line about each event. Raises UserError while another process uses the folder.
    """

    def __init__(self, folder: Path, limits: RunLimits, report: Callable[[str], None]) -> None:
        self.folder, self.limits, self.report = folder, limits, report
        self.manifest = Manifest(folder)
        self._lock, self._sending = RLock(), RLock()
        self._spools: dict[str, Spool] = {}
        self._services: dict[tuple[str, str | None], OpenAIFiles] = {}
        self._failures, self._poll_seconds = 0, FIRST_POLL
        self._broken: Counter[int] = Counter()  # downloads of each batch with a line that cannot be parsed
        self.manifest.forget_errors()
        self._delete_unused_files()
        calls, usd, self._unsettled = self.manifest.spent()
        limits.go_on(calls, usd, self._unsettled.values())
        self.under_way = set(self.manifest.waiting())

    def close(self) -> None:
        """Close the manifest, and report the batches that a later run has to collect."""
        with self._lock:
            for spool in self._spools.values():
                spool.file.close()
                spool.path.unlink(missing_ok=True)
            if left := len(self.manifest.batches()):
                self.report(f"{counted(left, 'batch', 'batches')} under way; run the command again with --resume")
            self.manifest.close()

    # Called while an image is assessed, in any thread.

    def answered(self, id: str) -> Request | None:
        """Return a request with its answer; ``None`` until it is answered."""
        kept = self.manifest.request(id)
        return kept if kept is not None and kept.status is not None else None

    def collect(self, model: "Model", id: str, highest_usd: float | None, body: bytes) -> bool:
        """Add a request to the next batch, unless it is in one already; return false if it would exceed the limits."""
        full = None
        with self._lock:
            self._service(model.stage)  # the one with the secrets of its address, which the manifest lacks
            if id not in self.under_way:
                if not self._fits_limits(highest_usd):
                    return False
                kept = self.manifest.request(id)
                full = self._collect(model, id, (kept.tries if kept else 0) + 1, highest_usd, body)
        if full is not None:
            self._send_or_report(full)
        return True

    def settle(self, kept: Request, usd: float | None) -> None:
        """Record the cost of an answer, once."""
        with self._lock:
            if kept.id in self._unsettled:
                self.limits.settle(self._unsettled.pop(kept.id), usd)
                self.manifest.settle(kept.id, usd)

    def _fits_limits(self, highest: float | None) -> bool:
        try:
            return self.limits.admit_now(highest)
        except LimitReached:  # no requests are under way
            return False

    def _collect(self, model: "Model", id: str, tries: int, highest: float | None, body: bytes) -> int | None:
        """Add a request to the file of its model; return the number of the batch of a file that was full, if any."""
        stage, service = model.stage, self._service(model.stage)
        before, after = framed(id)
        pieces = [before, *with_held_images(body), after, b"\n"]
        size = sum(map(len, pieces))
        if size > service.most_bytes:
            self.limits.settle(highest, 0.0)
            raise ImageError(
                f"the request has {size / 1e6:.1f} MB, but a batch takes at most {service.most_bytes / 1e6:.0f} MB: "
                "send a smaller copy of the image with --max-side"
            )
        spool, full = self._spools.get(model.name), None
        if spool and (len(spool.requests) >= service.most_requests or spool.size + size > service.most_bytes):
            full, spool = self._close_file(model.name), None
        if spool is None:
            path = self.folder / f"{secrets.token_hex(8)}.part"
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            spool = self._spools[model.name] = Spool(stage, path, os.fdopen(file, "wb"))
        spool.file.writelines(pieces)
        spool.requests[id] = tries, highest
        spool.size += size
        self.under_way.add(id)
        self._unsettled[id] = highest
        return full

    def _close_file(self, name: str) -> int:
        """Close the file of a model, record that it is to be sent, and return the number of its batch."""
        spool = self._spools.pop(name)
        with spool.file as file:
            file.flush()
            os.fsync(file.fileno())
        stage = spool.stage
        spool.path.rename(spool.path.with_suffix(".jsonl"))
        batch = {
            "name": spool.path.stem,
            "backend": stage.backend,
            "api_base": stage.api_base and without_secrets(stage.api_base),
            "key_env": stage.api_key_env,
            "state": "intended",
            "requests": len(spool.requests),
            "bytes": spool.size,
        }
        return self.manifest.intend(batch, spool.requests)

    # Called between images, in one thread.

    def flush(self) -> None:
        """Send the collected requests."""
        with self._lock:
            numbers = [self._close_file(name) for name in list(self._spools)]
        for n in numbers:
            self._send_or_report(n)

    def wait(self) -> None:
        """Wait until a batch is collected. Raises BackendError if that cannot happen."""
        while not self.look():
            self.limits.halted.wait(self._poll_seconds)
            self._poll_seconds = min(2 * self._poll_seconds, LONGEST_POLL)
        self._poll_seconds = FIRST_POLL

    def finish(self) -> None:
        """Close batches whose answers are stored but that a killed process left open."""
        for batch in self.manifest.batches(("ended",)):
            self._poll_batch(batch)

    def look(self) -> bool:
        """Poll every batch once; return whether answers were collected."""
        collected = [self._poll_batch(batch) for batch in self.manifest.batches()]
        return any(collected)

    def cancel(self, numbers: Collection[int]) -> None:
        """Cancel the batches with these numbers, by default all; drop batches that were not sent yet."""
        for batch in self.manifest.batches():
            if not numbers or batch.n in numbers:
                if batch.handle is None:
                    self._resubmit(batch, "cancelled before it was sent", counted=False)
                else:
                    try:
                        self._service_at(batch).cancel(batch.handle)
                    except ServiceError as error:  # an ended batch, for example
                        self.report(f"batch {batch.n}: {error}")

    def _poll_batch(self, batch: Batch) -> bool:
        try:
            if batch.state in ("intended", "uploaded"):
                self._send(batch.n, again=True)
            elif batch.state == "sent":
                batch = self._state_of(batch)
            if batch.state == "ended":
                self._store_answers(batch)
            self._failures = 0
            return self._batch(batch.n).state == "collected"
        except ServiceError as error:
            self._handle_error(batch.n, error)
            return False

    def _state_of(self, batch: Batch) -> Batch:
        """Return the batch as its provider reports it."""
        assert batch.handle is not None
        try:
            progress = self._service_at(batch).progress(batch.handle)
        except ServiceError as error:
            if error.status != 404:
                raise
            self._resubmit(batch, "the provider no longer has the batch", counted=True)
            return self._batch(batch.n)
        if progress.full and progress.refused:
            self.manifest.update(batch.n, state="uploaded", handle=None, name=secrets.token_hex(8))
            raise ServiceError(f"not accepted yet, because too many requests are under way ({progress.message})", 429)
        if progress.refused:
            self._resubmit(batch, progress.message, counted=False)
            raise BackendError(f"batch {batch.n} was refused: {progress.message}")
        if progress.is_over:
            self.manifest.update(batch.n, state="ended", message=progress.message)
        return self._batch(batch.n)

    def _store_answers(self, batch: Batch) -> None:
        """Store the answers; requests without one are sent again with the next batch."""
        assert batch.handle is not None
        service, waiting = self._service_at(batch), self.manifest.waiting(batch.n)
        broken, unexpected, faults = 0, 0, dict[str, BatchAnswer]()
        answers: list[tuple[str, int, bytes]] = []
        for answer in service.results(batch.handle):
            if not answer.id:
                broken += 1
            elif answer.id not in waiting:
                unexpected += 1
            elif answer.is_fault:
                faults.setdefault(answer.id, answer)
            else:
                answers.append((answer.id, answer.status, answer.body))
            if len(answers) == AT_A_TIME:
                self.manifest.keep(batch.n, answers)
                answers = []
        self.manifest.keep(batch.n, answers)
        if broken and self._broken[batch.n] + 1 < DOWNLOADS:
            self._broken[batch.n] += 1
            raise ServiceError(f"{counted(broken, 'line')} of its results cannot be read")
        left = self.manifest.waiting(batch.n)
        last = {id: faults.get(id, BatchAnswer(id)) for id, tries in left.items() if tries >= MOST_TRIES}
        self.manifest.keep(
            batch.n,
            ((id, answer.status or 503, answer.body if answer.status else UNANSWERED) for id, answer in last.items()),
        )
        self._discard(batch)  # the first step, which is repeated if the process is killed before the second
        self._close(batch, batch.message, counted=True)
        report = f"batch {batch.n}: {batch.requests - len(left)} of {batch.requests} answered"
        if len(left) > len(last):
            report += f", {counted(len(left) - len(last), 'request')} sent again ({batch.message})"
        if last:
            report += f", {counted(len(last), 'request')} failed {MOST_TRIES} times"
        if unexpected:
            report += f", {unexpected} unexpected or repeated answers ignored"
        self.report(report)

    def _resubmit(self, batch: Batch, why: str, *, counted: bool) -> None:
        """Move the requests of this batch to the next one."""
        self._close(batch, why, counted=counted)
        self._discard(batch)
        self.report(f"batch {batch.n}: {why}; its requests go into the next batch")

    def _close(self, batch: Batch, why: str, *, counted: bool) -> None:
        self.manifest.update(batch.n, message=why)
        with self._lock:
            ids = set(self.manifest.waiting(batch.n))
            self.manifest.release(batch.n, counted=counted)
            for id in ids:
                self.limits.settle(self._unsettled.pop(id, None), 0.0)
            self.under_way = set(self.manifest.waiting()).union(*(spool.requests for spool in self._spools.values()))
        self.manifest.update(batch.n, state="collected")

    def _discard(self, batch: Batch) -> None:
        """Delete the batch's file of requests at the provider, because it contains the images."""
        with suppress(ServiceError):
            service = self._service_at(batch)
            if file := batch.file or service.uploaded(batch.name):
                service.discard(file)

    def _send_or_report(self, n: int) -> None:
        try:
            self._send(n)
        except ServiceError as error:
            self._handle_error(n, error)

    def _send(self, n: int, again: bool = False) -> None:
        """Send an intended batch, unless an earlier attempt already uploaded its file or created it."""
        with self._sending:
            batch = self._batch(n)
            if batch.state not in ("intended", "uploaded"):
                return
            service, path = self._service_at(batch), self.folder / f"{batch.name}.jsonl"
            file, handle = batch.file, None
            if file is None:
                file = service.uploaded(batch.name) if again else None
                if file is None and not path.exists():
                    self._resubmit(batch, "its file of requests was deleted", counted=False)
                    return
                file = file or service.upload(path, batch.name)
                self.manifest.update(n, state="uploaded", file=file)
            else:
                handle = service.find(batch.name)
            handle = handle or service.create(file, batch.name)
            self.manifest.update(n, state="sent", handle=handle)
            path.unlink(missing_ok=True)
        size = f"{counted(batch.requests, 'request')}, {batch.bytes / 1e6:.1f} MB"
        self.report(f"batch {n}: {size}, sent to {batch.backend} ({handle})")

    def _handle_error(self, n: int, error: ServiceError) -> None:
        if not error.is_temporary:
            raise BackendError(f"batch {n}: {error}") from error
        self._failures += 1
        if self._failures >= FAILURES_IN_A_ROW:
            raise BackendError(f"batch {n}: {error}; run the command again with --resume") from error
        logger.warning("batch %d: %s; trying again", n, error)

    def _batch(self, n: int) -> Batch:
        return next(batch for batch in self.manifest.batches(ALL) if batch.n == n)

    def _service_at(self, batch: Batch) -> OpenAIFiles:
        return self._service(StageConfig(backend=batch.backend, api_base=batch.api_base, api_key_env=batch.key_env))

    def _service(self, stage: StageConfig) -> OpenAIFiles:
        key = stage.backend, stage.api_base and without_secrets(stage.api_base)
        with self._lock:
            if key not in self._services:
                self._services[key] = OpenAIFiles(server_of(stage))
            return self._services[key]

    def _delete_unused_files(self) -> None:
        """Delete files of requests that no batch of the manifest uses."""
        used = {f"{batch.name}.jsonl" for batch in self.manifest.batches(("intended", "uploaded"))}
        for path in (*self.folder.glob("*.part"), *self.folder.glob("*[0-9a-f].jsonl")):
            if path.name not in used:
                path.unlink(missing_ok=True)


def counted(number: int, one: str, more: str = "") -> str:
    """Return a number with its noun."""
    return f"{number:,} {one if number == 1 else more or one + 's'}"
