"""How a model is asked for JSON and log-probabilities: as the table of providers says, less what its server refused.

Nothing is sent beforehand. Only when a server refuses a question, the question is sent with fewer features, to find out
which one it refuses. That is remembered for 30 days: in this process, and in one small file per backend under
``capabilities`` in ``$AGENTICIQA_CACHE``, else in the user's cache folder of the system (Linux:
``$XDG_CACHE_HOME/agenticiqa`` or ``~/.cache/agenticiqa``). Provider, server and model make the file's name; keys and
passwords are in neither its name nor its content.
"""

import hashlib
import json
import logging
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from dspy import lm15
from pydantic import TypeAdapter, ValidationError

from agenticiqa.configs.reading import json_value
from agenticiqa.programs.backends.providers import Form
from agenticiqa.programs.events import event
from agenticiqa.programs.images import files

logger = logging.getLogger(__name__)

LONGEST_NAME = 80
DAYS_KEPT = 30
FEWER_LOGPROBS = 5  # some servers are configured to give no more
FORM = "response_format"

# Whether schemas are refused must not depend on the question, so all are tried with this one.
SMALL_SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}
FORMATS: dict[str, dict[str, Any]] = {
    "json_schema": {"type": "json_schema", "name": "answer", "schema": SMALL_SCHEMA, "strict": True},
    "json_object": {"type": "json_object"},
}


@dataclass(frozen=True)
class Refusal:
    """What a server takes in place of what it refused; ``None`` for a feature that it has not refused.

    ``logprobs`` is the number of alternatives per token, ``when`` the day of the refusal (ISO, UTC).
    """

    form: Form | None
    logprobs: int | None
    when: str

    @property
    def is_current(self) -> bool:
        """Whether this was found in the last 30 days."""
        try:
            age = date.fromisoformat(_today()) - date.fromisoformat(self.when)
        except ValueError:
            return False
        return timedelta(-1) <= age <= timedelta(DAYS_KEPT)  # -1: a computer with its clock ahead

    def __str__(self) -> str:
        refused = {
            "JSON schemas" if self.form == "json_object" else "structured outputs": self.form,
            f"more than {self.logprobs} log-probabilities" if self.logprobs else "log-probabilities": self.logprobs,
        }
        return " and ".join(name for name, taken in refused.items() if taken is not None)


@dataclass
class Remembered:
    """What this process knows of one backend: its refusal, and the features that its server has taken."""

    refusal: Refusal | None
    taken: set[str] = field(default_factory=set)
    lock: Lock = field(default_factory=Lock)


_remembered: dict[tuple[Path, str], Remembered] = {}
_lock = Lock()


