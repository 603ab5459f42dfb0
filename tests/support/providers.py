"""Loopback servers with the real API of each provider. They check requests as the provider does, and record them.

::

    with provider_server(ANTHROPIC, by_stage({"assessment": ASSESSMENT}), key="sk-test") as server:
        ...                                     # StageConfig(backend=ANTHROPIC.backend, api_base=server.url, ...)
        (seen,) = server.seen                   # the same form for every provider: system, parts, images, key, ...
        assert server.refused == []             # requests with a 4xx reply, in the provider's JSON

Scripts are as for ``fake_server``: they receive the request in OpenAI's form and return a text or a ``Reply``.
``fault`` and ``refusal`` are faults in each provider's form; they work with ``in_turn`` and ``by_stage``.
``provider_servers.yaml`` has a row for each server, ``provider_requests.yaml`` the schemas of requests,
``provider_errors.yaml`` the errors, ``provider_schemas`` the rules for the schemas of answers. Sources of the
differences between the servers:

* OpenAI: https://platform.openai.com/docs/guides/error-codes, .../guides/images-vision
* Anthropic: https://platform.claude.com/docs/en/api/errors, .../docs/en/build-with-claude/vision
* Gemini: https://ai.google.dev/gemini-api/docs/image-understanding, .../docs/troubleshooting; the JSON of errors:
  https://google.aip.dev/193. The wait after status 429 is in the body, not in a header.
* vLLM: https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html; its errors: vllm-project/vllm#6301, #9739
* SGLang: https://docs.sglang.ai/basic_usage/openai_api_vision.html
* Ollama: https://docs.ollama.com/api/openai-compatibility
* llama.cpp: https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md; no WebP: cline/cline#8977
* LM Studio: https://lmstudio.ai/docs/developer/openai-compat; no ``json_object``: lmstudio-ai/lmstudio-bug-tracker#189
"""

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Any, Literal, NoReturn

import yaml
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from jsonschema.exceptions import best_match  # type: ignore[import-untyped]

from support import provider_schemas
from support.fake_server import Script, stage_of
from support.loopback import Arrived, Body, Reply, error_reply, loopback, tokens

Kind = Literal[
    "bad_key", "context", "image", "no_images", "no_model", "one_image", "overloaded", "quota", "rate_limit", "server"
]
Finish = Literal["stop", "length", "refusal"]

HERE = Path(__file__).parent
SCHEMAS: dict[str, Any] = yaml.safe_load((HERE / "provider_requests.yaml").read_text("utf-8"))
REQUESTS = {name: Draft202012Validator(schema) for name, schema in SCHEMAS.items()}
ERRORS: dict[str, dict[str, list[Any]]] = yaml.safe_load((HERE / "provider_errors.yaml").read_text("utf-8"))
SAMPLING = {
    "chat": "temperature top_p max_tokens max_completion_tokens seed logprobs top_logprobs n",
    "anthropic": "temperature top_p top_k max_tokens stop_sequences",
    "gemini": "temperature topP topK maxOutputTokens seed logprobs responseLogprobs stopSequences thinkingConfig",
}
SIGNATURES = {"png": b"\x89PNG\r\n", "jpeg": b"\xff\xd8\xff", "gif": b"GIF8", "bmp": b"BM", "webp": b"RIFF"}
VERSION = "2023-06-01"  # of Anthropic's API


@dataclass(frozen=True)
class Picture:
    """An image of a request; ``text`` is its base64 as in the body."""

    mime: str
    data: bytes = field(repr=False)
    text: str = field(repr=False)


