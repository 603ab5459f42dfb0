"""What each provider's batches need, in one form: a file of requests goes out, a handle comes back, then answers."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from agenticiqa.configs import StageConfig
from agenticiqa.configs.reading import json_value
from agenticiqa.programs.backends.failures import redacted
from agenticiqa.programs.backends.transport import proxy_for
from agenticiqa.programs.backends.wire import SENT, Server
from agenticiqa.programs.errors import BackendError

MAY_PASS = frozenset({408, 409, 421, 425, 429})
LONGEST_SAID = 300  # characters of what a provider says
UPLOAD = 600.0  # seconds that a write or read of one piece may take


class BatchAnswer(NamedTuple):
    """One line of results: the request's id, and the status and body that its server would have answered with.

    ``status`` 0: it was not answered. ``id`` is empty for a line that cannot be read.
    """

    id: str
    status: int = 0
    body: bytes = b""


class Progress(NamedTuple):
    """Where a batch is. ``refused``: none of it was taken; ``full``: so, because too much is under way already."""

    is_over: bool
    told: str = ""
    refused: bool = False
    full: bool = False


class ServiceError(Exception):
    """A provider did not do what it was asked to; ``status`` is ``None`` where it said nothing."""

    def __init__(self, told: str, status: int | None = None) -> None:
        super().__init__(told)
        self.status = status

    @property
    def may_pass(self) -> bool:
        """Whether the same may succeed later."""
        return self.status is None or self.status in MAY_PASS or self.status >= 500


class Unclear(Exception):
    """A batch may have been taken, and the provider does not tell; the message names the batches it may be."""


class Service(ABC):
    """A provider's batches. Every call raises ServiceError.

    A file of at most ``most_requests`` requests and ``most_bytes`` bytes is ``head``, requests with ``between`` among
    them, and ``tail``; a request is its body between the two that ``frame`` gives. ``at_once``: the same server also
    answers single requests.
    """

    most_requests: int
    most_bytes: int
    head, between, tail = b"", b"\n", b"\n"
    at_once = True

    @abstractmethod
    def frame(self, id: str) -> tuple[bytes, bytes]:
        """What stands before and after a body."""

    def upload(self, path: Path, name: str) -> str | None:
        """Bring the file to the provider, under this name; what the provider calls it, where it takes files."""
        return None

    def uploaded(self, name: str) -> str | None:
        """What the provider calls the file of this name that may have been brought to it; ``None`` if it was not."""
        return None

    @abstractmethod
    def create(self, path: Path, file: str | None, name: str) -> str:
        """Begin the batch; its handle."""

    def newest(self) -> str | None:
        """The handle of the newest batch of the account, where that is needed to find one again."""
        return None

    @abstractmethod
    def find(self, name: str, requests: frozenset[str], newest: str | None, known: frozenset[str]) -> str | None:
        """The handle of a batch that may have been begun; ``None`` if it was not. Raises Unclear.

        ``newest`` was the newest one before, ``known`` are handles that belong to others.
        """

    @abstractmethod
    def progress(self, handle: str, requests: int) -> Progress:
        """Where it is."""

    @abstractmethod
    def results(self, handle: str) -> Iterator[BatchAnswer]:
        """What came, in any order."""

    @abstractmethod
    def cancel(self, handle: str) -> None:
        """End it early; what is answered already stays."""

    def discard(self, file: str) -> None:  # noqa: B027 - most have none
        """Delete the file of requests, which holds the images."""


WHERE: dict[str, tuple[str, str]] = {
    "openai": ("openai_files", "OpenAIFiles"),
    "anthropic": ("anthropic_messages", "AnthropicMessages"),
    "google": ("gemini_jobs", "GeminiJobs"),
    "vllm": ("offline_file", "OfflineFile"),
}


def service(backend: str, server: Server, folder: Path) -> Service:
    """The batches of a backend, whose ``server`` answers single requests. Raises BackendError without its package."""
    return _kind(backend)(server, folder)


def limits_of(backend: str) -> tuple[int, int]:
    """The most requests and bytes of one batch of a backend."""
    kind = _kind(backend)
    return kind.most_requests, kind.most_bytes


def _kind(backend: str) -> Any:
    module, name = WHERE[backend.partition(".")[0]]
    return getattr(import_module(f"{__package__}.{module}"), name)


def refuse_without_batches(stage: StageConfig) -> None:
    """Raises BackendError for a backend that has no batches."""
    if not stage.is_offline and stage.backend.partition(".")[0] not in WHERE:
        able = ", ".join(f"{name}.<model>" for name in WHERE)
        raise BackendError(f"backend {stage.backend!r} has no batches: leave out --batch, or expected {able}")


def http_client(server: Server, headers: frozenset[str] = frozenset(), kind: Any = httpx.Client) -> Any:
    """A client for files of any size. As for single requests, it follows no redirect and tells nothing of this machine.

    ``headers`` are sent beside the usual ones. ``kind`` is the class, of a package that has an httpx of its own.
    """

    def bare(request: Any) -> None:
        for name in set(request.headers) - SENT - headers - {"content-length", "transfer-encoding"}:
            del request.headers[name]

    proxy = proxy_for(server.address) if server.address else proxy_for("https://provider.invalid")
    return kind(
        trust_env=False,
        proxy=proxy,
        timeout=(10.0, UPLOAD, UPLOAD, UPLOAD),
        follow_redirects=False,
        event_hooks={"request": [bare]},
    )


@contextmanager
def in_words(server: Server) -> Iterator[None]:
    """Errors of packages and connections as ServiceError, without the key."""
    try:
        yield
    except (ServiceError, BackendError, Unclear):
        raise
    except Exception as error:
        status = getattr(error, "status_code", None) or getattr(error, "code", None)
        known = isinstance(status, int) or isinstance(error, httpx.HTTPError | OSError | ValueError)
        if not known and type(error).__module__.partition(".")[0] not in {"openai", "anthropic", "google", "httpx2"}:
            raise
        said = getattr(error, "message", None) or str(error) or type(error).__name__
        text = redacted(" ".join(str(said).split()), (server.key,))[:LONGEST_SAID]
        number = status if isinstance(status, int) else None
        raise ServiceError(f"status {number}: {text}" if number else text, number) from error


def named(made: object, key: str = "id") -> str:
    """The name of what a provider says that it made."""
    name = getattr(made, key, None)
    if not isinstance(name, str) or not name:
        raise ServiceError("its answer does not name what it made")
    return name


def json_lines(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """The JSON objects of lines; an empty one for a line that is none."""
    for line in lines:
        if line.strip():
            try:
                found = json_value(line)
            except (ValueError, RecursionError):
                found = None
            yield found if isinstance(found, dict) else {}
