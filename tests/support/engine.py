"""A language model without a network: an engine for ``dspy.LM`` with scripted answers."""

import base64
import threading
from collections.abc import Callable, Sequence
from typing import Any

import dspy
from dspy import lm15

from agenticiqa.programs.backends.choice import Backend
from support.loopback import Body, Reply

Said = str | Exception | Reply
Answers = Sequence[Said] | Callable[[Body], Said]


class ScriptedEngine:
    """An engine with answers in turn (the last one is repeated), or by a function of the request in a server's form.

    Exceptions among the answers are raised. ``requests`` has every request in DSPy's types, ``bodies`` in the form of
    OpenAI, so that scripts for the loopback server can be used here.
    """

    supports_response_schema = False
    supported_params: frozenset[str] = frozenset()

    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.requests: list[lm15.Request] = []
        self.bodies: list[Body] = []
        self._lock = threading.Lock()

    def complete(self, request: lm15.Request) -> lm15.Response:
        """Return one answer; its usage is one token in and one out."""
        body = as_body(request)
        with self._lock:
            self.requests.append(request)
            self.bodies.append(body)
            number = len(self.requests)
        said = self.answers(body) if callable(self.answers) else self.answers[min(number, len(self.answers)) - 1]
        if isinstance(said, Exception):
            raise said
        text = said if isinstance(said, str) else said.content or ""
        return lm15.Response(
            id=None,
            model=request.model,
            message=lm15.Message.assistant([lm15.TextPart(text)]),
            finish_reason="stop",
            usage=lm15.Usage(input_tokens=1, output_tokens=1, total_tokens=2),
        )

    def close(self) -> None:
        """Do nothing, as nothing is open."""


def scripted_lm(answers: Answers, *, name: str = "test/x", cache: bool = False) -> tuple[dspy.LM, ScriptedEngine]:
    """Return a language model with this script, without retries, and its engine."""
    engine = ScriptedEngine(answers)
    lm = dspy.LM(name, engine=engine, cache=cache, num_retries=0)
    return lm, engine


def scripted_backend(answers: Answers, *, cache: bool = False) -> tuple[Backend, ScriptedEngine]:
    """Return a backend of one scripted model, and its engine."""
    lm, engine = scripted_lm(answers, cache=cache)
    return Backend((lm,)), engine


def as_body(request: lm15.Request) -> Body:
    """Return a typed request in the form of an OpenAI-compatible server (system, texts and images)."""
    system = {"role": "system", "content": request.system or ""}
    return {
        "model": request.model,
        "messages": [system, *({"role": m.role, "content": [_part(p) for p in m.parts]} for m in request.messages)],
    }


def _part(part: Any) -> dict[str, Any]:
    if not isinstance(part, lm15.ImagePart):
        return {"type": "text", "text": part.text}
    data = part.data if isinstance(part.data, str) else base64.b64encode(part.data or b"").decode()
    url = part.url or f"data:{part.media_type};base64,{data}"
    return {"type": "image_url", "image_url": {"url": url}}