@dataclass(frozen=True)
class Seen:
    """The content of a request, in the same form for every provider.

    ``parts`` are the texts and images of the last user message, in their order. ``structured`` is the field that
    requests JSON, with dots (``response_format.json_schema``), ``schema`` its schema. ``sampling`` has the names of the
    provider. ``ignored`` are fields that the server accepts without effect.
    """

    arrived: Arrived = field(repr=False)
    body: Body = field(repr=False)
    model: str
    system: str
    parts: tuple[str | Picture, ...] = field(repr=False)
    structured: str | None
    schema: Mapping[str, Any] | None = field(repr=False)
    sampling: Mapping[str, Any]
    ignored: tuple[str, ...]

    @property
    def path(self) -> str:
        return self.arrived.path

    @property
    def headers(self) -> Mapping[str, str]:
        return self.arrived.headers

    @property
    def pictures(self) -> list[Picture]:
        return [part for part in self.parts if isinstance(part, Picture)]

    @property
    def images(self) -> list[tuple[str, bytes]]:
        """Return mime type and bytes of each image, in order."""
        return [(picture.mime, picture.data) for picture in self.pictures]

    @property
    def texts(self) -> list[str]:
        return [part for part in self.parts if isinstance(part, str)]

    def as_chat(self) -> Body:
        """Return the request in OpenAI's chat form, which scripts (``by_stage``, ``field_of``) read."""
        content = [
            {"type": "text", "text": part}
            if isinstance(part, str)
            else {"type": "image_url", "image_url": {"url": f"data:{part.mime};base64,{part.text}"}}
            for part in self.parts
        ]
        messages = [{"role": "system", "content": self.system}, {"role": "user", "content": content}]
        return {"model": self.model, "messages": messages}


@dataclass(frozen=True)
class Completion:
    """An answer that is independent of the provider; ``entries`` are log-probabilities, if requested."""

    text: str | None
    model: str
    usage: tuple[int, int] = (10, 5)
    finish: Finish = "stop"
    entries: Sequence[Mapping[str, Any]] | None = None


class Refused(Exception):
    """Raised when the server refuses the request, with its answer."""

    def __init__(self, reply: Reply) -> None:
        super().__init__((reply.raw_body or b"").decode())
        self.reply = reply


