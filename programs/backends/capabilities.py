"""Decide how to request JSON, log-probabilities, sampling and images: by the table of providers, then by refusals.

No test request is sent. If the error of a refused request names one of these features, the request is repeated with
less of it, with the other name of the parameter, or with its images as PNG. The process remembers what the server
accepts, and all later requests use it.
"""

import json
import logging
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

import dspy
from dspy import lm15

from agenticiqa.programs.backends.json_schema import without_keywords
from agenticiqa.programs.backends.providers import JPEG_PNG, Form, Provider, TokenLimit, names_of
from agenticiqa.programs.backends.usage import RequestFeatures
from agenticiqa.programs.events import event

logger = logging.getLogger(__name__)

FEWER_LOGPROBS = 5  # alternatives per token, the maximum on some servers
REFUSED = frozenset({400, 403, 422})  # 403: OpenAI, "You are not allowed to request logprobs from this model"
REFUSED_IMAGE = REFUSED | {415, 500}  # 500: Ollama, "failed to process inputs: image: unknown format"
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
# The keywords of the schema of a request that the schema of a stage does without.
NAMES_KEYWORD = re.compile(r"prefixItems|(min|max)(Length|Items)")
# The words of a format that a server cannot decode: llama.cpp "Failed to load image or audio file", vLLM "cannot
# identify image file", Anthropic "Could not process image", OpenAI "unsupported image", Go "image: unknown format".
NAMES_IMAGE = re.compile(
    r"(fail|unable|not|error|invalid|unsupported|unknown)\w{0,10}\W.{0,40}\bimages?\b"
    r"|\bimages?\b.{0,60}(fail|unable|not|error|invalid|unsupported|unknown)|image/(webp|avif|heic|heif|jp2|tiff)",
    re.IGNORECASE,
)
# The parameters of sampling in the order in which they are left out: newer Claude models refuse top_p beside a
# temperature. Old vLLM adds the limit of tokens to the prompt: "(1852 in the messages, 2048 in the completion)".
NAMES_SAMPLING = {
    "top_p": re.compile(r"\btop_?p\b", re.IGNORECASE),
    "seed": re.compile(r"\bseed\b", re.IGNORECASE),
    "temperature": re.compile(r"\btemperature\b", re.IGNORECASE),
    "max_tokens": re.compile(r"max_?(completion_?|output_?)?tokens\b|in the completion\b", re.IGNORECASE),
}


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
    ``accepted`` has what the server has answered: values of ``RequestFeatures``, names of parameters and media types.
    ``ignores_schema`` is whether an answer broke the schema that it was requested with, ``reasons`` whether an answer
    came with hidden reasoning, ``lacks_tokens`` whether one had no log-probabilities although they were requested.
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
    without those that the server refused. ``carried`` are the parameters that the engine of a model of the caller
    sends; ``None`` means all.
    """

    structured_outputs: Literal["auto", "json_schema", "json_object", "off"] = "json_schema"
    logprobs: Literal["auto"] | bool = False
    provider: Provider = field(default_factory=Provider)
    backend: str = ""
    carried: frozenset[str] | None = None

    def requested(self, *, by_form: bool, reads_tokens: bool) -> RequestFeatures:
        """Return the features to request for a question; without ``by_form``, another DSPy adapter decides on JSON."""
        logprobs = self.top_logprobs if reads_tokens else 0
        limit = self.token_limit if self.carried is None else None
        per_request = by_form and self.per_request
        return RequestFeatures(self.form if by_form else None, logprobs, self.formats, limit, self.omitted, per_request)

    def carries(self, parameter: str) -> bool:
        """Return whether the engine sends this parameter."""
        return self.carried is None or parameter in self.carried

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
    def per_request(self) -> bool:
        """Whether each request has a schema of its own now."""
        wanted: bool = self._of_backend.fewer.get("per_request", self.provider.schema_per_request)
        return wanted

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

    @property
    def formats(self) -> tuple[str, ...]:
        """The names of the formats that are sent unconverted now."""
        formats: tuple[str, ...] = self._of_backend.fewer.get("image_formats", self.provider.format_names)
        return formats

    @property
    def omitted(self) -> tuple[str, ...]:
        """The parameters of sampling that the server refused."""
        omitted: tuple[str, ...] = self._of_backend.fewer.get("omitted", ())
        return omitted

    def without_refused(
        self,
        requested: RequestFeatures,
        error: dspy.LMError,
        sampled: Collection[str] = (),
        mimes: Collection[str] = (),
    ) -> dict[str, Any] | None:
        """Return a change to the features that avoids what the server refused; ``None`` if the error names no feature.

        ``sampled`` are the parameters of sampling that may be left out, ``mimes`` the media types of the images. A
        feature that the server has accepted before is not the cause and is kept. The limit of tokens has two names, so
        the provider's own is replaced and the other one is not, also if another question has replaced it already.
        """
        form, logprobs, limit = requested.form or "off", requested.logprobs or 0, requested.token_limit
        in_doubt, said = {form, logprobs, limit} - {"off", 0} - self._of_backend.accepted, str(error)
        unknown_formats = {*mimes} - JPEG_PNG - self._of_backend.accepted
        if unknown_formats and error.status in REFUSED_IMAGE and NAMES_IMAGE.search(said):
            return {"image_formats": names_of(JPEG_PNG)}
        # LiteLLM refuses a parameter before it sends anything.
        if error.status not in REFUSED and not isinstance(error, dspy.LMUnsupportedFeatureError):
            return None
        is_first_name = limit in in_doubt and limit == self.provider.token_limit
        if is_first_name and re.search(rf"\b{limit}\b", said) and REFUSES_NAME.search(said):
            return {"token_limit": OTHER[limit]}
        if self.logprobs == "auto" and logprobs in in_doubt and NAMES_LOGPROBS.search(said):
            return {"logprobs": FEWER_LOGPROBS if logprobs > FEWER_LOGPROBS else 0}
        if self.structured_outputs == "auto" and form in in_doubt and NAMES_FORM.search(said):
            if requested.per_request and NAMES_KEYWORD.search(said):
                return {"per_request": False}
            return {"form": dict(pairwise(self._forms))[form]}
        for name, named in NAMES_SAMPLING.items():
            if name in sampled and name not in self._of_backend.accepted and named.search(said):
                return {"omitted": (*requested.omitted, name)}
        return None

    def accept(self, *accepted: str | int | None) -> None:
        """Record what the server accepts: see ``Known.accepted``."""
        self._of_backend.accepted.update(accepted)

    def keep(self, fewer: Mapping[str, Any]) -> None:
        """Use these values in later requests instead of refused ones; log a warning the first time."""
        if omitted := fewer.get("omitted"):  # another question may have found another one
            fewer = {**fewer, "omitted": tuple(dict.fromkeys((*self.omitted, *omitted)))}
        if not fewer.items() <= self._of_backend.fewer.items():
            self._of_backend.fewer.update(fewer)
            fields = event("feature_refused", backend=self.backend, asked_for=dict(fewer))
            changes = " and ".join(WORDED[name](value) for name, value in fewer.items())
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


# How a warning names a change to ``RequestFeatures``.
WORDED: Mapping[str, Callable[[Any], str]] = {
    "form": lambda form: f"form {form}",
    "per_request": lambda _: "one schema for each stage",
    "logprobs": lambda number: f"logprobs {number}",
    "token_limit": lambda name: f"token_limit {name}",
    "image_formats": lambda formats: f"images as {' or '.join(formats)}",
    "omitted": lambda names: f"no {' and no '.join(names)}",
}


def accepted_in(request: lm15.Request) -> set[str | int | None]:
    """Return what a server accepted with a request that it answered, as ``ModelFeatures.accept`` takes it."""
    config = request.config
    sampled = {name for name in ("temperature", "top_p", "seed") if getattr(config, name) is not None}
    mimes = {
        part.media_type for message in request.messages for part in message.parts if isinstance(part, lm15.ImagePart)
    }
    return {(config.response_format or {}).get("type", "off"), config.logprobs or 0, *sampled, *mimes}
