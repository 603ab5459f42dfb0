"""A model from a GGUF file inside this process, by llama.cpp (the package xllamacpp).

xllamacpp always opens a loopback port for llama.cpp's server. Requests go through that port, by the same wire as to any
llama.cpp server, and not through its Python call, because llama.cpp stops a request only when its connection closes: so
a deadline or Ctrl-C ends what may take minutes for an image on a CPU. A random key, which never leaves the process,
keeps other users of the machine out.
"""

import importlib.util
import logging
import secrets
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import BoundedSemaphore, Lock
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from dspy import lm15

from agenticiqa.programs.backends.cores import available_cores
from agenticiqa.programs.backends.held_images import marked
from agenticiqa.programs.backends.providers import PROVIDERS
from agenticiqa.programs.backends.wire import ChatServer, each_schema, with_schema
from agenticiqa.programs.errors import BackendError

logger = logging.getLogger(__name__)

BATCH = 512  # tokens of a prompt per step; a request can be stopped only between two steps
MOST_ITEMS = 64
MOST_CHARACTERS = 1000
LLAMACPP = PROVIDERS["llamacpp"]


class GgufEngine:
    """A GGUF model as an engine's wire; those of the same files and settings share one copy in memory. Thread-safe.

    ``projector`` is the file (mmproj) that the model needs for images. ``threads`` is half the cores by default:
    llama.cpp nearly stops when another program uses one of its cores. ``context`` is in tokens, for prompt, images and
    answer of one request. ``parallel`` requests run at once, others wait. ``timeout`` is in seconds for one request,
    without its wait; the model is loaded before, at the first request.

    Raises BackendError when a file is missing or is no GGUF file, or when xllamacpp is not installed.
    """

    supports_response_schema = True  # both for DSPy, where this is the engine itself
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
        self.setup = Setup(
            _checked(model, "model"),
            _checked(projector, "projector") if projector is not None else None,
            threads or max(1, available_cores() // 2),
            context,
            parallel,
        )
        if importlib.util.find_spec("xllamacpp") is None:
            raise BackendError('a GGUF model needs the package xllamacpp: pip install "agenticiqa[local-lm]"')
        self.timeout = timeout
        self._model: Loaded | None = None

    def prepared(self, request: lm15.Request) -> lm15.Request:
        """The request with a mark for each held image, its schema bounded.

        Raises UnsupportedFeatureError for an image when the model has no projector.
        """
        parts = [part for message in request.messages for part in message.parts]
        if self.setup.projector is None and any(isinstance(part, lm15.ImagePart) for part in parts):
            raise lm15.UnsupportedFeatureError(
                "a GGUF model needs its projector for images: set projector to its mmproj file", feature="images"
            )
        return marked(with_schema(request, bounded))

    def complete(self, request: lm15.Request) -> lm15.Response:
        """Send one request and return its answer, with the model's name of the request.

        Raises lm15's errors; ConfigurationError when the model cannot be loaded.
        """
        request, model = self.prepared(request), self.model()
        server = ChatServer(LLAMACPP, request.model, model.address, model.key, self.timeout)
        with model.turns:
            answer = server.complete(request)
        return replace(answer, model=request.model)

    def model(self) -> "Loaded":
        """The model, loaded at the first call."""
        if self._model is None:
            self._model = loaded(self.setup)
        return self._model

    def close(self) -> None:
        """Release the model; its memory is freed once no other engine and no running request uses it."""
        self._model = None


@dataclass(frozen=True)
class Setup:
    """The files and settings of a loaded model: see GgufEngine."""

    model: Path
    projector: Path | None
    threads: int
    context: int
    parallel: int


class Loaded:
    """A model in memory with llama.cpp's server at ``address``, which requires ``key``; freed when this object is.

    A request holds one of ``turns`` while it runs. Raises lm15.ConfigurationError when the model cannot be loaded.
    """

    def __init__(self, setup: Setup) -> None:
        self.key = secrets.token_urlsafe(32)
        self.turns = BoundedSemaphore(setup.parallel)
        try:
            # In a thread, which Ctrl-C does not interrupt: a server dropped before its loop runs would never end.
            with ThreadPoolExecutor(1) as pool:
                self._server = pool.submit(_running, setup, self.key).result()
        except RuntimeError as error:
            files = " with ".join(str(file) for file in (setup.model, setup.projector) if file is not None)
            raise lm15.ConfigurationError(
                f"llama.cpp cannot load {files}: damaged, not meant for each other, newer than this xllamacpp, or too "
                "large for the memory; with logging at DEBUG it says which"
            ) from error
        self.address = f"http://127.0.0.1:{urlsplit(self._server.listening_address).port}/v1"


def _running(setup: Setup, key: str) -> Any:
    """A server with its loop running."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(setup.model)
    if setup.projector is not None:
        params.mmproj.path = str(setup.projector)
    params.n_parallel = setup.parallel
    params.n_ctx = setup.context * setup.parallel
    params.n_batch = BATCH
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = setup.threads
    params.cache_ram_mib = 0  # it would cache the state of answered prompts, up to 8 GB
    params.api_keys = [key]
    params.ui = params.endpoint_slots = False
    params.endpoint_metrics = True
    params.verbosity = 3 if logger.isEnabledFor(logging.DEBUG) else 0  # its log goes to stderr
    server = xllamacpp.Server(params)
    server.handle_metrics()  # answered by the loop
    return server


_loading = Lock()
_in_memory: "WeakValueDictionary[Setup, Loaded]" = WeakValueDictionary()


def loaded(setup: Setup) -> Loaded:
    """The model in memory, loaded at the first call for these settings, whichever engine or thread calls."""
    with _loading:
        model = _in_memory.get(setup)
        if model is None:
            model = _in_memory[setup] = Loaded(setup)
        return model


def bounded(schema: Any) -> Any:
    """The JSON schema with a limit for each list (64 items) and each free text (1,000 characters) that has none.

    Without a limit, a small model repeats itself until its answer is cut off. llama.cpp limits whitespace and digits.
    """
    return each_schema(schema, _limited)


def _limited(node: dict[str, Any]) -> dict[str, Any]:
    kinds = node["type"] if isinstance(node.get("type"), list) else [node.get("type")]
    limits = {"maxItems": MOST_ITEMS} if "array" in kinds else {}
    if "string" in kinds and not node.keys() & {"enum", "const", "pattern", "format"}:
        limits["maxLength"] = MOST_CHARACTERS
    return limits | node


def _checked(file: Path, what: str) -> Path:
    if not file.is_file():
        raise BackendError(f"there is no {what} at {file}: give the path of a GGUF file")
    with file.open("rb") as opened:
        if opened.read(4) != b"GGUF":
            raise BackendError(f"the {what} {file} is not a GGUF file")
    return file.resolve()