@dataclass(frozen=True, eq=False)
class Dialect:
    """The API of one server.

    ``api`` is that of its requests: chat, anthropic or gemini. ``images``: the types that it decodes. ``fields``: the
    supported fields; OpenAI refuses all others, other servers ignore them (``None``: the schema refuses them).
    ``forms``: the types of ``response_format``. ``key``: the header of the key, "" if it requires none. ``extra``:
    fields that it adds to each answer. ``base`` follows host and port in the address. ``lists`` has the answers to GET
    requests, by path.
    """

    name: str
    backend: str
    images: str
    fields: str | None = None
    api: Literal["chat", "anthropic", "gemini"] = "chat"
    forms: str = "text json_object json_schema"
    key: str = "authorization"
    logprobs: bool = True
    extra: Mapping[str, Any] = field(default_factory=dict)
    base: str = "/v1"
    lists: Mapping[str, Any] = field(default_factory=dict)

    def read(self, arrived: Arrived, key: str | None) -> Seen:
        """Return the content of a request. Raises Refused if this server would refuse it."""
        model = self._check_head(arrived, key)
        try:
            body = json.loads(arrived.raw)
        except ValueError:
            self._refuse("we could not parse the JSON body of your request")
        if wrong := best_match(REQUESTS[self.api].iter_errors(body)):
            self._refuse(f"{wrong.json_path.removeprefix('$.')}: {wrong.message}")
        supported = body if self.fields is None else self.fields.split()
        ignored = tuple(name for name in body if name not in supported)
        if ignored and self.name == "openai":
            self._refuse(f"Unrecognized request argument supplied: {ignored[0]}")
        if self.api != "gemini" and body["messages"][-1]["role"] != "user":
            self._refuse("the last message has to be the user's")
        structured, schema = self._structured(body)
        system, content = _content(self.api, body)
        if (
            self.name == "openai"
            and structured == "response_format.json_object"
            and "json" not in f"{system}{content}".lower()
        ):
            self._refuse("'messages' must contain the word 'json' in some form, to use 'response_format' json_object.")
        settings = body.get("generationConfig", {}) if self.api == "gemini" else body
        sampling = {name: value for name, value in settings.items() if name in SAMPLING[self.api].split()}
        parts = tuple(part if isinstance(part, str) else self._picture(*part) for part in content)
        return Seen(arrived, body, model or body["model"], system, parts, structured, schema, sampling, ignored)

    def write(self, completion: Completion) -> Body:
        """Return the answer in the form of the server."""
        return {"chat": self._chat, "anthropic": _message, "gemini": _candidates}[self.api](completion)

    def refusal(self) -> Body:
        """Return a refusal for safety reasons. Raises KeyError for a server without refusals."""
        if self.api == "gemini":  # a blocked prompt, without candidates
            usage = {"promptTokenCount": 10, "totalTokenCount": 10}
            return {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": usage}
        if self.name not in ("openai", "anthropic"):
            raise KeyError(f"{self.name} has no refusals")
        return self.write(Completion(None, "model-test", finish="refusal"))

    def fault(self, kind: Kind, retry_after: float | None = None) -> Reply:
        """Return an error. Raises KeyError for an error that this server does not have."""
        status, type_, code, message = ERRORS[self.name][kind]
        headers = {} if retry_after is None else {"retry-after": f"{retry_after:g}"}
        if self.api != "gemini":
            return error_reply(status, self._error(status, type_, code, message), headers)
        details: list[Body] = []
        if kind == "bad_key":
            reason = {"reason": "API_KEY_INVALID", "domain": "googleapis.com"}
            details.append({"@type": "type.googleapis.com/google.rpc.ErrorInfo", **reason})
        if retry_after is not None:
            message += f"\nPlease retry in {retry_after:g}s."
            details.append({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{retry_after:g}s"})
        error = {"code": status, "message": message, "status": type_}
        return error_reply(status, {"error": {**error, **({"details": details} if details else {})}})

    def _error(self, status: int, type_: str, code: str | None, message: str) -> Body:
        match self.name:
            case "anthropic":
                return {"type": "error", "error": {"type": type_, "message": message}, "request_id": "req_011Test"}
            case "gemini":
                return {"error": {"code": status, "message": message, "status": type_}}
            case "vllm" if status == 401:
                return {"error": "Unauthorized"}
            case "vllm":
                return {"error": {"message": message, "type": type_, "param": None, "code": status}}
            case "sglang":
                return {"object": "error", "message": message, "type": type_, "param": None, "code": status}
            case "llamacpp":
                return {"error": {"code": status, "message": message, "type": type_}}
            case "lmstudio":
                return {"error": message}
        return {"error": {"message": message, "type": type_, "param": None, "code": code}}

    def _refuse(self, message: str, status: int = 400) -> NoReturn:
        types = {"vllm": "BadRequestError", "sglang": "BadRequestError", "gemini": "INVALID_ARGUMENT"}
        type_ = types.get(self.name, "invalid_request_error")
        raise Refused(error_reply(status, self._error(status, type_, "invalid_value", message)))

    def _check_head(self, arrived: Arrived, key: str | None) -> str | None:
        """Check path and headers; return the model if the path names it."""
        paths = {"chat": "/chat/completions", "anthropic": "/messages", "gemini": r"/models/([^/:?]+):generateContent"}
        path = re.fullmatch(self.base + paths[self.api], arrived.path)
        if not path:
            self._refuse(f"Invalid URL (POST {arrived.path})", 404)
        given = arrived.headers.get(self.key, "").removeprefix("Bearer ")
        if self.key and key is not None and given != key:
            raise Refused(self.fault("bad_key"))
        if self.name in ("openai", "anthropic", "gemini") and not given:
            self._refuse("You didn't provide an API key.", 401)
        if self.name == "anthropic" and arrived.headers.get("anthropic-version") != VERSION:
            self._refuse("anthropic-version: it is required, and has to be a valid version")
        if not arrived.headers.get("content-type", "").startswith("application/json"):
            self._refuse("the content type is not application/json")
        return path[1] if self.api == "gemini" else None

    def _structured(self, body: Body) -> tuple[str | None, Mapping[str, Any] | None]:
        """Return the field that requests JSON, and its schema, if this provider supports both."""
        if self.api == "anthropic":
            schema = (body.get("output_config", {}).get("format") or {}).get("schema")
            where, wrong = "output_config.format", schema and provider_schemas.anthropic(schema)
        elif self.api == "gemini":
            settings = body.get("generationConfig", {})
            schema = settings.get("responseJsonSchema")
            where, wrong = "generationConfig.responseJsonSchema", schema and provider_schemas.gemini(schema)
            if schema is None and settings.get("responseMimeType") == "application/json":
                return "generationConfig.responseMimeType", None
        else:
            form = body.get("response_format", {"type": "text"})
            if form["type"] not in self.forms.split():
                self._refuse(f"'response_format.type' must be {' or '.join(map(repr, sorted(self.forms.split())))}")
            if form["type"] == "json_object":
                return "response_format.json_object", None
            inner = form.get("json_schema", {})
            schema = inner.get("schema")
            strict = self.name == "openai" and inner.get("strict")
            where, wrong = "response_format.json_schema", provider_schemas.openai_strict(schema) if strict else None
        if wrong:
            self._refuse(f"Invalid schema for {where}: {wrong}.")
        return (None if schema is None else where), schema

    def _picture(self, mime: str, text: str) -> Picture:
        """Return the image in a base64 text; its bytes must match the type."""
        if mime.removeprefix("image/") not in self.images.split():
            self._refuse(f"You uploaded an unsupported image ({mime}).")
        try:
            data = base64.b64decode(text, validate=True)
        except ValueError:
            self._refuse("could not decode the base64 of the image")
        if not data.startswith(SIGNATURES[mime.removeprefix("image/")]):
            self._refuse(f"the image was specified using the {mime} media type, but appears to be another one")
        return Picture(mime, data, text)

    def _chat(self, completion: Completion) -> Body:
        finish = {"stop": "stop", "length": "length", "refusal": "stop"}[completion.finish]
        message: Body = {"role": "assistant", "content": completion.text}
        if self.name in ("openai", "vllm"):
            refused = completion.finish == "refusal"
            message["refusal"] = "I'm sorry, I can't assist with that request." if refused else None
        choice: Body = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
        if completion.entries is not None:
            choice["logprobs"] = {"content": list(completion.entries)}
        asked, written = completion.usage
        return {
            "id": "chatcmpl-test",
            "object": "chat.completion",
            "created": 1763700000,
            "model": completion.model,
            "choices": [choice],
            "usage": {"prompt_tokens": asked, "completion_tokens": written, "total_tokens": asked + written},
            **self.extra,
        }


def _content(api: str, body: Body) -> tuple[str, list[str | tuple[str, str]]]:
    """Return the system prompt, and the parts of the last message: texts, and images as (type, base64)."""
    if api == "gemini":
        system = [part["text"] for part in body.get("systemInstruction", {"parts": []})["parts"]]
        content = body["contents"][-1]["parts"]
    else:
        prompts = [message["content"] for message in body["messages"] if message["role"] in ("system", "developer")]
        if api == "anthropic":
            prompts = [body.get("system", "")]
        system = [
            prompt if isinstance(prompt, str) else "\n".join(part["text"] for part in prompt) for prompt in prompts
        ]
        content = body["messages"][-1]["content"]
    parts: list[str | tuple[str, str]] = []
    for part in [{"text": content}] if isinstance(content, str) else content:
        match part:
            case {"text": text}:
                parts.append(text)
            case {"image_url": {"url": url}}:
                mime, _, data = url.removeprefix("data:").partition(";base64,")
                parts.append((mime, data))
            case {"source": {"media_type": mime, "data": data}} | {"inlineData": {"mimeType": mime, "data": data}}:
                parts.append((mime, data))
    return "\n".join(system), parts


def _message(completion: Completion) -> Body:
    """Return an answer of Anthropic; it has no log-probabilities."""
    asked, written = completion.usage
    return {
        "id": "msg_01Test",
        "type": "message",
        "role": "assistant",
        "model": completion.model,
        "content": [{"type": "text", "text": completion.text}] if completion.text else [],
        "stop_reason": {"stop": "end_turn", "length": "max_tokens", "refusal": "refusal"}[completion.finish],
        "stop_sequence": None,
        "usage": {
            "input_tokens": asked,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": written,
            "service_tier": "standard",
        },
    }


def _candidates(completion: Completion) -> Body:
    """Return an answer of Gemini."""
    asked, written = completion.usage
    candidate: Body = {"finishReason": {"stop": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"}[completion.finish]}
    candidate |= {"index": 0, "content": {"parts": [{"text": completion.text or ""}], "role": "model"}}
    if completion.entries is not None:
        candidate["logprobsResult"] = {
            "topCandidates": [{"candidates": [*map(_candidate, each["top_logprobs"])]} for each in completion.entries],
            "chosenCandidates": [*map(_candidate, completion.entries)],
        }
    return {
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": asked,
            "candidatesTokenCount": written,
            "totalTokenCount": asked + written,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": asked}],
        },
        "modelVersion": completion.model,
        "responseId": "test",
    }


def _candidate(entry: Mapping[str, Any]) -> Body:
    return {"token": entry["token"], "tokenId": 1, "logProbability": entry["logprob"]}


DIALECTS = tuple(Dialect(**server) for server in yaml.safe_load((HERE / "provider_servers.yaml").read_text("utf-8")))
OPENAI, ANTHROPIC, GEMINI, VLLM, SGLANG, OLLAMA, LLAMACPP, LMSTUDIO = DIALECTS


@dataclass
class ProviderServer:
    """A running server: its address for a configuration, accepted requests and refused ones, in order."""

    url: str
    dialect: Dialect
    seen: list[Seen] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def of(self, stage: str) -> list[Seen]:
        """Return the requests of one stage, named as ``by_stage`` does."""
        return [seen for seen in self.seen if stage_of(seen.as_chat()) == stage]


@contextmanager
def provider_server(dialect: Dialect, script: Script | str | Reply, key: str | None = None) -> Iterator[ProviderServer]:
    """Run a server on loopback. With a ``key``, it refuses other keys, if the real server checks keys."""
    lock = Lock()

    def respond(arrived: Arrived) -> Reply:
        if arrived.method == "GET":
            found = dialect.lists.get(arrived.path)
            return error_reply(404, {"error": "not found"}) if found is None else error_reply(200, found)
        try:
            seen = dialect.read(arrived, key)
        except Refused as refused:
            with lock:
                server.refused.append(str(refused))
            return refused.reply
        with lock:
            server.seen.append(seen)
        said = script(seen.as_chat()) if callable(script) else script
        reply = Reply(said) if isinstance(said, str) else said
        return reply if reply.raw_body is not None else written(dialect, seen, reply)

    with loopback(respond) as address:
        server = ProviderServer(f"{address}{dialect.base}", dialect)
        yield server


def fault(dialect: Dialect, kind: Kind, retry_after: float | None = None) -> Reply:
    """Return an error in the provider's own form. ``retry_after``, in seconds, is where that provider puts it.

    Raises KeyError if the provider has no such error: a local server without keys cannot refuse one.
    """
    return dialect.fault(kind, retry_after)


def refusal(dialect: Dialect) -> Reply:
    """Return a refusal for safety reasons, with status 200. Raises KeyError if the provider has none."""
    return Reply(raw_body=json.dumps(dialect.refusal()).encode())


def cut_off(dialect: Dialect, text: str, usage: tuple[int, int] = (10, 2048)) -> Reply:
    """Return an answer that is cut off, by default after 2,048 tokens."""
    completion = Completion(text, "model-test", usage=usage, finish="length")
    return Reply(raw_body=json.dumps(dialect.write(completion)).encode())


def written(dialect: Dialect, seen: Seen, reply: Reply) -> Reply:
    """Return the reply in the provider's form, with log-probabilities if requested and supported."""
    entries = None
    if dialect.logprobs and (seen.sampling.get("logprobs") or seen.sampling.get("responseLogprobs")):
        most = int(seen.sampling.get("top_logprobs", seen.sampling.get("logprobs", 0)))
        spoken = tokens(reply.content or "") if reply.logprobs is None else reply.logprobs
        entries = [{**entry, "top_logprobs": list(entry["top_logprobs"])[:most]} for entry in spoken]
    completion = Completion(reply.content, seen.model, reply.usage, entries=entries)
    return replace(reply, raw_body=json.dumps(dialect.write(completion)).encode())
