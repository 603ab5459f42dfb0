"""What a backend can do, found out with a few tiny requests over the same wire as every other.

The first request goes alone: a server that is out of reach, refuses the key or has no such model shows itself there,
once, and is told as it is. The others go side by side. Only a request that the server refuses for what is in it means
that it cannot do that.
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
from agenticiqa.programs.backends.capabilities import Capabilities
from agenticiqa.programs.backends.connect import connect, provider_of
from agenticiqa.programs.backends.ledger import asking

STAGE = "probe"  # in the ledger
THREADS = 3
SIDE = 32  # pixels
MOST_TOKENS = 256  # a model that thinks first needs some; the answers are a word long
MOST_TOKENS_HERE = 32  # of a model in this process
MOST_LOGPROBS, FEWER_LOGPROBS = 20, 5  # some servers are set to give only as many as there are levels

OPENING = "This is a test of the connection."
ONE_WORD = f"{OPENING} Reply with the single word yes, in lower case, without anything around it."
AN_OBJECT = f'{OPENING} Reply with a JSON object that has one field, "answer", with the value "yes".'
# Nothing in the prompt leads to this answer: only a server that keeps to the schema gives it.
OBEYED = {"answer": "granite"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"answer": {"type": "string", "enum": ["granite"]}},
    "required": ["answer"],
    "additionalProperties": False,
}

REFUSED = (dspy.LMInvalidRequestError, dspy.LMUnsupportedFeatureError)


def probe(stage: StageConfig) -> Capabilities:
    """Ask the first backend of a stage what it can do, in four requests or a few more.

    Each is entered in the ledger under "probe". Raises BackendError as ``connect`` does, and ``dspy.LMError`` when the
    server cannot be reached, refuses the key, has no such model, or refuses every request.
    """
    provider = provider_of(stage)
    takes_seed = provider is None or provider.seed
    most = MOST_LOGPROBS if provider is None else provider.most_logprobs * provider.logprobs
    questions = Questions(stage, MOST_TOKENS if provider else MOST_TOKENS_HERE)
    with dspy.context(disable_history=True, trace=None), _no_word_of_length(), ThreadPoolExecutor(THREADS) as pool:

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
    """The requests of one probe; ``refusals`` are the answers to those that the server did not take.

    ``model`` is what the server calls its model, empty until it took a request.
    """

    def __init__(self, stage: StageConfig, max_tokens: int) -> None:
        # What a stage sends besides is not in question here, and some models refuse it.
        plain = {"temperature": None, "top_p": None, "seed": None, "logprobs": False, "fallback_backend": None}
        backend = connect(stage.model_copy(update=plain), cache=False)
        if backend is None:
            raise ValueError("a stage that is offline has no backend to ask")
        self.lm, self.max_tokens = backend.lms[0], max_tokens
        self.model = ""
        self.refusals: list[dspy.LMError] = []

    def ask(self, text: str, images: int = 0, **config: Any) -> lm15.Response | None:
        """The answer to a text after so many images; ``None`` where the server refuses to take that."""
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
        """What the server does with a schema that contradicts the prompt."""
        wanted = {"type": "json_schema", "name": "answer", "schema": SCHEMA, "strict": True}
        response = self.ask(ONE_WORD, response_format=wanted)
        if response is None:
            return "refused"
        return "enforced" if response.data == OBEYED else "accepted"

    def json_object(self) -> bool:
        """Whether the server takes the mode of any JSON object."""
        return self.ask(AN_OBJECT, response_format={"type": "json_object"}) is not None

    def image_and_logprobs(self, most: int) -> tuple[bool, int]:
        """Whether an image is taken, and how many alternatives to a token come with the answer about it."""
        for logprobs in dict.fromkeys((most, min(most, FEWER_LOGPROBS))) if most else ():
            response = self.ask(ONE_WORD, 1, logprobs=logprobs)
            if response is not None:
                return True, logprobs if any(token.top for token in response.logprobs or ()) else 0
        return self.ask(ONE_WORD, 1) is not None, 0


@contextmanager
def _no_word_of_length() -> Iterator[None]:
    """DSPy warns of an answer that was cut off, and advises to raise a limit that is set here."""

    def unlike(record: logging.LogRecord) -> bool:
        return "truncated" not in record.getMessage()

    log = logging.getLogger("dspy.clients.lm")
    log.addFilter(unlike)
    try:
        yield
    finally:
        log.removeFilter(unlike)


def small_png() -> bytes:
    """A grey square."""
    file = io.BytesIO()
    Image.new("RGB", (SIDE, SIDE), "grey").save(file, "PNG")
    return file.getvalue()
