"""Check the body of a response before it is parsed: a response without an answer is a fault of the server.

Servers, gateways and login pages send status 200 with no choices, an error, a job id or a page. If this counted as the
model's answer, it would be rejected and kept in the cache. If another field (usage, log-probabilities) is malformed,
only that field is removed, because the answer was paid for.
"""

import re
import sys
from collections.abc import Callable
from typing import Any

import httpx
from dspy import lm15

from agenticiqa.configs.yaml_json import json_value
from agenticiqa.signatures.answers.json_text import LONGEST

Body = dict[str, Any]

SHOWN = 200  # characters of a body without an answer
MOST_TOKENS = 10**9  # a larger count is not valid
_REASONING_FIELD = re.compile("reason|think|thought")  # reasoning_content, reasoning, thinking, reasoning_details, ...
BROKEN_OFF = ("error", "abort", "failed")


def vetted(reply: httpx.Response, vet: Callable[[Body], Body | None]) -> Body:
    """Return the JSON of a response, in the form that lm15 parses. Raises ``lm15.ServerError`` without an answer.

    An error object instead of an answer is kept, because lm15 handles it.
    """
    status, text = reply.status_code, reply.content.decode("utf-8", "replace")
    try:
        body = json_value(text)
    except (ValueError, RecursionError) as error:  # RecursionError, or a number of too many digits
        raise lm15.ServerError(f"the response is not JSON: {_beginning(text)}", status=status) from error
    if not isinstance(body, dict) or not 200 <= status < 300 or status == 202:
        raise no_answer(status, text)
    error_field = body.get("error")
    answer = body if error_field and isinstance(error_field, dict) else vet(body)
    if answer is None:
        raise no_answer(status, text)
    return answer


def no_answer(status: int, text: str) -> lm15.ServerError:
    """Return the error for a server that sent this text instead of an answer."""
    return lm15.ServerError(f"the response contains no answer: {_beginning(text)}", status=status)


def _beginning(text: str) -> str:
    return " ".join(text[: 2 * SHOWN].split())[:SHOWN] or "(empty)"


def vet_chat(body: Body) -> Body | None:
    """Return a chat completion in OpenAI's form, checked; ``None`` without an answer. Only the first choice is used."""
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
    """Return the message with a JSON object that a server mistook for reasoning as its content.

    Without content, other reasoning becomes ``reasoning_content``, after the name of its field in brackets.
    """
    content = message.get("content")
    if isinstance(content, list):
        beside = {str(part.get("type")): part for part in content if isinstance(part, dict)}
        has_answer = "text" in beside
    else:
        beside = {name: value for name, value in message.items() if _REASONING_FIELD.search(name)}
        has_answer = bool(content)
    field, reasoning = next(((name, value) for name, value in beside.items() if value), ("", None))
    if has_answer or not field:
        return message
    thoughts = _text_in(reasoning)
    bare = thoughts[: LONGEST + 1].strip().removeprefix("```").removeprefix("json").removesuffix("```")
    try:
        is_object = len(thoughts) <= LONGEST and isinstance(json_value(bare), dict)
    except (ValueError, RecursionError):
        is_object = False
    rest = {name: value for name, value in message.items() if name not in beside}
    if is_object:
        return {**rest, "content": thoughts}
    return {**rest, "content": None, "reasoning_content": f"[{field[:40]}] {thoughts}"}


def _text_in(thoughts: Any) -> str:
    """Return the text of reasoning: a string, or blocks of a list with ``text``, ``thinking`` or ``summary``."""
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
    """Return the valid counts of tokens; an invalid count is removed, so that the price is unknown."""
    if not isinstance(usage, dict):
        return None
    read = {name: (_usage if name.endswith("_details") else _count)(value) for name, value in usage.items()}
    return {name: value for name, value in read.items() if value is not None}


def _count(value: Any) -> int | None:
    if (isinstance(value, str) and value.isdecimal() and len(value) < 10) or (type(value) is float and value % 1 == 0):
        value = int(value)
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else None


def _logprobs(logprobs: Any) -> Any:
    """Return the log-probabilities without invalid alternatives; ``None`` if that of a token itself is invalid."""
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(content, list) or not all(map(_is_logprob, content)):
        return None
    return {"content": [_pair(token) | {"top_logprobs": _alternatives(token.get("top_logprobs"))} for token in content]}


def _alternatives(listed: Any) -> list[Body]:
    return [_pair(token) for token in listed if _is_logprob(token)] if isinstance(listed, list) else []


def _pair(entry: Body) -> Body:
    return {"token": entry["token"], "logprob": entry["logprob"]}


def _is_logprob(entry: Any) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("token"), str):
        return False
    logprob = entry.get("logprob")
    if not isinstance(logprob, int | float) or isinstance(logprob, bool):
        return False
    return abs(logprob) <= sys.float_info.max  # an integer may exceed what a float can hold
