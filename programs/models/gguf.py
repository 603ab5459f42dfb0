"""A model from a GGUF file, run inside this process by llama.cpp (the package xllamacpp), as an engine of ``dspy.LM``.

xllamacpp always opens a port of the loopback interface for llama.cpp's server. Requests go through that port and not by
its Python call: llama.cpp gives up a request when its connection closes, and never before its prompt is read when it
was called; so only thus a deadline or Ctrl-C ends a request, which with an image can take minutes on a CPU. A random
key, which never leaves the process, keeps everybody else from using the port.
"""

import asyncio
import importlib.util
import json
import logging
import secrets
import socket
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from dspy import lm15

from agenticiqa.programs.cores import available_cores
from agenticiqa.programs.errors import BackendError

logger = logging.getLogger(__name__)

MAGIC = b"GGUF"
BATCH = 512  # tokens of a prompt that are read at a time; only then a request can be stopped
MOST_ITEMS = 64
MOST_CHARACTERS = 1000
VERBOSE, SILENT = 3, 0  # llama.cpp's own log, on stderr


@dataclass(frozen=True)
class Setup:
    """What is loaded, and how: files, threads of the processor, tokens of context for each of ``parallel`` requests."""

    model: Path
    projector: Path | None
    threads: int
    context: int
    parallel: int


class Loaded:
    """A model in memory, with llama.cpp's server around it; memory and port are given back when nobody holds it."""

    def __init__(self, setup: Setup) -> None:
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(setup.model)
        if setup.projector is not None:
            params.mmproj.path = str(setup.projector)
        params.n_parallel = setup.parallel
        params.n_ctx = setup.context * setup.parallel
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = setup.threads
        params.n_batch = BATCH
        params.cache_ram_mib = 0  # it would keep up to 8 GB of prompts that never come again
        params.verbosity = VERBOSE if logger.isEnabledFor(logging.DEBUG) else SILENT
        self.key = secrets.token_urlsafe(32)
        params.api_keys = [self.key]
        params.ui = params.endpoint_slots = False
        try:
            self._server = xllamacpp.Server(params)
        except RuntimeError as error:
            files = " with ".join(str(file) for file in (setup.model, setup.projector) if file is not None)
            raise lm15.ConfigurationError(
                f"llama.cpp cannot load {files}: damaged, of a kind that this xllamacpp is too old for, or larger than "
                "the memory; logging at DEBUG shows what it says"
            ) from error
        self.port = urlsplit(self._server.listening_address).port


_lock = Lock()
_in_memory: "WeakValueDictionary[Setup, Loaded]" = WeakValueDictionary()


def loaded(setup: Setup) -> Loaded:
    """The model in memory, loaded if it is not there: one copy, however many engines and threads ask for it."""
    with _lock:
        model = _in_memory.get(setup)
        if model is None:
            model = _in_memory[setup] = Loaded(setup)
        return model


class GgufEngine:
    """A GGUF model as DSPy's engine; engines of the same files and settings share one copy in memory. Thread-safe.

    ``projector`` is the file (mmproj) by which the model sees images. ``threads`` is half the cores unless said:
    llama.cpp comes to a near halt where it has to share the cores it counts on. ``context`` is in tokens, for prompt,
    images and answer of one request; ``parallel`` requests run at once, others wait. ``timeout`` is in seconds for one
    request, its wait for others included; loading the model, at the first request, is not counted.

    Raises BackendError when xllamacpp is not installed, or a file is missing or no GGUF file.
    """

    supports_response_schema = True
    supported_params = frozenset(
        {"response_format", "temperature", "top_p", "max_tokens", "seed", "stop", "logprobs", "top_logprobs"}
    )

    def __init__(
        self,
        model: Path,
        projector: Path | None = None,
        *,
        threads: int | None = None,
        context: int = 8192,
        parallel: int = 1,
        timeout: float = 300.0,
    ) -> None:
        if importlib.util.find_spec("xllamacpp") is None:
            raise BackendError('a GGUF model needs the package xllamacpp: pip install "agenticiqa[local-lm]"')
        self.setup = Setup(
            _checked(model, "model"),
            _checked(projector, "projector") if projector is not None else None,
            threads or max(1, available_cores() // 2),
            context,
            parallel,
        )
        self.timeout = timeout
        self._model: Loaded | None = None
        self._threads = ThreadPoolExecutor(parallel, thread_name_prefix="gguf")

    def complete(self, request: lm15.Request) -> lm15.Response:
        """One request, one answer.

        Raises lm15's errors: UnsupportedFeatureError for an image without a projector, ContextLengthError,
        InvalidRequestError, TimeoutError, ConfigurationError when the model cannot be loaded, and TransportError or
        ServerError when llama.cpp fails.
        """
        return _Exchange(self, request).run()

    async def acomplete(self, request: lm15.Request) -> lm15.Response:
        """The same, async; when it is cancelled, the model stops."""
        exchange = _Exchange(self, request)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, exchange.run)
        except asyncio.CancelledError:
            exchange.stop()
            raise

    def model(self) -> Loaded:
        """The model, loaded at the first call."""
        if self._model is None:
            self._model = loaded(self.setup)
        return self._model

    def close(self) -> None:
        """Let go of the model; its memory is free when no other engine holds it and no request is under way."""
        self._model = None