@dataclass
class ModelFeatures:
    """What the questions to one backend ask for. ``backend`` names it, without any secret (``connect.name_of``).

    ``structured_outputs`` and ``logprobs`` are as in the configuration. What is "auto" there is what the table says,
    ``forms`` of JSON (the best first) and ``most_logprobs`` alternatives per token, less what the server has refused.
    """

    structured_outputs: Literal["auto", "json_schema", "json_object", "off"] = "json_schema"
    logprobs: Literal["auto"] | bool = False
    forms: tuple[Form, ...] = ("json_schema", "json_object")
    most_logprobs: int = 0
    backend: str = ""

    @property
    def first_form(self) -> Form:
        """How JSON is requested before anything is refused."""
        if self.structured_outputs != "auto":
            return self.structured_outputs
        return self.forms[0] if self.forms else "off"

    @property
    def first_logprobs(self) -> int:
        """The number of alternatives per token that is requested before any are refused; 0 for none."""
        return self.most_logprobs if self.logprobs else 0

    @property
    def form(self) -> Form:
        """How JSON is requested now."""
        refusal = self.refusal
        return refusal.form if self.structured_outputs == "auto" and refusal and refusal.form else self.first_form

    @property
    def top_logprobs(self) -> int:
        """The number of alternatives per token that is requested now; 0 for none."""
        refusal = self.refusal
        if self.logprobs != "auto" or refusal is None or refusal.logprobs is None:
            return self.first_logprobs
        return min(self.first_logprobs, refusal.logprobs)

    @property
    def refusal(self) -> Refusal | None:
        """What is remembered of the last 30 days; ``None`` where nothing is, or no setting is "auto"."""
        if "auto" not in (self.structured_outputs, self.logprobs):
            return None
        refusal = self._remembered().refusal
        return refusal if refusal and refusal.is_current else None

    def settle(
        self, request: lm15.Request, error: lm15.LM15Error, send: Callable[[lm15.Request], lm15.Response]
    ) -> None:
        """Find out which features of a refused request the server refuses, and remember it.

        A refusal alone says nothing, since servers and proxies refuse requests for other reasons, too: a feature counts
        as refused where the server takes the same request without all those in doubt, and then refuses it twice with
        that one alone. What it has taken once is not in doubt. Raises as ``send`` does for anything but a refusal.
        """
        if not is_refusal(error):
            return
        known = self._remembered()
        with known.lock:  # others whose requests were refused at the same time wait, and then see what was found
            form, count = _form_of(request), request.config.logprobs or 0
            doubts: dict[str, dict[Any, Any]] = {}  # what may be asked for, the best first, by its name in a refusal
            if self.structured_outputs == "auto" and form == self.form != "off" and form not in known.taken:
                doubts[FORM] = {each: FORMATS[each] for each in self.forms[self.forms.index(form) :]}
            if self.logprobs == "auto" and count == self.top_logprobs > 0 and "logprobs" not in known.taken:
                doubts["logprobs"] = {each: each for each in (count, min(count, FEWER_LOGPROBS))}

            taken: list[bool] = []  # by trial

            def takes(attempts: int = 2, **settings: Any) -> bool:
                for _ in range(attempts):
                    asked = replace(request.config, **{**dict.fromkeys(doubts), **settings})
                    try:
                        send(replace(request, config=asked))
                    except lm15.LM15Error as error:
                        if not is_refusal(error):
                            raise
                        taken.append(False)
                    else:
                        taken.append(True)
                        return True
                return False

            if not doubts or not takes(1):
                return
            before = self.refusal or Refusal(None, None, "")
            left: dict[str, Any] = {}  # the best that is taken
            for name, choices in doubts.items():
                found = next((each for each, setting in choices.items() if takes(**{name: setting})), None)
                left[name] = None if found == next(iter(choices)) else found or ("off" if name == FORM else 0)
            refusal = Refusal(left.get(FORM, before.form), left.get("logprobs", before.logprobs), _today())
            # A server may refuse everything from some request on.
            if any(value is not None for value in left.values()) and (taken[-1] or takes(1)):
                self.remember(refusal)

    def took(self, request: lm15.Request) -> None:
        """Note that the server took this request, so that what it asks for is in doubt no more."""
        if "auto" in (self.structured_outputs, self.logprobs):
            self._remembered().taken |= {_form_of(request)} | ({"logprobs"} if request.config.logprobs else set())

    def forget(self) -> None:
        """Forget what was refused, here and in the cache folder."""
        known = self._remembered()
        known.refusal, known.taken = None, set()
        with suppress(OSError):
            _file(self.backend).unlink(missing_ok=True)

    def remember(self, refusal: Refusal) -> None:
        """Remember a refusal here and in the cache folder; logs a warning when it cannot be saved."""
        self._remembered().refusal = refusal
        told, fields = str(refusal), event("feature_refused", backend=self.backend, refused=str(refusal))
        logger.warning("%s refuses %s: it is asked without from now on", self.backend, told, extra=fields)
        text = json.dumps({"backend": self.backend, "refusal": asdict(refusal)}, indent=2)
        try:
            files.write_atomically(_file(self.backend), text, private=True)
        except OSError as error:
            logger.warning("what %s refuses is not saved, and is found out again next time: %s", self.backend, error)

    def _remembered(self) -> Remembered:
        place = cache_folder(), self.backend
        with _lock:
            if place not in _remembered:
                _remembered[place] = Remembered(_saved(self.backend))
            return _remembered[place]


def is_refusal(error: lm15.LM15Error) -> bool:
    """Whether a server refused a request for what it asks for, which says nothing of why."""
    if error.status == 403:  # OpenAI: "You are not allowed to request logprobs from this model"
        return "logprobs" in str(error.message)
    others = isinstance(error, lm15.ContextLengthError | lm15.UnsupportedModelError)
    return isinstance(error, lm15.InvalidRequestError) and error.status in (400, 422) and not others


def cache_folder() -> Path:
    """The folder of the files, which may not exist yet."""
    return files.cache_folder() / "capabilities"


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


def _form_of(request: lm15.Request) -> Form:
    form: Form = (request.config.response_format or {}).get("type", "off")
    return form


def _file(backend: str) -> Path:
    readable = re.sub(r"[^\w.]+", "-", backend)[-LONGEST_NAME:].strip("-")
    return cache_folder() / f"{readable}-{hashlib.sha256(backend.encode()).hexdigest()[:12]}.json"


def _saved(backend: str) -> Refusal | None:
    try:
        saved = json_value(_file(backend).read_bytes())
        return TypeAdapter(Refusal).validate_python(saved["refusal"]) if saved["backend"] == backend else None
    except (OSError, ValueError, TypeError, KeyError, ValidationError):
        return None  # a file that cannot be read is as none
