"""Check the body of a response before it is read: a response without an answer is a fault of the server.

Servers, gateways and login pages send a status of 200 with no choices, an error, a ticket or a page. Taken for the
model's answer, it would be rejected and kept in the cache. A field beside the answer (usage, log-probabilities) may
have an unreadable form. The answer was paid for, so only that field is left out.
"""

import math
import re
from collections.abc import Callable
from typing import Any

import httpx
from dspy import lm15

from agenticiqa.configs.reading import json_value

Body = dict[str, Any]

SHOWN = 200  # characters of a body without an answer
MOST_TOKENS = 10**9  # more than any model takes: not a valid count
_FENCED = re.compile(r"\A```(?:json)?\s*(.*?)\s*```\Z", re.DOTALL)
_OF_THOUGHTS = re.compile("reason|think|thought")  # reasoning_content, reasoning, thinking, reasoning_details, ...
BROKEN_OFF = ("error", "abort", "failed")


def vetted(reply: httpx.Response, vet: Callable[[Body], Body | None]) -> Body:
    """Return the JSON of a response, in the form that lm15 reads. Raises ``lm15.ServerError`` without an answer.

    An error in its place is left in, for lm15 to read.
    """
    status, text = reply.status_code, reply.content.decode("utf-8", "replace")
    try:
        body = json_value(text)
    except (ValueError, RecursionError) as error:  # also a number of too many digits
        raise lm15.ServerError(f"the response is not JSON: {_beginning(text)}", status=status) from error
    if not isinstance(body, dict) or not 200 <= status < 300 or status == 202:
        raise no_answer(status, text)
    said = body.get("error")
    found = body if said and isinstance(said, dict) else vet(body)
    if found is None:
        raise no_answer(status, text)
    return found


def no_answer(status: int, text: str) -> lm15.ServerError:
    """Return the error for a server that sent this in place of an answer."""
    return lm15.ServerError(f"the response contains no answer: {_beginning(text)}", status=status)


def _beginning(text: str) -> str:
    return " ".join(text[: 2 * SHOWN].split())[:SHOWN] or "(empty)"


def vet_chat(body: Body) -> Body | None:
    """Check a chat completion in OpenAI's form; ``None`` without an answer. The first of several choices counts."""
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict) or not message.keys() - {"role"}:
        return None
    if choice.get("finish_reason") in BROKEN_OFF:
        return None
    kept = {**choice, "message": message if choice.get("finish_reason") == "length" else _with_answer(message)}
    if "logprobs" in choice:
        kept["logprobs"] = _logprobs(choice["logprobs"])
    return {**body, "choices": [kept], "usage": _usage(body.get("usage"))}


def _with_answer(message: Body) -> Body:
    """Return the message; a JSON object that a server misread as reasoning becomes its content.

    Other thoughts beside no content become ``reasoning_content``, after the name of their field in brackets.
    """
    content = message.get("content")
    if isinstance(content, list):
        beside = {str(part.get("type")): part for part in content if isinstance(part, dict)}
        has_answer = "text" in beside
    else:
        beside = {name: value for name, value in message.items() if _OF_THOUGHTS.search(name)}
        has_answer = bool(content)
    field, given = next(((name, value) for name, value in beside.items() if value), ("", None))
    if has_answer or not field:
        return message
    thoughts = _text_in(given)
    try:
        is_object = isinstance(json_value(_FENCED.sub(r"\1", thoughts.strip())), dict)
    except (ValueError, RecursionError):
        is_object = False
    rest = {name: value for name, value in message.items() if name not in beside}
    if is_object:
        return {**rest, "content": thoughts}
    return {**rest, "content": None, "reasoning_content": f"[{field[:40]}] {thoughts}"}


def _text_in(thoughts: Any) -> str:
    """The text of thoughts: as they are, or in the blocks of a list, under ``text``, ``thinking`` or ``summary``."""
    if isinstance(thoughts, list):
        return "".join(map(_text_in, thoughts))
    if isinstance(thoughts, dict):
        return _text_in(thoughts.get("text") or thoughts.get("thinking") or thoughts.get("summary"))
    return thoughts if isinstance(thoughts, str) else ""


def vet_anthropic(body: Body) -> Body | None:
    """Return a message in Anthropic's form; ``None`` without content."""
    return body if isinstance(body.get("content"), list) else None


def vet_gemini(body: Body) -> Body | None:
    """Return a response in Gemini's form; ``None`` without candidates, unless the prompt was blocked."""
    return body if body.get("candidates") or body.get("promptFeedback") else None


VETTED: dict[str, Callable[[Body], Body | None]] = {"anthropic": vet_anthropic, "gemini": vet_gemini}


def _usage(usage: Any) -> Body | None:
    """Return the valid counts of tokens; others are left out, so that the price counts as unknown."""
    if not isinstance(usage, dict):
        return None
    read = {name: (_usage if name.endswith("_details") else _count)(value) for name, value in usage.items()}
    return {name: value for name, value in read.items() if value is not None}


def _count(value: Any) -> int | None:
    if (isinstance(value, str) and value.isdecimal() and len(value) < 10) or (type(value) is float and value % 1 == 0):
        value = int(value)
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else None


def _logprobs(logprobs: Any) -> Any:
    """Return the log-probabilities without invalid alternatives; ``None`` where a token's own one is invalid."""
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(content, list) or not all(map(_is_logprob, content)):
        return None
    return {"content": [_pair(each) | {"top_logprobs": _alternatives(each.get("top_logprobs"))} for each in content]}


def _alternatives(listed: Any) -> list[Body]:
    return [_pair(each) for each in listed if _is_logprob(each)] if isinstance(listed, list) else []


def _pair(entry: Body) -> Body:
    return {"token": entry["token"], "logprob": entry["logprob"]}


def _is_logprob(entry: Any) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("token"), str):
        return False
    logprob = entry.get("logprob")
    return isinstance(logprob, int | float) and not isinstance(logprob, bool) and math.isfinite(logprob)
