"""Anthropic's Messages API, on loopback.

Request and answer: https://platform.claude.com/docs/en/api/messages; errors: .../docs/en/api/errors; images:
.../docs/en/build-with-claude/vision; structured output: .../docs/en/build-with-claude/structured-outputs.
"""

from collections.abc import Mapping
from typing import Any, NoReturn

from support import provider_schemas
from support.loopback import Arrived, Body, Reply, error_reply
from support.provider_base import Completion, Kind, Picture, Refused, Seen, errors_of, kinds, of_type, parsed, picture

VERSION = "2023-06-01"
FIELDS = kinds(
    string="model service_tier inference_geo",
    array="messages stop_sequences tools mcp_servers",
    integer="max_tokens top_k",
    any="system container",
    number="temperature top_p",
    boolean="stream",
    object="metadata tool_choice thinking output_config cache_control context_management",
)
SAMPLING = ("temperature", "top_p", "top_k", "max_tokens", "stop_sequences")
NO_SAMPLING = ("claude-opus-4-7",)  # the newer models; sipeed/picoclaw#2939
MIMES = ("image/jpeg", "image/png", "image/gif", "image/webp")


class Anthropic:
    """The dialect of https://api.anthropic.com/v1."""

    name, backend, base = "anthropic", "anthropic.claude-test", "/v1"
    logprobs = False

    def read(self, arrived: Arrived, key: str | None) -> Seen:
        """Return the content of a request. Raises Refused if Anthropic would refuse it."""
        if arrived.path != f"{self.base}/messages":
            raise Refused(_error(404, "not_found_error", "Not Found"))
        given = arrived.headers.get("x-api-key")
        if given is None:
            raise Refused(_error(401, "authentication_error", "x-api-key header is required"))
        if key is not None and given != key:
            raise Refused(self.fault("bad_key"))
        if "anthropic-version" not in arrived.headers:
            _refuse("anthropic-version: header is required")
        if arrived.headers["anthropic-version"] != VERSION:
            _refuse(f"anthropic-version: {arrived.headers['anthropic-version']!r} is not a valid version")
        body = parsed(arrived, _refuse)
        for name, value in body.items():
            if name not in FIELDS:
                _refuse(f"{name}: Extra inputs are not permitted")
            if not of_type(value, FIELDS[name]):
                _refuse(f"{name}: Input should be a valid {FIELDS[name]}")
        for name in ("model", "max_tokens", "messages"):
            if name not in body:
                _refuse(f"{name}: Field required")
        _check_sampling(body)
        schema = _schema(body.get("output_config", {}))
        return Seen(
            arrived,
            body,
            key=given,
            model=body["model"],
            system=_system(body.get("system", "")),
            parts=_parts(body["messages"]),
            structured="output_config.format" if schema is not None else None,
            schema=schema,
            sampling={name: body[name] for name in SAMPLING if name in body},
        )

    def write(self, completion: Completion) -> Body:
        """Return the answer; it has no log-probabilities."""
        stop = {"stop": "end_turn", "length": "max_tokens", "refusal": "refusal"}[completion.finish]
        asked, written = completion.usage
        return {
            "id": "msg_01Test",
            "type": "message",
            "role": "assistant",
            "model": completion.model,
            "content": [{"type": "text", "text": completion.text}] if completion.text else [],
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": {
                "input_tokens": asked,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
                "output_tokens": written,
                "service_tier": "standard",
            },
        }

    def refusal(self) -> Body:
        """Return an answer that the safety classifiers of the model blocked."""
        return self.write(Completion(None, "claude-test", finish="refusal"))

    def fault(self, kind: Kind, retry_after: float | None = None) -> Reply:
        """Return an error. Raises KeyError for an error that Anthropic does not have."""
        error = errors_of(self.name)[kind]
        return _error(error.status, error.type, error.message, retry_after)


def _check_sampling(body: Body) -> None:
    if body.get("stream"):
        _refuse("this server does not stream")
    if body["max_tokens"] < 1:
        _refuse("max_tokens: Input should be greater than or equal to 1")
    for name in ("temperature", "top_p", "top_k"):
        if name in body and body["model"].startswith(NO_SAMPLING):
            _refuse(f"`{name}` is deprecated for this model.")
    for name in ("temperature", "top_p"):
        if not 0 <= body.get(name, 0) <= 1:
            _refuse(f"{name}: range: 0..1")
    if "temperature" in body and "top_p" in body:
        _refuse("`temperature` and `top_p` cannot both be specified for this model. Please use only one.")


def _schema(config: Body) -> Mapping[str, Any] | None:
    for name in config:
        if name not in ("format", "effort"):
            _refuse(f"output_config.{name}: Extra inputs are not permitted")
    if config.get("format") is None:
        return None
    form = config["format"]
    for name in form:
        if name not in ("type", "schema"):
            _refuse(f"output_config.format.{name}: Extra inputs are not permitted")
    if form.get("type") != "json_schema":
        _refuse("output_config.format.type: Input should be 'json_schema'")
    if not isinstance(form.get("schema"), dict):
        _refuse("output_config.format.schema: Field required")
    if wrong := provider_schemas.anthropic(form["schema"]):
        _refuse(f"output_config.format.schema: {wrong}")
    schema: dict[str, Any] = form["schema"]
    return schema


def _system(system: Any) -> str:
    if isinstance(system, str):
        return system
    if not isinstance(system, list) or any(block.get("type") != "text" for block in system):
        _refuse("system: Input should be a valid string or list of text blocks")
    return "\n".join(block["text"] for block in system)


def _parts(messages: list[Any]) -> tuple[str | Picture, ...]:
    if not messages:
        _refuse("messages: at least one message is required")
    for at, message in enumerate(messages):
        if message.get("role") not in ("user", "assistant"):
            _refuse(f"messages.{at}.role: Input should be 'user' or 'assistant'")
    if messages[-1]["role"] != "user":
        _refuse("This model does not support assistant message prefill. The conversation must end with a user message.")
    content = messages[-1].get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if not isinstance(blocks, list):
        _refuse("messages.0.content: Input should be a valid list")
    where = f"messages.{len(messages) - 1}.content"
    return tuple(_block(block, f"{where}.{at}") for at, block in enumerate(blocks))


def _block(block: Any, where: str) -> str | Picture:
    match block:
        case {"type": "text", "text": str(text)}:
            if not text.strip():
                _refuse("messages: text content blocks must contain non-whitespace text")
            return text
        case {"type": "image", "source": {"type": "base64", "media_type": str(mime), "data": str(data)}}:
            if mime not in MIMES:
                _refuse(f"{where}.image.source.base64.media_type: Input should be {', '.join(map(repr, MIMES))}")
            return picture(mime, data, lambda why: _refuse(f"{where}.image.source.base64.data: {why}"))
    _refuse(f"{where}: Input does not match any of the expected content blocks")


def _error(status: int, kind: str, message: str, retry_after: float | None = None) -> Reply:
    headers = {"request-id": "req_011Test"}
    if retry_after is not None:
        headers["retry-after"] = f"{retry_after:g}"
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_011Test"}
    return error_reply(status, body, headers)


def _refuse(message: str) -> NoReturn:
    raise Refused(_error(400, "invalid_request_error", message))
