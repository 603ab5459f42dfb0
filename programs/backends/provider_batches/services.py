"""The interface of a provider's Batch API: upload a file of requests, start a batch, then read its answers."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from agenticiqa.programs.backends.wire import Server

MAY_PASS = frozenset({408, 409, 421, 425, 429})


class BatchAnswer(NamedTuple):
    """One line of results: the request's id, and the status and body that its server would have answered with.

    ``status`` 0: it was not answered. ``id`` is empty for a line that cannot be read.
    """

    id: str
    status: int = 0
    body: bytes = b""


class Progress(NamedTuple):
    """The state of a batch. ``refused``: no request was accepted; ``full``: because too many are under way already."""

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
    def may_pass(self) -> bool:
        """Return whether the same request may succeed later."""
        return self.status is None or self.status in MAY_PASS or self.status >= 500


class Service(ABC):
    """A provider's batches. Every call raises ServiceError.

    A batch has at most ``most_requests`` requests and ``most_bytes`` bytes; ``folder`` is that of the run.
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
        """Begin the batch of an uploaded file, and return its handle."""

    @abstractmethod
    def find(self, name: str) -> str | None:
        """Return the handle of the batch that was begun under this name; ``None`` if none was."""

    @abstractmethod
    def progress(self, handle: str, requests: int) -> Progress:
        """Return the progress of a batch with so many requests."""

    @abstractmethod
    def results(self, handle: str) -> Iterator[BatchAnswer]:
        """Yield the answers, in any order."""

    @abstractmethod
    def cancel(self, handle: str) -> None:
        """End the batch early; what is answered already stays."""

    @abstractmethod
    def discard(self, file: str) -> None:
        """Delete the uploaded file, which holds the images."""
