"""Servers with OpenAI's chat completions API, each with its differences.

* OpenAI: https://platform.openai.com/docs/api-reference/chat/create, .../guides/error-codes, .../guides/images-vision
* vLLM: https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html; its errors: vllm-project/vllm#6301, #9739
* SGLang: https://docs.sglang.ai/basic_usage/openai_api_vision.html
* Ollama: https://docs.ollama.com/api/openai-compatibility
* llama.cpp: https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md; no WebP: cline/cline#8977
* LM Studio: https://lmstudio.ai/docs/developer/openai-compat; no ``json_object``: lmstudio-ai/lmstudio-bug-tracker#189
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from support import provider_schemas
from support.loopback import Arrived, Body, Reply, error_reply
from support.provider_base import (
    Completion,
    Kind,
    Picture,
    Refused,
    Seen,
    errors_of,
    fetched,
    kinds,
    of_type,
    parsed,
    picture,
)

TYPES = kinds(
    string="model",
    array="messages",
    number="temperature top_p",
    integer="max_tokens max_completion_tokens seed top_logprobs n",
    boolean="logprobs stream",
    object="response_format",
)
SAMPLING = ["temperature", "top_p", "max_tokens", "max_completion_tokens", "seed", "logprobs", "top_logprobs", "n"]
MOST_LOGPROBS = 20
UNSUPPORTED = {"llamacpp": "Failed to load image or audio file", "ollama": "invalid image input"}


@dataclass(frozen=True, eq=False)
class Chat:
    """The dialect of one server.

    ``fields``: the supported top-level fields; OpenAI refuses all others, other servers ignore them. ``mimes``: the
    image types that it decodes. ``forms``: the types of ``response_format``. ``keyed``: whether it can require a key.
    ``extra``: fields that it adds to each answer.
    """

    name: str
    backend: str
    fields: str
    mimes: tuple[str, ...] = ("image/jpeg", "image/png", "image/webp", "image/gif")
    forms: tuple[str, ...] = ("text", "json_object", "json_schema")
    keyed: bool = True
    logprobs: bool = True
    extra: Mapping[str, Any] = field(default_factory=dict)
    base: str = "/v1"

    def read(self, arrived: Arrived, key: str | None) -> Seen:
        """Return the content of a request. Raises Refused if this server would refuse it."""
        if arrived.path != f"{self.base}/chat/completions":
            self._refuse(f"Invalid URL (POST {arrived.path})", status=404)
        given = arrived.headers.get("authorization", "").removeprefix("Bearer ") or None
        if self.keyed and key is not None and given != key:
            raise Refused(self.fault("bad_key"))
        if self.name == "openai" and given is None:
            self._refuse("You didn't provide an API key.", status=401, code=None)
        body = parsed(arrived, self._refuse)
        ignored = tuple(name for name in body if name not in self.fields.split())
        if ignored and self.name == "openai":
            self._refuse(f"Unrecognized request argument supplied: {ignored[0]}")
        self._check(body)
        structured, schema = self._structured(body)
        system, parts = self._messages(body["messages"])
        if (
            self.name == "openai"
            and structured == "response_format.json_object"
            and "json" not in f"{system}{parts}".lower()
        ):
            self._refuse("'messages' must contain the word 'json' in some form, to use 'response_format' json_object.")
        return Seen(
            arrived,
            body,
            key=given,
            model=body["model"],
            system=system,
            parts=parts,
            structured=structured,
            schema=schema,
            sampling={name: body[name] for name in SAMPLING if name in body},
            ignored=ignored,
        )

    def write(self, completion: Completion) -> Body:
        """Return the answer, with its log-probabilities, if any."""
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

    def refusal(self) -> Body:
        """Return a refusal instead of an answer. Raises KeyError for a server without refusals."""
        if self.name != "openai":
            raise KeyError(f"{self.name} has no refusals")
        return self.write(Completion(None, "gpt-4o-test", finish="refusal"))

    def fault(self, kind: Kind, retry_after: float | None = None) -> Reply:
        """Return an error. Raises KeyError for an error that this server does not have."""
        headers = {} if retry_after is None else {"retry-after": f"{retry_after:g}"}
        error = errors_of(self.name)[kind]
        return error_reply(error.status, self._error(*error), headers)

    def _error(self, status: int, type_: str, code: str | None, message: str) -> Body:
        match self.name:
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

    def _refuse(self, message: str, status: int = 400, code: str | None = "invalid_value") -> NoReturn:
        type_ = "BadRequestError" if self.name in ("vllm", "sglang") else "invalid_request_error"
        raise Refused(error_reply(status, self._error(status, type_, code, message)))

    def _check(self, body: Body) -> None:
        for name in ("model", "messages"):
            if not body.get(name):
                self._refuse(f"Missing required parameter: '{name}'.", code="missing_required_parameter")
        for name, kind in TYPES.items():
            if name in body and not of_type(body[name], kind):
                self._refuse(f"Invalid type for '{name}': expected {kind}.", code="invalid_type")
        for name, low, high in (("temperature", 0, 2), ("top_p", 0, 1), ("top_logprobs", 0, MOST_LOGPROBS)):
            if not low <= body.get(name, low) <= high:
                self._refuse(f"Invalid '{name}': expected a value from {low} to {high}.")
        for name in ("max_tokens", "max_completion_tokens"):
            if body.get(name, 1) < 1:
                self._refuse(f"Invalid '{name}': integer below minimum value. Expected a value >= 1.")
        if {"max_tokens", "max_completion_tokens"} <= set(body):
            self._refuse("Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
        if "top_logprobs" in body and not body.get("logprobs"):
            self._refuse("top_logprobs requires logprobs to be set to true")
        if body.get("stream"):
            self._refuse("this server does not stream")

    def _structured(self, body: Body) -> tuple[str | None, Mapping[str, Any] | None]:
        form = body.get("response_format", {"type": "text"})
        kind = form.get("type")
        if kind not in self.forms:
            self._refuse(f"'response_format.type' must be {' or '.join(map(repr, sorted(self.forms)))}")
        if kind != "json_schema":
            return (None if kind == "text" else "response_format.json_object"), None
        inner = form.get("json_schema")
        if not isinstance(inner, dict) or not isinstance(inner.get("schema"), dict):
            self._refuse("Missing required parameter: 'response_format.json_schema'.")
        if self.name in ("openai", "vllm", "sglang") and not isinstance(inner.get("name"), str):
            self._refuse("Missing required parameter: 'response_format.json_schema.name'.")
        schema: dict[str, Any] = inner["schema"]
        if self.name == "openai" and inner.get("strict") and (wrong := provider_schemas.openai_strict(schema)):
            self._refuse(f"Invalid schema for response_format '{inner['name']}': {wrong}.")
        return "response_format.json_schema", schema

    def _messages(self, messages: list[Any]) -> tuple[str, tuple[str | Picture, ...]]:
        system = []
        for message in messages:
            if message.get("role") in ("system", "developer"):
                content = message["content"]
                system.append(content if isinstance(content, str) else "\n".join(part["text"] for part in content))
            elif message.get("role") not in ("user", "assistant"):
                self._refuse(f"Invalid value: {message.get('role')!r}. Supported values are 'system', 'user', ...")
        content = messages[-1].get("content")
        if messages[-1]["role"] != "user" or not isinstance(content, str | list):
            self._refuse("the last message has to be the user's, with content")
        return "\n".join(system), (content,) if isinstance(content, str) else tuple(map(self._part, content))

    def _part(self, part: Any) -> str | Picture:
        match part:
            case {"type": "text", "text": str(text)}:
                return text
            case {"type": "image_url", "image_url": {"url": str(url)}} if url.startswith("data:"):
                mime, _, data = url.removeprefix("data:").partition(";base64,")
                if mime not in self.mimes:
                    self._refuse(UNSUPPORTED.get(self.name, f"You uploaded an unsupported image ({mime})."))
                return picture(mime, data, self._refuse)
            case {"type": "image_url", "image_url": {"url": str(url)}}:
                return fetched(url, self._refuse)
        self._refuse(f"Invalid content part: {str(part)[:60]}")


SHARED = (
    "model messages temperature top_p max_tokens seed stop stream frequency_penalty presence_penalty response_format"
)
FULL = (
    "max_completion_tokens logprobs top_logprobs n logit_bias metadata modalities parallel_tool_calls prediction "
    "prompt_cache_key prompt_cache_retention reasoning_effort safety_identifier service_tier store stream_options "
    "tool_choice tools user verbosity"
)

OPENAI = Chat(
    "openai",
    "openai.gpt-4o-test",
    f"{SHARED} {FULL}",
    extra={"service_tier": "default", "system_fingerprint": "fp_test"},
)

VLLM = Chat(
    "vllm",
    "vllm.org/model-test",
    f"{SHARED} {FULL}",
    extra={"service_tier": None, "system_fingerprint": None, "prompt_logprobs": None, "kv_transfer_params": None},
)

SGLANG = Chat(
    "sglang",
    "sglang.org/model-test",
    f"{SHARED} {FULL}",
    extra={"metadata": {"weight_version": "default"}},
)

OLLAMA = Chat(
    "ollama",
    "ollama.model-test:7b",
    f"{SHARED} logprobs top_logprobs reasoning reasoning_effort stream_options tools",
    mimes=("image/jpeg", "image/png", "image/webp"),
    keyed=False,
    extra={"system_fingerprint": "fp_ollama"},
)

LLAMACPP = Chat(
    "llamacpp",
    "llamacpp.model-test",
    f"{SHARED} logprobs top_logprobs n max_completion_tokens stream_options tools tool_choice logit_bias user",
    mimes=("image/jpeg", "image/png", "image/bmp", "image/gif"),
    extra={"system_fingerprint": "b7000-test", "timings": {"prompt_n": 10, "predicted_n": 5}},
)

LMSTUDIO = Chat(
    "lmstudio",
    "lmstudio.model-test",
    f"{SHARED} top_k repeat_penalty logit_bias stream_options tools",
    mimes=("image/jpeg", "image/png", "image/webp"),
    forms=("text", "json_schema"),
    keyed=False,
    logprobs=False,
    extra={"stats": {}, "system_fingerprint": "model-test"},
)
