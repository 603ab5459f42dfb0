"""DSPy's engine for one model: retries, usage and the limits of the run around every request.

The adapter (``backends.adapter``) requests the form of the answer; DSPy would infer it from the model's name.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

import tenacity
from dspy import lm15

from agenticiqa.configs import Price, StageConfig
from agenticiqa.programs.backends import retries
from agenticiqa.programs.backends.call_log import note_response
from agenticiqa.programs.backends.capabilities import ModelFeatures
from agenticiqa.programs.backends.deferred import Deferring, answered_from, deferring
from agenticiqa.programs.backends.failures import classified, costs_nothing, masked
from agenticiqa.programs.backends.held_images import held_sizes
from agenticiqa.programs.backends.in_flight import InFlight
from agenticiqa.programs.backends.ledger import AskedFor, Limits, current
from agenticiqa.programs.backends.providers import OF_LLAMA_CPP
from agenticiqa.programs.backends.turn import Spent, spend
from agenticiqa.signatures.answers.tokens import level_token_only

CHARACTERS_PER_TOKEN = 2  # low, for an upper bound of the price of a request


class Wire(Protocol):
    """A connection to a model: ``prepared`` makes a request ready, ``complete`` sends it."""

    def prepared(self, request: lm15.Request) -> lm15.Request:
        """The request as ``complete`` takes it, with the held images."""

    def complete(self, request: lm15.Request) -> lm15.Response:
        """Send one request and return its answer. Raises lm15's errors."""


