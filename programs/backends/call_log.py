"""Log each prompt and reply of a model at level DEBUG: the events ``prompt`` and ``reply``.

DSPy's callbacks report both, for every model. A reply records whether it came from DSPy's cache. Secrets in texts
become ``***``; an image is logged as its media type, hash and size.

DSPy's own history is kept only on request, and without the bytes of images. DSPy would keep each whole request (2 MB
for an image of 1.5 MB) in the histories of the model and the modules, and in a global one. If no history is kept, an
entry in the global one explains how to keep it.
"""

import base64
import binascii
import hashlib
import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import dspy
from dspy import lm15
from pydantic import BaseModel

from agenticiqa.programs.backends.answer_cache import CachedCall, is_cached
from agenticiqa.programs.backends.failures import redacted
from agenticiqa.programs.backends.held_images import held_image_at
from agenticiqa.programs.backends.run_context import OtherModels, Turn, current
from agenticiqa.programs.errors import excerpt
from agenticiqa.programs.events import event

logger = logging.getLogger(__name__)

# The parameters that are logged; a model's other parameters are addresses, headers and keys.
PARAMETERS = (
    "temperature", "top_p", "top_k", "max_tokens", "max_completion_tokens", "seed", "stop", "n", "logprobs",
    "top_logprobs", "frequency_penalty", "presence_penalty", "reasoning_effort", "rollout_id",
)  # fmt: skip

NO_HISTORY = (
    "AgenticIQA keeps no history of its calls by default, because each call contains the image. To keep one, set "
    "program.keep_history = True, or keep_history: true in the configuration. It then has the hash and size of "
    "each image, not the image."
)
NO_HISTORY_ENTRY = {"messages": [{"role": "system", "content": "(not kept)"}], "outputs": [NO_HISTORY]}
NEWEST = 256  # entries that are searched: more than there are simultaneous calls

Message = dict[str, Any]  # {"role": ..., "parts": [a text, or {"image": its description}, ...]}


def logging_settings() -> dict[str, Any]:
    """Return DSPy's settings for a question: the caller's callbacks and the package's."""
    others = [callback for callback in dspy.settings.callbacks or () if not isinstance(callback, OtherModels)]
    return {"callbacks": [*others, CallLog()]}  # one callback instead of two, because DSPy takes long for each


def note_response(response: lm15.Response) -> None:
    """Record two facts about a response that DSPy drops: why it ended, and what lm15 changed in its request."""
    adaptations = [str(adaptation) for adaptation in response.adaptations]
    current().turn.answered.append({"finish_reason": response.finish_reason, "adaptations": adaptations})


@dataclass
class CallLog(OtherModels):
    """DSPy's callback for the calls of one attempt; it keeps the text of the reply and logs prompt and reply.

    It also counts the requests of other models, as ``OtherModels`` does outside of an attempt.
    """

    begun: dict[str, tuple[Any, int, bool]] = field(default_factory=dict)

    def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Called before a request to a model or its cache."""
        super().on_lm_start(call_id, instance, inputs)
        turn, call, logs = current().turn, CachedCall(instance, inputs), logger.isEnabledFor(logging.DEBUG)
        turn.asked.append(call)
        self.begun[call_id] = instance, len(turn.answered), logs and is_cached(call)
        if logs:
            _log_prompt(instance, inputs, turn)

    def on_lm_end(self, call_id: str, outputs: list[Any] | None, exception: BaseException | None = None) -> None:
        """Called after the answer."""
        instance, answered, from_cache = self.begun.pop(call_id)
        turn = current().turn
        texts = [_text_of(output) for output in outputs or ()]
        thoughts = [_text_of(output, "reasoning_content") for output in outputs or ()]
        turn.model, turn.cache = instance.model, bool(getattr(instance, "cache", False))
        turn.error = exception
        turn.text, turn.thoughts = (texts[-1], thoughts[-1]) if texts else ("", "")
        last = outputs[-1] if outputs else None
        turn.logprobs = last.get("logprobs") if isinstance(last, Mapping) else None
        if logger.isEnabledFor(logging.DEBUG):
            received = turn.answered[answered:] or [{"finish_reason": None, "adaptations": []}]
            for text, thought in zip(texts, thoughts, strict=True):
                _log_reply(instance, text, thought, {"from_cache": from_cache, **received[-1]}, turn)


def _log_prompt(instance: Any, inputs: Mapping[str, Any], turn: Turn) -> None:
    secrets = _secrets_of(instance)
    options = {**instance.kwargs, **(inputs.get("kwargs") or {})}
    parameters = {name: options[name] for name in PARAMETERS if options.get(name) not in (None, ())}
    response_format = _json_form(options.get("response_format"))
    system, messages = _given(inputs)
    system = redacted(system, secrets)
    hidden = [
        {**message, "parts": [redacted(p, secrets) if isinstance(p, str) else p for p in message["parts"]]}
        for message in messages
    ]
    lines = [f"[system] {system}", *(f"[{message['role']}] {_shown(message)}" for message in hidden)]
    if response_format:
        lines.append(f"[response_format] {json.dumps(response_format, ensure_ascii=False)}")
    fields = {"model": instance.model, "parameters": parameters, "response_format": response_format}
    fields = event("prompt", **turn.place, **fields, system=system, messages=hidden)
    which = f"{turn.stage}: attempt {turn.attempt} of {turn.attempts}: " if turn.stage else ""
    logger.debug("%sprompt for %s\n%s", which, instance.model, "\n".join(lines), extra=fields)


def _log_reply(instance: Any, text: str, thoughts: str, more: Mapping[str, Any], turn: Turn) -> None:
    text, thoughts = (redacted(part, _secrets_of(instance)) for part in (text, thoughts))
    fields = event("reply", **turn.place, model=instance.model, text=text, thoughts=thoughts, length=len(text), **more)
    said = excerpt(f"[thoughts] {thoughts}\n{text}" if thoughts else text)
    logger.debug("%sreplied: %s", f"{turn.stage}: " if turn.stage else "", said, extra=fields)


def _given(inputs: Mapping[str, Any]) -> tuple[str, list[Message]]:
    """Return the system text and the other messages of a call of DSPy's model."""
    received = inputs.get("messages") or [{"role": "user", "content": inputs.get("prompt")}]
    messages = [{"role": message.get("role"), "parts": _parts(message.get("content"))} for message in received]
    system = "\n".join(str(p) for message in messages if message["role"] == "system" for p in message["parts"])
    return system, [message for message in messages if message["role"] != "system"]


