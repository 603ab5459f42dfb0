"""Probe what a backend supports with a few small requests over its usual wire.

The first request is sent alone: an unreachable server, a refused key or an unknown model fails there, once. The others
are sent in parallel. A refusal alone says nothing about the model, since servers and proxies refuse requests for other
reasons, too: a feature is not supported where the server takes the same request without it, and then refuses it again.
"""

import base64
import contextvars
import io
import logging
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import dspy
from dspy import lm15
from PIL import Image

from agenticiqa.programs.backends.call_log import attempting
from agenticiqa.programs.backends.capabilities import Capabilities
from agenticiqa.programs.backends.discovery import STAGE
from agenticiqa.programs.backends.engine import Model
from agenticiqa.programs.backends.ledger import asking

THREADS = 3
SIDE = 32  # pixels
MOST_TOKENS = 256  # a reasoning model needs some before its answer, which is one word
MOST_TOKENS_IN_PROCESS = 32
FEWER_LOGPROBS = 5  # some servers are configured to give no more

OPENING = "This is a test of the connection."
ONE_WORD = f"{OPENING} Reply with the single word yes, in lower case, without anything around it."
AN_OBJECT = f'{OPENING} Reply with a JSON object that has one field, "answer", with the value "yes".'
# Nothing in the prompt leads to this answer: only a server that enforces the schema gives it.
OBEYED = {"answer": "granite"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"answer": {"type": "string", "enum": ["granite"]}},
    "required": ["answer"],
    "additionalProperties": False,
}

REFUSED = (dspy.LMInvalidRequestError, dspy.LMUnsupportedFeatureError)


@dataclass(frozen=True)
class Question:
    """A small request: a text after so many images, with settings.

    ``without`` is the same request without the feature that it tries out; ``None`` for a bare text.
    """

    without: "Question | None" = None
    text: str = ONE_WORD
    images: int = 0
    seed: int | None = None
    logprobs: int | None = None
    form: Literal["json_schema", "json_object"] | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """What goes into ``lm15.Config``."""
        forms: dict[str | None, dict[str, Any] | None] = {
            None: None,
            "json_object": {"type": "json_object"},
            "json_schema": {"type": "json_schema", "name": "answer", "schema": SCHEMA, "strict": True},
        }
        given = {"seed": self.seed, "logprobs": self.logprobs, "response_format": forms[self.form]}
        return {name: value for name, value in given.items() if value is not None}


BARE = Question()
SEEDED = Question(BARE, seed=1)
WITH_SCHEMA = Question(BARE, form="json_schema")
AS_OBJECT = Question(Question(text=AN_OBJECT), text=AN_OBJECT, form="json_object")
ONE_IMAGE = Question(BARE, images=1)
TWO_IMAGES = Question(ONE_IMAGE, images=2)


def probe(engine: Model, *, seed: bool = True, json_object: bool = True, max_tokens: int = MOST_TOKENS) -> Capabilities:
    """Probe what a model supports, in four requests and two or three more for each refusal.

    ``seed`` and ``json_object`` say whether the interface has them at all; the engine says which media types and how
    many log-probabilities it gives. The ledger has the requests under the stage "probe". Raises ``dspy.LMError`` when
    the server cannot be reached, refuses the key, does not know the model, or rejects the barest request.
    """
    asked = Probing(engine, max_tokens)
    with (
        dspy.context(disable_history=True, trace=None, send_stream=None),
        _without_truncation_warning(),
        attempting(STAGE, 1, 1),
        ThreadPoolExecutor(THREADS) as pool,
    ):

        def side_by_side(question: Any, *given: Any) -> Future[Any]:
            return pool.submit(contextvars.copy_context().run, question, *given)

        seeded = asked.answer(SEEDED) if seed else None
        if seeded is None:
            asked.answer(BARE)
        asked_schema = side_by_side(asked.schema)
        asked_image = side_by_side(asked.image_and_logprobs, engine.most_logprobs)
        asked_two = side_by_side(asked.answer, TWO_IMAGES)
        schema, (images, logprobs), two = asked_schema.result(), asked_image.result(), asked_two.result()
        takes_objects = schema == "refused" and json_object and asked.answer(AS_OBJECT) is not None
    return Capabilities(
        images=images or two is not None,
        several_images=two is not None,
        logprobs=logprobs,
        schema=schema,
        json_object=takes_objects,
        seed=seeded is not None and all(each.field != "config.seed" for each in seeded.adaptations),
        model=asked.model,
        when=datetime.now(UTC).date().isoformat(),
    )


