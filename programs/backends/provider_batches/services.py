"""Define the interface of a provider's Batch API: upload a file of requests, start a batch, then read its answers."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from agenticiqa.programs.backends.wire import Server

TEMPORARY = frozenset({408, 409, 421, 425, 429})


class BatchAnswer(NamedTuple):
    """One line of results: the id of a request, and the HTTP status and body of its answer.

    ``status`` is 0 for a request without an answer. ``id`` is empty for a line that cannot be parsed.
    """

    id: str
    status: int = 0
    body: bytes = b""


class Progress(NamedTuple):
    """The state of a batch. ``refused``: no request was accepted; ``full``: because too many are already under way."""

    is_over: bool
    message: str = ""
    refused: bool = False
    full: bool = False


class ServiceError(Exception):
    """Raised when a provider's request fails; ``status`` is ``None`` without a response."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status

    @property
    def is_temporary(self) -> bool:
        """Return whether the same request may succeed later."""
        return self.status is None or self.status in TEMPORARY or self.status >= 500


class Service(ABC):
    """A provider's Batch API. Every method may raise ServiceError.

    A batch has at most ``most_requests`` requests and ``most_bytes`` bytes; ``folder`` is the folder of the run.
    """

    most_requests: int
    most_bytes: int

    def __init__(self, server: "Server", folder: Path) -> None:
        self.server, self.folder = server, folder

    @abstractmethod
    def upload(self, path: Path, name: str) -> str:
        """Upload the file to the provider under this name, and return the provider's id."""

    @abstractmethod
    def uploaded(self, name: str) -> str | None:
        """Return the provider's id of the file that was uploaded under this name; ``None`` without one."""

    @abstractmethod
    def create(self, file: str, name: str) -> str:
        """Start the batch of an uploaded file, and return its handle."""

    @abstractmethod
    def find(self, name: str) -> str | None:
        """Return the handle of the batch that was started under this name; ``None`` without one."""

    @abstractmethod
    def progress(self, handle: str, requests: int) -> Progress:
        """Return the progress of a batch with this number of requests."""

    @abstractmethod
    def results(self, handle: str) -> Iterator[BatchAnswer]:
        """Yield the answers, in any order."""

    @abstractmethod
    def cancel(self, handle: str) -> None:
        """End the batch early; answers that the provider already has are kept."""

    @abstractmethod
    def discard(self, file: str) -> None:
        """Delete the uploaded file, which contains the images."""