@dataclass
class Model:
    """A model behind a wire, as DSPy's engine (``complete``).

    ``name`` is for people and logs, ``wire_model`` the server's name for the model. ``features`` says how questions ask
    for JSON and log-probabilities. ``formats`` are the media types that the model decodes, ``image_tokens`` the tokens
    of an image of a size (width, height). ``timeout`` is in seconds. ``secrets`` are removed from errors. ``in_flight``
    is shared by the models of one server. ``stage`` is the section of the configuration that it was made from.
    """

    counts_requests: ClassVar[bool] = True  # see ``ledger.OtherModels``

    name: str
    wire_model: str
    wire: Wire
    image_tokens: Callable[[tuple[int, int]], int]
    max_retries: int
    timeout: float
    features: ModelFeatures = field(default_factory=ModelFeatures)
    formats: frozenset[str] = OF_LLAMA_CPP
    price: Price | None = None
    secrets: tuple[str, ...] = field(default=(), repr=False)
    in_flight: InFlight = field(default_factory=InFlight, repr=False)
    stage: StageConfig | None = field(default=None, repr=False)  # its api_base may hold a password
    most_input: int = 0  # tokens of the largest request so far
    most_output: int = 0  # and of the longest answer: some servers do not count reasoning towards max_tokens

    def asked_for(self, *, by_form: bool, reads_tokens: bool) -> AskedFor:
        """What a question uses of the model; not ``by_form``: another adapter decides how JSON is requested."""
        formats = tuple(sorted(mime.removeprefix("image/") for mime in self.formats))
        asked = self.features
        return AskedFor(asked.form if by_form else None, asked.top_logprobs if reads_tokens else 0, formats)

    def complete(self, request: lm15.Request) -> lm15.Response:
        """Send a request, and again as ``retries`` decides. Raises lm15's errors, LimitReached or Halted.

        In a run by batches the answer is taken from there, or Pending is raised.
        """
        run = deferring()
        response = self._sent(request) if run is None else self._by_batch(run, request)
        self.features.accept(request)
        return response

    def _by_batch(self, run: Deferring, request: lm15.Request) -> lm15.Response:
        ready = self.wire.prepared(replace(request, model=self.wire_model))
        share, highest = self.price.batch if self.price else 1.0, self._highest_usd(ready)
        lookup = run.lookup(self, highest := None if highest is None else share * highest)
        with self._accounted(Limits(), 1, highest) as spent, answered_from(lookup):
            try:
                return self._recorded(spent, self.wire.complete(ready), share)
            finally:
                lookup.settle(spent.usd)
                if lookup.repeated:  # the image had this answer before: it counts as cached
                    vars(spent).update(vars(Spent(cut_off=spent.cut_off)))

    def _sent(self, request: lm15.Request) -> lm15.Response:
        ready, limits = self.wire.prepared(replace(request, model=self.wire_model)), current()
        attempts = tenacity.Retrying(
            retry=tenacity.retry_if_exception(retries.worth_another),
            wait=retries.wait,
            stop=retries.stop_after(self.max_retries),
            before_sleep=retries.log_retry(self.name),
            sleep=limits.wait,
            reraise=True,
        )
        with self.in_flight.place(limits) as place:
            for attempt in attempts:
                with attempt, self.in_flight.attempt(place, limits):
                    limits.admit(highest := self._highest_usd(ready), self.in_flight.server)
                    with self._accounted(limits, attempt.retry_state.attempt_number, highest) as spent:
                        return self._recorded(spent, self.wire.complete(ready))
        raise AssertionError("tenacity either answers or raises")

    def close(self) -> None:
        """Connections are closed with the process."""

    def __deepcopy__(self, memo: dict[int, Any]) -> "Model":
        # DSPy copies programs with their models; connections and limits stay shared.
        return self

    @contextmanager
    def _accounted(self, limits: Limits, number: int, highest: float | None) -> Iterator[Spent]:
        # Until the answer tells its price, the request may have cost all that was reserved for it.
        spent, began = Spent(calls=1, retries=int(number > 1), usd=highest), time.perf_counter()
        try:
            yield spent
        except lm15.LM15Error as error:
            real = classified(error, self.timeout, self.secrets)
            if spent.usd is not None and costs_nothing(real):
                spent.usd = 0.0
            if real is error:
                raise
            raise real from error
        finally:
            spent.seconds = time.perf_counter() - began
            limits.settle(highest, spent.usd, self.in_flight.server)
            spend(spent)

    def _recorded(self, spent: Spent, response: lm15.Response, share: float = 1.0) -> lm15.Response:
        response = self._masked(response)
        spent.input_tokens = response.usage.input_tokens or 0
        spent.output_tokens = response.usage.output_tokens or 0
        self.most_input = max(self.most_input, spent.input_tokens)
        self.most_output = max(self.most_output, spent.output_tokens)
        spent.cut_off = response.finish_reason == "length"
        if self.price is not None and spent.input_tokens and spent.output_tokens:
            spent.usd = share * self.price.usd(spent.input_tokens, spent.output_tokens)
        note_response(response)
        refused = [part.text for part in response.message.parts if isinstance(part, lm15.RefusalPart)]
        if refused or response.finish_reason == "content_filter":
            why = " ".join(refused) or "no reason given"
            raise lm15.InvalidRequestError(f"the model refuses to answer: {why}")
        # DSPy keeps all of a response in its cache, but only the level's token is ever read of the many.
        return replace(response, logprobs=level_token_only(response.logprobs or ()) or None, provider_data=None)

    def _masked(self, response: lm15.Response) -> lm15.Response:
        """The response without a secret that the server repeats, before it is read, logged or kept by anyone."""
        parts = [
            replace(part, text=masked(part.text, self.secrets)) if hasattr(part, "text") and part.text else part
            for part in response.message.parts
        ]
        message, model = replace(response.message, parts=tuple(parts)), masked(response.model, self.secrets)
        return replace(response, id=response.id and masked(response.id, self.secrets), model=model, message=message)

    def _highest_usd(self, request: lm15.Request) -> float | None:
        if self.price is None:
            return None
        parts = [part for message in request.messages for part in message.parts]
        characters = sum(len(part.text) for part in parts if isinstance(part, lm15.TextPart))
        characters += len(str(request.system or "")) + len(str(request.config.response_format or ""))
        tokens = characters // CHARACTERS_PER_TOKEN + sum(self.image_tokens(size) for size in held_sizes())
        return self.price.usd(max(tokens, self.most_input), max(request.config.max_tokens or 0, self.most_output))