class Probing:
    """The requests of one probe. ``model`` is the server's name for its model, empty until a request was accepted."""

    def __init__(self, engine: Model, max_tokens: int) -> None:
        # Without the settings of the stage, which are not probed, and which some models reject.
        self.lm = dspy.LM(engine.name, engine=engine, cache=False, num_retries=0)
        self.max_tokens = max_tokens
        self.model = ""
        self._refused: set[Question] = set()

    def answer(self, question: Question) -> lm15.Response | None:
        """The answer to a question; ``None`` where its feature is not supported.

        Raises ``dspy.LMError`` for any other fault, and where even the bare text is rejected.
        """
        if question.without in self._refused:
            return None
        try:
            return self._ask(question)
        except REFUSED:
            if question.without is None:
                raise
        if self.answer(question.without) is None:
            return None
        try:
            return self._ask(question)
        except REFUSED:
            self._refused.add(question)
            return None

    def schema(self) -> Literal["enforced", "accepted", "refused"]:
        """What the server does with a JSON schema that contradicts the prompt."""
        response = self.answer(WITH_SCHEMA)
        if response is None:
            return "refused"
        return "enforced" if response.data == OBEYED else "accepted"

    def image_and_logprobs(self, most: int) -> tuple[bool, int]:
        """Whether an image is accepted, and the number of alternatives per token: in an answer about one, if so."""
        counts = dict.fromkeys((most, min(most, FEWER_LOGPROBS))) if most else {}
        for count in counts:
            response = self.answer(Question(ONE_IMAGE, images=1, logprobs=count))
            if response is not None:
                return True, count if _has_alternatives(response) else 0
        if self.answer(ONE_IMAGE) is not None:
            return True, 0
        for count in counts:
            response = self.answer(Question(BARE, logprobs=count))
            if response is not None:
                return False, count if _has_alternatives(response) else 0
        return False, 0

    def _ask(self, question: Question) -> lm15.Response:
        image = lm15.ImagePart(media_type="image/png", data=base64.b64encode(small_png()).decode())
        message = lm15.Message.user([*[image] * question.images, lm15.TextPart(question.text)])
        config = lm15.Config(max_tokens=self.max_tokens, **question.settings)
        with asking(STAGE):
            response: lm15.Response = self.lm(lm15.Request(model=self.lm.model, messages=(message,), config=config))
        if not (response.text or response.usage.output_tokens):
            raise dspy.LMServerError("a reply without an answer in it", model=self.lm.model)
        self.model = response.model
        return response


def _has_alternatives(response: lm15.Response) -> bool:
    return any(token.top for token in response.logprobs or ())


@contextmanager
def _without_truncation_warning() -> Iterator[None]:
    """Suppress DSPy's warning about truncated answers, which advises to raise a limit that is set here."""

    def unlike(record: logging.LogRecord) -> bool:
        return "truncated" not in record.getMessage()

    log = logging.getLogger("dspy.clients.lm")
    log.addFilter(unlike)
    try:
        yield
    finally:
        log.removeFilter(unlike)


def small_png() -> bytes:
    """A gray square as PNG bytes."""
    file = io.BytesIO()
    Image.new("RGB", (SIDE, SIDE), "grey").save(file, "PNG")
    return file.getvalue()
