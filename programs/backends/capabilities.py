"""Decide how to request JSON and log-probabilities: by the table of providers, without features the server refused.

No test request is sent. If the error of a refused request names one of these features, the request is repeated with
less of it. The process remembers what the server accepts, and all later requests use it.
"""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

import dspy
from dspy import lm15

from agenticiqa.programs.backends.providers import Form
from agenticiqa.programs.events import event

logger = logging.getLogger(__name__)

FEWER_LOGPROBS = 5  # the maximum on some servers
REFUSED = frozenset({400, 403, 422})  # 403: OpenAI, "You are not allowed to request logprobs from this model"
NAMES_LOGPROBS = re.compile(r"log.?prob", re.IGNORECASE)
NAMES_FORM = re.compile(
    r"(response|output)\w*.?format|json.?(schema|object|mode)|schema|grammar|mime.?type|structured.?output",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class RequestFeatures:
    """The features of a model that a question requests: the form of JSON, log-probabilities, image formats.

    ``form`` is how JSON is requested (json_schema, json_object or off), ``logprobs`` the number of alternatives per
    token (0: none), ``image_formats`` the formats that are sent unconverted. All are ``None`` for a model that the
    caller gave to DSPy; ``form`` is also ``None`` with an adapter of the caller.
    """

    form: Form | None = None
    logprobs: int | None = None
    image_formats: tuple[str, ...] | None = None


@dataclass
class Known:
    """The features of one backend that this process has found out.

    ``fewer`` has the values to request instead of refused ones, by the name of the field of ``RequestFeatures``.
    ``accepted`` has the forms and the numbers of log-probabilities that the server has answered.
    """

    fewer: dict[str, Any] = field(default_factory=dict)
    accepted: set[str | int] = field(default_factory=set)


_known: dict[str, Known] = {}


@dataclass(frozen=True)
class ModelFeatures:
    """The features that questions to one backend request. ``backend`` is its name (``connect.name_of``).

    ``structured_outputs`` and ``logprobs`` are as in the configuration. "auto" means the values of the table: ``forms``
    of JSON (the best first) and ``most_logprobs`` alternatives per token, without those that the server refused.
    """

    structured_outputs: Literal["auto", "json_schema", "json_object", "off"] = "json_schema"
    logprobs: Literal["auto"] | bool = False
    forms: tuple[Form, ...] = ("json_schema", "json_object")
    most_logprobs: int = 0
    backend: str = ""

    @property
    def first_form(self) -> Form:
        """The form in which JSON is requested before any is refused."""
        return self._forms[0] if self.structured_outputs == "auto" else self.structured_outputs

    @property
    def first_logprobs(self) -> int:
        """The number of alternatives per token requested before any are refused; 0 for none."""
        return self.most_logprobs if self.logprobs else 0

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

    def without_refused(self, asked: RequestFeatures, error: dspy.LMError) -> dict[str, Any] | None:
        """Return a change to ``asked`` that avoids what the server refused; ``None`` if the error names no feature.

        A feature that the server has accepted before is not the cause and is kept.
        """
        form, logprobs, said = asked.form or "off", asked.logprobs or 0, str(error)
        in_doubt = {form, logprobs} - {"off", 0} - self._of_backend.accepted
        if error.status not in REFUSED:
            return None
        if self.logprobs == "auto" and logprobs in in_doubt and NAMES_LOGPROBS.search(said):
            return {"logprobs": FEWER_LOGPROBS if logprobs > FEWER_LOGPROBS else 0}
        if self.structured_outputs == "auto" and form in in_doubt and NAMES_FORM.search(said):
            return {"form": dict(pairwise(self._forms))[form]}
        return None

    def accept(self, request: lm15.Request) -> None:
        """Record that the server accepts the features of this request."""
        form = (request.config.response_format or {}).get("type", "off")
        self._of_backend.accepted.update((form, request.config.logprobs or 0))

    def keep(self, fewer: Mapping[str, Any]) -> None:
        """Use these values in later requests instead of refused ones; log a warning the first time."""
        if not fewer.items() <= self._of_backend.fewer.items():
            self._of_backend.fewer.update(fewer)
            fields = event("feature_refused", backend=self.backend, asked_for=dict(fewer))
            changes = " and ".join(f"{name} {value}" for name, value in fewer.items())
            logger.warning("%s refused a request parameter; later requests use %s", self.backend, changes, extra=fields)

    @property
    def _forms(self) -> tuple[Form, ...]:
        return (*self.forms, "off")

    @property
    def _of_backend(self) -> Known:
        return _known.setdefault(self.backend, Known())
