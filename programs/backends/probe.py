"""Probe what a backend supports with a few small requests over its usual wire.

The first request is sent alone: an unreachable server, a refused key or an unknown model fails there, once. The others
are sent in parallel. Only a request that the server rejects for its content means that something is not supported.
"""

import base64
import contextvars
import io
import logging
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Literal

import dspy
from dspy import lm15
from PIL import Image

from agenticiqa.configs import StageConfig
from agenticiqa.programs.backends.call_log import attempting
from agenticiqa.programs.backends.capabilities import Capabilities
from agenticiqa.programs.backends.connect import connect, provider_of
from agenticiqa.programs.backends.ledger import asking

STAGE = "probe"  # in the ledger
THREADS = 3
SIDE = 32  # pixels
MOST_TOKENS = 256  # a reasoning model needs some before its answer, which is one word
MOST_TOKENS_IN_PROCESS = 32
MOST_LOGPROBS, FEWER_LOGPROBS = 20, 5  # some servers are configured to give no more than five

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


def probe(stage: StageConfig) -> Capabilities:
    """Probe what a stage's own backend supports, in four requests or a few more.

    The ledger has them under the stage "probe". Raises BackendError as ``connect`` does, and ``dspy.LMError`` when the
    server cannot be reached, refuses the key, does not know the model, or rejects every request.
    """
    provider = provider_of(stage)
    takes_seed = provider is None or provider.seed
    most = MOST_LOGPROBS if provider is None else provider.most_logprobs * provider.logprobs
    questions = Questions(stage, MOST_TOKENS if provider else MOST_TOKENS_IN_PROCESS)
    with (
        dspy.context(disable_history=True, trace=None),
        _without_truncation_warning(),
        attempting(STAGE, 1, 1),
        ThreadPoolExecutor(THREADS) as pool,
    ):

        def side_by_side(question: Any, *given: Any) -> Future[Any]:
            return pool.submit(contextvars.copy_context().run, question, *given)

        seeded = questions.ask(ONE_WORD, seed=1 if takes_seed else None)
        asked_schema = side_by_side(questions.schema)
        asked_image = side_by_side(questions.image_and_logprobs, most)
        asked_two = side_by_side(questions.ask, ONE_WORD, 2)
        schema, (images, logprobs), two = asked_schema.result(), asked_image.result(), asked_two.result()
        json_object = schema == "refused" and (provider is None or provider.json_object) and questions.json_object()
    if not questions.model:
        raise questions.refusals[0]
    return Capabilities(
        images=images or two is not None,
        several_images=two is not None,
        logprobs=logprobs,
        schema=schema,
        json_object=json_object,
        seed=takes_seed and seeded is not None and all(each.field != "config.seed" for each in seeded.adaptations),
        model=questions.model,
        when=datetime.now(UTC).date().isoformat(),
    )


class Questions:
    """The requests of one probe; ``refusals`` are the errors of those that the server rejected.

    ``model`` is the server's name for its model, empty until a request was accepted.
    """

    def __init__(self, stage: StageConfig, max_tokens: int) -> None:
        # Other settings of the stage are not probed, and some models reject them.
        plain = {"temperature": None, "top_p": None, "seed": None, "logprobs": False, "fallback_backend": None}
        backend = connect(stage.model_copy(update=plain), cache=False)
        if backend is None:
            raise ValueError("a stage that is offline has no backend to ask")
        self.lm, self.max_tokens = backend.lms[0], max_tokens
        self.model = ""
        self.refusals: list[dspy.LMError] = []

    def ask(self, text: str, images: int = 0, **config: Any) -> lm15.Response | None:
        """The answer to a text after so many images; ``None`` where the server rejects the request."""
        image = lm15.ImagePart(media_type="image/png", data=base64.b64encode(small_png()).decode())
        message = lm15.Message.user([*[image] * images, lm15.TextPart(text)])
        request = lm15.Request(
            model=self.lm.model, messages=(message,), config=lm15.Config(max_tokens=self.max_tokens, **config)
        )
        try:
            with asking(STAGE):
                response: lm15.Response = self.lm(request)
        except dspy.LMUnsupportedModelError:
            raise
        except REFUSED as error:
            self.refusals.append(error)
            return None
        self.model = response.model
        return response

    def schema(self) -> Literal["enforced", "accepted", "refused"]:
        """What the server does with a JSON schema that contradicts the prompt."""
        wanted = {"type": "json_schema", "name": "answer", "schema": SCHEMA, "strict": True}
        response = self.ask(ONE_WORD, response_format=wanted)
        if response is None:
            return "refused"
        return "enforced" if response.data == OBEYED else "accepted"

    def json_object(self) -> bool:
        """Whether the server accepts the mode "any JSON object"."""
        return self.ask(AN_OBJECT, response_format={"type": "json_object"}) is not None

    def image_and_logprobs(self, most: int) -> tuple[bool, int]:
        """Whether an image is accepted, and the number of alternatives per token in the answer about it."""
        for logprobs in dict.fromkeys((most, min(most, FEWER_LOGPROBS))) if most else ():
            response = self.ask(ONE_WORD, 1, logprobs=logprobs)
            if response is not None:
                return True, logprobs if any(token.top for token in response.logprobs or ()) else 0
        return self.ask(ONE_WORD, 1) is not None, 0


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
