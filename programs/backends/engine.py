"""Implement DSPy's engine for one model: every request has retries, usage records and the limits of the run.

The DSPy adapter (``backends.dspy_adapter``) requests the form of the answer; DSPy would infer it from the model's name.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from dspy import lm15

from agenticiqa.configs import Price, StageConfig
from agenticiqa.programs.backends.call_log import note_response
from agenticiqa.programs.backends.capabilities import ModelFeatures, accepted_in
from agenticiqa.programs.backends.context import full_context
from agenticiqa.programs.backends.failures import classified, costs_nothing, masked
from agenticiqa.programs.backends.held_images import held_sizes
from agenticiqa.programs.backends.in_flight import InFlight, Slot
from agenticiqa.programs.backends.limits import RunLimits
from agenticiqa.programs.backends.models import image_tokens
from agenticiqa.programs.backends.providers import TokenLimit
from agenticiqa.programs.backends.run_context import current, spend
from agenticiqa.programs.backends.usage import Spent
from agenticiqa.signatures.answers.tokens import gives_levels, level_token_only

if TYPE_CHECKING:
    from agenticiqa.programs.backends.wire import Server

CHARACTERS_PER_TOKEN = 2  # characters; the number is low, for an upper bound of the price of a request


@dataclass
class Model:
    """A model on a server, as an engine of DSPy (``complete``).

    ``name`` is shown in logs and messages. ``stage`` is the model's section of the configuration, ``wire`` its server.
    ``features`` defines how JSON and log-probabilities are requested. ``in_flight`` is shared by the models of one
    server.
    """

    counts_requests: ClassVar[bool] = True  # see ``run_context.OtherModels``

    name: str
    wire: "Server"
    stage: StageConfig = field(repr=False)  # its api_base may hold a password
    features: ModelFeatures = field(default_factory=ModelFeatures)
    price: Price | None = None
    in_flight: InFlight = field(default_factory=InFlight, repr=False)
    most_input: int = 0  # tokens of the largest request so far
    most_output: int = 0  # tokens of the longest answer; some servers do not count reasoning towards max_tokens

    def complete(self, request: lm15.Request) -> lm15.Response:
        """Send a request, with retries, and return the response. Raises lm15's errors, LimitReached or Halted.

        If the run has its own way to send requests (``RunContext.send``), the response comes from it.
        """
        ready, run = self.wire.prepared(replace(request, model=self.wire.model)), current()
        response = self._sent(ready, run.limits) if run.send is None else run.send(self, ready)
        self.features.accept(*accepted_in(ready), self.token_limit)
        return response

    def _sent(self, request: lm15.Request, limits: RunLimits) -> lm15.Response:
        """Send a request to the server, with retries, and return the response."""

        def once(slot: Slot) -> lm15.Response:
            highest = self.highest_usd(request)
            limits.admit(highest, self.in_flight.server)
            with self.accounted(limits, highest, slot) as spent:
                response = self.wire.complete(request, self.token_limit)
                self.in_flight.answered()
                return self.recorded(spent, request, response)

        return self.in_flight.send(once, limits, most_retries=self.stage.max_retries, model=self.name)

    @property
    def token_limit(self) -> TokenLimit:
        """The parameter that limits the tokens of an answer to the current question."""
        return current().turn.features.token_limit or self.features.token_limit

    def close(self) -> None:
        """Do nothing: connections are closed with the process."""

    def __deepcopy__(self, memo: dict[int, Any]) -> "Model":
        # DSPy copies programs with their models; connections and limits stay shared.
        return self

    @contextmanager
    def accounted(self, limits: RunLimits, highest: float | None, slot: Slot) -> Iterator[Spent]:
        """Record the request of a slot's attempt, with its highest possible price, and classify its error.

        Unless the answer gives the real price, the request counts with the highest possible price.
        """
        spent, began = Spent(calls=1, retries=int(slot.attempt > 1), usd=highest), time.perf_counter()
        try:
            yield spent
        except lm15.LM15Error as error:
            context = self.wire.provider.context
            real = classified(error, self.wire.timeout, self.wire.secrets, others=slot.others, context=context)
            if spent.usd is not None and costs_nothing(real):
                spent.usd = 0.0
            if real is error:
                raise
            raise real from error
        finally:
            spent.seconds = time.perf_counter() - began
            limits.settle(highest, spent.usd, self.in_flight.server)
            spend(spent)

    def recorded(
        self, spent: Spent, request: lm15.Request, response: lm15.Response, share: float = 1.0
    ) -> lm15.Response:
        """Return the response for DSPy, and record its usage in ``spent`` at this share of the price.

        Raises ``lm15.InvalidRequestError`` if the model refused to answer, and ``lm15.ContextLengthError`` if the
        answer was cut off by a full context. A larger ``max_tokens`` and a further attempt, with a longer prompt, would
        not help. An answer with the probabilities of the levels in its tokens is returned.
        """
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
            raise lm15.InvalidRequestError(f"the model refused to answer: {why}")
        # DSPy keeps the whole response in its cache, but only the token of the level is used later.
        logprobs = response.logprobs or ()
        spelled = "".join(logprob.token for logprob in logprobs)
        if masked(spelled, self.wire.secrets) != spelled:  # a secret in several tokens
            logprobs = ()
        logprobs = level_token_only(logprobs)
        full = full_context(self.wire, request, response)
        in_schema = (request.config.response_format or {}).get("type") == "json_schema"
        if full and not gives_levels(_in_dspy_form(logprobs), in_schema):
            raise lm15.ContextLengthError(full)
        return replace(response, logprobs=logprobs or None, provider_data=None)

    def highest_usd(self, request: lm15.Request) -> float | None:
        """Return the most that a request can cost; ``None`` without a price."""
        if self.price is None:
            return None
        parts = [part for message in request.messages for part in message.parts]
        characters = sum(len(part.text) for part in parts if isinstance(part, lm15.TextPart))
        characters += len(str(request.system or "")) + len(str(request.config.response_format or ""))
        tokens = characters // CHARACTERS_PER_TOKEN
        tokens += sum(image_tokens(self.stage.backend, size) for size in held_sizes())
        return self.price.usd(max(tokens, self.most_input), max(request.config.max_tokens or 0, self.most_output))


def _in_dspy_form(logprobs: Sequence[lm15.TokenLogprob]) -> dict[str, Any]:
    tokens = [{"token": each.token, "logprob": each.logprob, "top_logprobs": each.top} for each in logprobs]
    return {"content": tokens}
