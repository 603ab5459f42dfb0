"""One question about one image: what a run is a list of."""

from dataclasses import dataclass
from pathlib import Path

from agenticiqa.programs.images.files import printable_path


@dataclass(frozen=True)
class Job:
    """One image to judge, with its question and, if there is one, its reference.

    ``resize_reference`` allows a reference of another size, which is scaled to the image's.
    """

    image: Path
    query: str
    reference: Path | None = None
    resize_reference: bool = False

    @property
    def name(self) -> str:
        """The image as results and messages name it: its path, printable."""
        return printable_path(self.image)


def failure_text(job: Job, error: BaseException) -> str:
    """What went wrong with a job in one line that begins with the image's name, which is not repeated."""
    text = " ".join(str(error).split())
    return text if text.startswith(f"{job.name}:") else f"{job.name}: {text}"
