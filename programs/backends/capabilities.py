"""Decide how to request JSON, log-probabilities and a limit of tokens: by the table of providers, then by refusals.

No test request is sent. If the error of a refused request names one of these features, the request is repeated with
less of it, or with the other name of the parameter. The process remembers what the server accepts, and all later
requests use it.
"""

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

import dspy
from dspy import lm15

from agenticiqa.programs.backends.json_schema import without_keywords
from agenticiqa.programs.backends.providers import Form, Provider, TokenLimit
from agenticiqa.programs.backends.usage import RequestFeatures
from agenticiqa.programs.events import event

logger = logging.getLogger(__name__)

FEWER_LOGPROBS = 5  # alternatives per token, the maximum on some servers
REFUSED = frozenset({400, 403, 422})  # 403: OpenAI, "You are not allowed to request logprobs from this model"
OTHER: dict[str | None, TokenLimit] = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
# The words of a refused parameter; a refused value, such as a limit that is too large, has others.
REFUSES_NAME = re.compile(
    r"forbidden|not (supported|permitted|allowed)|un(supported|recognized|known|expected)", re.IGNORECASE
)
NAMES_LOGPROBS = re.compile(r"log.?prob", re.IGNORECASE)
NAMES_FORM = re.compile(
    r"(response|output)\w{0,20}.?format|json.?(schema|object|mode)|schema|grammar|mime.?type|structured.?output",
    re.IGNORECASE,
)


def breaks_schema(text: str, schema: Mapping[str, Any]) -> bool:
    """Return whether the text of an answer is not a JSON value that a schema allows."""
    import jsonschema  # a late import: only after a rejected answer

    try:
        return not jsonschema.Draft202012Validator(schema).is_valid(json.loads(text))
    except (ValueError, RecursionError):
        return True


@dataclass
class Known:
    """The features of one backend that this process has found out.

    ``fewer`` has the values to request instead of refused ones, by the name of the field of ``RequestFeatures``.
    ``accepted`` has the values of ``RequestFeatures`` that the server has answered. ``ignores_schema`` is whether an
    answer broke the schema that it was requested with, ``reasons`` whether an answer came with hidden reasoning,
    ``lacks_tokens`` whether an answer had no log-probabilities although they were requested.
    """

    fewer: dict[str, Any] = field(default_factory=dict)
    accepted: set[str | int | None] = field(default_factory=set)
    ignores_schema: bool = False
    reasons: bool = False
    lacks_tokens: bool = False


_known: dict[str, Known] = {}


@dataclass(frozen=True)
class ModelFeatures:
    """The features that questions to one backend request. ``backend`` is its name (``connect.name_of``).

    ``structured_outputs`` and ``logprobs`` are as in the configuration. "auto" means the values of ``provider``,
    without those that the server refused.
    """

    structured_outputs: Literal["auto", "json_schema", "json_object", "off"] = "json_schema"
    logprobs: Literal["auto"] | bool = False
    provider: Provider = field(default_factory=Provider)
    backend: str = ""

    @property
    def first_form(self) -> Form:
        """The form in which JSON is requested before any is refused."""
        return self._forms[0] if self.structured_outputs == "auto" else self.structured_outputs

    @property
    def first_logprobs(self) -> int:
        """The number of alternatives per token requested before any are refused; 0 for none."""
        return self.provider.logprobs if self.logprobs else 0

    @property
    def form(self) -> Form:
        """The form in which JSON is requested now."""
        fewer: Form = self._of_backend.fewer.get("form", self.first_form)
        return fewer if self.structured_outputs == "auto" else self.first_form

    @property
    def top_logprobs(self) -> int:
        """The number of alternatives per token requested now; 0 for none."""
        fewer: int = self._of_backend.fewer.get("logprobs", self.first_logprobs)
        return fewer if self.logprobs == "auto" else self.first_logprobs

    @property
    def token_limit(self) -> TokenLimit:
        """The parameter that limits the tokens of an answer now."""
        limit: TokenLimit = self._of_backend.fewer.get("token_limit", self.provider.token_limit)
        return limit

    def without_refused(self, requested: RequestFeatures, error: dspy.LMError) -> dict[str, Any] | None:
        """Return a change to the features that avoids what the server refused; ``None`` if the error names no feature.

        A feature that the server has accepted before is not the cause and is kept. The limit of tokens has two names,
        so the provider's own is replaced and the other one is not, also if another question has replaced it already.
        """
        form, logprobs, limit = requested.form or "off", requested.logprobs or 0, requested.token_limit
        in_doubt, said = {form, logprobs, limit} - {"off", 0} - self._of_backend.accepted, str(error)
        if error.status not in REFUSED:
            return None
        is_first_name = limit in in_doubt and limit == self.provider.token_limit
        if is_first_name and re.search(rf"\b{limit}\b", said) and REFUSES_NAME.search(said):
            return {"token_limit": OTHER[limit]}
        if self.logprobs == "auto" and logprobs in in_doubt and NAMES_LOGPROBS.search(said):
            return {"logprobs": FEWER_LOGPROBS if logprobs > FEWER_LOGPROBS else 0}
        if self.structured_outputs == "auto" and form in in_doubt and NAMES_FORM.search(said):
            return {"form": dict(pairwise(self._forms))[form]}
        return None

    def accept(self, request: lm15.Request, token_limit: TokenLimit) -> None:
        """Record that the server accepts the features of this request."""
        form = (request.config.response_format or {}).get("type", "off")
        self._of_backend.accepted.update((form, request.config.logprobs or 0, token_limit))

    def keep(self, fewer: Mapping[str, Any]) -> None:
        """Use these values in later requests instead of refused ones; log a warning the first time."""
        if not fewer.items() <= self._of_backend.fewer.items():
            self._of_backend.fewer.update(fewer)
            fields = event("feature_refused", backend=self.backend, asked_for=dict(fewer))
            changes = " and ".join(f"{name} {value}" for name, value in fewer.items())
            logger.warning("%s refused a request parameter; later requests use %s", self.backend, changes, extra=fields)

    @property
    def reasons(self) -> bool:
        """Whether the model was seen to reason before its answer, which takes tokens that no schema bounds."""
        return self._of_backend.reasons

    def note_reasoning(self) -> None:
        """Record that an answer came with hidden reasoning."""
        self._of_backend.reasons = True

    @property
    def lacks_tokens(self) -> bool:
        """Whether the server was seen to leave out the log-probabilities that were requested."""
        return self._of_backend.lacks_tokens

    def note_missing_tokens(self) -> None:
        """Record that an answer had no log-probabilities; log it the first time."""
        if not self.lacks_tokens:
            self._of_backend.lacks_tokens = True
            logger.info(
                "%s returns no log-probabilities; the model is asked to write the probabilities of the levels",
                self.backend,
                extra=event("tokens_missing", backend=self.backend),
            )

    def ignored(self, schema: Mapping[str, Any], text: str) -> bool:
        """Return whether a complete answer breaks the schema of its request; log a warning the first time.

        A server that enforces schemas cannot give such an answer.
        """
        if not breaks_schema(text, without_keywords(dict(schema), self.provider.refused_keywords)):
            return False
        if not self._of_backend.ignores_schema:
            self._of_backend.ignores_schema = True
            logger.warning(
                "%s ignores the JSON schema of requests, so more of its answers may be rejected",
                self.backend,
                extra=event("schema_ignored", backend=self.backend),
            )
        return True

    @property
    def _forms(self) -> tuple[Form, ...]:
        return (*self.provider.forms, "off")

    @property
    def _of_backend(self) -> Known:
        return _known.setdefault(self.backend, Known())
