"""What the driver needs of a provider's batches: a file of requests goes out, a handle comes back, then answers."""

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
    """Where a batch is. ``refused``: none of it was taken; ``full``: so, because too much is under way already."""

    is_over: bool
    message: str = ""
    refused: bool = False
    full: bool = False


class ServiceError(Exception):
    """A provider did not do what it was asked to; ``status`` is ``None`` where it said nothing."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status

    @property
    def may_pass(self) -> bool:
        """Whether the same may succeed later."""
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
        """Bring the file to the provider, under this name, and return what the provider calls it."""

    @abstractmethod
    def uploaded(self, name: str) -> str | None:
        """Return what the provider calls the file that was brought to it under this name; ``None`` if none was."""

    @abstractmethod
    def create(self, file: str, name: str) -> str:
        """Begin the batch of an uploaded file, and return its handle."""

    @abstractmethod
    def find(self, name: str) -> str | None:
        """Return the handle of the batch that was begun under this name; ``None`` if none was."""

    @abstractmethod
    def progress(self, handle: str, requests: int) -> Progress:
        """Return where the batch, which has so many requests, is."""

    @abstractmethod
    def results(self, handle: str) -> Iterator[BatchAnswer]:
        """Yield what came, in any order."""

    @abstractmethod
    def cancel(self, handle: str) -> None:
        """End the batch early; what is answered already stays."""

    @abstractmethod
    def discard(self, file: str) -> None:
        """Delete the uploaded file, which holds the images."""
