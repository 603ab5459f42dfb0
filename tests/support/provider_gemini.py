"""Google's Gemini API (``generateContent``), on loopback.

Request and answer: https://ai.google.dev/api/generate-content; images:
https://ai.google.dev/gemini-api/docs/image-understanding; errors: https://ai.google.dev/gemini-api/docs/troubleshooting,
their JSON: https://google.aip.dev/193. The wait after status 429 is in the body, not in a header.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from support import provider_schemas
from support.loopback import Arrived, Body, Reply, error_reply
from support.provider_base import Completion, Kind, Picture, Refused, Seen, errors_of, kinds, of_type, parsed, picture

FIELDS = kinds(
    array="contents safetySettings tools",
    object="systemInstruction generationConfig toolConfig",
    string="cachedContent serviceTier model",
    boolean="store",
)
CONFIG = kinds(
    number="temperature topP presencePenalty frequencyPenalty",
    integer="topK maxOutputTokens seed candidateCount logprobs",
    array="stopSequences responseModalities",
    boolean="responseLogprobs",
    string="responseMimeType mediaResolution",
    object="responseSchema thinkingConfig",
    any="responseJsonSchema",
)
STRUCTURE = ("responseMimeType", "responseSchema", "responseJsonSchema")
MIMES = ("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif")
FINISH = {"stop": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"}


class Gemini:
    """The dialect of https://generativelanguage.googleapis.com/v1beta.

    Most models do not support ``responseLogprobs``; this one does.
    """

    name, backend, base = "gemini", "google.gemini-test", "/v1beta"
    logprobs = True

    def read(self, arrived: Arrived, key: str | None) -> Seen:
        """Return the content of a request. Raises Refused if Google would refuse it."""
        path = re.fullmatch(rf"{self.base}/models/([^/:?]+):generateContent", arrived.path.partition("?")[0])
        if not path:
            raise Refused(error_reply(404, {}))
        given = arrived.headers.get("x-goog-api-key")
        if given is None:
            message = "Method doesn't allow unregistered callers (callers without established identity)."
            raise Refused(_error(403, "PERMISSION_DENIED", message))
        if key is not None and given != key:
            raise Refused(self.fault("bad_key"))
        body = parsed(arrived, _refuse)
        _check(body, FIELDS, "")
        config = body.get("generationConfig", {})
        _check(config, CONFIG, " at 'generation_config'")
        if not body.get("contents"):
            _refuse("* GenerateContentRequest.contents: contents is not specified")
        if "logprobs" in config and not config.get("responseLogprobs"):
            _refuse("logprobs may only be set when response_logprobs is true.")
        structured, schema = _structured(config)
        return Seen(
            arrived,
            body,
            key=given,
            model=path[1],
            system="\n".join(part["text"] for part in body.get("systemInstruction", {}).get("parts", ())),
            parts=_parts(body["contents"]),
            structured=structured,
            schema=schema,
            sampling={name: value for name, value in config.items() if name not in STRUCTURE},
        )

    def write(self, completion: Completion) -> Body:
        """Return the answer."""
        asked, written = completion.usage
        candidate: Body = {"finishReason": FINISH[completion.finish], "index": 0}
        if completion.finish != "refusal":
            candidate["content"] = {"parts": [{"text": completion.text or ""}], "role": "model"}
        if completion.entries is not None:
            candidate["logprobsResult"] = {
                "topCandidates": [
                    {"candidates": [_candidate(each) for each in entry["top_logprobs"]]} for entry in completion.entries
                ],
                "chosenCandidates": [_candidate(entry) for entry in completion.entries],
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

    def refusal(self) -> Body:
        """Return the reply to a blocked prompt, without candidates."""
        return {
            "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
            "usageMetadata": {"promptTokenCount": 10, "totalTokenCount": 10},
            "modelVersion": "gemini-test",
        }

    def fault(self, kind: Kind, retry_after: float | None = None) -> Reply:
        """Return an error. Raises KeyError for an error that Google does not have."""
        status, code, _, message = errors_of(self.name)[kind]
        details: list[Body] = []
        if kind == "bad_key":
            reason = {"reason": "API_KEY_INVALID", "domain": "googleapis.com"}
            details.append({"@type": "type.googleapis.com/google.rpc.ErrorInfo", **reason})
        if retry_after is not None:
            message += f"\nPlease retry in {retry_after:g}s."
            details.append({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{retry_after:g}s"})
        return _error(status, code, message, details)


def _check(given: Any, known: Mapping[str, str], where: str) -> None:
    for name, value in given.items():
        if name not in known:
            _refuse(f'Invalid JSON payload received. Unknown name "{name}"{where}: Cannot find field.')
        if not of_type(value, known[name]):
            _refuse(f"Invalid value{where} ({name}), {json.dumps(value)[:40]}")


def _structured(config: Body) -> tuple[str | None, Mapping[str, Any] | None]:
    mime = config.get("responseMimeType", "text/plain")
    if mime not in ("text/plain", "application/json", "text/x.enum"):
        _refuse(f"* GenerateContentRequest.generation_config.response_mime_type: allowed mimetypes are not {mime}")
    named = [name for name in STRUCTURE[1:] if name in config]
    if len(named) > 1:
        _refuse("Only one of response_schema and response_json_schema may be set.")
    if not named:
        return ("generationConfig.responseMimeType" if mime == "application/json" else None), None
    if mime != "application/json":
        _refuse("A response schema needs the response_mime_type application/json.")
    schema = config[named[0]]
    if not isinstance(schema, dict):
        _refuse("the response schema is no object")
    if named == ["responseSchema"] and any(
        "additionalProperties" in each for _, each in provider_schemas.subschemas(schema)
    ):
        _refuse("Unknown name \"additionalProperties\" at 'generation_config.response_schema': Cannot find field.")
    if wrong := provider_schemas.gemini(schema):
        _refuse(wrong)
    return f"generationConfig.{named[0]}", schema


def _parts(contents: list[Any]) -> tuple[str | Picture, ...]:
    for content in contents:
        if content.get("role", "user") not in ("user", "model"):
            _refuse("Please use a valid role: user, model.")
    return tuple(map(_part, contents[-1]["parts"]))


def _part(part: Any) -> str | Picture:
    match part:
        case {"text": str(text)}:
            return text
        case {"inlineData": {"mimeType": str(mime), "data": str(data)}}:
            if mime not in MIMES:
                _refuse(f"Unsupported MIME type: {mime}")
            return picture(mime, data, _refuse)
    _refuse("* GenerateContentRequest.contents[0].parts: required oneof field 'data' must have one initialized field")


def _candidate(entry: Mapping[str, Any]) -> Body:
    return {"token": entry["token"], "tokenId": 1, "logProbability": entry["logprob"]}


def _error(status: int, code: str, message: str, details: list[Body] | None = None) -> Reply:
    error: Body = {"code": status, "message": message, "status": code}
    if details:
        error["details"] = details
    return error_reply(status, {"error": error})


def _refuse(message: str) -> NoReturn:
    raise Refused(_error(400, "INVALID_ARGUMENT", message))
