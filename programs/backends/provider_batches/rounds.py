"""Assess images through a provider's Batch API. An image is reprocessed each time more of its answers arrive.

While an image is assessed, each request is looked up. If its answer is not stored, the request is collected for a batch
and the image ends as Pending. No other state of an image is kept: it is assessed again, from its file, after its
answers have arrived. Therefore memory and threads do not grow with the number of images, and the manifest has all that
a later process needs if this one is killed.
"""

import hashlib
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import dspy
import httpx
from dspy import lm15

from agenticiqa.programs.backends.in_flight import Slot
from agenticiqa.programs.backends.limits import LimitReached, RunLimits
from agenticiqa.programs.backends.provider_batches.driver import Batches
from agenticiqa.programs.backends.provider_batches.manifest import Request
from agenticiqa.programs.backends.run_context import current, within

if TYPE_CHECKING:
    from agenticiqa.programs.backends.engine import Model

J = TypeVar("J")
T = TypeVar("T")

Assess = Callable[[J], T]
Several = Callable[[Assess[J, T], Iterable[J], Callable[[T], bool]], Iterable[tuple[J, T]]]
Unusable = Callable[[T], Collection[str]]


class Pending(dspy.LMError):
    """Raised when a request has no answer yet. Its image is assessed again when the request is answered."""

    def __init__(self) -> None:
        super().__init__("the request waits for its batch")


@dataclass
class ImageRequests:
    """The requests about one image.

    ``pending`` are unanswered requests, ``given`` the ids of answered ones by stage. ``over_limit`` is whether a limit
    kept a request from being sent.
    """

    batches: Batches
    pending: set[str] = field(default_factory=set)
    given: dict[str, list[str]] = field(default_factory=dict)
    over_limit: bool = False

    def complete(self, model: "Model", request: lm15.Request) -> lm15.Response:
        """Return the answer to a request from a collected batch. Raises Pending until there is one."""
        batches, share, highest = self.batches, model.price.batch if model.price else 1.0, model.highest_usd(request)
        highest = None if highest is None else share * highest
        kept = None

        def from_batch(body: bytes) -> httpx.Response:
            nonlocal kept
            kept = self._stored_answer(model, highest, body)
            return httpx.Response(kept.status or 0, content=kept.content)

        # The limits of the run count a request when it is collected for a batch, not here.
        with model.accounted(RunLimits(), highest, Slot()) as spent:
            try:
                response = model.wire.complete(request, model.token_limit, from_batch)
                return model.recorded(spent, request, response, share)
            finally:
                if kept is not None:
                    batches.settle(kept, 0.0 if (kept.status or 0) >= 400 else spent.usd)
                    ids = self.given.setdefault(current().turn.stage, [])
                    if kept.id in ids:  # the image got this answer before, so it counts as cached
                        spent.calls, spent.input_tokens, spent.output_tokens, spent.usd = 0, 0, 0, None
                    ids.append(kept.id)

    def _stored_answer(self, model: "Model", highest_usd: float | None, body: bytes) -> Request:
        """Return the request with this body and its answer. Raises Pending until there is one."""
        turn = current().turn
        digest = hashlib.sha256(model.name.encode() + b" " + body).hexdigest()[:32]
        id = f"{turn.stage}-{turn.attempt}-{digest}"
        kept = self.batches.answered(id)
        if kept is None:
            if self.batches.collect(model, id, highest_usd, body):
                self.pending.add(id)
            else:
                self.over_limit = True
            raise Pending
        return kept


class BatchRun(Batches):
    """A run that submits its requests to Batch APIs: see ``Batches``."""

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Submit the requests in the block as batches; ``assess_many`` assesses its images in rounds."""
        with within(self.limits, send=ImageRequests(self).complete, assess=self.assess_in_rounds):
            yield

    def assess_in_rounds(
        self,
        assess: Assess[J, T],
        jobs: Iterable[J],
        several: Several[J, T],
        stop_when: Callable[[T], bool],
        unusable: Unusable[T],
    ) -> Generator[tuple[J, T], None, None]:
        """Yield each job with its outcome, as ``assess_many`` does. ``several`` assesses jobs in parallel, in one pass.

        A pass assesses every image with new answers. Each ends with a result, or with further unanswered requests.
        ``unusable`` returns the stages of an outcome whose answers a later run must request again.
        """
        by_job: dict[int, ImageRequests] = {}  # the waiting requests of images that this pass assessed
        stopped = False

        def assess_once(job: J) -> T:
            requests = ImageRequests(self)
            with within(self.limits, send=requests.complete):
                outcome = assess(job)
            if isinstance(outcome, Pending):
                by_job[id(job)] = requests
            elif stages := unusable(outcome):
                self.manifest.forget(id for stage in stages for id in requests.given.get(stage, ()))
            return outcome

        def should_stop(outcome: T) -> bool:
            nonlocal stopped
            stopped = stopped or (not isinstance(outcome, Pending) and stop_when(outcome))
            return stopped

        waiting: list[tuple[J, ImageRequests]] = []
        ready: Iterable[J] = jobs
        while True:
            for job, outcome in several(assess_once, ready, should_stop):
                if isinstance(outcome, Pending):
                    waiting.append((job, by_job.pop(id(job))))
                else:
                    yield job, outcome
            self.flush()
            if not (stopped or waiting):
                self.finish()
            if stopped or not waiting:
                return
            chosen = set[int]()
            while not chosen:
                if self.under_way:
                    self.wait()
                elif all(image_requests.over_limit for _, image_requests in waiting):
                    yield from self._report_limit(waiting[0][0], stop_when)
                    return
                chosen = {id(job) for job, image_requests in waiting if not image_requests.pending & self.under_way}
            ready = [job for job, _ in waiting if id(job) in chosen]
            waiting = [pair for pair in waiting if id(pair[0]) not in chosen]

    def _report_limit(self, job: J, stop_when: Callable[[Any], bool]) -> Iterable[tuple[J, Any]]:
        limits = self.limits.own
        most = f"{limits.max_usd:g} USD" if limits.max_usd is not None else f"{limits.max_calls} calls"
        error = LimitReached(f"the next requests would exceed the limit of {most} ({limits.calls} requests were sent)")
        stop_when(error)
        yield job, error