class AsyncGgufEngine:
    """The same engine for DSPy's async calls."""

    supports_response_schema = GgufEngine.supports_response_schema
    supported_params = GgufEngine.supported_params

    def __init__(self, engine: GgufEngine) -> None:
        self.engine = engine

    async def complete(self, request: lm15.Request) -> lm15.Response:
        """As the engine's ``acomplete``."""
        return await self.engine.acomplete(request)

    async def aclose(self) -> None:
        """As the engine's ``close``."""
        self.engine.close()


class _Exchange:
    """One request over one connection, which another thread may stop."""

    def __init__(self, engine: GgufEngine, request: lm15.Request) -> None:
        self.engine, self.request = engine, request
        self.connection: HTTPConnection | None = None
        self.stopped = False

    def run(self) -> lm15.Response:
        body = chat_body(self.request, sees_images=self.engine.setup.projector is not None)
        model = self.engine.model()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {model.key}"}
        try:
            with closing(HTTPConnection("127.0.0.1", model.port, timeout=self.engine.timeout)) as self.connection:
                self.connection.connect()
                if self.stopped:
                    raise ConnectionAbortedError("stopped")
                self.connection.request("POST", "/v1/chat/completions", body, headers)
                answer = self.connection.getresponse()
                return response(answer.status, answer.read(), self.request)
        except TimeoutError as error:
            raise lm15.TimeoutError(f"no answer within {self.engine.timeout:g} s: stopped") from error
        except (OSError, HTTPException) as error:
            raise lm15.TransportError(f"llama.cpp broke off: {error or type(error).__name__}") from error

    def stop(self) -> None:
        self.stopped = True
        opened = self.connection.sock if self.connection else None
        if opened is not None:
            opened.shutdown(socket.SHUT_RDWR)


def chat_body(request: lm15.Request, *, sees_images: bool) -> bytes:
    """The request as llama.cpp's server takes it (OpenAI chat), with bounds in its schema.

    Raises UnsupportedFeatureError when it has an image and the model sees none.
    """
    parts = [part for message in request.messages for part in message.parts]
    if not sees_images and any(isinstance(part, lm15.ImagePart) for part in parts):
        raise lm15.UnsupportedFeatureError(
            "a GGUF model sees images only with its projector: set projector to its mmproj file", feature="image"
        )
    wanted = request.config.response_format
    if wanted and "schema" in wanted:
        wanted = {**wanted, "schema": bounded(wanted["schema"])}
        request = replace(request, config=replace(request.config, response_format=wanted))
    body: bytes = _DIALECT.build_request(request, stream=False).body
    return body


# The form that llama.cpp's server shares with vLLM's: "max_tokens", and the system prompt under this name.
_DIALECT = lm15.OpenAIChatLM(api_key="none", base_url="http://127.0.0.1/v1", compat="vllm")


def bounded(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with a limit for every list (64 items) and free text (1,000 characters) that has none.

    A small model that may go on for ever does, and is cut off in the middle; a limit in the grammar makes it end well.
    """
    limited = dict(schema)
    kinds = limited.get("type")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if "array" in kinds:
        limited.setdefault("maxItems", MOST_ITEMS)
    if "string" in kinds and not limited.keys() & {"enum", "const", "pattern", "format"}:
        limited.setdefault("maxLength", MOST_CHARACTERS)
    for keyword in ("properties", "$defs"):
        if keyword in limited:
            limited[keyword] = {name: bounded(inner) for name, inner in limited[keyword].items()}
    for keyword in ("anyOf", "oneOf", "allOf", "prefixItems"):
        if keyword in limited:
            limited[keyword] = [bounded(inner) for inner in limited[keyword]]
    for keyword in ("items", "additionalProperties"):
        if isinstance(limited.get(keyword), Mapping):
            limited[keyword] = bounded(limited[keyword])
    return limited


def response(status: int, body: bytes, request: lm15.Request) -> lm15.Response:
    """What the server answered, under the model's name in the request. Raises lm15's errors, as ``complete`` says."""
    try:
        answer = json.loads(body)
    except ValueError as error:
        raise lm15.ServerError(f"llama.cpp answered no JSON (status {status})") from error
    if status == 200:
        return lm15.response_from_openai_chat({**answer, "model": request.model})
    told = answer.get("error", {})
    if told.get("type") == "exceed_context_size_error":
        error = lm15.ContextLengthError()
        # In place of lm15's page of advice, which is about hosted models.
        error.message = (
            f"the request has {told['n_prompt_tokens']} tokens, more than the {told['n_ctx']} of the model's context: "
            "give it a larger context or smaller images"
        )
        error.args = (error.message,)
        raise error
    kind = lm15.InvalidRequestError if status < 500 else lm15.ServerError
    raise kind(f"llama.cpp refuses the request: {told.get('message', status)}")


def _checked(file: Path, what: str) -> Path:
    if not file.is_file():
        raise BackendError(f"no {what} at {file}: give the path of a GGUF file")
    with file.open("rb") as opened:
        if opened.read(len(MAGIC)) != MAGIC:
            raise BackendError(f"the {what} {file} is not a GGUF file: convert it with llama.cpp's convert_hf_to_gguf")
    return file.resolve()