def _parts(content: Any) -> list[Any]:
    return [_part(block) for block in content] if isinstance(content, list) else [str(content)]


def _part(block: Any) -> Any:
    """Return a part of a message: its text, or a description."""
    kind = block.get("type") if isinstance(block, Mapping) else None
    if kind == "text":
        return str(block.get("text"))
    image = block.get("image_url") if kind == "image_url" else None
    url = image.get("url") if isinstance(image, Mapping) else image
    return {"image": description(url)} if isinstance(url, str) else {str(kind): "left out"}


def _shown(message: Message) -> str:
    return "".join(p if isinstance(p, str) else "".join(f"[{k}: {v}]" for k, v in p.items()) for p in message["parts"])


def _json_form(form: Any) -> Any:
    if isinstance(form, type) and issubclass(form, BaseModel):
        return {"type": "json_schema", "json_schema": {"name": form.__name__, "schema": form.model_json_schema()}}
    return form


def _text_of(output: Any, part: str = "text") -> str:
    fields = {"text": output} if not isinstance(output, Mapping) else output
    return str(fields.get(part) or "")


def _secrets_of(lm: Any) -> tuple[str, ...]:
    """Return the key and the headers of a model, to remove them from texts of a server that repeats them."""
    ours = getattr(getattr(getattr(lm, "engine", None), "wire", None), "secrets", ())
    headers = [v for name in ("headers", "extra_headers") for v in (lm.kwargs.get(name) or {}).values()]
    own = [lm.kwargs.get("api_key"), *headers]
    return (*ours, *(secret for secret in own if isinstance(secret, str)))


def history_settings() -> dict[str, Any]:
    """Return DSPy's settings for its history during a question."""
    # With a limit of 0, DSPy still fills its global history, and the images in it could not be removed.
    kept = bool(current().history and dspy.settings.max_history_size)
    if not (kept or dspy.settings.disable_history):
        explain_empty_history()
    return {"disable_history": not kept}


@cache
def explain_empty_history() -> None:
    """Add an entry to DSPy's global history, once per process; otherwise ``dspy.inspect_history()`` shows nothing."""
    with dspy.context(max_history_size=0):  # no entry in the histories of modules
        dspy.BaseLM("none").update_history(NO_HISTORY_ENTRY)


def leave_out_images(lm: dspy.BaseLM) -> None:
    """Replace each image in the model's history by its hash and size, where a history is kept.

    DSPy's other histories share these entries.
    """
    for entry in lm.history[-NEWEST:] if current().history else ():
        _without_images(entry.get("messages") or ())


def _without_images(messages: Iterable[dict[str, Any]]) -> None:
    for message in messages:
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            image = part.get("image_url") if isinstance(part, dict) else None
            if isinstance(image, dict) and isinstance(image.get("url"), str):
                image["url"] = description(image["url"])


def description(url: str) -> str:
    """Describe an image at a data URI or held address (media type, hash, size); return other text as it is."""
    held = held_image_at(url)
    if held is not None:
        return _described(held.mime, held.sent_sha256, len(base64.b64decode(held.base64)))
    head, mark, data = url.partition(";base64,")
    if not (mark and head.startswith("data:")):
        return url
    try:
        content = base64.b64decode(data)
    except binascii.Error:
        content = data.encode()
    return _described(head.removeprefix("data:"), hashlib.sha256(content).hexdigest(), len(content))


def _described(mime: str, sha256: str, size: int) -> str:
    return f"{mime}, sha256 {sha256}, {size} bytes"
